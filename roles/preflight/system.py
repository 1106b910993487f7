"""Judgement of the machine and its operating system: architecture, distribution, kernel, Python, sudo, restarts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from modules.fabric.kernel import ARGUMENT, needs_argument
from modules.facts.machine_state import MachineState
from modules.spec.fabric import Fabric
from modules.spec.settings import Hardware
from roles.preflight.finding import Finding, Severity, found, shell
from roles.preflight.sudo import sudo_finding

_PYTHON = (3, 10)
_UBUNTU = "24.04"
# Panics: https://forums.developer.nvidia.com/t/366026
_PANICS = re.compile(r"6\.17\.0-1008(\D|$)")
# Round trip and the time that the gatherer takes are no skew.
_SKEW_S = 120
_NEWER_KERNEL = (
    "sudo apt-get update",
    "sudo env DEBIAN_FRONTEND=noninteractive apt-get dist-upgrade -y",
    "sudo reboot",
)
_KHO = (
    f"echo 'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {ARGUMENT}\"' | sudo tee /etc/default/grub.d/kho.cfg",
    "sudo update-grub",
    "sudo reboot",
)


def judge_system(state: MachineState, hardware: Hardware, fabric: Fabric | None = None) -> Iterator[Finding]:
    """Findings on the system; lab hosts may be of another architecture and distribution."""
    if not state.root:
        yield sudo_finding(state.user)
    yield from _python(state)
    if not hardware.simulated:
        yield from _architecture(state)
        yield from _distribution(state)
        yield from _kernel(state, fabric)
    elif state.os.id not in {"ubuntu", "debian"}:
        yield found(
            "system-other",
            "operating system",
            state.os.name,
            "Debian or Ubuntu",
            "make the lab's hosts by `make lab-up`",
        )
    yield from _reboot(state)
    yield from _clock(state)
    if state.interrupted_install:
        yield found(
            "install-interrupted",
            "packages",
            "dpkg was interrupted",
            "",
            shell(["sudo dpkg --configure -a"]),
            commands=("sudo dpkg --configure -a",),
        )
    if state.fabric and fabric is None:
        what = "Tinderbox configured QSFP ports here, and the fleet file has no fabric for this host any more"
        command = "pyinfra inventory.py deploys/fabric.py -y"
        yield found("fabric-left", "fabric", what, remedy=f"`{command}` undoes it", commands=(command,))
    for oddity in state.oddities:
        yield found("not-understood", "not understood", oddity)


def _python(state: MachineState) -> Iterator[Finding]:
    if tuple(int(part) for part in re.findall(r"\d+", state.python)[:2]) < _PYTHON:
        remedy = "install Ubuntu 24.04's python3 on the host, as /usr/bin/python3"
        yield found("python-old", "python3", state.python, "3.10 or newer", remedy)


def _architecture(state: MachineState) -> Iterator[Finding]:
    if state.architecture != "aarch64":
        yield found(
            "architecture",
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
    yield found(
        "system-other",
        "operating system",
        state.os.name if current is None else f"{state.os.name}, DGX OS {current}",
        f"DGX OS 7 or Ubuntu {_UBUNTU}",
        "bring it to DGX OS 7 with the DGX dashboard, or by the recovery image",
    )


def _kernel(state: MachineState, fabric: Fabric | None) -> Iterator[Finding]:
    if _PANICS.match(state.kernel):
        yield found(
            "kernel-panics",
            "kernel",
            f"{state.kernel}, which is known to panic on GB10",
            "another one, 6.17.0-1029 or newer",
            f"update the host and restart it: {shell(_NEWER_KERNEL)}",
            commands=_NEWER_KERNEL,
        )
    if not needs_argument(state.kernel) or ARGUMENT in state.kernel_arguments:
        return
    what = f"{state.kernel} without {ARGUMENT}: its kexec handover keeps memory that RDMA then can not register"
    wanted = f"{ARGUMENT} on the kernel's command line"
    if fabric is not None:
        # Stage fabric is yet to come, and gives it to the next boot.
        remedy = "restart the host after this run: stage fabric sets it"
        yield found("kernel-kho", "kernel", what, wanted, remedy, severity=Severity.SLOW)
        return
    yield found("kernel-kho", "kernel", what, wanted, f"add it and restart the host: {shell(_KHO)}", commands=_KHO)


def _reboot(state: MachineState) -> Iterator[Finding]:
    """A restart that is due. It is told of and left to whoever runs the host: it ends what serves."""
    newest = newest_kernel(state.kernel, state.kernels)
    reasons = [f"kernel {newest} is installed, and {state.kernel} runs"] if newest is not None else []
    if state.reboot_required:
        what = f" ({', '.join(state.waiting)})" if state.waiting else ""
        reasons.append(f"an installed update waits for a restart of this host{what}")
    if reasons:
        remedy = "`sudo reboot` when it suits, and run again"
        yield found("reboot-pending", "reboot", "; ".join(reasons), remedy=remedy, commands=("sudo reboot",))


def _clock(state: MachineState) -> Iterator[Finding]:
    if abs(state.ahead) < _SKEW_S:
        return
    how = "ahead of" if state.ahead > 0 else "behind"
    amount, unit = next(
        (abs(state.ahead) / size, unit) for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes"))
        if abs(state.ahead) >= size
    )  # fmt: skip
    yield found(
        "clock-wrong",
        "clock",
        f"{amount:.0f} {unit} {how} this machine's",
        "one time on both",
        "`sudo timedatectl set-ntp true` on whichever is wrong",
        commands=("sudo timedatectl set-ntp true",),
    )


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
