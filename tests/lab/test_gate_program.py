"""The gate's real program against a fake engine on this machine, as far as it needs nothing but Python.

What needs llama-benchy takes longer: tests/lab/test_gate_faults.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.spec.gate import BenchyWorkload, Gate, Threshold
from tests.lab.fake_engine import Behaviour, handler, served
from tests.lab.gated_fake import FakeHost

GATE = Gate(
    workload=BenchyWorkload(pp=(256,), tg=(32,), runs=3, coherence=False),
    answers="gpt-oss",
    thresholds={"pp256 c1": Threshold(min=1)},
)


@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        ("", set()),
        ("no-stream", {"not-streamed"}),
        ("cached", {"cached-answers"}),
        ("wrong-usage", {"wrong-usage"}),
        ("empty", {"empty-content"}),
        ("tenth-fails", set()),
    ],
)
def test_questions_find_what_a_server_does_wrong(tmp_path: Path, fault: str, kinds: set[str]) -> None:
    host = FakeHost(tmp_path, GATE)
    with served(handler(Behaviour(fault=fault))) as (url, _):
        said = host.measure(url, {"answers": 1})
    assert {one["kind"] for one in host.stored["faults"]} == kinds, said
    assert host.stored["gpu"] == {"name": "NVIDIA GB10 (simulated)", "driver": "580.95.05"}
    assert host.stored["samples"]["clock_mhz"][0] == 2418.0
    (part,) = host.stored["parts"]["answers"]
    assert (part["requests"], len(part["replies"])) == (5, 5)


def test_a_new_measurement_sets_the_former_aside_and_another_release_is_refused(tmp_path: Path) -> None:
    host = FakeHost(tmp_path, GATE)
    folder = tmp_path / "state" / "gates" / "svc"
    with served(handler(Behaviour())) as (url, _):
        host.measure(url, {"answers": 1})
        host.measure(url, {"answers": 1})
        assert len(list((folder / "former").iterdir())) == 1
        current = tmp_path / "state" / "ledger" / "svc" / "current"
        current.unlink()
        current.symlink_to("r2.json")
        with pytest.raises(AssertionError, match="current release is r2, not r1"):
            host.measure(url, {"answers": 1})
    assert sorted(path.name for path in folder.glob("*.json")) == ["r1.json"]
