"""The alerts: when, how grave, what is wrong, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from modules.monitoring.targets import Watched
from modules.spec.monitoring import Alerts

CRITICAL, WARNING = "critical", "warning"
_GIB = 1024**3
# Of file systems that are no disk, or hold nothing that grows.
_NO_DISK = "tmpfs|ramfs|overlay|squashfs|iso9660|fuse.*|nsfs|efivarfs|vfat"
HOST, SERVICE = "{{ $labels.host }}", "{{ $labels.host }}: service {{ $labels.service }}"


@dataclass(frozen=True)
class Alert:
    """One alert. `for_s`: for how long, before it is told. `summary`, `action`: Prometheus' templates."""

    name: str
    expression: str
    for_s: int
    severity: str
    summary: str
    action: str

    @property
    def anchor(self) -> str:
        """Its heading in docs/monitoring.md."""
        return re.sub(r"(?<!^)(?=[A-Z])", "-", self.name.removeprefix("Tinderbox")).lower()


def alerts_of(seen: Watched, bounds: Alerts) -> list[Alert]:
    """All alerts of a fleet."""
    of = f'fleet="{seen.fleet}"'
    return [
        *_hosts(of),
        *_services(of, seen, bounds),
        *_machine(of, bounds),
        *_gates(of, bounds),
        *_drift(of, seen.fleet, bounds),
    ]


def _hosts(of: str) -> Iterator[Alert]:
    yield Alert(
        "TinderboxHostAbsent",
        f"tinderbox_expected_host{{{of}}} unless on (fleet, host) (up{{{of}}} == 1)",
        300,
        CRITICAL,
        f"{HOST} does not answer Prometheus: its state is unknown, neither failed nor fine",
        "See whether it answers ssh. If so: systemctl status prometheus-node-exporter. If it answers ping alone, it "
        "has wedged for lack of memory: power it off and on, and read docs/memory.md",
    )
    yield Alert(
        "TinderboxExporterAbsent",
        f'up{{{of}, host!=""}} == 1 unless on (fleet, host) '
        f"(tinderbox_collected_timestamp_seconds{{{of}}} > time() - 120)",
        300,
        CRITICAL,
        f"{HOST} tells nothing new of its GPU and its services",
        "On it: systemctl status tinderbox-exporter; journalctl -u tinderbox-exporter",
    )
    yield Alert(
        "TinderboxSourceUnreadable",
        f"tinderbox_source_up{{{of}}} == 0",
        600,
        WARNING,
        f"{HOST}: {{{{ $labels.source }}}} gives no answer that is understood, so what it tells of is unknown",
        "nvidia-smi: run it on the host; a driver that was upgraded wants a restart. systemd: systemctl status",
    )


def _services(of: str, seen: Watched, bounds: Alerts) -> Iterator[Alert]:
    longest = max((service.start_s for service in seen.services), default=1200)
    yield Alert(
        "TinderboxEngineNotReady",
        f"tinderbox_service_ready{{{of}}} == 0"
        f" or (tinderbox_expected_service{{{of}}} unless on (fleet, host, service) tinderbox_service_ready{{{of}}})"
        f" and on (fleet, host) up{{{of}}} == 1",
        longest + 300,
        CRITICAL,
        f"{SERVICE} is not known to have been ready for longer than a start of it may take",
        "pyinfra inventory.py deploys/diagnose.py -y names the cause; make converge has it as the fleet file says",
    )
    yield Alert(
        "TinderboxServiceFailed",
        f'tinderbox_service_state{{{of}, state="failed"}} == 1',
        60,
        CRITICAL,
        f"{SERVICE} has failed",
        "pyinfra inventory.py deploys/diagnose.py -y names the cause and the remedy",
    )
    yield Alert(
        "TinderboxRestartLoop",
        f"increase(tinderbox_service_restarts_total{{{of}}}[{bounds.restart_minutes}m]) >= {bounds.restarts}"
        f" or increase(tinderbox_watchdog_restarts_total{{{of}}}[1h]) >= {bounds.restarts}",
        0,
        CRITICAL,
        f"{SERVICE} is started again and again",
        "It ends in failed after a few attempts. pyinfra inventory.py deploys/history.py tells which release, "
        "deploys/diagnose.py why; deploys/rollback.py has the last good one back",
    )
    yield Alert(
        "TinderboxEngineSilent",
        f"tinderbox_engine_up{{{of}}} == 0 and on (fleet, host, service) tinderbox_service_ready{{{of}}} == 1",
        600,
        WARNING,
        f"{SERVICE} is ready, and its engine tells no figures",
        "curl the service's /metrics on the host: SGLang wants --enable-metrics, llama.cpp --metrics",
    )
    yield Alert(
        "TinderboxLoadStopped",
        f"increase(tinderbox_load_guard_stops_total{{{of}}}[{bounds.load_stop_minutes}m]) > 0",
        0,
        WARNING,
        f"{SERVICE}: a load was stopped before the memory ran out",
        "Something else took the memory, or the memory plan is too large: docs/memory.md",
    )


def _machine(of: str, bounds: Alerts) -> Iterator[Alert]:
    reserve = (
        f"< on (fleet, host) tinderbox_memory_reserve_bytes{{{of}}}"
        if bounds.memory_reserve_gib is None
        else f"< {round(bounds.memory_reserve_gib * _GIB)}"
    )
    yield Alert(
        "TinderboxMemoryBelowReserve",
        f"tinderbox_memory_available_bytes{{{of}}} {reserve}",
        120,
        CRITICAL,
        f"{HOST} has less memory left than its plans leave to the system: a GB10 does not kill for memory, it wedges",
        "Find what took it (ps aux --sort=-rss; nvidia-smi); docs/memory.md tells what a service may take",
    )
    yield Alert(
        "TinderboxClocksStuckLow",
        f"tinderbox_gpu_sm_clock_hertz{{{of}}} < {round(bounds.low_clock_mhz * 1e6)}"
        f" and on (fleet, host, gpu) tinderbox_gpu_utilization_ratio{{{of}}} >= {bounds.busy_ratio:g}",
        600,
        WARNING,
        f"{HOST}: the GPU is busy at {{{{ $value | humanize }}}}Hz; gates and clients will find it slow",
        "Take it off the mains for a minute: a restart does not end that state. Then the firmware (fwupdmgr)",
    )
    yield Alert(
        "TinderboxGpuHot",
        f"tinderbox_gpu_temperature_celsius{{{of}}} > {bounds.temperature_c:g}",
        300,
        WARNING,
        f"{HOST}: the GPU has {{{{ $value }}}} degrees Celsius",
        "See to its air. system.clock_cap_mhz: 2150 in the fleet file takes some 15 degrees off, and no decode speed",
    )
    disk = f'{of}, fstype!~"{_NO_DISK}"'
    yield Alert(
        "TinderboxDiskNearlyFull",
        f"node_filesystem_avail_bytes{{{disk}}} / node_filesystem_size_bytes{{{disk}}} < {bounds.disk_free_ratio:g}",
        600,
        WARNING,
        f"{HOST}: {{{{ $labels.mountpoint }}}} has {{{{ $value | humanizePercentage }}}} left",
        "weights.remove_unneeded and image.prune in the fleet file; docker system df on the host",
    )


def _gates(of: str, bounds: Alerts) -> Iterator[Alert]:
    yield Alert(
        "TinderboxGateFailed",
        f'tinderbox_gate_verdict{{{of}, verdict="FAIL"}} == 1',
        60,
        CRITICAL,
        f"{SERVICE}: the release in force has failed its gate",
        "make report shows which figure and the likely cause; deploys/history.py what became of each release",
    )
    yield Alert(
        "TinderboxGateMissing",
        f'tinderbox_gate_verdict{{{of}, verdict="MISSING"}} == 1',
        7200,
        WARNING,
        f"{SERVICE}: the release in force was never measured",
        "pyinfra inventory.py deploys/gate.py -y",
    )
    yield Alert(
        "TinderboxGateOld",
        f"time() - tinderbox_gate_measured_timestamp_seconds{{{of}}} > {round(bounds.gate_age_days * 86400)}",
        60,
        WARNING,
        f"{SERVICE} was last measured {{{{ $value | humanizeDuration }}}} ago",
        "pyinfra inventory.py deploys/gate.py -y measures it anew",
    )


def _drift(of: str, fleet: str, bounds: Alerts) -> Iterator[Alert]:
    """By what the nightly check leaves (modules/nightly), which is about the fleet and not about one host."""
    yield Alert(
        "TinderboxDrift",
        f"tinderbox_drift_hosts{{{of}}} > 0 or tinderbox_drift_unknown_hosts{{{of}}} > 0",
        60,
        WARNING,
        f"fleet {fleet}: {{{{ $value }}}} host(s) differ from the fleet file, or could not be looked at",
        "make drift lists hosts and what differs there; make converge repairs it",
    )
    if bounds.nightly_hours is None:
        return
    seconds = round(bounds.nightly_hours * 3600)
    checked = "tinderbox_nightly_last_run_timestamp_seconds"
    yield Alert(
        "TinderboxNightlyCheckMissing",
        f"time() - max by (fleet) ({checked}{{{of}}}) > {seconds} or absent({checked}{{{of}}})",
        300,
        WARNING,
        f"the nightly check of fleet {fleet} has told nothing for {bounds.nightly_hours:g} hours",
        "Where it runs: systemctl list-timers; journalctl -u 'tinderbox-nightly-*'; is its METRICS folder read?",
    )
