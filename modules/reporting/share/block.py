"""The block itself: YAML between two lines, with a hash, by which a paste that lost something is known."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import yaml
from pydantic import Field, ValidationError

from modules.reporting.share.workloads import SharedWorkloads
from modules.spec.architecture import Architecture
from modules.spec.base import Commit, Digest, Strict, VariableName
from modules.spec.engine import Flags
from modules.spec.image import GitPin

VERSION = 1
_BEGIN = f"----- tinderbox share {VERSION} -----"
_BEGIN_LINE = re.compile(r"-{5} tinderbox share (\d+) -{5}")
_END_LINE = re.compile(r"-{5} end of tinderbox share ([0-9a-f]{12}) -{5}")
# What mail and forum programs put before a quoted line.
_QUOTE = re.compile(r"^(?:[>|]\s?)+")


class ShareError(Exception):
    """A block that can not be written, read, or turned into a fleet file; the message says why and what to do."""


class Hardware(Strict):
    """`simulated`: a lab host, whose speeds say nothing about a DGX Spark."""

    gpu: str
    driver: str | None = None
    simulated: bool = False


class SharedModel(Strict):
    """A model at one commit, with all that a fleet file needs to fetch it."""

    repository: str
    commit: Commit
    served_as: str
    size_gib: float | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    encodings: tuple[str, ...] = ()
    file: str | None = None


class SharedImage(Strict):
    """A recipe with everything that was pinned. `digest`: of a pulled image.

    `name`: as docker on the host knows it; the tag of a built one is a hash of all that it is built from.
    """

    recipe: str
    name: str | None = None
    reference: str | None = None
    digest: Digest | None = None
    base: str | None = None
    architecture: Architecture | None = None
    pins: dict[str, GitPin] = Field(default={})
    packages: dict[str, str] = Field(default={})
    arguments: dict[str, str] = Field(default={})


class SharedResult(Strict):
    """Mean and standard deviation over the runs."""

    mean: float = Field(gt=0)
    std: float = Field(ge=0)
    runs: int = Field(ge=1)
    unit: str


class Share(Strict):
    """What was run and what came out.

    `measured`: the day. `flags`: all that the engine was given. `environment`: beyond the engine's own. `left_out`:
    keys whose values were private, so that the run can not be wholly reproduced.
    """

    measured: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    hardware: Hardware
    engine: str
    profile: str
    model: SharedModel
    image: SharedImage
    flags: Flags
    environment: dict[VariableName, str] = Field(default={})
    left_out: tuple[str, ...] = ()
    workloads: SharedWorkloads
    results: dict[str, SharedResult] = Field(min_length=1)


def write_block(share: Share) -> str:
    """The block, ready to be pasted."""
    document = share.model_dump(mode="json", exclude_defaults=True)
    # Whole, since a later version may have other defaults.
    document["workloads"] = share.workloads.model_dump(mode="json", exclude_none=True)
    body = yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True, default_flow_style=None)
    return f"{_BEGIN}\n{body}----- end of tinderbox share {_digest(body)} -----\n"


def read_block(text: str) -> Share:
    """The one block in a text, also where it was quoted or indented as a whole.

    Raises `ShareError`: there is none or several, or it was cut or changed.
    """
    lines = [_QUOTE.sub("", line.rstrip()) for line in text.splitlines()]
    begins = [index for index, line in enumerate(lines) if _BEGIN_LINE.fullmatch(line.strip())]
    ends = [index for index, line in enumerate(lines) if _END_LINE.fullmatch(line.strip())]
    if len(begins) != 1 or len(ends) != 1 or ends[0] < begins[0]:
        raise ShareError(f"no single whole share block in this text: it must go from `{_BEGIN}` to its end line")
    _known_version(lines[begins[0]].strip())
    indent = len(lines[begins[0]]) - len(lines[begins[0]].lstrip())
    body = "".join(f"{line[indent:]}\n" for line in lines[begins[0] + 1 : ends[0]] if line.strip())
    wanted = _END_LINE.fullmatch(lines[ends[0]].strip())
    if wanted is None or wanted[1] != _digest(body):
        raise ShareError("the block was changed or lost a line since it was written: copy it again, as plain text")
    try:
        return Share.model_validate(yaml.safe_load(body))
    except (yaml.YAMLError, ValidationError) as error:
        raise ShareError(f"the block is whole, but not one that this version reads: {error}") from None


def _known_version(line: str) -> None:
    found = _BEGIN_LINE.fullmatch(line)
    if found is None or int(found[1]) != VERSION:
        raise ShareError(f"the block is of another version than {VERSION}: use a newer Tinderbox to read it")


def _digest(body: str) -> str:
    """Of the lines that say something; forums add and take away empty ones, and blanks at the end of lines."""
    kept = "\n".join(line.rstrip() for line in body.splitlines() if line.strip())
    return hashlib.sha256(kept.encode()).hexdigest()[:12]


class _Dumper(yaml.SafeDumper):
    """Without anchors, which nobody reads."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True
