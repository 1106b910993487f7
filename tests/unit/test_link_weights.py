"""A model's files come from another cache of the host: its blobs by links, and nothing that a link leads to beside."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from modules.hostside.link_weights import blobs_of, bring
from modules.hostside.progress import Progress
from modules.hostside.weights_blobs import _give_to_owner
from modules.hostside.weights_stamp import Repository

BLOB, OTHER = "a" * 64, "b" * 40


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """A commit of one file."""
    model = tmp_path / "from" / "models--a--b"
    (model / "blobs").mkdir(parents=True)
    (model / "blobs" / BLOB).write_text("weights")
    snapshot = model / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").symlink_to(f"../../blobs/{BLOB}")
    return snapshot


def test_weights_come_by_links(tmp_path: Path, snapshot: Path) -> None:
    blobs = tmp_path / "to" / "blobs"
    assert bring(snapshot, blobs, Progress()) == (1, 0)
    assert (blobs / BLOB).samefile(snapshot / "model.safetensors")
    assert bring(snapshot, blobs, Progress()) == (0, 0)


def test_weights_on_another_filesystem_are_copied(
    tmp_path: Path, snapshot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(*_: Any) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("os.link", elsewhere)
    assert bring(snapshot, tmp_path / "blobs", Progress()) == (0, 1)
    assert (tmp_path / "blobs" / BLOB).read_text() == "weights"


@pytest.mark.parametrize("leads_to", ["{host}/secret", f"../../blobs/{OTHER}", f"../../blobs/x/../../{OTHER}", "../.."])
def test_a_link_out_of_the_models_blobs_brings_nothing(tmp_path: Path, snapshot: Path, leads_to: str) -> None:
    """What lies there is its user's, and the program is root."""
    secret = tmp_path / "secret"
    secret.write_text("root's")
    (snapshot.parents[1] / "blobs" / OTHER).symlink_to(secret)
    (snapshot.parents[1] / OTHER).write_text("x")
    (snapshot / "config.json").symlink_to(leads_to.format(host=tmp_path))
    bring(snapshot, tmp_path / "to", Progress())
    assert [path.name for path in (tmp_path / "to").iterdir()] == [BLOB]
    assert secret.stat().st_nlink == 1


def test_a_cache_in_a_container_is_read_by_its_process(snapshot: Path) -> None:
    """Its root is a link that only the kernel follows: to resolve it leads to this host's own files."""
    root = Path("/proc/self/root")
    below = snapshot.relative_to("/")
    assert list(blobs_of(root / below)) == [(BLOB, root / below.parents[1] / "blobs" / BLOB)]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_what_was_linked_still_belongs_to_whose_cache_it_came_from(tmp_path: Path, snapshot: Path) -> None:
    user, theirs = 4711, snapshot.parents[1] / "blobs" / BLOB
    os.chown(theirs, user, user)
    home = tmp_path / "home"
    repository = Repository(home, "a/b")
    bring(snapshot, repository.folder / "blobs", Progress())
    fetched = repository.folder / "blobs" / OTHER
    fetched.touch()
    os.chown(fetched, user, user)
    _give_to_owner(repository)
    assert (theirs.stat().st_uid, fetched.stat().st_uid) == (user, home.stat().st_uid)
