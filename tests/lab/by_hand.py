"""Servers on a lab host as their owners start them: by docker run, compose, a unit; and a client that never stops."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from modules.facts.tools import TOOLS_PYTHON
from tests.lab.fake_release import _PROGRAM, CUTLASS, recipe
from tests.lab.lab_driver import Lab

IMAGE, MODEL, NAME, PORT = "own/vllm:1", "tinderbox-lab/gpt-oss-tiny", "tiny", 8055
HOME = "/home/spark/.cache/huggingface"
_MOUNT = f"-v {HOME}:/root/.cache/huggingface"
SERVE = f"serve {MODEL} --host 0.0.0.0 --port 8000 --served-model-name {NAME} --max-model-len 2048"
_ENGINE = f"docker run -d --name own-llm {_MOUNT} -p 127.0.0.1:{PORT}:8000 -e FAKE_SAYS='{CUTLASS}'"
_COMPOSE = f"""\
services:
  llm:
    image: {IMAGE}
    command: vllm {SERVE}
    restart: unless-stopped
    ports: ["127.0.0.1:{PORT}:8000"]
    volumes: ["{HOME}:/root/.cache/huggingface"]
    environment: {{FAKE_SAYS: "{CUTLASS}", OWNERS_SECRET_TOKEN: not-to-be-shown}}
  beside:
    image: {IMAGE}
    command: sleep infinity
"""
_UNIT = """\
[Unit]
Description=a server of the owner's
[Service]
{environment}
ExecStartPre=-/usr/bin/docker rm -f own-llm
ExecStart={start}
Restart=always
[Install]
WantedBy=multi-user.target
"""
BARE = "/opt/own-llm/bin/vllm"
# Asks again and again, and notes of each reply whether it came.
_CLIENT = """\
import json, os, time, urllib.request
out = open("/tmp/replies", "w", buffering=1)
body = json.dumps({"model": %(model)r, "messages": [{"role": "user", "content": "Hello."}], "max_tokens": 2}).encode()
while not os.path.exists("/tmp/enough"):
    request = urllib.request.Request("http://127.0.0.1:%(port)d/v1/chat/completions", body,
                                     {"content-type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=20).read()
        out.write("1")
    except Exception:
        out.write("0")
    time.sleep(0.2)
"""


@dataclass(frozen=True)
class ByHand:
    """A host with an image and a cache of its owner's, on which servers are started as owners do."""

    lab: Lab
    host: str

    def sh(self, command: str, *, check: bool = True, timeout_s: float = 300) -> str:
        """What a root's shell prints."""
        words = f"sudo sh -c {shlex.quote(command)}"
        return self.lab.ssh(self.host, words, check=check, timeout_s=timeout_s).stdout.strip()

    def tag(self, repository: str) -> str:
        """The newest image of a repository by its name."""
        return self.sh(f"docker image ls --format '{{{{.Repository}}}}:{{{{.Tag}}}}' {repository} | head -1")

    def owners_unit(self) -> list[str]:
        """How the owner's unit stands."""
        return self.sh("systemctl show -P ActiveState -P UnitFileState own-llm.service").split()

    def docker_run(self, *, more: str = "--restart unless-stopped") -> None:
        """By `docker run`."""
        self.sh(f"{_ENGINE} {more} {IMAGE} vllm {SERVE}")

    def executed(self) -> None:
        """As spark-vllm-docker and sparkrun do: a container that sleeps, removed when it stops, and a server in it."""
        self.sh(f"{_ENGINE} --rm {IMAGE} sleep infinity")
        self.sh(f"docker exec -d own-llm bash -c 'vllm {SERVE}'")

    def compose(self) -> None:
        """By docker-compose, beside another service of the project."""
        self.sh("mkdir -p /home/spark/stack")
        self.lab.write(self.host, "/home/spark/stack/docker-compose.yml", _COMPOSE)
        self.sh("cd /home/spark/stack && docker-compose up -d 2>&1")

    def unit(self, start: str, environment: str = "") -> None:
        """By a unit of the owner's."""
        text = _UNIT.format(start=start, environment=f"Environment={environment}" if environment else "")
        self.lab.write(self.host, "/etc/systemd/system/own-llm.service", text)
        self.sh("systemctl daemon-reload; systemctl enable --now own-llm.service 2>&1")

    def unit_of_docker(self, image: str = IMAGE, serve: str = SERVE, more: str = f"-e 'FAKE_SAYS={CUTLASS}'") -> None:
        """By a unit that runs `docker run`."""
        run = f"/usr/bin/docker run --rm --name own-llm {_MOUNT} -p 127.0.0.1:{PORT}:8000 {more} {image} vllm {serve}"
        self.unit(run)

    def unit_of_process(self) -> None:
        """By a unit that runs the program itself."""
        text = f"#!/usr/bin/env python3\n{Path('tests/lab/fake_engine.py').read_text()}{_PROGRAM}"
        self.sh(f"mkdir -p {Path(BARE).parent}")
        self.lab.write(self.host, BARE, text)
        serve = SERVE.replace("0.0.0.0 --port 8000", f"127.0.0.1 --port {PORT}")
        self.unit(f"/usr/bin/python3 {BARE} {serve}", f"HF_HOME={HOME} 'FAKE_SAYS={CUTLASS}'")

    def await_reply(self, name: str = NAME, tries: int = 240) -> None:
        """Until the port answers."""
        body = json.dumps({"model": name, "messages": [{"role": "user", "content": "Hi."}], "max_tokens": 2})
        ask = f"curl -sf --max-time 20 --json {shlex.quote(body)} http://127.0.0.1:{PORT}/v1/chat/completions"
        waited = f"for each in $(seq {tries}); do {ask} && exit 0; sleep 1; done; docker logs own-llm; exit 1"
        self.sh(waited, timeout_s=tries + 60)

    def clear(self) -> None:
        """Nothing of the owner's server and of Tinderbox' service is left."""
        units = "/etc/systemd/system"
        each = (
            f"test -d $each || continue; name=$(basename $each); systemctl disable --now tinderbox-$name.service; "
            f"rm -f {units}/tinderbox-$name.service {units}/tinderbox-watch@$name.service"
        )
        state = " ".join(f"/var/lib/tinderbox/{name}" for name in ("ledger", "undo/adopted", "weights", "caches"))
        self.sh(
            f"systemctl disable --now own-llm.service; rm -f {units}/own-llm.service;"
            f"for each in /var/lib/tinderbox/ledger/*/; do {each}; done; systemctl daemon-reload;"
            f"rm -rf {state} /etc/tinderbox/services.json; docker rm -f $(docker ps -aq)",
            check=False,
        )

    @contextmanager
    def asked(self, name: str = NAME) -> Iterator[list[str]]:
        """While this lasts, a client asks; the list then has the replies: `1` one came, `0` none."""
        self.lab.write(self.host, "/root/client.py", _CLIENT % {"model": name, "port": PORT})
        self.sh("rm -f /tmp/enough; systemd-run --quiet --unit own-client python3 /root/client.py")
        replies: list[str] = []
        try:
            yield replies
        finally:
            self.sh("touch /tmp/enough; while systemctl -q is-active own-client; do sleep 0.2; done", check=False)
            replies += self.sh("cat /tmp/replies")


def gaps(replies: list[str]) -> int:
    """How often the server was away."""
    return sum(1 for part in "".join(replies).strip("0").split("1") if part)


def prepared(lab: Lab, host: str) -> ByHand:
    """The host with docker, an image under a name of the owner's, and the model by the hub's own client."""
    by_hand = ByHand(lab, host)
    by_hand.clear()
    made = recipe(lab)

    def change(content: dict[str, object]) -> None:
        hosts, defaults = content["hosts"], content["defaults"]
        assert isinstance(hosts, dict)
        assert isinstance(defaults, dict)
        content["hosts"] = {host: hosts[host]}
        defaults["services"]["gpt-oss"]["image"] = {"recipe": made}

    fleet = lab.write_fleet("by-hand", change)
    deploy = lab.layout.folder / "by_hand.py"
    deploy.write_text(_DEPLOY)
    run = lab.pyinfra(str(deploy), "-y", fleet=fleet)
    assert run.rc == 0, run.text
    own_image(by_hand, by_hand.tag("tinderbox/fake-engine"), IMAGE)
    fetch = f"from huggingface_hub import snapshot_download as get; get('{MODEL}')"
    ca = "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt REQUESTS_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt"
    by_hand.sh(f'sudo -u spark env HF_ENDPOINT=https://hub.lab HF_HOME={HOME} {ca} {TOOLS_PYTHON} -c "{fetch}"')
    return by_hand


def own_image(by_hand: ByHand, tag: str, name: str) -> None:
    """Have an image under a name of the owner's alone."""
    by_hand.sh(f"docker tag {tag} {name} && docker rmi {tag}")


_DEPLOY = """\
from pyinfra import host
from modules.fleet import plan_of
from modules.operations.tools import tools_installed
from roles.image import image
from roles.runtime import runtime
from roles.site import site
plan = plan_of(host)
site(plan=plan)
runtime(plan=plan)
image(plan=plan)
tools_installed(name="The hub's client")
"""
