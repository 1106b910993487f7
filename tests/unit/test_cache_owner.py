"""Files of root's in a user's cache are given to the user; nothing else is touched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from modules.hostside.cache_owner import look, refusal, repair

USER = 4711
root_only = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A user's cache, in which a container has written."""
    home = tmp_path / "home"
    for folder in (home, home / "hub", home / "hub" / "models--x--y"):
        folder.mkdir()
        os.chown(folder, USER, USER)
    (home / "hub" / "users").write_text("x")
    os.chown(home / "hub" / "users", USER, USER)
    deep = home / "hub" / "models--x--y" / "blobs"
    deep.mkdir()
    (deep / "blob").write_text("x")
    (home / "hub" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("x")
    return home


@root_only
def test_what_is_roots_is_found_and_given_to_the_user(home: Path) -> None:
    found = look(home)
    assert found is not None
    assert (found.files, found.linked) == (3, 0)
    assert repair(home) == 3
    assert look(home) is None
    assert {path.lstat().st_uid for path in home.rglob("*")} == {USER}
    assert repair(home) == 0


@root_only
def test_no_link_is_followed_and_a_file_with_another_name_is_left(home: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root's")
    (home / "hub" / "hard").hardlink_to(secret)
    repair(home)
    assert secret.stat().st_uid == 0
    assert (tmp_path / "elsewhere").stat().st_uid == 0
    assert (tmp_path / "elsewhere" / "file").stat().st_uid == 0
    left = look(home)
    assert left is not None
    assert (left.files, left.linked) == (1, 1)


@root_only
def test_only_a_users_cache_is_repaired(home: Path, tmp_path: Path) -> None:
    link = tmp_path / "as-home"
    link.symlink_to(home)
    bare = tmp_path / "bare"
    bare.mkdir()
    os.chown(bare, USER, USER)
    own = tmp_path / "own"
    (own / "hub").mkdir(parents=True)
    for path, word in ((link, "no folder"), (bare, "does not look like"), (own, "root's own")):
        assert word in (refusal(path) or "")
        with pytest.raises(ValueError, match=word):
            repair(path)
