"""A controller that dies at any stage of an activation: the next run comes to the same as one that nobody disturbed.

An engine that says that it is a fake, in a real image; everything around it is real. The host is looked at ten times a
second meanwhile: there are never two engines, and no bad release is ever called good.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from modules.hostside import release_story
from modules.lab.layout import ROOT
from tests.lab.fake_release import SERVICE, deploy_file, deployed, fleet_of
from tests.lab.host_watch import Sample, Watch, watched
from tests.lab.lab_driver import Lab, Run

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST = "spark-2"
_LIMIT_S = 300
# Long enough for each step to be seen.
SLOWLY = {"FAKE_START_S": "3", "FAKE_STOP_S": "2"}
_numbers = itertools.count(1)

Point = Callable[[Sample, str], bool]
"""What of the host and the release that is tried is the point at which the controller is killed."""


def events(now: Sample, release: str) -> list[str]:
    return now.events.get(release, [])


@dataclass
class Cut:
    """`kind`: what the release that is tried is like; `said`: the run must have said it, too, by then."""

    kind: str
    point: Point
    said: str = ""


POINTS: dict[str, Cut] = {
    "before it is staged": Cut("good", lambda now, new: new not in now.events, said="Weights"),
    "staged": Cut("good", lambda now, new: new in now.events),
    "its job is started": Cut("good", lambda now, new: any(new in job for job in now.jobs)),
    "noted": Cut("good", lambda now, new: now.pending == new and now.unit == "active/running"),
    "the old one stops": Cut("good", lambda now, new: now.pending == new and now.unit.startswith("deactivating")),
    "nothing runs": Cut("good", lambda now, new: now.current == new and not now.engines),
    "the new one starts": Cut("good", lambda now, new: now.current == new and bool(now.engines)),
    "it is waited for": Cut("good", lambda now, new: now.current == new and now.unit == "activating/start-post"),
    "ready, before its gate": Cut("good", lambda now, new: "ready" in events(now, new)),
    "its gate measures": Cut("good", lambda now, _: now.running("gate-")),
    "measured, not judged": Cut("good", lambda now, new: new in now.measured and "good" not in events(now, new)),
    "judged": Cut("good", lambda now, new: "good" in events(now, new)),
    "never ready, on the way back": Cut("exits", lambda now, new: "failed to start" in events(now, new)),
    "too slow, on the way back": Cut("slow", lambda now, new: "gate failed" in events(now, new)),
    "too slow, while the old one starts": Cut(
        "slow",
        lambda now, new: "gate failed" in events(now, new) and now.current != new and now.unit.startswith("activating"),
    ),
}
KINDS = {"good": {}, "exits": {"FAKE_FAULT": "exits"}, "slow": {"FAKE_TOKEN_S": "0.5"}}


def fleet_for(lab: Lab, kind: str) -> Path:
    """A wish for a release that was never there before."""
    number = str(next(_numbers))
    return fleet_of(lab, HOST, f"cut-{number}", **{"FAKE_NUMBER": number, **SLOWLY, **KINDS[kind]})


@dataclass
class Scene:
    """A host on which releases are tried. `bad`: those that must never be called good."""

    lab: Lab
    watch: Watch
    bad: set[str] = field(default_factory=set)

    def now(self) -> Sample:
        return self.watch.samples[-1]

    def outcome(self, new: str, old: str, run: Run) -> dict[str, Any]:
        """All that a run leaves behind, but for times and how often something was tried."""
        names = {new: "the new one", old: "the old one"}
        now = self.now()
        story = {name: [{"event": event} for event in now.events[name]] for name in names}
        listed = self.lab.ssh(HOST, "sudo docker ps --format '{{.Names}} {{.Label \"tinderbox.release\"}}'").stdout
        kept = f"sudo sh -c 'cat /etc/systemd/system/tinderbox-{SERVICE}.service /etc/tinderbox/{SERVICE}.*'"
        return {
            "exit status": run.rc,
            "in force": names.get(now.current or ""),
            "last good": names.get(now.last_good or ""),
            "under way": now.pending,
            "standing": {names[name]: release_story.standing({"events": story[name]}) for name in names},
            "last event": now.events[new][-1],
            "unit": now.unit,
            "engines": len(now.engines),
            "containers": [(name, names.get(release)) for name, release in map(str.split, listed.splitlines())],
            "files name": [names[name] for name in names if name in self.lab.ssh(HOST, kept).stdout],
            "jobs that run": [job for job, state in now.jobs.items() if state == "running" and "gate-" not in job],
        }


@pytest.fixture(scope="module")
def scene(lab: Lab) -> Iterator[Scene]:
    """A good release serves, and the host is looked at from here on."""
    with watched(lab, HOST, SERVICE) as watch:
        run = deployed(lab, fleet_for(lab, "good"))
        assert run.rc == 0, run.text
        yield Scene(lab, watch)


@pytest.fixture(scope="module")
def undisturbed(scene: Scene) -> dict[str, dict[str, Any]]:
    """What comes of a run over a release of each kind."""
    found = {}
    for kind in KINDS:
        old, known = scene.now().current, set(scene.now().events)
        run = deployed(scene.lab, fleet_for(scene.lab, kind))
        (new,) = _settled(scene).events.keys() - known
        assert old is not None
        found[kind] = scene.outcome(new, old, run)
        scene.bad |= {new} if kind != "good" else set()
    return found


def _settled(scene: Scene) -> Sample:
    """The first sample after this moment."""
    seen = len(scene.watch.samples)
    found = scene.watch.await_(lambda _: len(scene.watch.samples) > seen, lambda: True, 30)
    assert found is not None
    return scene.now()


@pytest.mark.parametrize("name", POINTS)
def test_the_run_after_a_killed_one_comes_to_the_same(
    scene: Scene, undisturbed: dict[str, dict[str, Any]], name: str
) -> None:
    cut, lab = POINTS[name], scene.lab
    old, known = _settled(scene).current, set(scene.now().events)
    assert old is not None
    fleet = fleet_for(lab, cut.kind)

    killed_at = kill_at(scene, fleet, cut, known)
    run = deployed(lab, fleet)
    after = _settled(scene)

    (new,) = after.events.keys() - known
    scene.bad |= {new} if cut.kind != "good" else set()
    assert scene.outcome(new, old, run) == undisturbed[cut.kind], f"killed at {killed_at}\n{run.text}"
    assert scene.watch.most_engines() == 1
    assert not scene.watch.called_good() & scene.bad


def kill_at(scene: Scene, fleet: Path, cut: Cut, known: set[str]) -> Sample:
    """Start a run, and kill its whole process group when the host is at the point."""
    log = scene.lab.layout.folder / "run-killed.log"
    argv = [str(Path(sys.executable).with_name("pyinfra")), "inventory.py", str(deploy_file(scene.lab)), "-y"]

    def there(now: Sample) -> bool:
        new = next(iter(now.events.keys() - known), "not staged yet")
        return cut.said in log.read_text() and cut.point(now, new)

    with (
        log.open("w") as output,
        subprocess.Popen(
            argv, cwd=ROOT, env={**os.environ, **scene.lab.environment(fleet)}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        ) as run,
    ):  # fmt: skip
        try:
            found = scene.watch.await_(there, lambda: run.poll() is None, _LIMIT_S)
            assert run.poll() is None, f"the run had ended before it was killed:\n{log.read_text()}"
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
    assert found is not None, f"the host was never seen at that point:\n{log.read_text()}"
    return found
