"""On the controller: a timer that looks for drift every night and holds every host to its gate."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path

from pyinfra.api import deploy

from modules.fleet import Fleet
from modules.fleet.shared import shared_folder
from modules.operations.asked import nightly_at, nightly_deploy, nightly_gate, nightly_metrics, nightly_off
from modules.operations.nightly import nightly_removed, nightly_settled
from roles.nightly.units import Nightly

ROOT = Path(__file__).resolve().parents[2]


def nightly_of(fleet: Fleet) -> Nightly:
    """What is wanted for a fleet, by this checkout and this user."""
    metrics = nightly_metrics()
    known_hosts = [Path(host.ssh.known_hosts).parent for host in fleet.hosts.values() if host.ssh.known_hosts]
    own = [Path.home() / ".ssh", *known_hosts]
    # The fleet's lock lies beside its file; the lock of its runs where all users may come.
    writable = [ROOT, fleet.path.resolve().parent, shared_folder(), *own, *([Path(metrics)] if metrics else [])]
    return Nightly(
        fleet=fleet.name,
        file=str(fleet.path.resolve()),
        user=getpass.getuser(),
        root=str(ROOT),
        python=sys.executable,
        at=nightly_at(),
        writable=[str(path) for path in dict.fromkeys(writable)],
        metrics=metrics,
        gate=nightly_gate(),
        deploy=nightly_deploy(),
    )


@deploy("Nightly")
def nightly(fleet: Fleet) -> None:
    """Have the timer, or have it no more: `TINDERBOX_NIGHTLY=off`."""
    wish = nightly_of(fleet)
    if nightly_off():
        nightly_removed(name=f"No nightly check of {fleet.name}", unit=wish.name, files=wish.files)
        return
    nightly_settled(name=f"Nightly check of {fleet.name}", unit=wish.name, files=wish.files)
