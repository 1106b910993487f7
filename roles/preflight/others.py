"""Judgement of what else is on the host: named, with a way to stop it, and left alone."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from modules.facts.machine_state import GpuProcess, MachineState, Stranger
from modules.fleet import HostPlan
from modules.release.layout import container_name
from roles.preflight.finding import Finding, Severity, found, shell

_OURS = "tinderbox-"
_GIB = 2**30
# By the names that these tools give to containers, images and processes.
_TOOLS = {
    "sparkrun": "sparkrun",
    "vllm-node": "spark-vllm-docker",
    "vllm_node": "spark-vllm-docker",
    "ollama": "Ollama",
    "lmstudio": "LM Studio",
    "comfyui": "ComfyUI",
    "jupyter": "Jupyter",
}
_FREE_PORT = 8000


def judge_others(state: MachineState, plan: HostPlan) -> Iterator[Finding]:
    """Strangers at a service's port, strange engines, and whatever else is on the GPU."""
    yield from _ports(state, plan)
    engines = {engine.pid for engine in state.engines}
    waiting = [service.name for service in plan.services if container_name(service.name) not in state.running]
    refused = any(service.service.memory_plan == "refuse" for service in plan.services if service.name in waiting)
    for engine in state.engines:
        yield _engine(engine, state, Severity.BLOCKED if refused else Severity.SLOW)
    for process in state.processes:
        ours = process.container is not None and process.container.startswith(_OURS)
        if not ours and process.pid not in engines:
            yield _on_the_gpu(process)


def _ports(state: MachineState, plan: HostPlan) -> Iterator[Finding]:
    taken = {service.service.port for service in plan.services}
    for service in plan.services:
        holder = state.holders.get(service.name)
        if holder is None:
            continue
        free = next(port for port in range(_FREE_PORT, 65536) if port not in taken)
        key = f"services.{service.name}.port"
        stop = stop_commands(holder)
        remedy = f"stop it ({shell(stop)}), or write `{key}: {free}`" if stop else f"write `{key}: {free}`"
        yield found(
            "port-taken",
            "port",
            f"{service.service.port} of service {service.name} is taken by {in_words(holder)}",
            "a port that nothing else listens at",
            f"{remedy} in the fleet file; it is left alone",
            commands=stop,
            settings={key: free},
        )


def _engine(engine: Stranger, state: MachineState, severity: Severity) -> Finding:
    on_gpu = next((process.memory_mib for process in state.processes if process.pid == engine.pid), None)
    holds = f"{on_gpu / 1024:.1f} GiB of GPU memory" if on_gpu is not None else f"{engine.memory / _GIB:.1f} GiB"
    return found(
        "engine-foreign",
        "another engine",
        f"{in_words(engine)} holds {holds}",
        "only engines that the memory plan counts in",
        f"stop it if it is not wanted: {shell(stop_commands(engine))}; it is left alone",
        severity=severity,
        commands=stop_commands(engine),
    )


def _on_the_gpu(process: GpuProcess) -> Finding:
    memory = "an unknown amount" if process.memory_mib is None else f"{process.memory_mib / 1024:.1f} GiB"
    place = "" if process.container is None else f" in container {process.container}"
    stop = stop_commands(Stranger(process.pid, process.name, 0, process.container, unit=process.unit))
    return found(
        "gpu-in-use",
        "GPU in use",
        f"{process.name}{place} (pid {process.pid}) holds {memory} of GPU memory",
        "only Tinderbox's services on the GPU",
        f"stop it if it is not wanted: {shell(stop)}; it is left alone",
        commands=stop,
    )


def in_words(stranger: Stranger) -> str:
    """A process by its name, where it runs, and whose it is as far as names tell."""
    name = stranger.engine or stranger.name or "another program"
    parts = [f"pid {stranger.pid}"] if stranger.pid else []
    parts += [f"container {stranger.container} of image {stranger.image}"] if stranger.container else []
    parts += [stranger.unit] if stranger.unit else []
    tool = tool_of(stranger)
    parts += [f"as {tool} names its own"] if tool else []
    return f"{name} ({', '.join(parts)})" if parts else name


def tool_of(stranger: Stranger) -> str | None:
    """Which tool gives such names."""
    names = " ".join(filter(None, (stranger.name, stranger.container, stranger.image, stranger.unit))).lower()
    return next((tool for word, tool in _TOOLS.items() if word in names), None)


def stop_commands(stranger: Stranger) -> tuple[str, ...]:
    """How its owner stops it, so that it stays so over a boot; nothing of it is removed.

    Names are quoted: whoever may make control groups of their own gives them any, and these commands are root's.
    """
    if stranger.container is not None:
        name = shlex.quote(stranger.container)
        return (f"sudo docker update --restart=no {name}", f"sudo docker stop {name}")
    if stranger.unit is not None:
        return (f"sudo systemctl disable --now {shlex.quote(stranger.unit)}",)
    return (f"sudo kill {stranger.pid}",) if stranger.pid else ()
