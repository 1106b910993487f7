"""Judgement of what is not the GPU: architecture, operating system, kernel, Python, sudo, memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from modules.fabric.kernel import ARGUMENT, needs_argument
from modules.facts.machine import MachineState
from modules.spec.fabric import Fabric
from modules.spec.settings import Hardware
from roles.preflight.finding import Finding, Severity
from roles.preflight.sudo import sudo_finding

_PYTHON = (3, 10)
_UBUNTU = "24.04"
# Panics: https://forums.developer.nvidia.com/t/366026
_PANICS = re.compile(r"6\.17\.0-1008(\D|$)")


def judge_system(state: MachineState, hardware: Hardware, fabric: Fabric | None = None) -> Iterator[Finding]:
    """Findings on the system; lab hosts may be of another architecture and distribution."""
    yield from _sudo(state)
    yield from _python(state)
    if not hardware.simulated:
        yield from _architecture(state)
        yield from _distribution(state)
        yield from _kernel(state, fabric)
    elif state.os.id not in {"ubuntu", "debian"}:
        yield _blocked("operating system", state.os.name, "Debian or Ubuntu", "make the lab's hosts by `make lab-up`")
    yield from _memory(state, hardware)
    yield from _reboot(state)
    if state.fabric and fabric is None:
        what = "Tinderbox configured QSFP ports here, and the fleet file has no fabric for this host any more"
        yield Finding(Severity.NOTE, "fabric", what, remedy="`pyinfra inventory.py deploys/fabric.py -y` undoes it")
    for oddity in state.oddities:
        yield Finding(Severity.NOTE, "not understood", oddity)


def _blocked(what: str, measured: str, wanted: str, remedy: str) -> Finding:
    return Finding(Severity.BLOCKED, what, measured, wanted, remedy)


def _sudo(state: MachineState) -> Iterator[Finding]:
    if not state.root:
        yield sudo_finding(state.user)


def _python(state: MachineState) -> Iterator[Finding]:
    if tuple(int(part) for part in re.findall(r"\d+", state.python)[:2]) < _PYTHON:
        yield _blocked("python3", state.python, "3.10 or newer", "install Ubuntu 24.04's python3 on the host")


def _architecture(state: MachineState) -> Iterator[Finding]:
    if state.architecture != "aarch64":
        yield _blocked(
            "architecture",
            state.architecture,
            "aarch64: a DGX Spark",
            "take the host out of the fleet file, or check its address there",
        )


def _distribution(state: MachineState) -> Iterator[Finding]:
    current = state.dgx.version if state.dgx is not None else None
    if current is not None and current.startswith("7."):
        return
    if state.os.id == "ubuntu" and state.os.version == _UBUNTU:
        return
    found = state.os.name if current is None else f"{state.os.name}, DGX OS {current}"
    yield _blocked(
        "operating system",
        found,
        f"DGX OS 7 or Ubuntu {_UBUNTU}",
        "bring it to DGX OS 7 with the DGX dashboard, or by the recovery image",
    )


def _kernel(state: MachineState, fabric: Fabric | None) -> Iterator[Finding]:
    if _PANICS.match(state.kernel):
        yield _blocked(
            "kernel",
            f"{state.kernel}, which is known to panic on GB10",
            "another one, 6.17.0-1029 or newer",
            "update the host (`sudo apt-get update && sudo apt-get dist-upgrade`) and restart it",
        )
    if not needs_argument(state.kernel) or ARGUMENT in state.kernel_arguments:
        return
    what = f"{state.kernel} without {ARGUMENT}: its kexec handover keeps memory that RDMA then can not register"
    wanted = f"{ARGUMENT} on the kernel's command line"
    if fabric is not None:
        # Stage fabric is yet to come, and gives it to the next boot.
        yield Finding(Severity.SLOW, "kernel", what, wanted, "restart the host after this run: stage fabric sets it")
        return
    yield _blocked(
        "kernel",
        what,
        wanted,
        f"add {ARGUMENT} to GRUB_CMDLINE_LINUX in /etc/default/grub, run `sudo update-grub` and restart the host",
    )


def _reboot(state: MachineState) -> Iterator[Finding]:
    """A restart that is due. It is told of and left to whoever runs the host: it ends what serves."""
    newest = newest_kernel(state.kernel, state.kernels)
    reasons = [f"kernel {newest} is installed, and {state.kernel} runs"] if newest is not None else []
    if state.reboot_required:
        what = f" ({', '.join(state.waiting)})" if state.waiting else ""
        reasons.append(f"an installed update waits for a restart of this host{what}")
    if reasons:
        yield Finding(Severity.NOTE, "reboot", "; ".join(reasons), remedy="`sudo reboot` when it suits, and run again")


def newest_kernel(running: str, installed: Iterable[str]) -> str | None:
    """The newest installed kernel of the running one's kind, where it is newer; others may be there for a reason."""
    kind, now = _kernel_kind(running)
    newer = [name for name in installed if _kernel_kind(name)[0] == kind and _kernel_kind(name)[1] > now]
    return max(newer, key=lambda name: _kernel_kind(name)[1], default=None)


def _kernel_kind(name: str) -> tuple[str, tuple[int, ...]]:
    """`6.17.0-1029-nvidia` → what it is called after its numbers, and those."""
    numbers = re.match(r"[\d.-]*\d", name)
    version = numbers[0] if numbers else ""
    return name[len(version) :], tuple(int(number) for number in re.findall(r"\d+", version))


def _memory(state: MachineState, hardware: Hardware) -> Iterator[Finding]:
    total = state.memory.total / 2**30
    if total < hardware.memory_gib:
        yield _blocked(
            "memory",
            f"{total:.1f} GiB",
            f"at least {hardware.memory_gib:.1f} GiB (settings.hardware.memory_gib)",
            "a DGX Spark shows 119 to 121 GiB; less means other hardware or memory that the firmware has set aside",
        )
