"""The compile probe, with a stand-in for nvcc that refuses what it is told to refuse."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from modules.hostside import compile_probe

STAND_IN = """#!/bin/sh
echo "$*" >> {log}
for last; do :; done
if grep -q -e '{refused}' "$last"; then
  echo "ptxas /tmp/tmpxft_1.ptx, line 31; error   : Instruction '{refused}' not supported on .target 'sm_121'" >&2
  exit 255
fi
"""


def toolkit(root: Path, refused: str) -> Path:
    nvcc = root / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True, exist_ok=True)
    nvcc.write_text(STAND_IN.format(log=root / "calls", refused=refused))
    nvcc.chmod(nvcc.stat().st_mode | stat.S_IXUSR)
    return nvcc


def probe(root: Path, nvcc: Path, *more: str) -> int:
    return compile_probe.main(["--architecture", "12.1f", "--nvcc", str(nvcc), "--kept-in", str(root / "kept"), *more])


def calls(root: Path) -> list[str]:
    log = root / "calls"
    return log.read_text().splitlines() if log.exists() else []


def test_a_gb10_needs_everything_but_tcgen05(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert probe(tmp_path, toolkit(tmp_path, "tcgen05.alloc")) == 0
    features = json.loads(capsys.readouterr().out)["features"]
    assert len(features) == 8
    assert [name for name, found in features.items() if not found["compiles"]] == ["tcgen05.alloc"]
    assert features["tcgen05.alloc"]["reason"] == "ptxas: Instruction 'tcgen05.alloc' not supported on .target 'sm_121'"


def test_the_architecture_is_given_without_plain_ptx(tmp_path: Path) -> None:
    probe(tmp_path, toolkit(tmp_path, "tcgen05"))
    assert all("-gencode arch=compute_121f,code=sm_121f" in call and "-arch" not in call for call in calls(tmp_path))


def test_an_answer_is_kept_for_the_same_compiler(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nvcc = toolkit(tmp_path, "tcgen05")
    probe(tmp_path, nvcc)
    first, compiled = capsys.readouterr().out, len(calls(tmp_path))
    assert probe(tmp_path, nvcc) == 0
    assert probe(tmp_path, nvcc, "--recall") == 0
    assert capsys.readouterr().out == first + first
    assert len(calls(tmp_path)) == compiled


def test_another_compiler_is_asked_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nvcc = toolkit(tmp_path, "tcgen05")
    probe(tmp_path, nvcc)
    nvcc.write_text(nvcc.read_text() + "# another build\n")
    capsys.readouterr()
    assert probe(tmp_path, nvcc, "--recall") == 0
    assert capsys.readouterr().out == "null\n"


def test_a_compiler_that_was_only_touched_is_known_by_its_hash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nvcc = toolkit(tmp_path, "tcgen05")
    probe(tmp_path, nvcc)
    first = capsys.readouterr().out
    nvcc.touch()
    probe(tmp_path, nvcc, "--recall")
    assert capsys.readouterr().out == first


def test_a_missing_feature_fails_with_its_reason_and_is_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nvcc = toolkit(tmp_path, "kind::mxf4\\.block_scale")
    assert probe(tmp_path, nvcc) == 1
    said = capsys.readouterr().err
    assert "mma.kind::mxf4.block_scale.scale_vec::2X.m16n8k64: ptxas: Instruction" in said
    assert "fleet file" in said
    assert not (tmp_path / "kept").exists()


def test_without_a_compiler_there_is_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert probe(tmp_path, tmp_path / "bin" / "nvcc") == 2
    assert "is the CUDA toolkit installed" in capsys.readouterr().err
    assert probe(tmp_path, tmp_path / "bin" / "nvcc", "--recall") == 0
    assert capsys.readouterr().out == "null\n"


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("nvcc fatal   : Unsupported gpu architecture 'compute_121f'\n", "Unsupported gpu architecture 'compute_121f'"),
        ("sh: 1: gcc: not found\nnvcc error : failed to preprocess host compiler properties.\n", "host compiler"),
        ("Killed\n", "Killed"),
        ("", "exit status 137"),
    ],
)
def test_the_reason_is_the_line_that_says_why(output: str, reason: str) -> None:
    assert reason in compile_probe.reason_in(output, 137)
