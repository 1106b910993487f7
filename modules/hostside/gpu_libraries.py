"""The shared libraries of an image: which GPUs they hold code for, and whether there is native FP4 in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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
# Code for a family runs on all of it, so on a GB10, as it is.
_FAMILY = ("sm_121f", "sm_120f")
# How many kernels are looked at first. Names of CUTLASS's have up to 4 KiB each, and 128 KiB are an argument's end.
_TOLD = 16
_MULTIPLIES = re.compile(r"gemm|mma", re.IGNORECASE)
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
# $2: the library; the rest: what of it. An architecture without its suffix stands for all of its kin.
_SEARCH_FP4 = f"""
PATH="$1:$PATH"; library="$2"; shift 2
{{ cuobjdump --dump-sass "$@" "$library" 2>&1; echo "{_SAID}$?"; }} | grep --line-buffered -E '{_SAID}|{WANTED_LINES}'
"""


class GpuLibraries:
    """Looked for with `find`, then with a tool, then in the machine code, which takes what time is left."""

    def __init__(self, within: Inspection, progress: Progress) -> None:
        self._within = within
        self._progress = progress
        self._folder = ""
        self._libraries: list[dict[str, Any]] = []
        self._searched: list[dict[str, Any]] = []
        # Path → target → kernels whose names tell of FP4.
        self._telling: dict[str, dict[str, list[str]]] = {}

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
                self._telling[self._libraries[done]["path"]] = code.telling
                name = Path(self._libraries[done]["path"]).name
                self._progress.report(f"reading {name}", done, len(self._libraries), "libraries")
            elif line.startswith(_SAID):
                ended = True
            else:
                _note(self._libraries[done], code, line)
        for library in self._libraries[done + ended :]:
            library["trouble"] = f"not read to its end within {seconds:.0f} s"

    def search_fp4(self, architecture: str) -> None:
        """Look for FP4 in the machine code; in each library up to the first that is for the architecture or its family.

        First in kernels whose names tell of it: a library can hold thousands, and disassembling each takes a program.
        """
        target = f"sm_{architecture.replace('.', '')}"
        for done, library in enumerate(self._searched):
            name = Path(library["path"]).name
            self._progress.report(f"looking for FP4 in {name}", done, len(self._searched), "libraries")
            self._search(library, {target, *_FAMILY}, [target, *_FAMILY])

    def _search(self, library: dict[str, Any], enough: set[str], targets: Sequence[str]) -> None:
        code = DeviceCode()
        library |= {"searched": True, "fp4": {}}
        for words in _parts(self._telling.get(library["path"], {}), library.get("machine", {}), targets):
            seconds = self._within.left
            ended = self._search_part(library, words, code, enough)
            library["fp4"] = {of.target: {"opcode": of.opcode, "function": of.function} for of in code.fp4.values()}
            if enough & code.fp4.keys():
                return
            if not ended:
                library["trouble"] = f"its machine code was not searched to its end within {seconds:.0f} s"
                return

    def _search_part(self, library: dict[str, Any], part: Sequence[str], code: DeviceCode, enough: set[str]) -> bool:
        """Whether it was searched to its end, or for long enough."""
        words = ("sh", "-c", _SEARCH_FP4, "sh", self._folder, library["path"], *part)
        with closing(self._within.lines(*words, seconds=self._within.left, may_fail=True)) as lines:
            ended = False
            for line in lines:
                ended = line.startswith(_SAID)
                if not ended:
                    _note(library, code, line)
                if enough & code.fp4.keys():
                    return True
        return ended


def _parts(
    telling: Mapping[str, Sequence[str]], machine: Mapping[str, int], targets: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    """What to disassemble, in this order, as cuobjdump takes it."""
    for target in targets:
        if names := telling.get(target):
            yield ("-arch", _plain(target), "--function", ",".join(sorted(set(names), key=_order)[:_TOLD]))
    for plain in dict.fromkeys(map(_plain, targets)):
        if any(_plain(found) == plain for found in machine):
            yield ("-arch", plain)


def _order(name: str) -> tuple[bool, int]:
    """Kernels that multiply before those that only convert, short names before those that fill a command line."""
    return _MULTIPLIES.search(name) is None, len(name)


def _plain(target: str) -> str:
    return target.rstrip("af")


def _note(library: dict[str, Any], code: DeviceCode, line: str) -> None:
    if line.startswith("ELF file"):
        library["listed"] = sorted({*library.get("listed", ()), line.rsplit(".", 2)[-2]})
    elif line.startswith(("cuobjdump fatal", "cuobjdump error")):
        library["trouble"] = line.strip()
    else:
        code.hear(line)
