"""cuobjdump's output. The samples are of one kernel, compiled by nvcc 13.0.88 for 12.1f, 12.1a and plain 12.1."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.facts.parse.cuobjdump import ListedElf, parse_device_code, parse_list_elf
from modules.facts.parse.errors import ParseError
from modules.hostside.device_code import Fp4Instruction

SAMPLES = Path(__file__).parents[1] / "samples"
NOTHING = "cuobjdump info    : File '/usr/lib/libc.so.6' does not contain device code\n"


def sample(name: str) -> str:
    return (SAMPLES / f"cuobjdump-{name}.txt").read_text()


def test_the_listed_name_is_the_same_for_121f_and_for_plain_121() -> None:
    assert parse_list_elf(sample("list-elf-121f"))[0] == ListedElf(1, "libtinderbox_fp4_probe.1.sm_121.cubin", "sm_121")
    targets = {
        name: {elf.target for elf in parse_list_elf(sample(f"list-elf-{name}"))} for name in ("121f", "121a", "121")
    }
    assert targets == {"121f": {"sm_121"}, "121a": {"sm_121a"}, "121": {"sm_121"}}


@pytest.mark.parametrize("architecture", ["121f", "121a", "121"])
def test_each_piece_of_code_says_what_it_is_for(architecture: str) -> None:
    assert parse_device_code(sample(f"dump-sass-{architecture}")).machine == {f"sm_{architecture}": 2}


def test_every_dump_has_the_same_heads() -> None:
    assert parse_device_code(sample("dump-elf-121f")).machine == {"sm_121f": 2}


def test_ptx_is_no_machine_code() -> None:
    code = parse_device_code(sample("symbols-mixed"))
    assert code.machine == {"sm_90a": 2, "sm_121f": 2}
    assert code.ptx == {"sm_121": 1}


@pytest.mark.parametrize("architecture", ["121f", "121a"])
def test_fp4_is_found_in_the_machine_code_with_its_function(architecture: str) -> None:
    assert parse_device_code(sample(f"dump-sass-{architecture}")).fp4 == {
        f"sm_{architecture}": Fp4Instruction(
            "OMMA.SF.16864.F32.E2M1.E2M1.E8", f"sm_{architecture}", "tinderbox_fp4_probe"
        )
    }


def test_plain_121_has_none() -> None:
    assert parse_device_code(sample("dump-sass-121")).fp4 == {}


def test_fp4_mixed_with_fp8_counts() -> None:
    """MXFP4 weights times FP8 activations: what the pinned kernels for gpt-oss compute."""
    (found,) = parse_device_code(sample("dump-sass-mixed-operands")).fp4.values()
    assert found.opcode == "QMMA.SF.16832.F32.E4M3.E2M1.E8"


@pytest.mark.parametrize(
    "instruction",
    [
        "QMMA.SF.16832.F32.E4M3.E4M3.E8 R4, R4, R8, RZ, R0, R11, URZ ;",  # block-scaled, but FP8 on both sides
        "QMMA.16832.F32.E2M1.E2M1 R4, R4, R8, RZ ;",  # FP4, but not block-scaled
        "F2FP.SATFINITE.E2M1.F32.PACK_AB_MERGE_C R0, R0, R5, RZ ;",  # a conversion
        "HMMA.16816.F32.BF16 R4, R4, R8, RZ ;",
    ],
)
def test_what_is_near_to_it_does_not_count(instruction: str) -> None:
    text = sample("dump-sass-121f").replace(
        "OMMA.SF.16864.F32.E2M1.E2M1.E8 R8, R4, R8, RZ, R0, R11, URZ ;", instruction
    )
    assert instruction in text
    assert parse_device_code(text).fp4 == {}


def test_a_library_without_code_for_gpus_is_empty() -> None:
    assert parse_list_elf(NOTHING) == ()
    code = parse_device_code(NOTHING)
    assert (code.machine, code.ptx, code.fp4) == ({}, {}, {})


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "names no code"),
        ("sh: 1: cuobjdump: not found\n", "names no code"),
        ("cuobjdump fatal   : Could not open input file 'x.so'\n", "Could not open input file 'x.so'"),
        ("cuobjdump fatal   : Could not find executable file 'nvdisasm'\n", "nvdisasm"),
        ("\nFatbin elf code:\n================\n", "cut off"),
        ("\nFatbin elf code:\n================\narch = sm_121f\n\nFatbin elf code:\n=====", "cut off"),
    ],
)
def test_what_is_no_dump_is_an_error(text: str, what: str) -> None:
    with pytest.raises(ParseError, match=what):
        parse_device_code(text)


@pytest.mark.parametrize("text", ["", "ELF file    1: libx.1.so\n", "cuobjdump fatal   : no\n"])
def test_what_is_no_list_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_list_elf(text)
