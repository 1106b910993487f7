"""The lock: written whole or not at all, and never changed by a second resolution."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from modules.fleet import FleetError, load_fleet
from modules.fleet.lock import lock_path, read_lock, record

COMMIT = "b5c939de8f754692c1647ca79fbf85e8c1e70f8a"
OTHER = "6cee5e81ee83917806bbde320786a8fb61efebee"
DIGEST = "sha256:" + "0" * 64


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    path = tmp_path / "office.yaml"
    path.write_text("fleet: office\n")
    return path


def test_lock_stands_beside_the_fleet_file(fleet_file: Path) -> None:
    assert lock_path(fleet_file) == fleet_file.parent / "office.lock.yaml"


def test_absent_lock_is_empty(fleet_file: Path) -> None:
    lock = read_lock(fleet_file)

    assert lock.commit("openai/gpt-oss-120b", "main") is None
    assert lock.digest("lmsysorg/sglang:latest") is None


def test_what_is_recorded_is_read_back(fleet_file: Path) -> None:
    record(fleet_file, models={"openai/gpt-oss-120b@main": COMMIT})
    record(fleet_file, images={"docker.io/lmsysorg/sglang:latest-cu130": DIGEST})

    lock = read_lock(fleet_file)
    assert lock.commit("openai/gpt-oss-120b", "main") == COMMIT
    assert lock.digest("docker.io/lmsysorg/sglang:latest-cu130") == DIGEST


def test_entry_that_is_there_stays(fleet_file: Path) -> None:
    record(fleet_file, models={"a/b@main": COMMIT})

    assert record(fleet_file, models={"a/b@main": OTHER}).commit("a/b", "main") == COMMIT


def test_files_of_a_commit_are_added_and_never_changed(fleet_file: Path) -> None:
    small, large = f"git:{OTHER} 5", f"sha256:{'1' * 64} 66"
    record(fleet_file, files={f"a/b@{COMMIT}": {"config.json": small}})
    record(fleet_file, files={f"a/b@{COMMIT}": {"config.json": large, "x.safetensors": large}})

    assert read_lock(fleet_file).listing("a/b", COMMIT) == {"config.json": small, "x.safetensors": large}
    assert read_lock(fleet_file).listing("a/b", OTHER) == {}
    with pytest.raises(ValidationError):
        record(fleet_file, files={"a/c@x": {"config.json": "5 bytes"}})


def test_text_is_stable_and_commented(fleet_file: Path) -> None:
    record(fleet_file, models={"z/z@main": COMMIT, "a/a@main": OTHER})
    record(fleet_file, images={"registry/x:1": DIGEST})
    text = lock_path(fleet_file).read_text()
    written = lock_path(fleet_file).stat().st_mtime_ns

    record(fleet_file, images={"registry/x:1": DIGEST}, models={"a/a@main": OTHER})

    assert lock_path(fleet_file).stat().st_mtime_ns == written
    assert text.startswith("# What the fleet's loose wishes resolved to")
    assert list(yaml.safe_load(text)) == ["images", "models"]
    assert list(yaml.safe_load(text)["models"]) == ["a/a@main", "z/z@main"]
    assert sorted(path.name for path in fleet_file.parent.iterdir()) == ["office.lock.yaml", "office.yaml"]


@pytest.mark.parametrize("value", ["main", COMMIT[:12], COMMIT.upper(), ""])
def test_something_that_is_no_commit_is_not_recorded(value: str, fleet_file: Path) -> None:
    with pytest.raises(ValidationError):
        record(fleet_file, models={"a/b@main": value})
    assert not lock_path(fleet_file).exists()


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("models:\n  a/b@main: main\n", "2: models.a/b@main", "40 hex digits"),
        ("model:\n  a/b@main: x\n", "1: model", "did you mean models?"),
        ("images: [x]\n", "1: images", "not a mapping"),
        ("models:\n  a: b\n  a: c\n", "3: models.a", "duplicate key"),
        ("placements:\n  chat: [s1, s2, s1]\n", "2: placements.chat", "s1 stands there twice"),
    ],
)
def test_lock_that_was_edited_wrongly_is_refused_with_its_line(
    text: str, place: str, words: str, fleet_file: Path
) -> None:
    lock_path(fleet_file).write_text(text)

    with pytest.raises(FleetError) as caught:
        read_lock(fleet_file)

    assert str(caught.value).startswith(f"{lock_path(fleet_file)}:{place}: ")
    assert words in str(caught.value)


@pytest.mark.parametrize("content", [b"<<<<<<< HEAD\nmodels: {}\n", b"models: {a: caf\xe9}\n"])
def test_wrong_lock_is_refused_with_the_fleet_file(content: bytes, fleet_file: Path) -> None:
    fleet_file.write_text("fleet: office\nhosts: {spark-1: {}}\n")
    lock_path(fleet_file).write_bytes(content)

    with pytest.raises(FleetError) as caught:
        load_fleet(fleet_file)

    assert str(caught.value).startswith(f"{lock_path(fleet_file)}:")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"<<<<<<< HEAD\n", ":1: not a mapping"),
        (b"\xff\n", ":1: byte 0 is not UTF-8 text"),
        (None, ": this is a folder"),
    ],
)
def test_a_lock_that_is_none_is_refused_with_a_remedy_of_its_own(
    content: bytes | None, what: str, fleet_file: Path
) -> None:
    path = lock_path(fleet_file)
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(FleetError) as caught:
        read_lock(fleet_file)
    remedy = "take it back as it was committed, or remove it and have all of it resolved anew"
    assert str(caught.value) == f"{path}{what}; {remedy}"


def test_a_lock_that_is_a_pipe_is_not_waited_for(fleet_file: Path) -> None:
    os.mkfifo(lock_path(fleet_file))
    with pytest.raises(FleetError, match="this is no ordinary file; take it back"):
        read_lock(fleet_file)


def test_lock_with_comments_only_is_empty(fleet_file: Path) -> None:
    lock_path(fleet_file).write_text("# nothing yet\n\n")

    assert read_lock(fleet_file).models == {}


def test_writers_at_once_lose_nothing(fleet_file: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: record(fleet_file, models={f"a/{n}@main": COMMIT}), range(24)))

    assert len(read_lock(fleet_file).models) == 24


def test_it_can_be_written_twice_where_gevent_closes_files_late(tmp_path: Path) -> None:
    program = (
        "import gevent, gevent.monkey; gevent.monkey.patch_all()\n"
        "from pathlib import Path; from modules.fleet.lock import record\n"
        f"fleet = Path({str(tmp_path / 'fleet.yaml')!r})\n"
        "def twice():\n"
        "    for name in 'ab': record(fleet, models={f'o/{name}@main': 40 * '1'})\n"
        "gevent.spawn(twice).get()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert len(read_lock(tmp_path / "fleet.yaml").models) == 2
