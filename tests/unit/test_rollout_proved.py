"""For how long a release has served since it was found good, as its host tells."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modules.hostside import release_list
from modules.hostside.release_list import proved_s

# As the program imports it on a host.
if TYPE_CHECKING:
    from modules.hostside import ledger as ledgers
    from modules.hostside.ledger import Ledger, point
else:
    import ledger as ledgers
    from ledger import Ledger, point

UP_S = 900


def ledger_of(folder: Path, *events: tuple[str, float], last_good: str = "r1") -> Ledger:
    """A ledger whose release in force has these events, each so many seconds ago."""
    ledger = Ledger("gpt", folder)
    ledger.directory.mkdir(parents=True)
    told = [
        {"event": name, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago))}
        for name, ago in events
    ]
    ledger.entry_file("r1").write_text(json.dumps({"id": "r1", "events": told}))
    point(ledger.directory / "current", "r1.json")
    point(ledger.directory / "last-good", f"{last_good}.json")
    return ledger


def unit(up_s: float = UP_S, state: str = "active") -> dict[str, str]:
    entered = time.clock_gettime(time.CLOCK_MONOTONIC) - up_s
    return {"ActiveState": state, "ActiveEnterTimestampMonotonic": str(int(entered * 1e6))}


GOOD = (("activated", 800.0), ("ready", 700.0), ("good", 600.0))


def test_it_counts_from_the_proof_and_from_the_last_start(tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, *GOOD)
    assert proved_s(ledger, unit()) == pytest.approx(600, abs=5)
    # A server that was started again since has served from then on.
    assert proved_s(ledger, unit(50)) == pytest.approx(50, abs=5)


@pytest.mark.parametrize("state", ["failed", "activating", "inactive"])
def test_what_does_not_serve_is_not_proved(tmp_path: Path, state: str) -> None:
    assert proved_s(ledger_of(tmp_path, *GOOD), unit(state=state)) is None


@pytest.mark.parametrize(
    "events", [(), GOOD[:2], (*GOOD, ("gate failed", 10.0)), (*GOOD, ("withdrawn", 10.0)), (*GOOD, ("activated", 10.0))]
)
def test_what_was_not_found_good_or_is_so_no_more_is_not_proved(
    tmp_path: Path, events: tuple[tuple[str, float], ...]
) -> None:
    assert proved_s(ledger_of(tmp_path, *events), unit()) is None


def test_what_is_not_the_last_good_one_is_not_proved(tmp_path: Path) -> None:
    assert proved_s(ledger_of(tmp_path, *GOOD, last_good="r0"), unit()) is None


@pytest.mark.parametrize("set_by_s", [-7200.0, 0.0, 7200.0])
def test_what_is_noted_now_hangs_on_no_clock_that_can_be_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, set_by_s: float
) -> None:
    ledger = ledger_of(tmp_path, *GOOD[:2])
    boot = "b0"
    up = [1000.0]
    for module in (ledgers, release_list):
        monkeypatch.setattr(module, "uptime", lambda: (boot, up[0]))
    entered = {"ActiveState": "active", "ActiveEnterTimestampMonotonic": "900000000"}
    ledger.mark("r1", "good")
    wall = time.time() + set_by_s
    monkeypatch.setattr(time, "time", lambda: wall)
    up[0] = 1300.0
    assert proved_s(ledger, entered) == 300.0
    # Started again in the same boot.
    assert proved_s(ledger, {**entered, "ActiveEnterTimestampMonotonic": "1250000000"}) == 50.0
    # After a boot it has served since its start in it, whenever it was found good before.
    boot, up[0] = "b1", 400.0
    assert proved_s(ledger, {**entered, "ActiveEnterTimestampMonotonic": "100000000"}) == 300.0


def test_a_clock_that_was_set_back_does_not_make_it_older(tmp_path: Path) -> None:
    assert proved_s(ledger_of(tmp_path, *GOOD[:2], ("good", -3600.0)), unit()) == 0.0
