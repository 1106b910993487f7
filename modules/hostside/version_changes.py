"""Which parts of a machine have another version than they had, and which of them a running server has yet to take up.

Versions: part → version, as `versions.py` tells them; null where it could not be learned, which is never a change.
Pure, and imports nothing of ours, since the controller compares by it, too.
"""

from __future__ import annotations

from collections.abc import Mapping

Versions = Mapping[str, "str | None"]

GPU, CAPABILITY, DRIVER, LIBRARY = "GPU", "compute capability", "driver", "driver library"
KERNEL, DOCKER, CONTAINER_TOOLKIT, CUDA_TOOLKIT = "kernel", "docker", "container toolkit", "CUDA toolkit"
DGX_OS, IMAGE = "DGX OS", "image"
# In the order in which they are told, however they were kept.
PARTS = (GPU, CAPABILITY, DRIVER, LIBRARY, KERNEL, DOCKER, CONTAINER_TOOLKIT, CUDA_TOOLKIT, DGX_OS, IMAGE)
# A container keeps from its start the driver's libraries (mounted into it by the container toolkit), docker's shim and
# its image. A kernel comes with a boot, which starts all anew. Of the CUDA toolkit, and of what DGX OS is called, it
# has nothing.
KEPT_FROM_START = frozenset({GPU, CAPABILITY, DRIVER, LIBRARY, DOCKER, CONTAINER_TOOLKIT, IMAGE})


def changes(before: Versions, now: Versions) -> dict[str, str]:
    """Part → `driver 580.95.05 → 580.126.09`, for every part whose version is known both times, and another one."""
    found = {
        part: f"{part} {_short(part, was)} → {_short(part, is_now)}"
        for part in PARTS
        if (was := before.get(part)) is not None and (is_now := now.get(part)) is not None and is_now != was
    }
    if DRIVER in found:
        found.pop(LIBRARY, None)
    return found


def outdated(started_on: Versions, now: Versions) -> dict[str, str]:
    """The changes for which a server has to be started anew. `started_on`: what the machine was at its start."""
    return {part: told for part, told in changes(started_on, now).items() if part in KEPT_FROM_START}


def told(changed: Mapping[str, str]) -> str:
    """In one line, in the order of the parts."""
    return ", ".join(changed.values())


def _short(part: str, version: str) -> str:
    return version.removeprefix("sha256:")[:12] if part == IMAGE else version
