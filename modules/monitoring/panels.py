"""What the dashboards show, as data: rows of panels, each with its queries."""

from __future__ import annotations

from modules.monitoring import engine_names as engine
from modules.monitoring.panel import SERVICE, Panel, Query, Row, one
from modules.monitoring.queries import fullest, quantile, rate, total


def serving(of: str) -> Row:
    """What clients get."""
    latencies = {"TTFT": engine.FIRST_TOKEN, "Inter-token latency": engine.INTER_TOKEN}
    return Row(
        "Serving",
        (
            Panel("Generated tokens", one(rate(engine.GENERATION_TOKENS, of)), "suffix: tok/s"),
            Panel("Prompt tokens", one(rate(engine.PROMPT_TOKENS, of)), "suffix: tok/s"),
            Panel(
                "Requests",
                (
                    Query(total(engine.RUNNING, of), f"{SERVICE} running"),
                    Query(total(engine.WAITING, of), f"{SERVICE} waiting"),
                ),
            ),
            *(
                Panel(
                    name,
                    tuple(Query(quantile(q, figure, of), f"{SERVICE} p{100 * q:g}") for q in (0.5, 0.95)),
                    "s",
                    note="llama.cpp tells none.",
                )
                for name, figure in latencies.items()
            ),
            Panel("KV cache in use", one(fullest(engine.KV_CACHE, of)), "percentunit", most=1.0),
        ),
    )


def machine(of: str) -> Row:
    """The GPU and the memory that it shares."""
    left = f"tinderbox_memory_available_bytes{{{of}}}"
    return Row(
        "Machine",
        (
            Panel("Power", one(f"tinderbox_gpu_power_watts{{{of}}}", "{{host}}"), "watt"),
            Panel(
                "SM clock",
                (
                    Query(f"tinderbox_gpu_sm_clock_hertz{{{of}}}", "{{host}} now"),
                    Query(f"tinderbox_gpu_sm_clock_max_hertz{{{of}}}", "{{host}} highest"),
                ),
                "hertz",
                note="500 to 850 MHz while busy: the unit is stuck in a low power state.",
            ),
            Panel("Temperature", one(f"tinderbox_gpu_temperature_celsius{{{of}}}", "{{host}}"), "celsius"),
            Panel(
                "GPU in use",
                one(f"tinderbox_gpu_utilization_ratio{{{of}}}", "{{host}}"),
                "percentunit",
                note="96 % occurs at 42 W and at 100 W: look at clock and power beside it.",
                most=1.0,
            ),
            Panel(
                "Memory",
                (
                    Query(left, "{{host}} available"),
                    Query(f"tinderbox_memory_reserve_bytes{{{of}}}", "{{host}} reserve"),
                ),
                "bytes",
                note="Of /proc/meminfo: CPU and GPU share it. Below the reserve a GB10 is near to wedging.",
            ),
            Panel(
                "Waiting for memory",
                one(
                    f'rate(tinderbox_pressure_seconds_total{{{of}, resource="memory"}}[$__rate_interval])',
                    "{{host}} {{kind}}",
                ),
                "percentunit",
            ),
        ),
    )


def services(of: str) -> Row:
    """Whether they are there, and what became of their releases."""
    verdict = f"tinderbox_gate_verdict{{{of}}} == 1"
    figure, bound = f"tinderbox_gate_figure{{{of}}}", f"tinderbox_gate_bound{{{of}"
    same = "on (host, service, metric)"
    return Row(
        "Services, releases and gates",
        (
            Panel(
                "State",
                one(f"tinderbox_service_state{{{of}}} == 1", f"{SERVICE} {{{{state}}}}"),
                kind="state-timeline",
                note="No bar at all: unknown.",
            ),
            Panel(
                "Restarts",
                one(f"tinderbox_service_restarts_total{{{of}}}"),
                note="By systemd, since the last start by hand.",
            ),
            Panel(
                "Release in force",
                one(f"tinderbox_release_info{{{of}}}", f"{SERVICE} {{{{release}}}} ({{{{standing}}}})"),
                kind="state-timeline",
            ),
            Panel("Gate", one(verdict, f"{SERVICE} {{{{verdict}}}}"), kind="state-timeline"),
            Panel("Age of the gate", one(f"time() - tinderbox_gate_measured_timestamp_seconds{{{of}}}"), "s"),
            Panel(
                "Gate: figure over its bound",
                (
                    Query(f'{figure} / {same} {bound}, bound="min"}}', f"{SERVICE} {{{{metric}}}} over least"),
                    Query(f'{bound}, bound="max"}} / {same} {figure}', f"{SERVICE} {{{{metric}}}} under most"),
                ),
                "percentunit",
                note="Below 100 % the gate fails.",
            ),
        ),
    )


def overview(of: str) -> Row:
    """The fleet in four figures. Each is absent, and no good news, where what it is made of is absent."""
    expected = f"tinderbox_expected_host{{{of}}}"
    return Row(
        "Fleet",
        (
            Panel(
                "Hosts that answer",
                one(f"sum(up{{{of}}} and on (fleet, host) {expected})", "answer"),
                kind="stat",
                width=4,
            ),
            Panel("Hosts expected", one(f"count({expected})", "expected"), kind="stat", width=4),
            Panel("Services ready", one(f"sum(tinderbox_service_ready{{{of}}})", "ready"), kind="stat", width=4),
            Panel(
                "Services expected",
                one(f"count(tinderbox_expected_service{{{of}}})", "expected"),
                kind="stat",
                width=4,
            ),
            Panel(
                "Alerts",
                one(f'count(ALERTS{{{of}, alertstate="firing"}}) or 0 * count({expected})', "firing"),
                kind="stat",
                width=4,
            ),
            Panel(
                "Simulated hosts",
                one(f"sum(tinderbox_simulated{{{of}}})", "simulated"),
                kind="stat",
                width=4,
                note="Figures of these say nothing about a Spark.",
            ),
        ),
    )


def details(of: str) -> Row:
    """Of one host alone."""
    disk = f'{of}, fstype!~"tmpfs|ramfs|overlay|squashfs|vfat"'
    return Row(
        "This host",
        (
            Panel("GPU memory by process", one(f"tinderbox_gpu_process_memory_bytes{{{of}}}", "{{process}}"), "bytes"),
            Panel(
                "What holds the clocks back",
                one(f"tinderbox_gpu_clock_limited{{{of}}}", "{{reason}}"),
                kind="state-timeline",
                note="All clear proves nothing on a GB10.",
            ),
            Panel(
                "Processor in use",
                one(
                    f'1 - avg by (host) (rate(node_cpu_seconds_total{{{of}, mode="idle"}}[$__rate_interval]))',
                    "{{host}}",
                ),
                "percentunit",
                most=1.0,
            ),
            Panel(
                "Disk left",
                one(f"node_filesystem_avail_bytes{{{disk}}} / node_filesystem_size_bytes{{{disk}}}", "{{mountpoint}}"),
                "percentunit",
                most=1.0,
            ),
            Panel(
                "Received",
                one(f"rate(node_network_receive_bytes_total{{{of}}}[$__rate_interval])", "{{device}}"),
                "Bps",
            ),
            Panel(
                "Collection",
                one(f"tinderbox_collection_seconds{{{of}}}", "{{host}}"),
                "s",
                note="What it costs to tell all of this.",
            ),
        ),
    )
