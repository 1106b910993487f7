"""A bare lab host that serves by a fake engine, and a deploy of its gate alone.

The engine is tests/lab/fake_engine.py, of known speed; unit, ledger, programs, tunnel and client are the real ones. The
client runs on the controller, so that the host needs no tools.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modules.catalog import load_catalog
from modules.fleet import load_fleet
from modules.fleet.plan import host_plan
from modules.release import layout
from tests.lab.fake_engine import write_tokenizer
from tests.lab.lab_driver import Lab, Run

SERVICE, RELEASE, _COMMIT = "gpt-oss", "r1", "c" * 40
_UNIT, _LEDGER, _ENGINE = f"tinderbox-{SERVICE}.service", f"/var/lib/tinderbox/ledger/{SERVICE}", "/opt/fake_engine.py"
_DEPLOY = """\
from pyinfra import host
from modules.fleet.plan import plan_of
from modules.operations.gate import gate_passed
from modules.operations.hostside import hostside_installed
plan = plan_of(host)
(service,) = plan.services
hostside_installed(name="Programs")
gate_passed(name="Gate", plan=service, gate=service.gate, home=plan.settings.weights.home, asked={asked})
"""


@dataclass(frozen=True)
class FakeService:
    """The service of one host, with its model's folder and its port."""

    lab: Lab
    host: str
    snapshot: str
    port: int

    @property
    def result_file(self) -> str:
        """Where the host keeps what was measured."""
        return layout.gate_result_file(SERVICE, RELEASE)

    @property
    def stored(self) -> dict[str, Any]:
        """What the host keeps."""
        found: dict[str, Any] = json.loads(self.lab.read(self.host, self.result_file))
        return found

    def start(self, tokenizer: Path, token_s: float) -> None:
        """Have all on the host that a gate needs, and serve."""
        serve = (
            f"ThreadingHTTPServer(('127.0.0.1', {self.port}), handler(Behaviour(token_s={token_s}))).serve_forever()"
        )
        ready = {"at": "2026-11-30T00:00:00Z", "event": "ready"}
        release = {"id": RELEASE, "release": {"commit": _COMMIT}, "files": [], "events": [ready]}
        files = {f"{self.snapshot}/{path.name}": path.read_text() for path in tokenizer.iterdir()} | {
            _ENGINE: f"{Path('tests/lab/fake_engine.py').read_text()}\n\n{serve}\n",
            f"/etc/systemd/system/{_UNIT}": f"[Service]\nExecStart=/usr/bin/python3 {_ENGINE}\n",
            f"{_LEDGER}/{RELEASE}.json": json.dumps(release),
        }
        self.lab.ssh(self.host, f"sudo mkdir -p {' '.join({str(Path(path).parent) for path in files})}")
        for path, text in files.items():
            self.lab.write(self.host, path, text)
        started = f"sudo systemctl daemon-reload; sudo systemctl restart {_UNIT}"
        self.lab.ssh(self.host, f"sudo ln -sfn {RELEASE}.json {_LEDGER}/current; {started}")

    def remove(self) -> None:
        """Leave the host as it was."""
        gone = f"{_LEDGER} /var/lib/tinderbox/gates {self.snapshot} /etc/systemd/system/{_UNIT} {_ENGINE}"
        self.lab.ssh(
            self.host, f"sudo systemctl stop {_UNIT}; sudo rm -rf {gone}; sudo systemctl daemon-reload", check=False
        )


@contextmanager
def fake_services(lab: Lab, fleet: Path, folder: Path, speeds: dict[str, float]) -> Iterator[dict[str, FakeService]]:
    """Host → its service, while this lasts. `speeds`: host → seconds from token to token."""
    tokenizer = write_tokenizer(folder / "model")
    services = {}
    for host in speeds:
        plan = host_plan(load_fleet(fleet).hosts[host], load_catalog())
        (service,) = plan.services
        snapshot = layout.snapshot_directory(plan.settings.weights.home, service.model.repository, _COMMIT)
        services[host] = FakeService(lab, host, str(snapshot), service.service.port)
    try:
        for host, one in services.items():
            one.start(tokenizer, speeds[host])
        yield services
    finally:
        for one in services.values():
            one.remove()


def gate_run(lab: Lab, fleet: Path, *, asked: bool = False) -> Run:
    """Hold every host of the fleet to its gate, as stage gate does. `asked`: measure in any case."""
    deploy = lab.layout.folder / "fake_service.py"
    deploy.write_text(_DEPLOY.format(asked=asked))
    return lab.pyinfra(str(deploy), "-y", fleet=fleet)
