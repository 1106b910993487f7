"""Judgement of memory: how much there is, who holds it, and whether the services' plans fit."""

from __future__ import annotations

import math
from collections.abc import Iterator

from modules.facts.machine_state import MachineState, Stranger
from modules.fleet import HostPlan, ServicePlan
from modules.memory import LAB_RESERVE, Suggestion
from modules.release.layout import container_name
from modules.spec.settings import Hardware
from roles.preflight.finding import Finding, Severity, found, shell
from roles.preflight.foresee_memory import Foreseen, foreseen
from roles.preflight.others import in_words, stop_commands

_GIB = 2**30
_SWAPPED_OUT = 1 * _GIB
_SWAPPINESS = 10
_CACHE_SHARE = 0.25
_SWAP = ("sudo swapoff -a", "sudo swapon -a")


def judge_memory(state: MachineState, plan: HostPlan) -> Iterator[Finding]:
    """Findings on memory, and what is in its way."""
    hardware = plan.settings.hardware
    yield from _total(state, hardware)
    yield from _plans(state, plan)
    if not hardware.simulated:
        # A lab host shows the memory of the machine that it shares with others.
        yield from _swap(state, plan)
        yield from _cache(state)
    if state.desktop and plan.settings.system.desktop is None:
        yield found(
            "desktop",
            "desktop",
            f"{state.desktop[0]} runs",
            remedy="`system: {desktop: false}` in the fleet file, if nobody works at its screen",
            settings={"system.desktop": False},
        )


def _total(state: MachineState, hardware: Hardware) -> Iterator[Finding]:
    total = state.memory.total / _GIB
    if total >= hardware.memory_gib:
        return
    fits = math.floor(total * 10) / 10
    yield found(
        "memory-small",
        "memory",
        f"{total:.1f} GiB",
        f"at least {hardware.memory_gib:.1f} GiB (settings.hardware.memory_gib)",
        "a DGX Spark shows 119 to 121 GiB; less means other hardware or memory that the firmware has set aside. "
        f"Where that is meant: `hardware: {{memory_gib: {fits:g}}}` in the fleet file",
        settings={"hardware.memory_gib": fits},
    )


def _plans(state: MachineState, plan: HostPlan) -> Iterator[Finding]:
    planned = foreseen(state, plan)
    running = {service.name for service in plan.services if container_name(service.name) in state.running}
    for service in plan.services:
        one = planned[service.name]
        # Of several, roles/preflight/room.py says which one there is no room for.
        alone = len(plan.services) == 1
        if alone and one.plan is not None and not one.plan.fits and service.name not in running:
            yield _too_large(service, one)
    waiting = [
        one.plan for name, one in planned.items() if one.plan is not None and one.plan.fits and name not in running
    ]
    needs = max((one.start_needs for one in waiting), default=0)
    # What services of ours hold comes back when they are stopped for a change.
    if running or not needs or state.memory.available >= needs or plan.simulated:
        return
    holders = [one for one in state.largest if one.memory >= LAB_RESERVE]
    yield _held(state, needs, holders[0] if holders else None)


def _too_large(service: ServicePlan, one: Foreseen) -> Finding:
    assert one.plan is not None
    refused = service.service.memory_plan == "refuse"
    best: Suggestion | None = one.suggestions[0] if one.suggestions else None
    at = f"services.{service.name}"
    remedy, settings = "use a smaller model, or move a service to another host", dict[str, object]()
    if best is not None:
        settings = {f"{at}.flags.{flag}": value for flag, value in best.change.flags.items()}
        settings |= {f"{at}.environment.{name}": value for name, value in best.change.environment.items()}
        remedy = f"in the fleet file, {', '.join(f'`{key}: {value}`' for key, value in settings.items())}"
    return found(
        "memory-plan",
        "memory plan",
        f"service {service.name} does not fit: {'; '.join(problem.text for problem in one.plan.problems)}",
        "a plan that fits (docs/memory.md)",
        remedy,
        severity=Severity.BLOCKED if refused else Severity.SLOW,
        settings=settings,
    )


def _held(state: MachineState, needs: int, holder: Stranger | None) -> Finding:
    stop = stop_commands(holder) if holder is not None else ()
    who = f"; {in_words(holder)} holds {holder.memory / _GIB:.1f} GiB" if holder is not None else ""
    remedy = f"stop it if it is not wanted: {shell(stop)}" if stop else "see who holds it: `ps aux --sort -rss | head`"
    return found(
        "memory-held",
        "memory",
        f"{state.memory.available / _GIB:.1f} GiB available{who}",
        f"{needs / _GIB:.1f} GiB for a start",
        f"{remedy}; nothing is stopped for you. Where nobody holds it, restart the host: `sudo reboot`",
        commands=stop,
    )


def _swap(state: MachineState, plan: HostPlan) -> Iterator[Finding]:
    out = state.memory.swap_total - state.memory.swap_free
    if out >= _SWAPPED_OUT:
        yield found(
            "swap-in-use",
            "swap",
            f"{out / _GIB:.1f} GiB are swapped out",
            "less than 1 GiB",
            f"while as much is available: {shell(_SWAP)}",
            commands=_SWAP,
        )
    wish = plan.settings.system.swappiness
    if state.memory.swap_total and state.swappiness is not None and state.swappiness > _SWAPPINESS and wish is None:
        yield found(
            "swappiness",
            "swap",
            f"vm.swappiness is {state.swappiness}",
            remedy=f"`system: {{swappiness: {_SWAPPINESS}}}` in the fleet file",
            settings={"system.swappiness": _SWAPPINESS},
        )


def _cache(state: MachineState) -> Iterator[Finding]:
    memory = state.memory
    if memory.cached > _CACHE_SHARE * memory.total and memory.free < memory.available / 2:
        yield found("page-cache", "page cache", f"{memory.cached / _GIB:.1f} GiB of files are kept in memory")
