"""Caches of engines, kept by what they depend on, and what a start notes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from modules.hostside import prepare_start
from modules.hostside.atomic import read_json
from modules.hostside.caches import remove, unneeded, use
from modules.hostside.ledger import Ledger, point, stage
from modules.hostside.prepare_start import prepare
from modules.hostside.start_note import read_start

REFERENCE = "tinderbox/vllm-mxfp4:0123456789ab"
OLD: dict[str, str | None] = {"driver": "580.95.05", "compute capability": "12.1", "image": "sha256:1", "docker": "28"}
NEW = {**OLD, "driver": "580.126.09"}
NAMES = ("flashinfer", "triton")


def started(root: Path, versions: dict[str, str | None], service: str = "gpt-oss") -> str:
    return use(service, NAMES, versions, REFERENCE, root)


def mounted(root: Path, cache: str = "triton", service: str = "gpt-oss") -> Path:
    """What the unit mounts."""
    return root / "caches" / service / cache


def test_the_mounted_path_is_always_the_same_and_the_key_decides_what_lies_there(tmp_path: Path) -> None:
    name = started(tmp_path, OLD)
    (mounted(tmp_path) / "kernel").write_text("for 580.95.05")
    # A new container, another release of the same image, another docker: the same key.
    assert started(tmp_path, {**OLD, "docker": "29"}) == name
    assert (mounted(tmp_path) / "kernel").read_text() == "for 580.95.05"
    for other in (NEW, {**OLD, "image": "sha256:2"}, {**OLD, "compute capability": "12.3"}):
        assert started(tmp_path, other) != name
        assert list(mounted(tmp_path).iterdir()) == []
    # The driver of before is back, and so is what was compiled for it.
    started(tmp_path, OLD)
    assert (mounted(tmp_path) / "kernel").read_text() == "for 580.95.05"


def test_the_name_is_readable_and_a_file_says_what_it_stands_for(tmp_path: Path) -> None:
    name = started(tmp_path, OLD)
    assert name.startswith("vllm-mxfp4-12.1-580.95.05-")
    assert read_json(tmp_path / "caches/gpt-oss/keyed" / name / "key.json") == {
        "driver": "580.95.05", "compute capability": "12.1", "image": "sha256:1", "made for": REFERENCE,
    }  # fmt: skip
    assert started(tmp_path, {"image": "sha256:1"}).startswith("vllm-mxfp4-")


def test_a_directory_of_before_there_were_keys_is_laid_aside_and_then_goes(tmp_path: Path) -> None:
    for content in ("older", "old"):
        link = mounted(tmp_path)
        if link.is_symlink():
            link.unlink()
        link.mkdir(parents=True)
        (link / "kernel").write_text(content)
        started(tmp_path, OLD)
        assert link.is_symlink()
        assert list(link.iterdir()) == []
    assert unneeded(tmp_path) == ["gpt-oss/keyed/not-keyed"]
    remove(unneeded(tmp_path), tmp_path)
    assert unneeded(tmp_path) == []
    assert mounted(tmp_path).is_dir()


def entry(root: Path, release: str, proved_on: dict[str, str | None], *links: str) -> None:
    ledger = Ledger("gpt-oss", root)
    ledger.record(release, {"image": REFERENCE}, [])
    ledger.mark(release, "good", None, proved_on)
    for link in links:
        point(ledger.directory / link, f"{release}.json")


def test_what_the_last_good_release_was_proved_on_stays_until_it_is_proved_again(tmp_path: Path) -> None:
    entry(tmp_path, "r1", OLD, "current", "last-good")
    old = started(tmp_path, OLD)
    new = started(tmp_path, NEW)
    assert unneeded(tmp_path) == []  # its gate may fail on the new driver, and the old one come back
    entry(tmp_path, "r1", NEW)
    assert unneeded(tmp_path) == [f"gpt-oss/keyed/{old}"]
    # Another release is tried: that of the last good one stays, too.
    other = {**NEW, "image": "sha256:2"}
    entry(tmp_path, "r2", other, "current")
    point(Ledger("gpt-oss", tmp_path).directory / "last-good", "r1.json")
    started(tmp_path, other)
    assert unneeded(tmp_path) == [f"gpt-oss/keyed/{old}"]
    remove(unneeded(tmp_path), tmp_path)
    kept = sorted(path.name for path in (tmp_path / "caches/gpt-oss/keyed").iterdir())
    assert (new in kept, old in kept, len(kept)) == (True, False, 2)


def test_nothing_goes_where_the_ledger_can_not_be_read(tmp_path: Path) -> None:
    entry(tmp_path, "r1", OLD, "current")
    started(tmp_path, OLD)
    started(tmp_path, NEW)
    Ledger("gpt-oss", tmp_path).entry_file("r1").write_text("no json")
    assert unneeded(tmp_path) == []


def test_a_removal_that_is_cut_leaves_no_half_of_a_cache_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = started(tmp_path, OLD)
    (mounted(tmp_path) / "kernel").write_text("x")
    started(tmp_path, NEW)

    def cut(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", cut)
        with pytest.raises(KeyboardInterrupt):
            remove([f"gpt-oss/keyed/{old}"], tmp_path)
    assert not (tmp_path / "caches/gpt-oss/keyed" / old).exists()
    assert len(unneeded(tmp_path)) == 1
    remove(unneeded(tmp_path), tmp_path)
    assert len(list((tmp_path / "caches/gpt-oss/keyed").iterdir())) == 1


def in_force(root: Path, names: list[str]) -> Ledger:
    request: dict[str, Any] = {
        "service": "gpt-oss", "id": "r1", "release": {"image": REFERENCE}, "files": [], "caches": names,
    }  # fmt: skip
    stage(request, root)
    ledger = Ledger("gpt-oss", root)
    point(ledger.directory / "current", "r1.json")
    return ledger


def test_a_start_has_its_caches_and_notes_what_the_machine_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare_start, "versions", lambda image: ({**OLD, "image": image}, None))
    monkeypatch.setattr(prepare_start, "image_id", lambda _: "sha256:1")
    ledger = in_force(tmp_path, ["triton"])
    assert prepare(ledger, "i1").startswith("prepare-start: caches: vllm-mxfp4-12.1-580.95.05-")
    assert mounted(tmp_path).is_dir()
    assert read_start(ledger, "i1") == OLD
    # Of another start nothing is known by that.
    assert read_start(ledger, "i2") is None
    assert read_start(ledger, None) is None
    assert prepare(in_force(tmp_path, []), "i2") == "prepare-start: caches: none"


def test_a_start_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="names no release that can be read"):
        prepare(Ledger("gpt-oss", tmp_path), "i")
