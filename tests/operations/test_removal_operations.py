"""Leaving a host and looking at its disks: what is asked, what is told, what is done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from modules.operations import at_hand, disk, removal
from modules.operations.asked import ASKED_LAYERS, asked_layers
from modules.reporting.removal import Removal
from roles.leave import layers_of
from tests.operations.stub_host import StubHost, commands_of

GOING = {"layer": "engine", "title": "service gpt-oss", "bytes": 10, "note": ""}
FABRIC = {"layer": "system", "title": "fabric of the QSFP ports", "bytes": None, "note": ""}
STAYS = {"layer": "images", "title": "image x", "why": "container mine uses it"}


class Asked(StubHost):
    """`said`: what the program on the host prints."""

    current_op_global_arguments: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, said: str, succeeded: bool = True) -> None:
        super().__init__({})
        self.said, self.succeeded, self.ran = said, succeeded, list[str]()

    def run_shell_command(self, command: Any, **given: Any) -> tuple[bool, Any]:
        self.ran.append(command.get_raw_value())
        assert given["_stdin"] == at_hand.archive()
        return self.succeeded, SimpleNamespace(stdout_lines=self.said.splitlines(), stderr_lines=["why not"])


def plan(*going: dict[str, Any], staying: tuple[Any, ...] = (), refused: str | None = None) -> str:
    return "a banner\n" + json.dumps({"going": going, "staying": staying, "refused": refused})


def remove(host: Asked) -> list[Any]:
    return commands_of(host, removal.layers_removed, layers=["engine", "images"], member="spark-1")


def test_a_host_that_has_nothing_of_it_gets_nothing() -> None:
    host = Asked(plan(staying=(STAYS,)))
    assert remove(host) == []
    assert host.noops
    assert any("container mine uses it" in line for line in host.logged)
    assert host.ran[0].endswith("remove_layers.py plan engine images")


def test_what_goes_is_told_and_one_program_takes_it_away() -> None:
    host = Asked(plan(GOING))
    (command,) = remove(host)
    assert command.args[1] == Removal((GOING,), (), None)
    assert "    goes   service gpt-oss (10 B)" in host.logged


def test_the_ports_are_set_back_first_and_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []

    def settled(**arguments: Any) -> Any:
        asked.append(arguments)
        yield "fabric"

    monkeypatch.setattr(removal, "fabric_settled", SimpleNamespace(_inner=settled))
    first, last = remove(Asked(plan(FABRIC)))
    assert first == "fabric"
    assert asked == [{"fabric": None, "member": "spark-1", "simulated": False}]
    assert last is not None


@pytest.mark.parametrize("said", ["", "{}", "{", plan()[:-3]])
def test_an_answer_that_is_none_removes_nothing(said: str) -> None:
    (refusal,) = remove(Asked(said))
    assert "could not be read" in refusal.get_raw_value()


def test_a_refusal_is_told_and_nothing_is_done() -> None:
    (refusal,) = remove(Asked(plan(refused="this host has gpt-oss")))
    assert "nothing was removed: this host has gpt-oss" in refusal.get_raw_value()


def test_layers_are_taken_in_their_order_whatever_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ASKED_LAYERS, "system, engine")
    assert layers_of(asked_layers()) == ("engine", "system")
    monkeypatch.setenv(ASKED_LAYERS, "all")
    assert layers_of(asked_layers()) == ("engine", "images", "weights", "system")
    monkeypatch.setenv(ASKED_LAYERS, "all,access")
    assert layers_of(asked_layers())[-1] == "access"
    monkeypatch.setenv(ASKED_LAYERS, "")
    assert layers_of(asked_layers()) == ()


def test_a_program_runs_from_what_is_sent_and_leaves_nothing(tmp_path: Path) -> None:
    """The very command, by a shell of this machine; only the place of its copy is another one."""
    text = at_hand.command("cache_owner.py", ["repair", str(tmp_path)]).get_raw_value()
    run = subprocess.run(
        ["sh", "-c", text.replace("/run/tinderbox-at-hand", str(tmp_path / "copy")).replace("python3", sys.executable)],
        input=at_hand.archive(), text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert (run.returncode, "does not look like a Hugging Face home" in run.stderr) == (1, True), run.stderr
    assert list(tmp_path.iterdir()) == []


LOOKED: dict[str, Any] = {
    "disks": [], "docker": True, "images": [], "build_cache": {"ours": 0, "others": 0}, "weights": [], "partial": [],
    "caches": [], "rest": {}, "stale_layers": 0, "releases": [],
    "owned": [{"home": "/h", "owner": "ana", "files": 3, "bytes": 9, "linked": 0, "examples": ["/h/x"]}],
}  # fmt: skip


def tell(host: Asked, *, repair: bool) -> list[Any]:
    disk._told.clear()
    return commands_of(host, disk.disk_told, images=["i"], revisions=["o/n@c"], home="/h", repair=repair)


def test_looking_at_disks_changes_nothing_and_repair_is_asked_for() -> None:
    host = Asked(json.dumps(LOOKED))
    assert tell(host, repair=False) == []
    assert any("belong to root, and not to ana" in line for line in host.logged)
    (command,) = tell(Asked(json.dumps(LOOKED)), repair=True)
    assert command.args == ("/h",)
    assert tell(Asked(json.dumps(LOOKED | {"owned": []})), repair=True) == []
    # Those that stay root's are no reason to repair it again.
    stays = {**LOOKED["owned"][0], "linked": 3}
    assert tell(Asked(json.dumps(LOOKED | {"owned": [stays]})), repair=True) == []


def test_json_is_one_line_on_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TINDERBOX_JSON", "1")
    tell(Asked(json.dumps(LOOKED)), repair=False)
    assert json.loads(capsys.readouterr().out)["host"] == "spark-1"
