"""What the role gives a host that is not open, that it gives an open one nothing; and its shell, run here."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from modules.facts.access import Access, AccessState
from modules.facts.files import FileState, FileStates
from modules.operations import managed_files
from modules.operations.bootstrap import (
    DOCKER_GROUP,
    LISTED,
    MARK,
    admission,
    docker_joined,
    key_admitted,
    key_of,
    sudo_settled,
    sudoers_file,
)
from modules.operations.managed_files import placing
from tests.operations.stub_host import StubHost, commands_of

LINE = "ssh-ed25519 AAAAC3Nza anna@laptop of hers"
OPEN = AccessState("anna", admitted=True, in_docker=True)
CLOSED = AccessState("anna", admitted=False, in_docker=False)


def states(user: str, sudo: str) -> dict[str, FileState]:
    file = sudoers_file(user, sudo)
    digest = hashlib.sha256((file.content or "").encode()).hexdigest()
    return {file.path: FileState(digest, "440", "root:root")}


def test_an_open_host_is_left_alone() -> None:
    host = StubHost({Access: OPEN, FileStates: states("anna", "listed")})
    assert commands_of(host, key_admitted, line=LINE) == []
    assert commands_of(host, sudo_settled, sudo="listed", key=key_of(LINE)) == []
    assert commands_of(host, docker_joined, key=key_of(LINE)) == []
    assert len(host.noops) == 3


def test_a_closed_host_is_opened() -> None:
    host = StubHost({Access: CLOSED, FileStates: states("anna", "listed")})
    (admit,) = commands_of(host, key_admitted, line=LINE)
    assert "tinderbox: anna@laptop of hers" in admit.get_raw_value()
    (sudoers,) = commands_of(host, sudo_settled, sudo="all", key=key_of(LINE))
    assert sudoers.connector_arguments["_stdin"].splitlines()[1] == "anna ALL=(ALL:ALL) NOPASSWD: ALL"
    (join,) = commands_of(host, docker_joined, key=key_of(LINE))
    assert join.get_raw_value().endswith(f"join anna {DOCKER_GROUP}")


def test_root_needs_neither_sudo_nor_a_group() -> None:
    root = AccessState("root", admitted=True, in_docker=False)
    host = StubHost({Access: root, FileStates: {sudoers_file("root", "listed").path: None}})
    assert commands_of(host, sudo_settled, sudo="listed", key=key_of(LINE)) == []
    assert commands_of(host, docker_joined, key=key_of(LINE)) == []


def test_a_host_that_says_nothing_of_itself_is_refused() -> None:
    host = StubHost({Access: None, FileStates: None})
    for operation, arguments in (
        (key_admitted, {"line": LINE}),
        (sudo_settled, {"sudo": "listed", "key": key_of(LINE)}),
        (docker_joined, {"key": key_of(LINE)}),
    ):
        (command,) = commands_of(host, operation, **arguments)
        assert "could not be read" in command.get_raw_value()


@pytest.mark.parametrize(
    ("user", "path", "begins"),
    [
        ("anna", "/etc/sudoers.d/tinderbox-anna", "anna ALL="),
        # Sudo passes over a file with a dot in its name; and these signs mean something in it.
        ("anna.b", "/etc/sudoers.d/tinderbox-anna_2e_b", "anna.b ALL="),
        ("anna@corp", "/etc/sudoers.d/tinderbox-anna_40_corp", r"anna\@corp ALL="),
        ("CORP\\anna", "/etc/sudoers.d/tinderbox-CORP_5c_anna", r"CORP\\anna ALL="),
    ],
)
def test_the_rule_of_a_user(user: str, path: str, begins: str) -> None:
    file = sudoers_file(user, "listed")
    assert (file.path, file.mode) == (path, "440")
    rule = (file.content or "").splitlines()[1]
    assert rule.startswith(begins)
    assert rule.endswith(f"ALL=(root) NOPASSWD: {', '.join(LISTED)}")


def admitted(home: Path, line: str = LINE) -> None:
    subprocess.run(admission(line), env={**os.environ, "HOME": str(home)}, check=True)


def test_a_key_is_added_once_and_what_was_there_stays(tmp_path: Path) -> None:
    admitted(tmp_path)
    file = tmp_path / ".ssh" / "authorized_keys"
    added = f"ssh-ed25519 AAAAC3Nza {MARK} anna@laptop of hers\n"
    assert file.read_text() == added
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    admitted(tmp_path)
    assert file.read_text() == added
    # The last line of a file that was edited by hand may have no end; a key that is commented out is not there.
    file.write_text("# ssh-ed25519 AAAAC3Nza\nssh-rsa AAAA theirs")
    file.chmod(0o644)
    admitted(tmp_path)
    assert file.read_text() == f"# ssh-ed25519 AAAAC3Nza\nssh-rsa AAAA theirs\n{added}"
    assert file.stat().st_mode & 0o777 == 0o644
    assert [each.name for each in file.parent.iterdir()] == ["authorized_keys"]


def test_a_key_goes_to_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "authorized_keys").symlink_to(tmp_path / "real")
    admitted(tmp_path)
    assert (tmp_path / ".ssh" / "authorized_keys").is_symlink()
    assert MARK in (tmp_path / "real").read_text()


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with stand-ins for visudo, which takes what says so, and for what only root may do."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, script in {"chown": "", "visudo": 'test "$1" = -cf && ! grep -q refused "$2"'}.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setattr(managed_files, "UNDO", str(tmp_path / "undo"))
    return tmp_path


def placed(shell: Path, user: str, sent: str | None = None) -> tuple[int, Path]:
    file = sudoers_file(user, "listed")
    words = [str(shell / "sudoers") if word == file.path else word for word in placing(file)]
    done = subprocess.run(words, input=file.content if sent is None else sent, text=True, check=False)
    return done.returncode, shell / "sudoers"


def test_a_sudoers_file_is_placed_when_visudo_takes_it_and_what_was_sent_is_whole(shell: Path) -> None:
    status, there = placed(shell, "refused")
    assert (status != 0, there.exists()) == (True, False)
    # The connection was cut: what came is in order by itself, and is not all.
    whole = sudoers_file("anna", "listed").content or ""
    status, there = placed(shell, "anna", whole.splitlines(keepends=True)[0])
    assert (status != 0, there.exists()) == (True, False)
    status, there = placed(shell, "anna")
    assert (status, there.read_text(), there.stat().st_mode & 0o777) == (0, whole, 0o440)
    assert [path.name for path in shell.iterdir() if path.name.startswith("sudoers")] == ["sudoers"]
