"""`python -m torch.utils.collect_env`, and PyTorch's warning about a GPU that it was not built for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.lscpu import Lscpu, parse_lscpu
from modules.facts.parse.text import lines_of

_PROGRAM = "torch collect_env"
_PACKAGE = re.compile(r"\[pip3\] (\S+?)==(\S+)")
_GPU = re.compile(r"GPU \d+: (.+)")
_WARNING = re.compile(
    r"Found GPU\d+ (.+?) which is of cuda capability (\d+\.\d+)\..*?"
    r"supported by this version of PyTorch is\s+\((\d+\.\d+)\) - \((\d+\.\d+)\)",
    re.DOTALL,
)


@dataclass(frozen=True)
class TorchEnv:
    """None where it says `N/A` or `Could not collect`. `built_for_cuda` and `cuda_runtime` may differ."""

    torch: str
    built_for_cuda: str | None
    os: str
    python: str
    cuda_available: bool
    cuda_runtime: str | None
    gpus: tuple[str, ...]
    driver: str | None
    cpu: Lscpu
    packages: dict[str, str]


@dataclass(frozen=True)
class CapabilityWarning:
    """PyTorch's builds go to `newest`; on a GB10 (12.1) with 12.0 builds it warns and works all the same."""

    gpu: str
    capability: str
    oldest: str
    newest: str


def parse_torch_env(text: str) -> TorchEnv:
    """The whole report."""
    values: dict[str, str] = {}
    lines = lines_of(text)
    for line in lines:
        key, colon, value = line.partition(": ")
        if colon:
            values.setdefault(key.strip(), value.strip())
    if not any(line.startswith("Versions of relevant libraries") for line in lines):
        raise ParseError(_PROGRAM, "the report is cut off before its libraries", text=text)

    def known(key: str) -> str | None:
        if key not in values:
            raise ParseError(_PROGRAM, f"no {key}")
        return None if values[key] in {"N/A", "Could not collect", ""} else values[key]

    models = values.get("GPU models and configuration", "")
    return TorchEnv(
        torch=_must(known("PyTorch version"), "PyTorch version"),
        built_for_cuda=known("CUDA used to build PyTorch"),
        os=_must(known("OS"), "OS"),
        python=_must(known("Python version"), "Python version").split()[0],
        cuda_available=values.get("Is CUDA available") == "True",
        cuda_runtime=known("CUDA runtime version"),
        gpus=tuple(match[1] for match in map(_GPU.fullmatch, [models, *lines]) if match),
        driver=known("Nvidia driver version"),
        cpu=parse_lscpu(text),
        packages={match[1]: match[2] for line in lines if (match := _PACKAGE.fullmatch(line.strip()))},
    )


def parse_capability_warning(text: str) -> CapabilityWarning:
    """The warning, in whatever output it stands."""
    match = _WARNING.search(text)
    if match is None:
        raise ParseError("torch", "no warning about a CUDA capability", text=text)
    return CapabilityWarning(match[1], match[2], match[3], match[4])


def _must(value: str | None, key: str) -> str:
    if value is None:
        raise ParseError(_PROGRAM, f"{key} is not known to it")
    return value
