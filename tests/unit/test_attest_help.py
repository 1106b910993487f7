"""Which flags a program's help names."""

from __future__ import annotations

from pathlib import Path

from modules.hostside.help_text import HelpText

SAMPLES = Path(__file__).parents[1] / "samples"


def read(name: str) -> HelpText:
    return HelpText.read((SAMPLES / name).read_text().splitlines())


def test_flags_of_argparse_with_their_values() -> None:
    found = read("vllm-serve-help.txt")

    assert {"headless", "enforce-eager", "no-enforce-eager", "reasoning-parser", "kv-cache-dtype"} <= found.flags
    assert "device-memory-utilization" in found.flags
    assert found.choices == {
        "tool-call-parser": ["hermes", "mistral", "openai"],
        "kv-cache-dtype": ["auto", "bfloat16", "fp8"],
    }


def test_a_flag_that_is_only_spoken_of_is_not_known() -> None:
    assert "exclude-tools-when-tool-choice-none" not in read("vllm-serve-help.txt").flags
    assert "no-kv" not in read("llama-server-help.txt").flags


def test_flags_of_llama_cpp() -> None:
    assert read("llama-server-help.txt").flags == {"help", "usage", "ctx-size", "flash-attn", "jinja"}


def test_what_is_no_help_has_no_flags() -> None:
    assert (
        HelpText.read(["Traceback (most recent call last):", "ModuleNotFoundError: No module named 'vllm'"]).flags
        == set()
    )
