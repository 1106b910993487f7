"""What tests of upgrades do: a lab host with a proved release of the fake engine, and its parts upgraded by apt."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from modules.lab.pieces.piece import make
from modules.lab.pieces.upgrades import DRIVER_PACKAGE, upgrades
from tests.lab.fake_release import SERVICE, by_hand, fleet_of, recipe
from tests.lab.lab_driver import Lab, Run
from tests.lab.served import Served

# Some 30 tokens a second: slow enough that a busy machine does not see several at once.
STEADY = {"FAKE_TOKEN_S": "0.03"}
_LEDGER = f"/var/lib/tinderbox/ledger/{SERVICE}"
_CACHES = f"/var/lib/tinderbox/caches/{SERVICE}"
_REPOSITORY = "/opt/lab-upgrades"
_KEY = "/usr/share/keyrings/lab-upgrades.asc"
_APT = "sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Options::=--force-confold"


@dataclass(frozen=True)
class Upgraded:
    """A host whose parts a test upgrades as its owner would."""

    lab: Lab
    host: str

    def fleet(self, cuda: str, **pins: Any) -> Path:
        """The fleet file with the fake engine's service alone, changed to the CUDA toolkit at a version."""
        path = fleet_of(self.lab, self.host, f"upgraded-{self.host}", **STEADY)
        content = yaml.safe_load(path.read_text())
        content["defaults"]["cuda"] = {"version": cuda}
        content["defaults"]["services"][SERVICE]["image"] = {"recipe": recipe(self.lab, **pins)}
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    def run(self, fleet: Path) -> Run:
        """All stages."""
        return by_hand(self.lab, "spark", fleet)

    def served(self, fleet: Path) -> Served:
        """The service."""
        return Served(self.lab, fleet, self.host)

    def offer_upgrades(self, *, install: bool = True) -> None:
        """Give the host's apt a signed repository with newer versions, and the driver's package of what runs."""
        container = self.lab.layout.container(self.host)
        subprocess.run(["docker", "cp", f"{make(upgrades())}/.", f"{container}:{_REPOSITORY}"], check=True)
        self.lab.ssh(self.host, f"sudo cp {_REPOSITORY}/key.asc {_KEY}")
        source = f"deb [signed-by={_KEY}] file:{_REPOSITORY} ./\n"
        self.lab.write(self.host, "/etc/apt/sources.list.d/lab-upgrades.list", source)
        self.lab.ssh(self.host, f"{_APT} update")
        if install:
            self.install(f"{DRIVER_PACKAGE}=580.142-1")

    def install(self, *packages: str) -> None:
        """By apt; a version that is older, too."""
        self.lab.ssh(self.host, f"{_APT} install --yes --allow-downgrades {' '.join(packages)}", timeout_s=600)

    def entry(self, release: str) -> dict[str, Any]:
        """Of the ledger."""
        found: dict[str, Any] = json.loads(self.lab.read(self.host, f"{_LEDGER}/{release}.json"))
        return found

    def caches(self) -> tuple[str, list[str]]:
        """The key that is in use, and all that there are."""
        used = self.lab.ssh(self.host, f"readlink {_CACHES}/vllm").stdout.split("/")[1]
        return used, self.lab.ssh(self.host, f"sudo ls {_CACHES}/keyed").stdout.split()

    def in_cache(self, name: str) -> str:
        """A file in the cache that is in use."""
        return f"{_CACHES}/vllm/{name}"


def unchanged(run: Run) -> bool:
    """Whether a run has changed nothing."""
    totals = run.json["results"]["totals"]
    return run.rc == 0 and (totals["success"], totals["error"]) == (0, 0)
