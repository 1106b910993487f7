"""How long the steps of a build took, and from that how long another build of the recipe will take on this host.

Kept for each recipe as `<recipe>.times.json` beside the images' folders: seconds by the step's place, `stage 3/6`. What
a build took from the cache was not measured, so it keeps its former figure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.build_steps import END, EXPORT, STEP
else:
    from atomic import read_json, write_json
    from build_steps import END, EXPORT, STEP

_FROM = re.compile(r"^FROM \S+(?: AS (\S+))?\s*$", re.IGNORECASE | re.MULTILINE)
_SAID = re.compile(r"^#(\d+) \d+\.\d+ ")
_WRITING = "writing the image"


@dataclass
class StepClock:
    """Shares the time of a build out among its steps, so that their sum is what it took by the clock.

    Of steps that run side by side, those count that have said something: another one only waits for them.
    """

    spent: dict[str, float] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    cached: set[str] = field(default_factory=set)
    _names: dict[str, str] = field(default_factory=dict)
    _running: set[str] = field(default_factory=set)
    _talking: set[str] = field(default_factory=set)
    _at: float | None = None

    def hear(self, line: str, now: float) -> None:
        """Take in a line of BuildKit's plain output. `now`: seconds of a clock that never goes back."""
        self._share(now)
        if found := STEP.match(line):
            self._begin(found[1], " ".join(part for part in (found[2], f"{found[3]}/{found[4]}") if part))
        elif found := EXPORT.match(line):
            self._begin(found[1], _WRITING)
        elif found := END.match(line):
            self._end(found[1], found[2])
        elif (found := _SAID.match(line)) and found[1] in self._names:
            self._talking.add(self._names[found[1]])

    def left(self, known: Mapping[str, float]) -> float | None:
        """Seconds to the end, from what the steps took before; None where that says nothing.

        Steps that BuildKit has not spoken of count in full, so this is rather too much than too little.
        """
        if not known or any(name not in known for name in self._running):
            return None
        # A place in a stage of another length is another step.
        open_steps = {name: seconds for name, seconds in known.items() if name not in self.done | self.cached}
        return sum(max(0.0, seconds - self.spent.get(name, 0.0)) for name, seconds in open_steps.items())

    @property
    def is_partial(self) -> bool:
        """Whether some of it came from the cache."""
        return bool(self.cached)

    def measured(self) -> dict[str, float]:
        """Seconds of the steps that were run to their end."""
        return {name: round(self.spent.get(name, 0.0), 1) for name in self.done}

    def _share(self, now: float) -> None:
        gone = 0.0 if self._at is None else max(0.0, now - self._at)
        self._at = now
        working = self._running & self._talking or self._running
        for name in working:
            self.spent[name] = self.spent.get(name, 0.0) + gone / len(working)

    def _begin(self, number: str, name: str) -> None:
        if number not in self._names:
            self._names[number] = name
            self._running.add(name)

    def _end(self, number: str, how: str) -> None:
        name = self._names.get(number)
        if name is None or name not in self._running:
            return
        self._running.discard(name)
        if how == "CACHED":
            self.cached.add(name)
        elif how == "DONE":
            self.done.add(name)


@dataclass(frozen=True)
class Times:
    """What earlier builds of a recipe on this host took, step by step."""

    file: Path
    known: Mapping[str, float]

    @classmethod
    def of(cls, file: Path, dockerfile: str) -> Times:
        """Read them; places that this Dockerfile does not have are left out."""
        kept = (read_json(file) or {}).get("steps")
        steps = kept if isinstance(kept, dict) else {}
        stages = stages_of(dockerfile)
        return cls(file, {name: float(seconds) for name, seconds in steps.items() if _stage(name) in stages})

    def add(self, clock: StepClock) -> None:
        """Keep what was measured. A stage that has another number of steps by now has lost its former figures."""
        fresh = clock.measured()
        heard = {*fresh, *clock.cached}
        lengths = {_stage(name): name.rpartition("/")[2] for name in heard}
        former = {
            name: seconds
            for name, seconds in self.known.items()
            if lengths.get(_stage(name), name.rpartition("/")[2]) == name.rpartition("/")[2]
        }
        write_json(self.file, {"steps": {**former, **fresh}})


def stages_of(dockerfile: str) -> set[str]:
    """The names by which BuildKit calls the stages; a single one may have none."""
    names = _FROM.findall(dockerfile)
    if len(names) == 1:
        return {names[0], "", "stage-0", _WRITING}
    return {name or f"stage-{number}" for number, name in enumerate(names)} | {_WRITING}


def others_took(minutes: tuple[float, float] | None, *, partial: bool) -> str:
    """What to say where this host can not tell from builds of its own. `partial`: some of it came from the cache."""
    if minutes is None:
        return ""
    return f"others took {minutes[0]:g} to {minutes[1]:g} minutes" + (" for all of it" if partial else "")


def _stage(name: str) -> str:
    return _WRITING if name == _WRITING else name.rpartition(" ")[0]
