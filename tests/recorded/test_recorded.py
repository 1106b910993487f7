"""Every parser over recorded outputs of real machines, where that folder lies beside the repository.

The recordings are other people's files and not part of the project; what they hold is (`expected.yaml`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from modules.facts.parse.errors import ParseError

HERE = Path(__file__).parent
RECORDED = HERE.parents[2] / "shared" / "recorded"
EXPECTED: dict[str, list[dict[str, Any]]] = yaml.safe_load((HERE / "expected.yaml").read_text())
CASES = [(name, case) for name, cases in EXPECTED.items() for case in cases]


def recordings() -> list[Path]:
    if not RECORDED.is_dir():
        return []
    return sorted(path for path in RECORDED.iterdir() if path.name != "index.tsv")


def parser(name: str) -> Callable[[str], Any]:
    module, _, function = name.rpartition(".")
    found: Callable[[str], Any] = getattr(importlib.import_module(f"modules.facts.parse.{module}"), function)
    return found


def looked_up(result: Any, path: str) -> Any:
    for step in path.split("."):
        if step == "#":
            result = len(result)
        elif isinstance(result, Mapping):
            result = result[step]
        elif isinstance(result, tuple):
            result = result[int(step)]
        else:
            result = getattr(result, step)
    return result


def plain(value: Any) -> Any:
    return [plain(one) for one in value] if isinstance(value, tuple | list) else value


def checked(text: str, case: dict[str, Any]) -> None:
    if "raises" in case:
        with pytest.raises(ParseError, match=case["raises"]):
            parser(case["parser"])(text)
        return
    result = parser(case["parser"])(text)
    assert {path: plain(looked_up(result, path)) for path in case["expect"]} == case["expect"]


@pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{name}-{case['parser']}" for name, case in CASES])
def test_an_expectation_names_a_parser_and_says_what_it_must_bring(name: str, case: dict[str, Any]) -> None:
    assert callable(parser(case["parser"]))
    assert ("expect" in case) != ("raises" in case)
    assert len(case.get("expect", [])) >= 2 or case.get("raises")


if recordings():

    @pytest.mark.parametrize("path", recordings(), ids=lambda path: path.name)
    def test_a_recording_holds_what_was_read_in_it(path: Path) -> None:
        assert path.name in EXPECTED, f"nothing says what {path.name} holds: add it to expected.yaml"
        for case in EXPECTED[path.name]:
            checked(path.read_text(), case)


def test_a_wrong_expectation_would_be_noticed() -> None:
    text = "Docker version 29.2.1, build a5c7197"
    right = {"parser": "docker_version.parse_docker_version", "expect": {"client": "29.2.1", "server": None}}
    checked(text, right)
    with pytest.raises(AssertionError):
        checked(text, {**right, "expect": {"client": "29.2.2", "server": None}})
    with pytest.raises(pytest.fail.Exception):
        checked(text, {"parser": right["parser"], "raises": "cut off"})
