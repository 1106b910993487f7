"""Judgement of the GPU: which it is, its driver, its clocks and its heat."""

from __future__ import annotations

from collections.abc import Iterator

from modules.facts.machine_state import MachineState
from modules.facts.parse.nvidia_smi import Gpu
from modules.spec.settings import Hardware
from roles.preflight.finding import Finding, Severity, found, shell

_SIMULATED = "(simulated)"
_BUSY_PCT = 90
# Units stuck in a low power state show 500 to 850 MHz and 15 to 18 W at 94 to 96 % use; healthy ones 2400 MHz and 40 W.
_LOW_MHZ, _WHOLE_MHZ = 900, 2400
_LOW_W = 30
_THERMAL = ("software thermal slowdown", "hardware thermal slowdown")
_POWER = ("hardware power brake", "hardware slowdown")
_LEAVE_OUT = "take the host out of the fleet file, or check its address there"


def judge_gpu(state: MachineState, hardware: Hardware) -> Iterator[Finding]:
    """Findings on the GPU."""
    gpu = state.gpu
    major = hardware.driver.split(".")[0]
    install = (f"sudo apt-get install -y nvidia-driver-{major}-open", "sudo reboot")
    if state.mismatch is not None:
        yield found(
            "driver-mismatch",
            "reboot",
            f"{state.mismatch}: nothing that is started anew gets the GPU",
            "a driver and libraries of one version",
            "restart the host: `sudo reboot`; what serves goes on until then",
            commands=("sudo reboot",),
        )
        return
    if gpu is None:
        yield found(
            "gpu-silent",
            "GPU",
            state.gpu_trouble or "nvidia-smi shows none",
            hardware.gpu,
            f"after an update of the driver restart the host; else install DGX OS's driver: {shell(install)}",
            commands=install,
        )
        return
    yield from _name(gpu, hardware)
    yield from _driver(gpu, hardware, install)
    yield from _clocks(state.gpu_samples)
    yield from _held_back(state.gpu_samples)


def _name(gpu: Gpu, hardware: Hardware) -> Iterator[Finding]:
    simulated = _SIMULATED in gpu.name
    alike = _plain(gpu.name) == _plain(hardware.gpu)
    if simulated and hardware.simulated and alike:
        yield found("gpu-simulated", "GPU", f"{gpu.name}: what is measured here says nothing about a DGX Spark")
    elif hardware.simulated and not simulated:
        yield found(
            "gpu-real",
            "GPU",
            gpu.name,
            f"a name with {_SIMULATED}",
            "the fleet file says settings.hardware.simulated, but this machine is real: take that key away",
            settings={"hardware.simulated": None},
        )
    elif gpu.name != hardware.gpu and simulated and not hardware.simulated:
        wanted = f"{hardware.gpu} (settings.hardware.gpu)"
        yield found("gpu-of-the-lab", "GPU", gpu.name, wanted, "this is a lab host: use the lab's own fleet file")
    elif gpu.name != hardware.gpu:
        yield found("gpu-other", "GPU", gpu.name, f"{hardware.gpu} (settings.hardware.gpu)", _LEAVE_OUT)


def _plain(name: str) -> str:
    return name.replace(_SIMULATED, "").strip()


def _driver(gpu: Gpu, hardware: Hardware, install: tuple[str, ...]) -> Iterator[Finding]:
    if gpu.driver == hardware.driver or gpu.driver.startswith(hardware.driver.rstrip(".") + "."):
        return
    why, cost = "", None
    if gpu.driver_major == 590:
        why = ", with which engines deadlock while they capture CUDA graphs on GB10"
        cost = "an engine that captures graphs never gets ready"
    yield found(
        "driver-other",
        "driver",
        f"{gpu.driver}{why}",
        f"{hardware.driver} (settings.hardware.driver)",
        f"install DGX OS's own driver and restart the host: {shell(install)}; where apt keeps this one, take away the "
        "package that brought it (cuda-drivers, as a rule) first",
        cost=cost,
        commands=install,
    )


def _clocks(samples: tuple[Gpu, ...]) -> Iterator[Finding]:
    if not all(_is_low(gpu) for gpu in samples):
        return
    first = samples[0]
    slow_clock = all(gpu.sm_mhz is not None and gpu.sm_mhz < _LOW_MHZ for gpu in samples)
    watts = "unknown power" if first.power_w is None else f"{first.power_w:.0f} W"
    clock = "unknown clock" if first.sm_mhz is None else f"{first.sm_mhz:.0f} MHz"
    reasons = f" ({', '.join(first.reasons)})" if first.reasons else ""
    cost = None
    if slow_clock and first.sm_mhz is not None:
        cost = (
            f"{watts} and {clock} in place of {_WHOLE_MHZ}: {_share(first.sm_mhz / _WHOLE_MHZ)} of the speed, at most"
        )
    yield found(
        "power-low",
        "power state",
        f"{first.utilization_pct:.0f} % busy at {clock} and {watts}{reasons}",
        f"at least {_LOW_MHZ} MHz and {_LOW_W} W when busy",
        "a restart does not help: shut the host down, unplug its power supply for 60 s, and plug it in again; "
        "if it comes back so, update the firmware (`fwupdmgr update`) or have the unit replaced",
        severity=Severity.BLOCKED if slow_clock else Severity.SLOW,
        cost=cost,
    )


def _is_low(gpu: Gpu) -> bool:
    if gpu.utilization_pct is None or gpu.utilization_pct < _BUSY_PCT:
        return False  # an idle GPU is slow by right
    return (gpu.sm_mhz is not None and gpu.sm_mhz < _LOW_MHZ) or (gpu.power_w is not None and gpu.power_w < _LOW_W)


def _share(share: float) -> str:
    """A share of the whole as people say it."""
    words = {10: "a tenth", 5: "a fifth", 4: "a quarter", 3: "a third", 2: "half"}
    return words[min(words, key=lambda part: abs(1 / part - share))]


def _held_back(samples: tuple[Gpu, ...]) -> Iterator[Finding]:
    first = samples[0]
    degrees = "unknown temperature" if first.temperature_c is None else f"{first.temperature_c:.0f} °C"
    if hot := [reason for reason in _THERMAL if all(reason in gpu.reasons for gpu in samples)]:
        yield found(
            "gpu-hot",
            "heat",
            f"{degrees}, and its clocks are held back ({', '.join(hot)})",
            "clocks that heat does not hold back",
            "give it air (both ends free, nothing on top, a cooler room); `system: {clock_cap_mhz: 2150}` in the fleet "
            "file keeps it some 15 °C cooler, without a loss of decode speed that anybody measured",
        )
    if braked := [reason for reason in _POWER if all(reason in gpu.reasons for gpu in samples)]:
        yield found(
            "power-brake",
            "power supply",
            f"the hardware holds the clocks back ({', '.join(braked)})",
            "a power supply that gives all that is asked",
            "use the power supply that came with it, plugged into the wall and into the port that is marked for it; "
            "then shut the host down, unplug it for 60 s, and plug it in again",
        )
