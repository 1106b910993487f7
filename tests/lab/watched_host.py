"""A lab host that Prometheus watches: its packages, its fleet file, and what Prometheus says of it."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from modules.lab.pieces.make_all import make_all
from modules.lab.pieces.monitoring import monitoring
from modules.lab.progress import Progress
from tests.lab.lab_driver import Lab, Run

SOURCE, REPOSITORY = "/etc/apt/sources.list.d/own.list", "/opt/own"
PATIENCE_S = 180
# The lab's own gate, and an upper bound, so that a panel of each kind has a figure.
GATE = {
    "answers": "lab-recital",
    "workload": {
        "pp": [2048], "tg": [128], "runs": 3, "time_limit_s": 300, "latency_mode": "none", "coherence": False
    },
    "most_runs": 3,
    "thresholds": {"tg128@pp2048 c1": {"min": 5}, "pp2048 c1": {"min": 5}, "ttfr@pp2048 c1": {"max": 600000}},
}  # fmt: skip
ALERTS: dict[str, Any] = {"for_s": 5, "nightly_hours": 1, "restart_minutes": 5, "load_stop_minutes": 5}


@contextmanager
def debian_packages(lab: Lab, host: str) -> Iterator[None]:
    """While this lasts, the host has a source of its own with Debian's Prometheus and node exporter."""
    piece = monitoring()
    make_all([piece], Progress())
    packages = piece.path / "packages"
    options = ["ssh", "-F", str(lab.layout.ssh_config), host]
    with subprocess.Popen(["tar", "-C", str(packages), "-c", "."], stdout=subprocess.PIPE) as archive:
        unpack = f"sudo mkdir -p {REPOSITORY} && sudo tar -C {REPOSITORY} -x"
        subprocess.run([*options, unpack], stdin=archive.stdout, check=True, capture_output=True)
    lab.write(host, SOURCE, f"deb [trusted=yes] file:{REPOSITORY} ./\n")
    yield
    lab.ssh(host, f"sudo rm -rf {REPOSITORY} {SOURCE}")


@dataclass(frozen=True)
class WatchedHost:
    """One host, watched by itself."""

    lab: Lab
    host: str

    def fleet(self, name: str, wish: dict[str, Any] | None, **alerts: Any) -> Path:
        """A fleet file with this host alone. `wish`: its monitoring; `alerts`: on top of short times."""

        def change(content: dict[str, Any]) -> None:
            content["hosts"] = {self.host: content["hosts"][self.host]}
            content["defaults"]["services"]["gpt-oss"]["gate"] = GATE
            if wish is not None:
                content["defaults"]["monitoring"] = {**wish, "alerts": {**ALERTS, **alerts}}

        return self.lab.write_fleet(f"eyes-{name}", change)

    def watched(self, **alerts: Any) -> Path:
        """A fleet file by which the host is watched at short intervals."""
        wish = {"exporters": {"every_s": 5}, "prometheus": {"scrape_s": 5, "retention": "2d"}}
        return self.fleet("-".join(["watched", *sorted(alerts)]), wish, **alerts)

    def settle(self, fleet: Path, rc: int = 0) -> Run:
        """Stage monitoring."""
        run = self.lab.pyinfra("deploys/monitoring.py", "-y", "--json", fleet=fleet)
        assert run.rc == rc, run.text
        return run

    def asked(self, path: str, **form: str) -> Any:
        """What Prometheus' API answers."""
        words = [f"--data-urlencode {shlex.quote(f'{name}={value}')}" for name, value in form.items()]
        said = self.lab.ssh(self.host, f"curl -sG {' '.join(words)} http://127.0.0.1:9090/api/v1/{path}", check=False)
        answer = json.loads(said.stdout or "{}")
        assert answer.get("status") in {"success", None}, f"{form}: {answer}"
        return answer.get("data", {})

    def series(self, expression: str) -> list[dict[str, Any]]:
        """What a query finds now."""
        return list(self.asked("query", query=expression).get("result", []))

    def firing(self) -> dict[str, dict[str, Any]]:
        """Alerts that fire, by their name without `Tinderbox`."""
        found = self.asked("alerts").get("alerts", [])
        return {one["labels"]["alertname"].removeprefix("Tinderbox"): one for one in found if one["state"] == "firing"}

    def await_alert(self, name: str) -> dict[str, Any]:
        """Until it fires."""
        found: dict[str, Any] = awaited(lambda: self.firing().get(name), f"{name} does not fire")
        return found

    def await_clear(self, *names: str, patience_s: float = PATIENCE_S) -> None:
        """Until none of them fires."""
        awaited(lambda: not set(names) & set(self.firing()), f"of {names} some go on firing", patience_s)


def awaited(look: Any, told: str, patience_s: float = PATIENCE_S) -> Any:
    """What `look` gives as soon as it is something."""
    give_up = time.monotonic() + patience_s
    while not (found := look()):
        assert time.monotonic() < give_up, f"{told} after {patience_s} s"
        time.sleep(2)
    return found
