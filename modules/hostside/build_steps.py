"""How far a docker build or pull is, from the lines that it prints."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# `#8 [wheels 4/6] RUN …`, `#8 [4/6] COPY …`
STEP = re.compile(r"^#(\d+) \[(?:([^\]]*?) )?(\d+)/(\d+)\] (.+)$")
# After the last step: minutes, for a large image
EXPORT = re.compile(r"^#(\d+) exporting to ")
END = re.compile(r"^#(\d+) (DONE|CACHED|ERROR|CANCELED)\b")
# `#12 34.5 [123/456] Building CUDA object …`: ninja inside of a step
_NINJA = re.compile(r"^#(\d+) [\d.]+ \[(\d+)/(\d+)\] ")
# What our templates put before each step's own words.
_PRELUDE = re.compile(r"--mount=\S+\s+|set -ae; .*? export UV_DEFAULT_INDEX=\S+; ?")
_SHOWN = 60

_LAYER = re.compile(r"^([0-9a-f]{12}): (.+)$")
_LAYER_DONE = {"Pull complete", "Already exists"}


def spoken(stage: str | None, words: str) -> str:
    """A step in its own words, without what all steps have."""
    name = "" if stage is None or stage.startswith("stage-") else f"{stage}: "
    return name + " ".join(_PRELUDE.sub("", words).split())


@dataclass
class BuildSteps:
    """The steps of a build in BuildKit's plain form. Stages that nothing was heard of yet do not count."""

    _running: dict[str, str] = field(default_factory=dict)
    _ended: set[str] = field(default_factory=set)
    _totals: dict[str, int] = field(default_factory=dict)
    _compiling: tuple[int, int] | None = None
    _export: str | None = None

    def hear(self, line: str) -> bool:
        """Take in a line; whether it said anything about the steps."""
        if found := STEP.match(line):
            number, stage, _, total, words = found.groups()
            self._totals[stage or ""] = int(total)
            if number not in self._ended:
                self._running[number] = spoken(stage, words)
        elif found := EXPORT.match(line):
            self._export = found[1]
        elif found := END.match(line):
            if found[1] == self._export:
                self._export = None
            elif found[1] in self._running:
                del self._running[found[1]]
                self._ended.add(found[1])
                self._compiling = None
        elif (found := _NINJA.match(line)) and found[1] in self._running:
            self._compiling = (int(found[2]), int(found[3]))
        else:
            return False
        return True

    @property
    def done(self) -> int:
        """Steps that have ended."""
        return len(self._ended)

    @property
    def total(self) -> int:
        """Steps known so far."""
        return max(sum(self._totals.values()), self.done)

    @property
    def step(self) -> str:
        """What is being done, in a few words."""
        idle = "building" if self._export is None else "writing the image"
        running = next(reversed(self._running.values()), idle)
        short = running if len(running) <= _SHOWN else running[: _SHOWN - 1] + "…"
        return short if self._compiling is None else f"{short} [{self._compiling[0]}/{self._compiling[1]}]"


@dataclass
class PullLayers:
    """The layers of a pull."""

    _layers: dict[str, bool] = field(default_factory=dict)

    def hear(self, line: str) -> bool:
        """Take in a line; whether it said anything about a layer."""
        found = _LAYER.match(line.strip())
        if found is None:
            return False
        self._layers[found[1]] = self._layers.get(found[1], False) or found[2] in _LAYER_DONE
        return True

    @property
    def done(self) -> int:
        """Layers that are here."""
        return sum(self._layers.values())

    @property
    def total(self) -> int:
        """Layers of the image."""
        return len(self._layers)
