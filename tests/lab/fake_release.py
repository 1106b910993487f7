"""A tiny image whose `vllm` is a fake engine that says that it is one, and a fleet file with releases of it.

Recipe, build, unit, ledger, programs, gate and client are the real ones. What the engine does wrong is told by its
environment, so that each way of failing is a release of its own; or, for what befalls a release that was good, by a
file beside its caches (`FAULT`).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.lab.builds import HEAD, TAIL
from tests.lab.lab_driver import Lab, Run
from tests.lab.tiny_recipe import tiny

SERVICE, PORT = "fakes", 8055
SAYS = "this is a fake engine of tests/lab: it has no model and computes nothing"
DECODE = "tg16@pp128 c1"
GATE: dict[str, Any] = {
    "client": "controller",
    "workload": {"pp": [128], "tg": [16], "runs": 3, "coherence": False, "time_limit_s": 180},
    "most_runs": 3,
    # A fast fake makes some 200 tokens a second, a slow one 2: no busy machine comes between.
    "thresholds": {DECODE: {"min": 8}},
}
# On the host; the engine finds it in its container. `exits`, `eats`: at its start. `dies`: after it has replied.
# `hangs`: gives no reply until it is started again. `works`: the same, but its counters move.
FAULT = f"/var/lib/tinderbox/caches/{SERVICE}/vllm/fault"
CUTLASS, MARLIN = "fake backend: CUTLASS", "fake backend: Marlin"
# A minute, since tests wait for it to be over.
READINESS = {"start_minutes": 1, "wanted_log": [CUTLASS], "refused_log": [MARLIN]}
FAST = {"FAKE_TOKEN_S": "0.005"}
_PROGRAM = f'''

import os, signal, sys

_FILE = "/root/.cache/vllm/fault"


def told():
    try:
        return Path(_FILE).read_text().strip()
    except OSError:
        return os.environ.get("FAKE_FAULT", "")


def leave(*_):
    time.sleep(float(os.environ.get("FAKE_STOP_S", "0")))
    os._exit(143)


words, fault = sys.argv[1:], told()
# The first process of a container ends by no signal that it does not handle: these are as one that hangs in a driver.
if fault not in ("mute", "deaf"):
    signal.signal(signal.SIGTERM, leave)
print("{SAYS}", flush=True)
print(os.environ.get("FAKE_SAYS", ""), flush=True)
if words[:1] != ["serve"]:
    sys.exit(0)
if fault == "exits":
    sys.exit("out of order, as it was told to be")
time.sleep(float(os.environ.get("FAKE_START_S", "0")))
while fault == "mute":
    time.sleep(60)
if fault == "hangs":
    os.remove(_FILE)
taken = []
while fault == "eats":
    taken.append(b"x" * 2**24)
    time.sleep(0.05)
wanted = float(os.environ.get("FAKE_TOKEN_S", "0.005"))
behaviour = Behaviour(token_s=wanted, key=os.environ.get("VLLM_API_KEY", ""))
# For what makes a machine slow without being a part of the release.
slow = Path("/root/.cache/vllm/slow")
names = words[words.index("--served-model-name") + 1 :]
names = names[: next((at for at, word in enumerate(names) if word.startswith("--")), len(names))]


class Server(handler(behaviour)):
    def do_GET(self):
        known = json.dumps({{"data": [{{"id": name}} for name in names]}}).encode()
        count = time.time() if told() == "works" else behaviour.asked
        counts = {{"generation_tokens_total": count, "num_requests_running": behaviour.running}}
        behaviour.metrics = "".join(f"vllm:{{name}} {{value}}\\n" for name, value in counts.items())
        models = self.path == "/v1/models" and self._knows_the_key()
        self._send(200, known) if models else super().do_GET()

    def _send(self, status, data, kind="application/json"):
        # A whole reply takes as long as it was told; a stream has its pace.
        time.sleep(float(os.environ.get("FAKE_WHOLE_S", "0")) if self.command == "POST" else 0)
        super()._send(status, data, kind)

    def _event(self, event):
        # It has no tokenizer, and the model's counts otherwise than its own bytes.
        event.get("usage", {{}}).update(prompt_tokens=0)
        super()._event(event)

    def do_POST(self):
        if told() in ("hangs", "works"):
            time.sleep(3600)
        if told() == "dies":
            threading.Timer(2, os._exit, [3]).start()
        behaviour.token_s = 0.5 if slow.exists() else wanted
        if fault != "empty":
            return super().do_POST()
        self.rfile.read(int(self.headers["content-length"]))
        self._send(200, json.dumps({{"choices": [{{"message": {{"content": ""}}}}]}}).encode())


port = int(words[words.index("--port") + 1])
ThreadingHTTPServer.request_queue_size = 128
ThreadingHTTPServer((words[words.index("--host") + 1], port), Server).serve_forever()
'''
_DEPLOY = """\
from pyinfra import host
from modules.fleet import plan_of
from roles.encodings import encodings
from roles.engine import engine
from roles.gate import gate
from roles.image import image
from roles.runtime import runtime
from roles.site import site
from roles.weights import weights
plan = plan_of(host)
site(plan=plan)
runtime(plan=plan)
image(plan=plan)
encodings(plan=plan)
weights(plan=plan)
engine(plan=plan)
gate(plan=plan)
"""


def recipe(lab: Lab, **pins: Any) -> dict[str, Any]:
    """The image's recipe, as a fleet file writes it out. `pins`: sources that it names, and does not use."""
    text = f"#!/usr/bin/env python3\n{Path('tests/lab/fake_engine.py').read_text()}{_PROGRAM}"
    packed = base64.b64encode(text.encode()).decode()
    steps = f"RUN echo {packed} | base64 -d > /usr/local/bin/vllm && chmod 755 /usr/local/bin/vllm\n"
    check = 'LABEL tinderbox.check=\'["vllm", "--version"]\'\n'
    return tiny(lab, HEAD + steps + check + TAIL, name="fake-engine", packages={}, pins=pins, arguments={})


def fleet_of(lab: Lab, host: str, name: str, keys: Mapping[str, Any] | None = None, /, **environment: str) -> Path:
    """A fleet file whose only service is a release of the fake engine with that environment.

    `keys`: of the service, that differ. Unless it is told otherwise, it names the backend that is wanted.
    """

    def change(content: dict[str, Any]) -> None:
        content["fleet"] = "releases"
        content["hosts"] = {host: content["hosts"][host]}
        service = content["defaults"]["services"]["gpt-oss"]
        service |= {"port": PORT, "gate": GATE, "image": {"recipe": recipe(lab)}, "readiness": READINESS}
        service |= {"environment": {"FAKE_SAYS": CUTLASS, **environment}, **(keys or {})}
        content["defaults"]["services"] = {SERVICE: service}

    return lab.write_fleet(f"releases-{name}", change)


def deploy_file(lab: Lab) -> Path:
    """All stages that a release needs, as deploys/spark.py has them, but for the toolkit."""
    deploy = lab.layout.folder / "releases.py"
    deploy.write_text(_DEPLOY)
    return deploy


def deployed(lab: Lab, fleet: Path, **environment: str) -> Run:
    """A run of these stages."""
    words = ["env", *(f"{name}={value}" for name, value in environment.items())]
    return lab.tinderbox([*words, "pyinfra", "inventory.py", str(deploy_file(lab)), "-y", "--json"], fleet=fleet)


def by_hand(lab: Lab, deploy: str, fleet: Path, **environment: str) -> Run:
    """One of the deploys that operators call."""
    words = ["env", *(f"{name}={value}" for name, value in environment.items())]
    return lab.tinderbox([*words, "pyinfra", "inventory.py", f"deploys/{deploy}.py", "-y", "--json"], fleet=fleet)
