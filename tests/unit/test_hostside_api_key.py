"""The API key that a host makes for a service that others can reach."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from modules.hostside import api_key
from modules.hostside.api_key import fingerprint, have_key, key_file, variables
from modules.release import layout
from modules.release.build import fingerprint as of_release


def test_it_is_made_once_and_only_root_reads_it(tmp_path: Path) -> None:
    assert fingerprint("gpt-oss", "VLLM_API_KEY", tmp_path) is None
    assert have_key("gpt-oss", "VLLM_API_KEY", tmp_path)
    path = key_file("gpt-oss", tmp_path)
    text = path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert not have_key("gpt-oss", "VLLM_API_KEY", tmp_path)
    assert path.read_text() == text
    (value,) = variables(path).values()
    assert len(value) >= 40
    assert fingerprint("gpt-oss", "VLLM_API_KEY", tmp_path) == of_release(value)


def test_it_lies_where_the_unit_looks_for_it() -> None:
    assert str(key_file("gpt-oss")) == layout.key_file("gpt-oss")


def test_each_service_has_its_own(tmp_path: Path) -> None:
    have_key("one", "VLLM_API_KEY", tmp_path)
    have_key("two", "VLLM_API_KEY", tmp_path)
    assert fingerprint("one", "VLLM_API_KEY", tmp_path) != fingerprint("two", "VLLM_API_KEY", tmp_path)


def test_another_engine_takes_the_same_key(tmp_path: Path) -> None:
    have_key("gpt-oss", "VLLM_API_KEY", tmp_path)
    assert not have_key("gpt-oss", "LLAMA_API_KEY", tmp_path)
    held = variables(key_file("gpt-oss", tmp_path))
    assert held["LLAMA_API_KEY"] == held["VLLM_API_KEY"]


def test_a_file_that_was_opened_to_others_is_closed_again(tmp_path: Path) -> None:
    have_key("gpt-oss", "VLLM_API_KEY", tmp_path)
    key_file("gpt-oss", tmp_path).chmod(0o644)
    have_key("gpt-oss", "VLLM_API_KEY", tmp_path)
    assert key_file("gpt-oss", tmp_path).stat().st_mode & 0o777 == 0o600


def test_two_at_once_make_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: have_key("gpt-oss", "VLLM_API_KEY", tmp_path), range(16)))
    assert made.count(True) == 1


def test_what_is_there_without_a_value_is_no_key(tmp_path: Path) -> None:
    key_file("gpt-oss", tmp_path).write_text("VLLM_API_KEY=\n")
    assert have_key("gpt-oss", "VLLM_API_KEY", tmp_path)
    assert fingerprint("gpt-oss", "VLLM_API_KEY", tmp_path) is not None


def test_the_program_prints_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(api_key, "SETTINGS", tmp_path)
    monkeypatch.setattr(api_key.have_key, "__defaults__", (tmp_path,))
    assert api_key.main(["gpt-oss", "VLLM_API_KEY"]) == 0
    assert capfd.readouterr() == ("", "")
    assert key_file("gpt-oss", tmp_path).exists()


def test_it_says_how_it_is_called() -> None:
    done = subprocess.run([sys.executable, api_key.__file__, "gpt-oss"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "api_key.py SERVICE VARIABLE\n")
