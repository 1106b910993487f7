"""What is measured of a host's loads, once, and whom the operation warns."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import FunctionCommand

from modules.facts.load_probe import Kept, LoadRates, LoadWays
from modules.fleet import Fleet
from modules.loading import DeviceWays, Rates, Reading, WayFigures
from modules.operations import load_probe, weights
from modules.operations.follow import follow
from modules.operations.load_probe import load_rates_known, load_ways_known, tell_rates, tell_ways, ways_words
from modules.reporting.record import load_record, note_load
from modules.spec.lock import Lock
from tests.operations.stub_host import StubHost, commands_of
from tests.unit.release_samples import HOME, service_plan

PLAN = service_plan()
GB = 10**9
DIRECTORY = f"{HOME}/hub/models--{PLAN.model.repository.replace('/', '--')}/snapshots/{PLAN.model.revision}"


def rates(cold: float) -> Rates:
    reading = Reading(cold=cold * GB, warm=9 * GB)
    return Rates(
        disk={"source": "/dev/sda1", "type": "ext4"}, bytes=66 * GB, sampled=GB, direct=cold * GB, reading=reading,
        mapping=reading,
    )  # fmt: skip


def ways(cold: float) -> DeviceWays:
    found = {
        "safetensors-copy": WayFigures(cold=(cold * GB,), warm=(8 * GB,), cached=(0.0,)),
        "fastsafetensors": WayFigures(cold=(GB,), warm=(GB,), cached=(0.0,)),
    }
    return DeviceWays(device="NVIDIA GB10", bytes=8 * GB, files=2, versions={}, ways=found)


@pytest.fixture(autouse=True)
def fleet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing was told yet; no lock."""
    office = Fleet(name="office", path=tmp_path / "fleet.yaml", hosts={}, secrets={})
    for module in (load_probe, weights):
        monkeypatch.setattr(module, "load_fleet", lambda: office)
        monkeypatch.setattr(module, "read_lock", lambda _: Lock())
    monkeypatch.setattr(load_probe, "_told", set())
    monkeypatch.setattr(load_probe, "load_record", partial(load_record, root=tmp_path))
    monkeypatch.setattr(load_probe, "note_load", partial(note_load, root=tmp_path))


def limited(seconds: float | None) -> Any:
    model = PLAN.model.model_copy(update={"load_seconds": seconds})
    return type(PLAN)(**{**PLAN.__dict__, "model": model})


def test_rates_that_are_known_are_not_measured_again_and_kept_for_reports(tmp_path: Path) -> None:
    host = StubHost({LoadRates: Kept(rates=rates(5.0))})

    assert commands_of(host, load_rates_known, plan=limited(145), home=HOME) == []

    assert host.asked == [(LoadRates, {"directory": DIRECTORY, "file": None})]
    assert "66.0 GB of weights" in host.noops[0]
    assert host.logged == []
    kept = load_record("office", host.name, PLAN.name, tmp_path).load
    assert kept is not None
    assert (kept.seconds, kept.limit_s) == (13.2, 145)


def test_rates_that_are_not_known_are_measured_in_a_job_and_told() -> None:
    host = StubHost({LoadRates: Kept()})

    start, following, telling = commands_of(host, load_rates_known, plan=PLAN, home=HOME)

    assert f"probe_load.py --directory {DIRECTORY}" in start.get_raw_value()
    assert following.function is follow
    assert isinstance(telling, FunctionCommand)
    assert telling.function is tell_rates


def test_a_slow_host_is_warned_of_once_a_run_and_goes_on() -> None:
    host: Any = StubHost({LoadRates: Kept(rates=rates(0.18))})
    plan = limited(145)

    assert commands_of(host, load_rates_known, plan=plan, home=HOME) == []
    assert commands_of(host, load_rates_known, plan=plan, home=HOME) == []

    (warning,) = host.logged
    assert "spark-1: service" in warning
    assert "367 s or more to load, the catalog's limit is 145 s" in warning
    assert tell_rates(None, host, plan, DIRECTORY) is True  # type: ignore[arg-type]


def test_a_host_whose_answer_can_not_be_read_fails_with_words() -> None:
    (refused,) = commands_of(StubHost({LoadRates: None}), load_rates_known, plan=PLAN, home=HOME)

    assert "could not be read" in refused.get_raw_value()


def test_a_measurement_that_is_not_there_fails_its_host() -> None:
    host: Any = StubHost({LoadRates: Kept(), LoadWays: Kept()})

    assert tell_rates(None, host, PLAN, DIRECTORY) is False  # type: ignore[arg-type]
    assert tell_ways(None, host, PLAN, []) is False  # type: ignore[arg-type]


def test_ways_are_measured_once_in_the_engines_image() -> None:
    host = StubHost({LoadWays: Kept()})

    start, _, telling = commands_of(host, load_ways_known, plan=PLAN, home=HOME)

    assert f"--directory {DIRECTORY} --hub {HOME}/hub --device" in start.get_raw_value()
    assert telling.function is tell_ways
    known: Any = StubHost({LoadWays: Kept(ways=ways(2.0))})
    assert commands_of(known, load_ways_known, plan=PLAN, home=HOME) == []
    assert known.asked == [(LoadWays, {"words": ways_words(PLAN, HOME, DIRECTORY)})]
    assert any("safetensors-copy: 2.00 / 8.00" in line for line in known.logged)


def test_the_setting_that_was_measured_to_be_faster_is_named() -> None:
    plan = type(PLAN)(**{**PLAN.__dict__, "flags": {"load-format": "fastsafetensors"}})
    plan = type(plan)(**{
        **plan.__dict__,
        "engine": plan.engine.model_copy(update={"environment": {"VLLM_FASTSAFETENSORS_NOGDS": "1"}}),
    })  # fmt: skip
    host: Any = StubHost({LoadWays: Kept(ways=ways(2.0))})

    commands_of(host, load_ways_known, plan=plan, home=HOME)

    assert "flags.load-format: safetensors under services." in host.logged[-1]
    assert "now fastsafetensors: 1.00 GB/s" in host.logged[-1]
