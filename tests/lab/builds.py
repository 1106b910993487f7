"""What tests of builds do: run the image stage, look at its jobs, and make a registry's image of their own."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import re
import shlex
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from modules.images import Build
from tests.lab.killed_run import Job, find_job
from tests.lab.lab_driver import Lab, Run
from tests.lab.tiny_recipe import fleet_with, tiny

JOBS = "/var/lib/tinderbox/jobs"
HEAD = '{% import "_site.j2" as site -%}\nARG BASE={{ base }}\nFROM ${BASE} AS tools\n'
TAIL = "COPY tinderbox-image.json /etc/tinderbox-image.json\n"
_PAUSE_S = 0.3
_STEP = re.compile(r"^#(\d+) \[(?:(\S+) )?\d+/\d+\] (.+)$")


def stage(lab: Lab, fleet: Path) -> Run:
    """The image stage."""
    return lab.converge("deploys/image.py", fleet=fleet)


def build_log(lab: Lab, host: str, build: Build) -> str:
    """What the job that built it has logged, in its last run."""
    return lab.read(host, f"{JOBS}/image-{build.key}/log")


def await_job(lab: Lab, host: str, wanted: Callable[[Job], bool], *, limit_s: float = 120) -> Job:
    """The latest build, once it is as wanted."""
    deadline = time.monotonic() + limit_s
    while True:
        job = find_job(lab, host, "image")
        if job is not None and job.state == "running" and wanted(job):
            return job
        assert time.monotonic() < deadline, f"no build came to that point: {job}"
        time.sleep(_PAUSE_S)


def is_at(words: str) -> Callable[[Job], bool]:
    """Whether a build is at a step with these words."""
    return lambda job: words in str(job.progress.get("step", ""))


def steps_of(log: str) -> dict[str, str]:
    """Step, as `stage: instruction …` → CACHED or DONE, from a build's log."""
    names = {found[1]: f"{found[2] or ''}: {found[3]}" for line in log.splitlines() if (found := _STEP.match(line))}
    ends = re.findall(r"^#(\d+) (CACHED|DONE)\b", log, re.MULTILINE)
    return {names[number]: how for number, how in ends if number in names}


def stages_made(log: str) -> set[str]:
    """The stages of which a step was run, and not taken from the cache; a base that was only opened does not count."""
    return {
        name.partition(":")[0]
        for name, how in steps_of(log).items()
        if how == "DONE" and not name.partition(": ")[2].startswith("FROM ")
    }


def shown(run: Run) -> list[str]:
    """The lines of the job's own log that the operator is shown at the end."""
    lines = run.stderr.splitlines()
    begin = max(number for number, line in enumerate(lines) if "Its log ends:" in line)
    end = next(n for n in range(begin, len(lines)) if "the whole log, on the host" in lines[n])
    return [
        line.strip() for line in lines[begin + 1 : end] if not line.strip().startswith(("known", "possibly", "what"))
    ]


def check_failed(run: Run, host: str, name: str) -> None:
    """Whether the run ended as a build that failed shall: with its place and the lines that matter, and no more."""
    assert run.rc == 1, run.text
    assert f"{host}: FAILED at Image | Image {name}" in run.text
    assert "the whole log, on the host: /var/lib/tinderbox/jobs/" in run.text
    assert 1 <= len(shown(run)) <= 15
    assert not [line for line in shown(run) if re.match(r"-+$|#\d+ (\[internal\]|sha256:|DONE)", line)]


def write_single(lab: Lab, host: str, name: str, dockerfile: str, **fields: Any) -> tuple[Path, dict[str, Any]]:
    """A fleet file with a recipe of a single template, and the recipe."""
    # Never built before, also in a lab that was up.
    dockerfile = f"{HEAD}ENV TRIED={uuid4().hex}\n{dockerfile}{TAIL}"
    recipe = tiny(lab, dockerfile, name=name, **{"compiler_gib": 0, **fields})
    return fleet_with(lab, host, recipe, name=f"fleet-{name}"), recipe


def tag_on(lab: Lab, host: str, recipe: dict[str, Any]) -> str:
    """The latest tag of a recipe on the host."""
    name = Path(recipe["template"]).name.partition(".")[0]
    listed = lab.ssh(host, f"sudo docker images --format '{{{{.Repository}}}}:{{{{.Tag}}}}' tinderbox/{name}")
    return listed.stdout.split()[0]


def add_image(lab: Lab, name: str, content: bytes) -> str:
    """Put an image with one file into the lab's registry; gives the digest of its layer."""
    root = lab.layout.mirror_state / "registry"
    folder = root / name
    (folder / "manifests").mkdir(parents=True, exist_ok=True)
    (root / "blobs").mkdir(exist_ok=True)
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        entry = tarfile.TarInfo("content")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    layer = _blob(root / "blobs", gzip.compress(raw.getvalue(), mtime=0))
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    config: dict[str, Any] = {"architecture": machine, "os": "linux", "config": {}}
    config["rootfs"] = {"type": "layers", "diff_ids": [_digest(raw.getvalue())]}
    described = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": _told(root, _blob(root / "blobs", json.dumps(config).encode()), "container.image.v1+json"),
        "layers": [_told(root, layer, "image.rootfs.diff.tar.gzip")],
    }
    manifest = _blob(folder / "manifests", json.dumps(described).encode())
    (folder / "tags.json").write_text(json.dumps({"1": manifest}))
    return layer


def limit_memory(lab: Lab, host: str, process: str, limit: int) -> None:
    """Let the kernel kill whatever takes more than `limit` bytes in the build step that runs this process."""
    lab.ssh(host, f"sudo bash -c {shlex.quote(_LIMIT)} limit {shlex.quote(process)} {limit}")


# By the first version of control groups, or by the second.
_LIMIT = r"""
set -e
pid=$(pgrep -of "$1")
one=$(sed -n 's/^[0-9]*:memory://p' /proc/$pid/cgroup)
if [ -n "$one" ]; then echo "$2" > "/sys/fs/cgroup/memory$one/memory.limit_in_bytes"
else echo "$2" > "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/$pid/cgroup)/memory.max"; fi
"""


def _blob(folder: Path, content: bytes) -> str:
    digest = _digest(content)
    (folder / digest).write_bytes(content)
    return digest


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _told(root: Path, digest: str, kind: str) -> dict[str, object]:
    size = (root / "blobs" / digest).stat().st_size
    return {"mediaType": f"application/vnd.docker.{kind}", "digest": digest, "size": size}
