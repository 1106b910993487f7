"""Prometheus' text form: families of samples, written, and read from what an engine tells at `/metrics`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

GAUGE, COUNTER = "gauge", "counter"
# The names that samples of one family have beside the family's own.
_SUFFIXES = ("_bucket", "_sum", "_count")
# ASCII, and no number with a `_`: Python takes more for names and numbers than node exporter, which then tells nothing.
_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})? ([0-9A-Za-z.+-]+)(?: -?\d+)?$", re.ASCII)
_LABEL = re.compile(r'\s*([A-Za-z_]\w*)="((?:[^"\\\n]|\\.)*)"\s*(?:,|$)', re.ASCII)
_TYPES = {"counter", "gauge", "histogram", "summary", "untyped"}


@dataclass(frozen=True)
class Sample:
    """One line. `labels`: name → value, unescaped. `value`: as it is written."""

    name: str
    labels: Mapping[str, str]
    value: str


@dataclass
class Family:
    """Samples of one name, with what they mean and their type."""

    name: str
    meaning: str
    type: str = GAUGE
    samples: list[Sample] = field(default_factory=list)

    def add(self, value: float | None, **labels: str) -> Family:
        """Add a sample; nothing for None, so that what is not known stays absent."""
        if value is not None and math.isfinite(value):
            self.samples.append(Sample(self.name, labels, number(value)))
        return self

    def lines(self) -> Iterator[str]:
        """As it stands in a textfile; nothing without a sample."""
        if not self.samples:
            return
        yield f"# HELP {self.name} {_escaped(self.meaning)}"
        yield f"# TYPE {self.name} {self.type}"
        for sample in self.samples:
            labels = ",".join(f'{name}="{_quoted(value)}"' for name, value in sample.labels.items())
            yield f"{sample.name}{{{labels}}} {sample.value}" if labels else f"{sample.name} {sample.value}"


def number(value: float) -> str:
    """Without an exponent where it is whole, so that times keep their seconds."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def text_of(families: Iterable[Family]) -> str:
    """A textfile. Families of one name become one: node exporter refuses a name that stands twice."""
    merged: dict[str, Family] = {}
    for family in families:
        known = merged.get(family.name)
        if known is None:
            merged[family.name] = Family(family.name, family.meaning, family.type, list(family.samples))
        elif known.type == family.type:
            known.samples.extend(family.samples)
    return "".join(f"{line}\n" for family in merged.values() for line in family.lines())


def parsed(text: str, prefixes: tuple[str, ...], labels: Mapping[str, str]) -> list[Family]:
    """What an engine tells, as far as its names begin so, with labels of ours added.

    `labels` come first and win: whose figures these are is not the engine's to say. Lines that are not understood, and
    the times at which the client library made each series, are left out.
    """
    found: dict[str, Family] = {}
    meanings: dict[str, str] = {}
    types: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# "):
            _, kind, name, rest = (*line.split(" ", 3), "", "", "")[:4]
            if kind == "HELP":
                meanings[name] = _unescaped(rest)
            elif kind == "TYPE" and rest in _TYPES:
                types[name] = rest
            continue
        match = _SAMPLE.match(line)
        if match is None or not match[1].startswith(prefixes) or match[1].endswith("_created"):
            continue
        own = _labels(match[2] or "")
        if own is None or not _is_number(match[3]):
            continue
        name = _family_of(match[1], types)
        family = found.setdefault(name, Family(name, meanings.get(name, ""), types.get(name, "untyped")))
        family.samples.append(
            Sample(match[1], {**labels, **{k: v for k, v in own.items() if k not in labels}}, match[3])
        )
    return list(found.values())


def _family_of(name: str, types: Mapping[str, str]) -> str:
    for suffix in _SUFFIXES:
        base = name.removesuffix(suffix)
        if base != name and types.get(base) in {"histogram", "summary"}:
            return base
    return name


def _labels(text: str) -> dict[str, str] | None:
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _LABEL.match(text, at)
        if match is None:
            return None
        found[match[1]] = _unescaped(match[2])
        at = match.end()
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), text)
