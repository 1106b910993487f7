"""Install one package by apt, at a wanted version, and never a GPU driver along with it.

    install_package.py --package cuda-toolkit-13-0 --version '13.0.*' [--source /etc/apt/sources.list.d/x.sources]

Only the lists of `--source` are updated; those of the other sources only where it does not work without. Before
anything changes, apt tells what it would do: a driver package, or a removal of anything, is refused. What the host had
is kept in `UNDO` the first time.
Exit status: 0 installed, 1 not (reason on standard error).
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.apt_output import Transaction, matching, percentage, transaction, versions
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.progress import Progress
else:
    from apt_output import Transaction, matching, percentage, transaction, versions
    from atomic import read_json, write_json
    from progress import Progress

UNDO = Path("/var/lib/tinderbox/undo/packages.json")
LOCK_WAIT_S = 300
# Of a Release file: "is not valid yet (invalid for another 23h ...)", "is expired (invalid since ...)".
_OTHER_TIME = re.compile(r"is not valid yet|is expired \(invalid since|chain uses (expired|not yet valid) certificate")
_LOCKED = re.compile(r"Could not get lock|Unable to lock")
_ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive",
    "NEEDRESTART_SUSPEND": "1",  # Ubuntu's needrestart would restart docker, and with it a running engine
    "LC_ALL": "C",
}
_OPTIONS = (
    *("-y", "--no-install-recommends", "--allow-downgrades"),
    *("-o", f"DPkg::Lock::Timeout={LOCK_WAIT_S}"),
    *("-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"),
)


class InstallError(Exception):
    """Why the package is not installed, and what to do."""


def output_of(command: Sequence[str]) -> str:
    """Standard output of a program that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **_ENVIRONMENT})
    if done.returncode != 0:
        raise InstallError(f"{' '.join(command[:2])} failed:\n{(done.stderr or done.stdout).strip()}")
    return done.stdout


def update(source: str | None) -> None:
    """Fetch the package lists of one source, or of all. Waits while another apt holds their lock."""
    only = ["-o", f"Dir::Etc::sourcelist={source}", "-o", "Dir::Etc::sourceparts=-", "-o", "APT::Get::List-Cleanup=0"]
    # Without the error mode, apt calls it a success when it got nothing at all.
    options = [*(only if source else []), "-o", "Acquire::Retries=3", "-o", "APT::Update::Error-Mode=any"]
    give_up = time.monotonic() + LOCK_WAIT_S
    while True:
        try:
            print(output_of(["apt-get", "update", *options]), flush=True)
            return
        except InstallError as error:
            if _OTHER_TIME.search(str(error)):
                raise InstallError(
                    f"{error}\nA repository's lists are of another time than this host's clock shows "
                    f"({time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}): set the clock (timedatectl); where it is "
                    "right, the repository or its mirror is out of date"
                ) from None
            if not _LOCKED.search(str(error)) or time.monotonic() > give_up:
                raise
        time.sleep(3)


def candidate(package: str, wanted: str, source: str | None) -> str:
    """The newest version that apt can get and that is wanted."""
    if source is not None:
        update(source)
    version = matching(versions(output_of(["apt-cache", "madison", package])), wanted)
    if version is not None:
        return version
    update(None)
    offered = versions(output_of(["apt-cache", "madison", package]))
    version = matching(offered, wanted)
    if not offered:
        raise InstallError(
            f"none of this host's apt repositories has a package {package}: add one that has it, or do without it in "
            f"the fleet file (apt-cache policy {package})"
        )
    if version is None:
        raise InstallError(
            f"apt has no version {wanted} of {package} (it offers {', '.join(offered)}): "
            "change the version, or the repository, in the fleet file"
        )
    return version


def check(package: str, planned: Transaction) -> None:
    """Refuse a transaction that does more than it should."""
    if planned.drivers:
        raise InstallError(
            f"installing {package} would change the GPU's driver or the kernel ({', '.join(planned.drivers)}), which "
            "belong to DGX OS. Pin a version in the fleet file that fits what the host has"
        )
    if planned.removed:
        raise InstallError(
            f"installing {package} would remove {', '.join(planned.removed)}. Decide by hand which of them should stay"
        )


def remember(undo: Path, package: str, planned: Transaction) -> None:
    """Keep what the host had before, the first time that this package is touched."""
    kept = read_json(undo) or {}
    if package not in kept:
        undo.parent.mkdir(parents=True, exist_ok=True)
        write_json(undo, {**kept, package: {"added": list(planned.added), "before": dict(planned.changed)}})


def install(wanted: str, progress: Progress) -> None:
    """Let apt install `package=version`, and tell how far it is."""
    progress.report("installing")
    status, pipe = os.pipe()
    command = ["apt-get", "install", *_OPTIONS, "-o", f"APT::Status-Fd={pipe}", wanted]
    with subprocess.Popen(command, env={**os.environ, **_ENVIRONMENT}, pass_fds=[pipe]) as process:
        os.close(pipe)
        with os.fdopen(status) as lines:
            for line in lines:
                if (done := percentage(line)) is not None:
                    progress.report(done[0], done[1], 100, "percent")
    if process.returncode != 0:
        raise InstallError(f"apt-get install {wanted} ended with exit status {process.returncode}")


def main(arguments: list[str]) -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description="Install one package at a wanted version, and never a driver.")
    parser.add_argument("--package", required=True)
    parser.add_argument("--version", default="*", help="a version, or a pattern with *")
    parser.add_argument("--source", help="the only sources file whose lists are updated")
    wish = parser.parse_args(arguments)
    progress = Progress()
    try:
        output_of(["dpkg", "--configure", "-a"])  # finishes what an earlier run was cut off from
        progress.report("updating package lists")
        version = candidate(wish.package, wish.version, wish.source)
        wanted = f"{wish.package}={version}"
        progress.report("planning")
        planned = transaction(output_of(["apt-get", "-s", "install", *_OPTIONS, wanted]))
        check(wish.package, planned)
        remember(UNDO, wish.package, planned)
        try:
            install(wanted, progress)
        except InstallError as error:
            print(f"{error}; once more, with fresh lists of every source", flush=True)
            update(None)
            install(wanted, progress)
    except InstallError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{wanted} is installed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
