"""The compilers of an image: which FP4 features its nvcc has, and whether the ptxas that Triton is given knows the GPU.

A build tries its compiler before it uses it, and leaves the answer in the image. Of an image that was pulled, the nvcc
is tried here, where it has one; the answer is kept by the compiler's hash, which images have in common.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import compile_probe, ptxas_probe
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.docker_cli import DockerError
    from modules.hostside.inspection import Inspection
else:
    import compile_probe
    import ptxas_probe
    from atomic import read_json, write_json
    from docker_cli import DockerError
    from inspection import Inspection

# Left there by the build (roles/image/templates/_compile_probe.j2).
TOLD = "/etc/tinderbox-compile-probe.json"
NVCC = "/usr/local/cuda/bin/nvcc"
# The probe keeps its answer; in a container that goes away with it.
KEPT_INSIDE = "/tmp/tinderbox-probes"  # noqa: S108
# Eight small kernels, on a host that may be busy.
_PROBE_S, _SHORT_S = 300, 60
_PROGRAM = Path(__file__).with_name("compile_probe.py")
# As the probe of the host's own ptxas does it. $1: ptxas, $2: the target, $3: PTX.
_ASSEMBLE = """
cd "$(mktemp -d)" && printf '%s' "$3" > least.ptx && exec "$1" -arch "$2" -o least.cubin least.ptx
"""


def compiler(within: Inspection, architecture: str, kept_in: Path) -> dict[str, Any] | None:
    """What the image's nvcc compiles for an architecture; None where the image has none.

    `kept_in`: folder of kept answers. Raises `DockerError` where it gave no answer that is understood.
    """
    told = "\n".join(within.lines("sh", "-c", f"! test -e {TOLD} || cat {TOLD}", seconds=_SHORT_S))
    if told:
        return {"origin": "build", **_read(told, TOLD)}
    there = f"if test -x {NVCC} && command -v python3 > /dev/null; then echo yes; fi"
    if list(within.lines("sh", "-c", there, seconds=_SHORT_S)) != ["yes"]:
        return None
    return {"origin": "image", **_tried(within, architecture, kept_in)}


def _tried(within: Inspection, architecture: str, kept_in: Path) -> dict[str, Any]:
    words = ("python3", "-c", _PROGRAM.read_text(), "--architecture", architecture, "--nvcc", NVCC)
    digest = "".join(within.lines(*words, "--digest", seconds=_SHORT_S))
    kept = kept_in / f"{architecture}-{digest[:12]}.json"
    known = read_json(kept)
    if known is not None and known.get("toolkit") == digest:
        return _told(known)
    # It ends with 1 where a feature is missing, which is an answer too.
    lines = list(within.lines(*words, "--kept-in", KEPT_INSIDE, seconds=_PROBE_S, may_fail=True))
    found = _read(next((line for line in lines if line.startswith("{")), ""), NVCC)
    if not compile_probe.missing(found):
        kept_in.mkdir(parents=True, exist_ok=True)
        write_json(kept, found)
    return found


def assembles(within: Inspection, ptxas: str, architecture: str) -> str | None:
    """Why a ptxas of the image does not assemble for an architecture; None: it does."""
    target = f"sm_{compile_probe.target(architecture)}"
    words = ("sh", "-c", _ASSEMBLE, "sh", ptxas, target, ptxas_probe.source(architecture))
    try:
        list(within.lines(*words, seconds=_SHORT_S))
    except DockerError as error:
        return str(error)
    return None


def _read(text: str, where: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
        return _told(found)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DockerError(f"{where} gave no answer of the compile probe: {text[:200]}") from None


def _told(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("architecture", "toolkit", "features")}
