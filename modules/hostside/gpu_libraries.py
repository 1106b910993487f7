"""The shared libraries of an image: which GPUs they hold code for, and whether there is native FP4 in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.device_code import WANTED_LINES, DeviceCode
    from modules.hostside.docker_cli import DockerError
    from modules.hostside.inspection import Inspection
    from modules.hostside.progress import Progress
else:
    from device_code import WANTED_LINES, DeviceCode
    from docker_cli import DockerError
    from inspection import Inspection
    from progress import Progress

HOST_TOOLKIT = Path("/usr/local/cuda/bin")
# Where the host's toolkit is lent to a container, in case it has none of its own.
LENT_TOOLKIT = "/run/tinderbox-cuda"
_FOLDERS = ("/usr/local/cuda/bin", "/usr/bin", "/usr/local/bin", LENT_TOOLKIT)
_VERSION = re.compile(r"\bV(\d+(?:\.\d+)+)")
_SHORT_S = 60
_SAID = "tinderbox-says "

_FIND_TOOL = """
for folder; do
  [ -x "$folder/cuobjdump" ] && [ -x "$folder/nvdisasm" ] || continue
  echo "$folder"; PATH="$folder:$PATH" cuobjdump --version; exit
done
"""
# By the line: what grep keeps to itself is lost when the limit ends it, and shows evidence late.
# $1: the folder of cuobjdump, and of the nvdisasm that it calls; the rest: libraries.
_READ_TARGETS = f"""
PATH="$1:$PATH"; shift
for library; do
  echo "{_SAID}$library"
  cuobjdump --list-elf "$library" 2>&1
  cuobjdump --dump-elf-symbols "$library" 2>&1
  echo "{_SAID}$?"
done | grep --line-buffered -E '{_SAID}|^ELF file|{WANTED_LINES}'
"""
# $2: of which architecture, without its suffix: cuobjdump takes that for all of its kin. $3: the library.
_SEARCH_FP4 = f"""
PATH="$1:$PATH"
{{ cuobjdump --dump-sass -arch "$2" "$3" 2>&1; echo "{_SAID}$?"; }} | grep --line-buffered -E '{_SAID}|{WANTED_LINES}'
"""


class GpuLibraries:
    """Looked for with `find`, then with a tool, then in the machine code, which takes what time is left."""

    def __init__(self, within: Inspection, progress: Progress) -> None:
        self._within = within
        self._progress = progress
        self._folder = ""
        self._libraries: list[dict[str, Any]] = []
        self._searched: list[dict[str, Any]] = []

    def find(self, searched: Sequence[str], only_read: Sequence[str]) -> dict[str, Any]:
        """By patterns of paths: those that are searched for FP4, and those whose targets alone are read."""
        self._searched, missing = self._fit_any(searched)
        read, also_missing = self._fit_any(only_read)
        self._libraries = self._searched + [library for library in read if library not in self._searched]
        return {"libraries": self._libraries, "unmatched": missing + also_missing}

    def _fit_any(self, patterns: Sequence[str]) -> tuple[list[dict[str, Any]], list[str]]:
        """Each file once, in the order of the patterns; and the patterns that no file fits."""
        found: list[dict[str, Any]] = []
        missing = []
        for pattern in patterns:
            fit = self._fit(pattern)
            found += [library for library in fit if library not in found]
            missing += [] if fit else [pattern]
        return found, missing

    def _fit(self, pattern: str) -> list[dict[str, Any]]:
        root = re.split(r"[*?\[]", pattern, maxsplit=1)[0].rpartition("/")[0] or "/"
        words = ("find", root, "-xdev", "-type", "f", "-path", pattern, "-printf", r"%s %p\n")
        lines = (line.partition(" ") for line in self._within.lines(*words, seconds=_SHORT_S, may_fail=True))
        found = [{"path": path, "size": int(size)} for size, _, path in lines if size.isdigit()]
        return sorted(found, key=lambda library: str(library["path"]))

    def find_tool(self) -> dict[str, Any]:
        """The image's own cuobjdump, else the host's. Raises `DockerError` where there is neither."""
        self._progress.report("looking for cuobjdump")
        words = ("sh", "-c", _FIND_TOOL, "sh", *_FOLDERS)
        lines = list(self._within.lines(*words, seconds=_SHORT_S, may_fail=True))
        if not lines:
            raise DockerError(
                f"there is no cuobjdump, neither in the image nor in the host's {HOST_TOOLKIT}: run deploys/cuda.py"
            )
        self._folder = lines[0]
        lent = self._folder == LENT_TOOLKIT
        version = next(filter(None, map(_VERSION.search, lines)), None)
        return {
            "path": f"{HOST_TOOLKIT if lent else self._folder}/cuobjdump",
            "origin": "host" if lent else "image",
            "version": None if version is None else version[1],
        }

    def read_targets(self) -> None:
        """What the libraries' pieces of code are for."""
        seconds = self._within.left
        words = ("sh", "-c", _READ_TARGETS, "sh", self._folder, *(str(library["path"]) for library in self._libraries))
        done = -1
        code, ended = DeviceCode(), True
        for line in self._within.lines(*words, seconds=seconds, may_fail=True):
            if line.startswith(f"{_SAID}/"):
                done, code, ended = done + 1, DeviceCode(), False
                # Filled while it is read: what was seen until a limit holds.
                self._libraries[done] |= {"machine": code.machine, "ptx": code.ptx}
                name = Path(self._libraries[done]["path"]).name
                self._progress.report(f"reading {name}", done, len(self._libraries), "libraries")
            elif line.startswith(_SAID):
                ended = True
            else:
                _note(self._libraries[done], code, line)
        for library in self._libraries[done + ended :]:
            library["trouble"] = f"not read to its end within {seconds:.0f} s"

    def search_fp4(self, architecture: str) -> None:
        """Look for FP4 in the machine code; in each library up to the first that is for the architecture."""
        target = f"sm_{architecture.replace('.', '')}"
        for done, library in enumerate(self._searched):
            name = Path(library["path"]).name
            self._progress.report(f"looking for FP4 in {name}", done, len(self._searched), "libraries")
            self._search(library, target)

    def _search(self, library: dict[str, Any], target: str) -> None:
        seconds = self._within.left
        words = ("sh", "-c", _SEARCH_FP4, "sh", self._folder, target.rstrip("af"), library["path"])
        code, ended = DeviceCode(), False
        with closing(self._within.lines(*words, seconds=seconds, may_fail=True)) as lines:
            for line in lines:
                ended = line.startswith(_SAID)
                if not ended:
                    _note(library, code, line)
                if target in code.fp4:
                    ended = True
                    break
        found = {of.target: {"opcode": of.opcode, "function": of.function} for of in code.fp4.values()}
        library |= {"searched": True, "fp4": found}
        if not ended:
            library["trouble"] = f"its machine code was not searched to its end within {seconds:.0f} s"


def _note(library: dict[str, Any], code: DeviceCode, line: str) -> None:
    if line.startswith("ELF file"):
        library["listed"] = sorted({*library.get("listed", ()), line.rsplit(".", 2)[-2]})
    elif line.startswith("cuobjdump ") and "does not contain device code" not in line:
        library["trouble"] = line.strip()
    else:
        code.hear(line)
