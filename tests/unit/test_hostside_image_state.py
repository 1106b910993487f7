"""Which images may go: never what is current, last good, wanted, used, or not ours."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from modules.hostside import image_state
from modules.hostside.image_state import removable, served
from modules.hostside.ledger import Ledger, point
from modules.hostside.pull_image import fetch
from modules.hostside.receive_image import Wanted, reason

NEW, OLD, OLDER = (f"tinderbox/vllm:{digit * 12}" for digit in "321")
PULLED = f"tinderbox/python:{'a' * 12}"
IDS = {NEW: "sha256:3", OLD: "sha256:2", OLDER: "sha256:1", PULLED: "sha256:a"}
LISTED = [(image, name) for name, image in IDS.items()]


def release(root: Path, service: str, name: str, image: str, *links: str) -> None:
    ledger = Ledger(service, root)
    ledger.record(name, {"image": image}, [])
    for link in links:
        point(ledger.directory / link, f"{name}.json")


def test_what_the_current_and_the_last_good_release_of_any_service_use_is_served(tmp_path: Path) -> None:
    release(tmp_path, "gpt-oss", "r3", NEW, "current")
    release(tmp_path, "gpt-oss", "r2", OLD, "last-good")
    release(tmp_path, "gpt-oss", "r1", OLDER)
    release(tmp_path, "gone-from-the-fleet-file", "r9", PULLED, "current", "last-good")

    assert served(tmp_path) == {NEW, OLD, PULLED}
    assert removable(LISTED, [], served(tmp_path), []) == [OLDER]
    assert served(tmp_path / "bare") == set()


@pytest.mark.parametrize("broken", ["no json", "{}", None])
def test_nothing_goes_where_the_ledger_can_not_be_read(tmp_path: Path, broken: str | None) -> None:
    release(tmp_path, "gpt-oss", "r3", NEW, "current")
    entry = Ledger("gpt-oss", tmp_path).entry_file("r3")
    entry.unlink() if broken is None else entry.write_text(broken)

    assert served(tmp_path) is None
    assert removable(LISTED, [NEW], served(tmp_path), []) == []


@pytest.mark.parametrize("kept", [OLD, IDS[OLD]], ids=["by name", "by id"])
def test_what_is_wanted_or_used_by_a_container_stays(kept: str) -> None:
    assert OLD not in removable(LISTED, [kept], set(), [])
    assert OLD not in removable(LISTED, [], set(), [kept])
    assert OLD in removable(LISTED, [NEW], {PULLED}, [OLDER])


def test_an_image_that_is_needed_by_another_name_keeps_all_its_names() -> None:
    twice = [("sha256:1", OLD), ("sha256:1", NEW)]
    assert removable(twice, [NEW], set(), []) == []


@pytest.mark.parametrize(
    "name",
    [
        "nvcr.io/nvidia/vllm:26.05-py3",
        "tinderbox/vllm:latest",
        "tinderbox/vllm:0123456789abc",
        "tinderbox-lab/host:0123456789ab",
        "registry.lab:5000/tinderbox/vllm:0123456789ab",
        "mine/tinderbox/vllm:0123456789ab",
        "tinderbox/mine/vllm:0123456789ab",
    ],
)
def test_what_is_not_called_as_ours_is_never_touched(name: str) -> None:
    assert removable([("sha256:5", name)], [], set(), []) == []


DOCKER = """\
#!/bin/sh
echo "$*" >> {log}
case "$1 $2" in
"image inspect") test -e {here} && echo '[{{"Id": "sha256:1", "RepoDigests": ["{name}@sha256:{digest}"]}}]';;
"pull "*) touch {here};;
esac
"""


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A docker that has an image once it was pulled; what it was asked stands in the file."""
    program, log = tmp_path / "docker", tmp_path / "log"
    program.write_text(DOCKER.format(log=log, here=tmp_path / "here", name="registry.lab/python", digest="d" * 64))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return log


class Quiet:
    def report(self, *_: object) -> None:
        """Nobody looks."""


@pytest.mark.parametrize("reference", ["registry.lab/python:3.11", f"registry.lab/python@sha256:{'d' * 64}"])
def test_what_is_pulled_gets_our_name_and_keeps_no_other(docker: Path, reference: str) -> None:
    digest = fetch(reference, "tinderbox/python", Quiet())  # type: ignore[arg-type]

    assert digest == f"sha256:{'d' * 64}"
    asked = docker.read_text().splitlines()
    assert f"pull {reference}" in asked
    assert asked[-2:] == [f"image tag {reference} tinderbox/python:{'d' * 12}", f"image rm {reference}"]


def test_what_the_owner_has_pulled_keeps_its_name(docker: Path) -> None:
    (docker.parent / "here").touch()

    fetch("registry.lab/python:3.11", "tinderbox/python", Quiet())  # type: ignore[arg-type]

    assert not any(line.startswith(("image rm", "pull")) for line in docker.read_text().splitlines())


def test_the_program_answers_where_docker_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "python3").symlink_to(shutil.which("python3") or sys.executable)
    program = [sys.executable, image_state.__file__, NEW]
    done = subprocess.run(program, capture_output=True, text=True, check=True, env={"PATH": str(tmp_path)})
    told = json.loads(done.stdout)
    assert (told["images"], told["removable"], told["registry"]) == ({NEW: None}, [], 0)


WITH_IMAGES = """\
#!/bin/sh
case "$*" in
"image inspect {new}") echo '[{{"Id": "sha256:1", "Config": {{"Labels": {{"tinderbox.recipe": "r1"}}}}}}]' ;;
"image inspect "*) echo '[]'; echo "no such image" >&2; exit 1 ;;
"image ls "*) echo "sha256:1 {new}"; echo "sha256:9 <none>:<none>" ;;
"container ls "*) echo "sha256:7" ;;
esac
"""


def test_the_program_tells_of_each_image_whether_it_is_there(tmp_path: Path) -> None:
    (tmp_path / "docker").write_text(WITH_IMAGES.format(new=NEW))
    (tmp_path / "docker").chmod(0o755)
    program = [sys.executable, image_state.__file__, NEW, OLD]
    done = subprocess.run(program, capture_output=True, text=True, check=True, env={"PATH": f"{tmp_path}:/bin"})
    told = json.loads(done.stdout)
    assert told["images"] == {NEW: {"id": "sha256:1", "recipe": "r1"}, OLD: None}
    assert (told["removable"], told["registry"]) == ([], 0)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("filesystem layer verification failed for digest sha256:8e4f", "came damaged from 10.0.0.11 and was refused"),
        ("failed commit on ref: unexpected commit digest sha256:1, expected sha256:2", "came damaged"),
        ("write /var/lib/docker/tmp/GetImageBlob1: no space left on device", "docker's disk is full on this host"),
        ("error pulling image configuration: EOF", "could not be received from 10.0.0.11"),
    ],
)
def test_a_refusal_says_what_to_do(said: str, told: str) -> None:
    wanted = Wanted(Path("keys"), "10.0.0.11", 5599, NEW, "sha256:d", "sha256:i")
    assert told in reason(["Pulling fs layer", said], wanted)
    assert "run again" in reason([said], wanted).lower()
