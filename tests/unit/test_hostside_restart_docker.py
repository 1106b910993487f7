"""Restarting dockerd with new files, with stand-ins for the programs that it calls."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from modules.hostside import restart_docker

SYSTEMCTL = """#!/bin/sh
echo "systemctl $*" >> {root}/calls
test "$1" != restart || ! grep -qs bad {config}
"""
DOCKERD = """#!/bin/sh
echo "dockerd $*" >> {root}/calls
if test "$1" = --help; then echo "      --validate   Validate daemon configuration and exit"; exit; fi
! grep -q invalid "${{2#--config-file=}}" || {{ echo 'unable to configure: unknown key "invalid"' >&2; exit 1; }}
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "etc" / "daemon.json"
    programs = {
        "systemctl": SYSTEMCTL,
        "dockerd": DOCKERD,
        "docker": "#!/bin/sh\n",
        "journalctl": "#!/bin/sh\necho failed to start daemon\n",
    }
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        program = tmp_path / "bin" / name
        program.write_text(text.format(root=tmp_path, config=path))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setattr(restart_docker, "CONFIG", str(path))
    monkeypatch.setattr(restart_docker, "UNDO", tmp_path / "undo")
    return path


def restarted(monkeypatch: pytest.MonkeyPatch, files: dict[Path, str | None]) -> int:
    document = {str(path): None if text is None else {"text": text, "mode": "600"} for path, text in files.items()}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(document) + "\n"))
    return restart_docker.main()


def test_new_files_are_placed_and_the_former_kept(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.parent.mkdir()
    config.write_text("{}")
    other = tmp_path / "new" / "docker.env"
    assert restarted(monkeypatch, {config: '{"a": 1}', other: "A=1\n"}) == 0
    assert config.read_text() == '{"a": 1}'
    assert other.stat().st_mode & 0o777 == 0o600
    undo = tmp_path / "undo" / tmp_path.relative_to("/")
    assert (undo / "etc" / "daemon.json").read_text() == "{}"
    assert (undo / "new" / "docker.env.absent").exists()
    assert restarted(monkeypatch, {config: '{"a": 2}'}) == 0
    assert (undo / "etc" / "daemon.json").read_text() == "{}"


def test_units_are_read_again_before_the_restart(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    restarted(monkeypatch, {})
    assert (tmp_path / "calls").read_text().splitlines() == [
        "systemctl daemon-reload",
        "systemctl reset-failed docker.service",
        "systemctl restart docker.service",
    ]


def test_what_dockerd_refuses_is_not_written(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert restarted(monkeypatch, {config: '{"invalid": 1}'}) == 1
    assert not config.exists()
    assert "restart" not in (tmp_path / "calls").read_text()
    assert 'unknown key "invalid"' in capsys.readouterr().err


def test_what_does_not_start_is_put_back(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config.parent.mkdir()
    config.write_text("{}")
    other = tmp_path / "docker.env"
    assert restarted(monkeypatch, {config: '{"bad": 1}', other: "A=1\n"}) == 1
    assert config.read_text() == "{}"
    assert not other.exists()
    said = capsys.readouterr().err
    assert "failed to start daemon" in said
    assert "The former files are back, and dockerd runs with them" in said


def test_a_daemon_that_was_broken_before_is_told_so(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config.parent.mkdir()
    config.write_text('{"bad": 0}')
    assert restarted(monkeypatch, {config: '{"bad": 1}'}) == 1
    assert config.read_text() == '{"bad": 0}'
    assert "does not start with them either" in capsys.readouterr().err


def test_a_file_can_be_taken_away(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drop_in = tmp_path / "proxy.conf"
    drop_in.write_text("[Service]\n")
    assert restarted(monkeypatch, {drop_in: None}) == 0
    assert not drop_in.exists()
