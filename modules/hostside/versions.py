"""What can be upgraded on this machine under a release, each part with the version that it has now.

A release is proved on these: they are kept with it, and compared at the next run. `none` is a part that is not there;
null one of which nothing could be learned.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import version_changes as part
    from modules.hostside.driver_versions import library_in, mismatch, module_in
    from modules.hostside.gpu_sample import gpu
    from modules.hostside.service_unit import run
else:
    import version_changes as part
    from driver_versions import library_in, mismatch, module_in
    from gpu_sample import gpu
    from service_unit import run

NONE = "none"
_CUDA = re.compile(r"cuda-toolkit-\d+-\d+")
_CONTAINER = "nvidia-container-toolkit"
# The factory's version, and then one for each update over the air; the last one counts.
_DGX = re.compile(r"""^DGX_(?:SWBUILD|OTA)_VERSION=["']?([^"'\n]+)""", re.MULTILINE)
_remembered: tuple[dict[str, str | None], str | None] | None = None


def library_under(folder: Path) -> str | None:
    """Version of the driver's user libraries, by the file that the loader's link leads to."""
    found = (library_in(link.resolve().name) for link in sorted(folder.glob("*/libnvidia-ml.so.1")))
    return next((version for version in found if version is not None), None)


def packages_in(listed: str) -> dict[str, str]:
    """The toolkits' versions, from `dpkg-query`: lines of status, package and version, parted by `|`."""
    rows = [line.split("|") for line in listed.splitlines()]
    there = {name: version for status, name, version in rows if status.strip().endswith("i")}
    toolkits = [version for name, version in sorted(there.items()) if _CUDA.fullmatch(name)]
    return {part.CONTAINER_TOOLKIT: there.get(_CONTAINER, NONE), part.CUDA_TOOLKIT: ", ".join(toolkits) or NONE}


def dgx_os_in(text: str) -> str | None:
    """From /etc/dgx-release."""
    found = _DGX.findall(text)
    return found[-1] if found else None


def image_id(reference: str) -> str | None:
    """Id of a local image."""
    shown = run("docker", "image", "inspect", "--format", "{{.Id}}", reference)
    return shown.strip() if shown else None


def versions(image: str | None = None) -> tuple[dict[str, str | None], str | None]:
    """All of them, and why the host has to be restarted first, if so. `image`: id of the release's image."""
    known, reboot = _remembered or machine()
    return {**known, part.IMAGE: image}, reboot


def remember() -> None:
    """Have `versions` look no more in this process and its children: for those that only look, side by side."""
    global _remembered  # noqa: PLW0603
    _remembered = machine()


def machine() -> tuple[dict[str, str | None], str | None]:
    """Those of the machine itself, and why it has to be restarted first, if so."""
    found = gpu()
    # Only of one that fails more is asked.
    said = "" if found is not None else _said("nvidia-smi") or ""
    module, library = module_in(_text("/proc/driver/nvidia/version") or ""), library_under(Path("/usr/lib"))
    listing = ("dpkg-query", "-W", "-f", "${db:Status-Abbrev}|${Package}|${Version}\n", _CONTAINER, "cuda-toolkit-*")
    listed = _said(*listing)
    dgx = _text("/etc/dgx-release")
    shown = run("docker", "version", "--format", "{{.Server.Version}}")
    return {
        part.GPU: found["name"] if found else None,
        part.CAPABILITY: found["compute_cap"] if found else None,
        part.DRIVER: module or (found["driver"] if found else None),
        part.LIBRARY: library,
        part.KERNEL: os.uname().release,
        part.DOCKER: shown.strip() or None if shown else None,
        **(packages_in(listed) if listed is not None else {part.CONTAINER_TOOLKIT: None, part.CUDA_TOOLKIT: None}),
        part.DGX_OS: NONE if dgx is None else dgx_os_in(dgx),
    }, mismatch(module, library, said)


def _text(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _said(*command: str) -> str | None:
    """Standard output of a program whatever its exit status; None where it is not installed or does not end."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout
