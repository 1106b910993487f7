"""A service on a lab host that is a unit, a ledger and a server that counts tokens: quick to put into any state."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.lab.lab_driver import Lab

SERVICE, RELEASE, PORT = "gpt-oss", "5ca1ab1e0000", 8000
UNIT, WATCH = f"tinderbox-{SERVICE}.service", f"tinderbox-watch@{SERVICE}.service"
# By its clock, so that whoever looks twice sees this rate, however slow the machine is.
TOKENS_S, RUNNING, WAITING = 100, 3, 2
GATED = "2026-11-29T22:53:20Z"
_PROGRAM = f"""
import http.server, sys, time
class Engine(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        told = {{"generation_tokens_total": time.time() * {TOKENS_S}, "num_requests_running": {RUNNING}}}
        told |= {{"num_requests_waiting": {WAITING}, "kv_cache_usage_perc": 0.25}}
        self.send_response(200)
        self.end_headers()
        self.wfile.write("".join(f"vllm:{{name}} {{value}}\\n" for name, value in told.items()).encode())
    def log_message(self, *_):
        pass
print("it serves", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", {PORT}), Engine).serve_forever()
"""
_GATE = {
    "release": RELEASE,
    "finished": GATED,
    "judgement": {"verdict": "PASS", "figures": {"tg128@pp2048 c1": 54.2}, "lines": []},
}
_FILES = {
    "/opt/made_up.py": _PROGRAM,
    f"/etc/systemd/system/{UNIT}": "[Service]\nExecStart=/usr/bin/python3 /opt/made_up.py\n",
    f"/etc/systemd/system/{WATCH}": f"[Unit]\nBindsTo={UNIT}\nAfter={UNIT}\n[Service]\nExecStart=/bin/sleep infinity\n",
    f"/var/lib/tinderbox/gates/{SERVICE}/{RELEASE}.json": json.dumps(_GATE),
    f"/var/lib/tinderbox/ledger/{SERVICE}/{RELEASE}.json": json.dumps(
        {"id": RELEASE, "release": {}, "events": [{"at": GATED, "event": "activated"}, {"at": GATED, "event": "good"}]}
    ),
}


@dataclass(frozen=True)
class MadeUp:
    """The service of one host."""

    lab: Lab
    host: str

    def run(self, command: str) -> str:
        """As root on its host."""
        return self.lab.ssh(self.host, f"sudo sh -ec {shlex.quote(command)}").stdout

    def fail(self) -> None:
        """Have it fail at its next start, and start it."""
        self.lab.write(self.host, f"/etc/systemd/system/{UNIT}", "[Service]\nExecStart=/bin/false\n")
        self.run(f"systemctl daemon-reload; systemctl restart {UNIT} || true")
        self.run(f"for i in 1 2 3 4 5; do systemctl is-failed {UNIT} && break; sleep 1; done")


@contextmanager
def made_up(lab: Lab, host: str) -> Iterator[MadeUp]:
    """While this lasts, the host has it, and it runs."""
    service = MadeUp(lab, host)
    ledger, gates = (f"/var/lib/tinderbox/{folder}/{SERVICE}" for folder in ("ledger", "gates"))
    generated = f"/run/tinderbox/generated/{SERVICE}"
    try:
        service.run(f"mkdir -p {ledger} {gates} {generated.rpartition('/')[0]}")
        for path, text in _FILES.items():
            lab.write(host, path, text)
        service.run(f'ln -sfn {RELEASE}.json {ledger}/current; date +\'{{"at": %s, "misses": 0}}\' > {generated}')
        service.run(f"systemctl daemon-reload; systemctl start {UNIT} {WATCH}")
        yield service
    finally:
        service.run(f"systemctl stop {UNIT} {WATCH} || true; systemctl reset-failed {UNIT} || true")
        service.run(f"rm -rf {' '.join(_FILES)} {ledger} {gates} {generated}; systemctl daemon-reload")
