"""What tests do to a bundle on a lab host: kill the jobs that write or read it, harm it, look what of it has landed."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.killed_run import find_job
from tests.lab.lab_driver import Lab, Run

FROM, TO = "spark-1", "spark-2"
USB = "/mnt/usb/tinderbox"


def export_killed(lab: Lab, fleet: Path) -> tuple[Run, int]:
    """Export, and kill the job on the host, hard, while it writes the image."""
    with subprocess.Popen(
        ["ssh", "-F", str(lab.layout.ssh_config), FROM, f"sudo python3 -c {shlex.quote(_KILL)}"], text=True,
        stdout=subprocess.PIPE,
    ) as killer:  # fmt: skip
        run = lab.converge("deploys/bundle.py", fleet=fleet)
        said, _ = killer.communicate(timeout=60)
    assert said == "killed\n"
    job = find_job(lab, FROM, "bundle")
    assert job is not None
    return run, job.starts


# Waits for a piece of an image of some size, then kills the whole job: program and `docker save`.
_KILL = f"""
import pathlib, subprocess, time
deadline = time.monotonic() + 600
while time.monotonic() < deadline:
    if any(path.stat().st_size > 200_000_000 for path in pathlib.Path({USB!r}).glob("images/*.part")):
        subprocess.run("systemctl kill --signal=KILL 'tinderbox-job-bundle-*'", shell=True, check=True)
        print("killed")
        break
    time.sleep(0.05)
"""


def weights_import_killed(lab: Lab, fleet: Path, path: str) -> Run:
    """Import weights, and kill the job on the host, hard, when it has read half of this file."""
    with subprocess.Popen(
        ["ssh", "-F", str(lab.layout.ssh_config), TO, f"sudo python3 -c {shlex.quote(_CUT)} {USB}/{path}"], text=True,
        stdout=subprocess.PIPE,
    ) as killer:  # fmt: skip
        run = lab.converge("deploys/weights.py", fleet=fleet)
        said, _ = killer.communicate(timeout=60)
    assert said == "killed\n"
    return run


# In place of a file, a pipe that gives half of it; then the job that reads it is killed.
_CUT = """
import os, pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGALRM, lambda *_: sys.exit("nobody has read it"))
signal.alarm(600)
file = pathlib.Path(sys.argv[1])
kept = file.with_name(file.name + ".kept")
file.rename(kept)
os.mkfifo(file)
try:
    with file.open("wb") as pipe:
        pipe.write(kept.read_bytes()[: kept.stat().st_size // 2])
        pipe.flush()
        time.sleep(0.5)
        subprocess.run("systemctl kill --signal=KILL 'tinderbox-job-weights-*'", shell=True, check=True)
    print("killed")
finally:
    kept.replace(file)
"""


@contextmanager
def harmed(lab: Lab, path: str, harm: str) -> Iterator[None]:
    """A file of the bundle on `spark-2`, while it is wrong. One that goes is only called otherwise meanwhile."""
    file = f"{USB}/{path}"
    keep = "mv" if harm.startswith("rm ") else "cp"
    lab.ssh(TO, f"sudo sh -c '{keep} {file} {file}.kept && {harm.format(file=file).replace('rm ', 'rm -f ')}'")
    try:
        yield
    finally:
        lab.ssh(TO, f"sudo mv {file}.kept {file}")


def path_in(lab: Lab, beginning: str) -> str:
    """The largest file of the bundle whose path begins so."""
    manifest = json.loads(lab.read(TO, f"{USB}/manifest.json"))
    files = [(file["size"], str(file["path"])) for file in manifest["files"] if file["path"].startswith(beginning)]
    return max(files)[1]


def landed(lab: Lab, path: str) -> list[str]:
    """What the host has of a file of the bundle where services and tools find it, and all that is published there.

    Of a wheel, its package; of a vocabulary, its link too.
    """
    name = Path(path).name.partition("-")[0]
    found = lab.ssh(TO, f"sudo sh -c {shlex.quote(_LANDED.format(name=shlex.quote(name)))}").stdout.split()
    # The tools are whole before the first file of a model is looked at.
    return [each for each in found if path.startswith("wheels/") or each != "tools/current"]


_LANDED = """
set -e
cd /var/lib/tinderbox
for place in encodings huggingface tools; do
    test ! -e $place || find $place -name {name} -o -lname "*"{name}
done
for each in huggingface/hub/models--*/refs/* huggingface/hub/models--*/snapshots/* tools/current attestations/*; do
    test ! -e $each || echo $each
done
docker image ls --quiet --filter label=tinderbox.recipe
docker image ls --quiet 'tinderbox/*'
"""
