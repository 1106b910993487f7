"""A service behind a gateway over every change and every cut: sent requests in the end, and to nothing unproved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from modules.hostside import judge_release, service_server
from tests.unit.fake_systemd import SERVICE, STARTING, Machine
from tests.unit.test_release_cuts import CASES, SCENES, Make, cut_in, machine_of, prepared, wants

# As the programs import them on a host.
if TYPE_CHECKING:
    from modules.hostside import release_switch
    from modules.hostside.drain import Door
else:
    import release_switch
    from drain import Door

__all__ = ["machine_of"]


class Doors:
    """The door of whatever machine is used now. `drained`: with what in force it was waited for."""

    def __init__(self, folder: Path) -> None:
        self.machine: Machine | None = None
        self.drained: list[str | None] = []
        self.settings = folder / "agent.json"
        self.settings.write_text(json.dumps({"services": {SERVICE: {"url": "", "port": 1}}, "drain_s": 9}))

    def __call__(self, service: str) -> Door:
        machine = self.machine
        assert machine is not None

        def engine(*_: Any) -> Any:
            self.drained.append(machine.engine)
            return Idle()

        marks = machine.root / "marks"
        return Door(
            service, self.settings, marks, machine.root, engine,
            lambda _: machine.state["ActiveState"] == "active", lambda _: None,
        )  # fmt: skip


class Idle:
    """An engine without requests."""

    @staticmethod
    def busy() -> int:
        return 0


@pytest.fixture
def doors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Doors:
    doors = Doors(tmp_path)
    for module in (judge_release, release_switch, service_server):
        monkeypatch.setattr(module, "Door", doors)
    make_post_init = Machine.__init__

    def init(self: Machine, *arguments: Any, **keywords: Any) -> None:
        make_post_init(self, *arguments, **keywords)
        doors.machine = self

    monkeypatch.setattr(Machine, "__init__", init)
    return doors


def run_again(machine: Machine, door: Door, wanted: str) -> None:
    """What the operations do where they find nothing to do, and the door closed: they open it."""
    state = machine.seen()
    if state.current == wanted == state.last_good and state.pending is None and not state.upgraded:
        door.open()


@pytest.mark.parametrize(
    ("scene", "gated"), CASES, ids=[f"{scene}, {'' if gated else 'un'}gated" for scene, gated in CASES]
)
def test_what_serves_in_the_end_is_sent_requests(machine_of: Make, doors: Doors, scene: str, gated: bool) -> None:
    _, act, serves = SCENES[scene]
    whole = prepared(machine_of, scene, gated=gated)
    act(whole)
    assert whole.wrong == []
    assert not doors(SERVICE).is_closed
    for cut in range(1, whole.effects + 1):
        machine = prepared(machine_of, scene, gated=gated)
        cut_in(machine, act, cut)
        if machine.state == STARTING:
            machine.pass_time()
        act(machine)
        assert machine.engine == serves
        door = doors(SERVICE)
        if door.is_closed:
            run_again(machine, door, str(serves))
        assert not door.is_closed, f"cut {cut} of {whole.effects}"


@pytest.mark.parametrize("good", [True, False])
def test_a_release_is_sent_no_request_before_its_gate_and_a_running_one_is_drained(
    machine_of: Make, doors: Doors, monkeypatch: pytest.MonkeyPatch, good: bool
) -> None:
    machine = prepared(machine_of, "a good one after a good one", gated=True)
    assert not doors(SERVICE).is_closed
    seen: list[tuple[str | None, bool]] = []
    gate = Machine.gate

    def looked(self: Machine, wanted: str) -> int:
        seen.append((self.engine, doors(SERVICE).is_closed))
        return gate(self, wanted)

    monkeypatch.setattr(Machine, "gate", looked)
    doors.drained.clear()
    wants("b" if good else "s")(machine)
    # With the gate about to measure, the door is closed; the release before it was waited for, and the slow one too.
    assert seen == [("b" if good else "s", True)]
    assert doors.drained == (["a"] if good else ["a", "s"])
    assert machine.engine == ("b" if good else "a")
    assert not doors(SERVICE).is_closed
