"""What a host tells of its state, as `status_state.py` prints it."""

from __future__ import annotations

from typing import Any

NOW = 1_796_000_000.0  # 2026-11-30T00:53:20Z
CONTAINER, OTHER = "c0ffee00" * 8, "deadbeef" * 8
MEMINFO = (
    "MemTotal: 125000000 kB\nMemFree: 1000000 kB\nMemAvailable: 50000000 kB\nSwapTotal: 1000 kB\nSwapFree: 400 kB\n"
)
GPU = """\
name, driver_version, pstate, clocks.current.sm [MHz], clocks.max.sm [MHz], power.draw [W], temperature.gpu, \
utilization.gpu [%]
NVIDIA GB10, 580.142, P0, 2418 MHz, 3003 MHz, 31.50 W, 61, 96 %
"""
APPS = "pid, process_name, used_gpu_memory [MiB]\n"


def unit(name: str, active: str, sub: str, **more: str) -> dict[str, str]:
    """A unit's properties."""
    entered = {"ActiveEnterTimestamp": "@1795990000", "StateChangeTimestamp": "@1795990000"}
    return {"Id": name, "LoadState": "loaded", "ActiveState": active, "SubState": sub, **entered, **more}


def gate(release: str = "r2", verdict: str = "PASS", **more: Any) -> dict[str, Any]:
    """A measurement."""
    figures = {"pp2048 c1": 3900.0, "tg128@pp2048 c1": 54.2}
    judgement = {"verdict": verdict, "figures": figures, "lines": [], "at": None, **more}
    return {"release": release, "finished": "2026-11-29T22:53:20Z", "judgement": judgement}


def service(**more: Any) -> dict[str, Any]:
    """What is written down of one that serves, with two looks at its counters."""
    before = {"generation_tokens": 1000.0, "prompt_tokens": 50.0, "requests_running": 2.0, "requests_waiting": 1.0}
    after = {**before, "generation_tokens": 1060.0, "kv_usage_percent": 41.5}
    return {
        "in_ledger": True,
        "current": "r2",
        "last_good": "r2",
        "standing": "good",
        "last_event": {"at": "2026-11-29T22:00:00Z", "event": "good"},
        "watchdog": None,
        "pending": None,
        "plan": {"weights": 60 * 1024**3, "KV cache": 10 * 1024**3, "system reserve": 8 * 1024**3, "other services": 5},
        "needs": 1,
        "gate": {"current": gate(), "later": None},
        "watched": {"at": NOW - 12, "misses": 0},
        "closed": False,
        "samples": [{"at": 10.0, "figures": before}, {"at": 10.5, "figures": after}],
        **more,
    }


def told(**more: Any) -> dict[str, Any]:
    """Of a host with the service `gpt-oss`, which serves."""
    return {
        "form": 1,
        "at": NOW,
        "root": True,
        "uptime_s": 86400.0,
        "programs": 7,
        "meminfo": MEMINFO,
        "gpu": {"status": 0, "out": GPU},
        "apps": {"status": 0, "out": f"{APPS}4242, VLLM::EngineCore, 61440 MiB\n"},
        "containers": [{"id": CONTAINER, "name": "tinderbox-gpt-oss", "service": "gpt-oss", "release": "r2"}],
        "units": {
            "tinderbox-gpt-oss.service": unit("tinderbox-gpt-oss.service", "active", "running"),
            "tinderbox-watch@gpt-oss.service": unit("tinderbox-watch@gpt-oss.service", "active", "running"),
        },
        "run": None,
        "pids": {
            "4242": {"name": "VLLM::EngineCor", "container": CONTAINER, "unit": None},
            "4200": {"name": "vllm", "container": CONTAINER, "unit": None},
        },
        "ports": {"8000": [4200]},
        "memory": {CONTAINER: 3 * 1024**3},
        "services": {"gpt-oss": service()},
        **more,
    }
