"""Take back what Tinderbox has put on this host, in layers.

    remove_layers.py plan LAYER...              what would go and what stays, as one JSON object; changes nothing
    remove_layers.py remove LAYER... --by WHO   have it so

LAYER: engine, images, weights, system, access. What others use stays, and files that were there before are there
again. A removal that was cut is finished by the next one: everything is looked for anew. It is run from a copy of our
programs, since those of the host go, too.
Exit status: 0 done; 1 something could not be taken away (reason on standard error).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import removal_access, removal_engine, removal_images, removal_system, removal_weights
    from modules.hostside import removal_jobs as jobs
    from modules.hostside.activation import BusyError
    from modules.hostside.docker_store import Store, look
    from modules.hostside.end_service import EndError
    from modules.hostside.gateway_process import GatewayError
    from modules.hostside.predecessor import PredecessorError
    from modules.hostside.removal import ENGINE, IMAGES, LAYERS, SYSTEM, WEIGHTS, Plan, Thing, planned
    from modules.hostside.system_host import SettingError
else:
    import removal_access
    import removal_engine
    import removal_images
    import removal_jobs as jobs
    import removal_system
    import removal_weights
    from activation import BusyError
    from docker_store import Store, look
    from end_service import EndError
    from gateway_process import GatewayError
    from predecessor import PredecessorError
    from removal import ENGINE, IMAGES, LAYERS, SYSTEM, WEIGHTS, Plan, Thing, planned
    from system_host import SettingError

_REFUSALS = (EndError, BusyError, GatewayError, SettingError, PredecessorError)
_ERRORS = (OSError, subprocess.CalledProcessError, *_REFUSALS)


def found(store: Store | None) -> list[Thing]:
    """All that Tinderbox has on this host."""
    return [
        *jobs.things(),
        *removal_engine.things(),
        *removal_images.things(store),
        *removal_weights.things(store),
        *removal_system.things(store),
        *removal_access.things(),
    ]


def plan(layers: Sequence[str]) -> tuple[Plan, Store | None]:
    """What goes and what stays, and what docker holds."""
    store = look()
    if store is None and shutil.which("docker") is not None and {IMAGES, SYSTEM} & set(layers):
        return Plan(refused="docker does not answer, so it is not known what it holds: systemctl start docker"), None
    all_of_it = found(store)
    return planned(all_of_it, layers, removal_engine.standing(all_of_it)), store


class Remover:
    """One removal. `failed`: what could not be taken away, in words."""

    def __init__(self, layers: Sequence[str], by: str) -> None:
        self.layers, self.by = [layer for layer in LAYERS if layer in layers], by
        self.failed: list[str] = []

    def run(self) -> None:
        """Layer by layer; each is looked at anew, since what one takes away another may have needed."""
        for layer in self.layers:
            done, store = plan(self.layers)
            if done.refused is not None:
                self.failed.append(done.refused)
            going = [thing for thing in done.going if thing.layer == layer]
            if self.failed:
                return
            staying = {one.title.partition(" ")[2] for one in done.staying}
            self._each([thing for thing in going if thing.kind == jobs.JOB], jobs.take)
            take = {ENGINE: self._engine, IMAGES: self._images, WEIGHTS: self._weights, SYSTEM: self._system}
            take.get(layer, self._access)(going, store, staying)

    def _each(self, things: Iterable[Thing], take: object) -> None:
        for thing in things:
            try:
                take(thing)  # type: ignore[operator]
            except _ERRORS as error:
                self.failed.append(f"{thing.title}: {error}")
            else:
                print(f"removed {thing.title}", flush=True)

    def _try(self, what: str, do: object, *arguments: object) -> object:
        try:
            return do(*arguments)  # type: ignore[operator]
        except _ERRORS as error:
            self.failed.append(f"{what}: {error}")
            return None

    def _engine(self, going: list[Thing], store: Store | None, staying: set[str]) -> None:
        del store
        kinds = {removal_engine.SERVICE, removal_engine.BEFORE, removal_engine.PAIR, removal_engine.GATEWAY,
                 removal_engine.AGENT, removal_engine.WATCHER}  # fmt: skip
        self._each([one for one in going if one.kind in kinds], lambda one: removal_engine.take(one, self.by))
        if self.failed:
            return
        self._try("former files", removal_system.restore, [ENGINE], staying)
        self._packages(going)
        removal_engine.tidy()
        jobs.tidy(ENGINE)
        self._try("systemd's units", removal_engine.reload_units)

    def _images(self, going: list[Thing], store: Store | None, staying: set[str]) -> None:
        del staying
        self._each([one for one in going if one.kind != jobs.JOB], removal_images.take)
        if store is not None:
            removal_images.tidy()
        if not self.failed:
            jobs.tidy(IMAGES)

    def _weights(self, going: list[Thing], store: Store | None, staying: set[str]) -> None:
        del store, staying
        self._each([one for one in going if one.kind != jobs.JOB], removal_weights.take)
        removal_weights.tidy()
        if not self.failed:
            jobs.tidy(WEIGHTS)

    def _system(self, going: list[Thing], store: Store | None, staying: set[str]) -> None:
        touched = self._try("former files", removal_system.restore, [ENGINE, SYSTEM], staying)
        removal_engine.drop_units(removal_engine.every_unit())
        self._try("systemd's units", removal_engine.reload_units)
        self.failed += removal_system.settle()
        told = self._try("what goes by former files", removal_system.followed, touched or [], store)
        for line in told if isinstance(told, list) else ():
            print(f"note: {line}", flush=True)
        self._packages(going)
        self._try("systemd's units", removal_engine.reload_units)
        # While anything is left to do, what is needed to do it stays.
        if not self.failed:
            self._try("folders", removal_system.forget)
            for thing in going:
                if thing.kind == removal_system.FOLDER:
                    print(f"removed {thing.title}", flush=True)

    def _access(self, going: list[Thing], store: Store | None, staying: set[str]) -> None:
        del store, staying
        self._each(going, removal_access.take)
        removal_access.tidy()

    def _packages(self, going: list[Thing]) -> None:
        of_it = [one for one in going if one.kind == removal_system.PACKAGE]
        before = len(self.failed)
        self._try("packages", removal_system.purge, of_it)
        for thing in of_it if len(self.failed) == before else ():
            print(f"removed {thing.title}", flush=True)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("plan", "remove"))
    parser.add_argument("layers", nargs="+", choices=LAYERS)
    parser.add_argument("--by", default="")
    arguments = parser.parse_args()
    if arguments.verb == "plan":
        done, _ = plan(arguments.layers)
        print(json.dumps(done.document()))
        return 0
    remover = Remover(arguments.layers, arguments.by)
    remover.run()
    for line in remover.failed:
        print(line, file=sys.stderr)
    return 1 if remover.failed else 0


if __name__ == "__main__":
    sys.exit(main())
