"""Judgement of the GPU: which it is, its driver, its clocks, and who else is on it."""

from __future__ import annotations

from collections.abc import Iterator

from modules.facts.machine import GpuProcess, MachineState
from modules.facts.parse.nvidia_smi import Gpu
from modules.spec.settings import Hardware
from roles.preflight.finding import Finding, Severity

_SIMULATED = "(simulated)"
_OURS = "tinderbox-"
_BUSY_PCT = 90
# Units stuck in a low power state show 500 to 850 MHz and 15 to 18 W at 94 to 96 % use; healthy ones 2400 MHz and 40 W.
_LOW_MHZ = 900
_LOW_W = 30


def judge_gpu(state: MachineState, hardware: Hardware) -> Iterator[Finding]:
    """Findings on the GPU."""
    gpu = state.gpu
    if state.mismatch is not None:
        yield Finding(
            Severity.BLOCKED,
            "reboot",
            f"{state.mismatch}: nothing that is started anew gets the GPU",
            "a driver and libraries of one version",
            "restart the host: `sudo reboot`; what serves goes on until then",
        )
        return
    if gpu is None:
        yield Finding(
            Severity.BLOCKED,
            "GPU",
            state.gpu_trouble or "nvidia-smi shows none",
            hardware.gpu,
            "after an update of the driver restart the host; else install DGX OS's driver (nvidia-driver-580-open)",
        )
        return
    yield from _name(gpu, hardware)
    yield from _driver(gpu, hardware)
    yield from _clocks(state.gpu_samples)
    yield from _others(state.processes)


def _name(gpu: Gpu, hardware: Hardware) -> Iterator[Finding]:
    simulated = _SIMULATED in gpu.name
    alike = _plain(gpu.name) == _plain(hardware.gpu)
    if simulated and hardware.simulated and alike:
        yield Finding(Severity.NOTE, "GPU", f"{gpu.name}: what is measured here says nothing about a DGX Spark")
    elif hardware.simulated and not simulated:
        yield Finding(
            Severity.BLOCKED,
            "GPU",
            gpu.name,
            f"a name with {_SIMULATED}",
            "the fleet file says settings.hardware.simulated, but this machine is real: take that key away",
        )
    elif gpu.name != hardware.gpu:
        remedy = "take the host out of the fleet file, or check its address there"
        if simulated and not hardware.simulated:
            remedy = "this is a lab host: use the lab's own fleet file"
        yield Finding(Severity.BLOCKED, "GPU", gpu.name, f"{hardware.gpu} (settings.hardware.gpu)", remedy)


def _plain(name: str) -> str:
    return name.replace(_SIMULATED, "").strip()


def _driver(gpu: Gpu, hardware: Hardware) -> Iterator[Finding]:
    if gpu.driver == hardware.driver or gpu.driver.startswith(hardware.driver.rstrip(".") + "."):
        return
    why = ""
    if gpu.driver_major == 590:
        why = ", with which engines deadlock while they capture CUDA graphs on GB10"
    major = hardware.driver.split(".")[0]
    yield Finding(
        Severity.BLOCKED,
        "driver",
        f"{gpu.driver}{why}",
        f"{hardware.driver} (settings.hardware.driver)",
        f"install DGX OS's own driver (`sudo apt-get install nvidia-driver-{major}-open`), take away the package that "
        "brought this one (cuda-drivers, as a rule), and restart the host",
    )


def _clocks(samples: tuple[Gpu, ...]) -> Iterator[Finding]:
    if not all(_is_held_back(gpu) for gpu in samples):
        return
    first = samples[0]
    slow_clock = all(gpu.sm_mhz is not None and gpu.sm_mhz < _LOW_MHZ for gpu in samples)
    watts = "unknown power" if first.power_w is None else f"{first.power_w:.0f} W"
    clock = "unknown clock" if first.sm_mhz is None else f"{first.sm_mhz:.0f} MHz"
    reasons = f" ({', '.join(first.reasons)})" if first.reasons else ""
    yield Finding(
        Severity.BLOCKED if slow_clock else Severity.SLOW,
        "power state",
        f"{first.utilization_pct:.0f} % busy at {clock} and {watts}{reasons}",
        f"at least {_LOW_MHZ} MHz and {_LOW_W} W when busy",
        "a restart does not help: shut the host down, unplug its power supply for 60 s, and plug it in again; "
        "if it comes back so, update the firmware (`fwupdmgr update`) or have the unit replaced",
    )


def _is_held_back(gpu: Gpu) -> bool:
    if gpu.utilization_pct is None or gpu.utilization_pct < _BUSY_PCT:
        return False  # an idle GPU is slow by right
    return (gpu.sm_mhz is not None and gpu.sm_mhz < _LOW_MHZ) or (gpu.power_w is not None and gpu.power_w < _LOW_W)


def _others(processes: tuple[GpuProcess, ...]) -> Iterator[Finding]:
    for process in processes:
        if process.container is not None and process.container.startswith(_OURS):
            continue
        memory = "an unknown amount" if process.memory_mib is None else f"{process.memory_mib / 1024:.1f} GiB"
        place = "" if process.container is None else f" in container {process.container}"
        yield Finding(
            Severity.SLOW,
            "GPU in use",
            f"{process.name}{place} (pid {process.pid}) holds {memory} of GPU memory",
            "only Tinderbox's services on the GPU",
            "stop it if it is not wanted; it is left alone",
        )
