"""The probe of Triton's ptxas, with a stand-in that says what ptxas 13.0.88 and an older one say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modules.hostside import ptxas_probe

# $2: the target; the sixth argument is the source.
STAND_IN = """#!/bin/sh
case "$2" in
  sm_121*) ;;
  *) echo "ptxas fatal   : Value '$2' is not defined for option 'gpu-name'" >&2; exit 255;;
esac
grep -q '^.version 8.8' "$5" || { echo "error : PTX .version does not support .target $2" >&2; exit 255; }
grep -q "^.target $2" "$5" || exit 255
touch "$4"
"""
TOO_OLD = """#!/bin/sh
echo "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'" >&2
exit 255
"""


def program(folder: Path, text: str) -> str:
    path = folder / "ptxas"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The profile of the user whose login shells are asked."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(ptxas_probe.VARIABLE, "/not/of/the/login/shell")
    return tmp_path / ".bash_profile"


def name_in(login: Path, path: str) -> None:
    login.write_text(f"echo Welcome\nexport {ptxas_probe.VARIABLE}={path}\n")


@pytest.mark.parametrize("architecture", ["12.1f", "12.1a"])
def test_a_ptxas_that_knows_the_gb10_passes(
    login: Path, tmp_path: Path, architecture: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = program(tmp_path, STAND_IN)
    name_in(login, path)

    assert ptxas_probe.main(["--architecture", architecture]) == 0
    assert capsys.readouterr().out == f"{path} assembles for {architecture}\n"
    assert ptxas_probe.main(["--architecture", architecture, "--tell"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": path, "reason": None}


def test_one_that_is_too_old_is_refused_with_its_own_words(
    login: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name_in(login, program(tmp_path, TOO_OLD))

    assert ptxas_probe.main(["--architecture", "12.1a"]) == 1
    said = capsys.readouterr().err
    assert "Value 'sm_121a' is not defined" in said
    assert "must name the ptxas of a CUDA toolkit of 13.0 or newer" in said


def test_an_architecture_that_no_ptxas_knows_is_refused(login: Path, tmp_path: Path) -> None:
    name_in(login, program(tmp_path, STAND_IN))

    assert ptxas_probe.main(["--architecture", "19.9f"]) == 1


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "TRITON_PTXAS_PATH is not set in a login shell"),
        ("/none/ptxas", "/none/ptxas can not be run: No such file"),
    ],
)
def test_none_at_all_is_told(login: Path, path: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    name_in(login, path)

    assert ptxas_probe.main(["--architecture", "12.1f", "--tell"]) == 0
    assert json.loads(capsys.readouterr().out)["reason"].startswith(reason)
    assert ptxas_probe.main(["--architecture", "12.1f"]) == 1


def test_a_ptxas_that_writes_nothing_does_not_pass(login: Path, tmp_path: Path) -> None:
    name_in(login, program(tmp_path, "#!/bin/sh\nexit 0\n"))

    assert ptxas_probe.main(["--architecture", "12.1f"]) == 1
