"""Look into a container image: which GPUs its libraries have code for, whether native FP4 is in it, what it imports.

    attest_image.py REFERENCE --ask JSON [--budget SECONDS] [--gpus WHICH]

JSON: the patterns, modules, help and choices that a recipe's `attest` names, with its `architecture`. The answer is
kept in /var/lib/tinderbox/attestations, and printed. It judges nothing: what is missing stands in it as missing. Exit
status: 0 the image was looked at; 1 it could not be, with the reason in the last lines.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import docker_cli as docker
    from modules.hostside.atomic import write_json
    from modules.hostside.attestation_file import STATE, attestation_file
    from modules.hostside.docker_cli import DockerError
    from modules.hostside.gpu_libraries import HOST_TOOLKIT, LENT_TOOLKIT, GpuLibraries
    from modules.hostside.help_text import HelpText
    from modules.hostside.image_compiler import assembles, compiler
    from modules.hostside.inspection import GPUS_LABEL, Inspection, inspection
    from modules.hostside.progress import Progress
else:
    import docker_cli as docker
    from atomic import write_json
    from attestation_file import STATE, attestation_file
    from docker_cli import DockerError
    from gpu_libraries import HOST_TOOLKIT, LENT_TOOLKIT, GpuLibraries
    from help_text import HelpText
    from image_compiler import assembles, compiler
    from inspection import GPUS_LABEL, Inspection, inspection
    from progress import Progress

PROVENANCE = "/etc/tinderbox-image.json"
_BUDGET_S = 1800
# What a server imports takes half a minute on a fresh image; compiled kernels of a big one more.
_PYTHON_S, _HELP_S, _SHORT_S = 600, 300, 60
# Its text goes to the image's Python.
_ASK_PYTHON = Path(__file__).with_name("ask_python.py")
_SAID = "tinderbox-says "


@dataclass
class Attestor:
    """Fills in the answer, part by part. What goes wrong with a part stands in the answer's `trouble`."""

    asked: dict[str, Any]
    within: Inspection
    progress: Progress
    state: Path = STATE
    answer: dict[str, Any] = field(default_factory=dict)

    def examine(self) -> dict[str, Any]:
        """All parts. The quick ones first: the code takes what time is left."""
        self.answer |= {"asked": self.asked, "trouble": {}}
        self._part("provenance", self._provenance)
        if self.asked["architecture"]:
            self._part("compiler", self._compiler)
        if self.asked["modules"] or self.asked["choices"]:
            self._part("python", self._python)
        if self.asked["help"]:
            self._part("help", self._help)
        if self.asked["libraries"] or self.asked["fp4_libraries"]:
            self._part("libraries", self._libraries)
        return self.answer

    def _part(self, name: str, examine: Callable[[], None]) -> None:
        try:
            examine()
        except DockerError as error:
            self.answer["trouble"][name] = str(error)

    def _provenance(self) -> None:
        self.progress.report("reading where the image is from")
        text = "\n".join(self.within.lines("sh", "-c", f"! test -e {PROVENANCE} || cat {PROVENANCE}", seconds=_SHORT_S))
        try:
            self.answer["provenance"] = json.loads(text) if text else None
        except ValueError:
            raise DockerError(f"{PROVENANCE} in the image is no JSON") from None

    def _compiler(self) -> None:
        self.progress.report("trying its compiler")
        architecture = self.asked["architecture"]
        self.answer["ptxas"] = {
            path: assembles(self.within, path, architecture) for path in self.asked.get("ptxas", ())
        }
        self.answer["compiler"] = compiler(self.within, architecture, self.state / "probes" / "images")

    def _python(self) -> None:
        self.progress.report(f"importing {', '.join(self.asked['modules'])}")
        asked = json.dumps({name: self.asked[name] for name in ("modules", "choices")})
        said = None
        for line in self.within.lines("python3", "-c", _ASK_PYTHON.read_text(), asked, seconds=_PYTHON_S):
            said = line.removeprefix(_SAID) if line.startswith(_SAID) else said
        if said is None:
            raise DockerError("Python ended without an answer")
        answered = json.loads(said)
        self.answer["modules"] = answered["modules"]
        for flag, found in answered["choices"].items():
            if "values" in found:
                self.answer.setdefault("choices", {})[flag] = found["values"]
            else:
                self.answer["trouble"][f"choices of {flag}"] = found["error"]

    def _help(self) -> None:
        self.progress.report(f"asking {' '.join(self.asked['help'])}")
        found = HelpText.read(self.within.lines(*self.asked["help"], seconds=_HELP_S))
        if not found.flags:
            raise DockerError(f"{' '.join(self.asked['help'])} named no flags")
        self.answer["flags"] = sorted(found.flags)
        self.answer["choices"] = found.choices | self.answer.get("choices", {})

    def _libraries(self) -> None:
        libraries = GpuLibraries(self.within, self.progress)
        self.answer |= libraries.find(self.asked["fp4_libraries"], self.asked["libraries"])
        if self.answer["libraries"]:
            self.answer["tool"] = libraries.find_tool()
            libraries.read_targets()
            libraries.search_fp4(self.asked["architecture"])


def attest(wish: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """Look into the image that the command line wishes. Raises `DockerError` where there is none, or no docker."""
    reference = wish.reference
    docker.await_daemon()
    found = docker.inspect(reference)
    if found is None:
        raise DockerError(f"there is no image {reference} on this host")
    started = time.monotonic()
    mounts = []
    if (HOST_TOOLKIT / "cuobjdump").exists():
        mounts = [f"{HOST_TOOLKIT.resolve()}:{LENT_TOOLKIT}:ro"]
    labels = (found.get("Config") or {}).get("Labels") or {}
    progress.report("starting a container of the image")
    with inspection(found["Id"], wish.budget, mounts, wish.gpus or labels.get(GPUS_LABEL)) as within:
        answer = Attestor(wish.ask, within, progress, wish.state).examine()
    return answer | {
        "reference": reference,
        "image": found["Id"],
        "examined_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(time.monotonic() - started, 1),
    }


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference")
    parser.add_argument("--ask", type=json.loads, required=True)
    parser.add_argument("--budget", type=float, default=_BUDGET_S, help="seconds in all")
    parser.add_argument("--gpus", help="as docker takes it; an image that we built says it by a label")
    parser.add_argument("--state", type=Path, default=STATE, help="in whose attestations/ the answer is kept")
    return parser.parse_args(words)


def main() -> int:
    """Entry point."""
    wish = parse()
    try:
        answer = attest(wish, Progress())
    except DockerError as error:
        print(f"{socket.gethostname()}: {error}", file=sys.stderr)
        return 1
    kept = attestation_file(wish.reference, wish.state)
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_json(kept, answer)
    print(json.dumps(answer, indent=1, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
