"""The driver's two halves, the kernel's module and the user libraries, and whether they are of one version.

An update replaces the libraries at once and the module with the next boot; until then nothing that is started anew gets
the GPU. Pure, and imports nothing of ours, since the controller reads the same texts.
"""

from __future__ import annotations

import re

_MODULE = re.compile(r"Kernel Module(?: for \S+)?\s+(\d[\d.]*\d)")
_LIBRARY = re.compile(r"\.so\.(\d+(?:\.\d+)+)$")
_MISMATCH = re.compile(r"Driver/library version mismatch(?:.*?NVML library version: ([\d.]+))?", re.DOTALL)


def module_in(text: str) -> str | None:
    """Version of the loaded module, from /proc/driver/nvidia/version."""
    found = _MODULE.search(text)
    return found[1] if found else None


def library_in(name: str) -> str | None:
    """Version of the libraries, from the name of one's file (`libnvidia-ml.so.580.142`)."""
    found = _LIBRARY.search(name)
    return found[1] if found else None


def mismatch(module: str | None, library: str | None, said: str = "") -> str | None:
    """Why the host has to be restarted before the GPU can be had anew. `said`: by an nvidia-smi that failed."""
    if module is not None and library is not None:
        return None if module == library else f"the loaded driver is {module}, and its libraries are {library}"
    refused = _MISMATCH.search(said)
    if refused is None:
        return None
    of = f" ({refused[1].rstrip('.')})" if refused[1] else ""
    return f"the loaded driver has another version than its libraries{of}"
