"""Layer engine of a removal: services, endpoint, eyes, and the ledger: what is there, and how it goes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import agent_host, gateway_host, gateway_process
    from modules.hostside.disk_sizes import occupied
    from modules.hostside.end_service import end
    from modules.hostside.gpus_kept import gpus_kept
    from modules.hostside.ledger import SETTINGS, STATE, note_lost_gpu
    from modules.hostside.monitoring_settings import WATCHERS
    from modules.hostside.pair_unit import end as end_pair
    from modules.hostside.predecessor import have_back
    from modules.hostside.predecessor_note import CHOSEN, STOPPED, note_file, noted
    from modules.hostside.prometheus_files import withdraw
    from modules.hostside.removal import ENGINE, Thing
    from modules.hostside.service_unit import unit_name, unit_state
    from modules.hostside.system_host import System
else:
    import agent_host
    import gateway_host
    import gateway_process
    from disk_sizes import occupied
    from end_service import end
    from gpus_kept import gpus_kept
    from ledger import SETTINGS, STATE, note_lost_gpu
    from monitoring_settings import WATCHERS
    from pair_unit import end as end_pair
    from predecessor import have_back
    from predecessor_note import CHOSEN, STOPPED, note_file, noted
    from prometheus_files import withdraw
    from removal import ENGINE, Thing
    from service_unit import unit_name, unit_state
    from system_host import System

UNITS = Path("/etc/systemd/system")
SERVICE, PAIR, GATEWAY, AGENT, WATCHER = "service", "pair", "gateway", "agent", "watcher"
BEFORE = "place taken by service"
# Of the controller's timer and of the lab's own.
_NOT_OURS = ("tinderbox-nightly-", "tinderbox-lab")
# Units that other things stand for, without their endings; and those of services that watch, or hold together.
_OTHERS = ("exporter", "grafana", "gateway", "agent", "clocks")
_INSTANCES = ("tinderbox-watch@", "tinderbox-pair@")
_GRAFANA = "grafana"
_FOLDERS = ("ledger", "caches", "gates", "metrics")


def services(state: Path = STATE) -> list[str]:
    """Those of the ledger."""
    return sorted(path.name for path in (state / "ledger").glob("*/"))


def standing(found: Iterable[Thing], state: Path = STATE) -> list[str]:
    """What stands on layer system: services by name, and what else of this layer runs or is to be had back."""
    kinds = {BEFORE, PAIR, GATEWAY, AGENT, WATCHER}
    return [*services(state), *(one.title for one in found if one.layer == ENGINE and one.kind in kinds)]


def things(state: Path = STATE, units: Path = UNITS) -> Iterator[Thing]:
    """What there is of this layer."""
    for name in services(state):
        size = sum(occupied(state / folder / name) for folder in _FOLDERS)
        stands = unit_state(unit_name(name)).get("ActiveState")
        serves = "it serves, and is stopped" if stands == "active" else f"its unit is {stands}"
        yield Thing(ENGINE, SERVICE, name, size, note=serves)
    for path in sorted((state / "undo" / "adopted").glob("*.json")):
        record = noted(path.stem, state) or {}
        if record.get("state") in {CHOSEN, STOPPED}:
            yield Thing(ENGINE, BEFORE, path.stem, note=f"{record.get('named')}, which ran before, runs again")
    for path in sorted(units.glob("tinderbox-pair@*.service")):
        yield Thing(ENGINE, PAIR, path.stem.partition("@")[2], note="of hosts that serve together")
    if gateway_host.Gateway(gateway_process.Process()).is_there():
        yield Thing(ENGINE, GATEWAY, "of the fleet", occupied(gateway_host.HOME), note="clients lose their endpoint")
    if agent_host.is_there():
        yield Thing(ENGINE, AGENT, "that tells gateways of this host")
    notes = System().kept()
    for one in WATCHERS:
        if one.note in notes or (one.package is None and (units / one.unit).exists()):
            note = "with what is stored in docker's volume of its own; its image stays" if one.name == _GRAFANA else ""
            yield Thing(ENGINE, WATCHER, one.unit, note=note, data={"name": one.name})


def take(thing: Thing, by: str) -> None:
    """Have it gone. Raises `OSError` and what the programs that are asked raise."""
    if thing.kind == SERVICE:
        end("remove", thing.name, by)
    elif thing.kind == BEFORE:
        have_back(thing.name)
        note_file(thing.name).unlink(missing_ok=True)
    elif thing.kind == PAIR:
        end_pair(thing.name)
    elif thing.kind == GATEWAY:
        gateway_host.Gateway(gateway_process.Process()).remove()
    elif thing.kind == AGENT:
        agent_host.remove()
    elif thing.kind == WATCHER:
        _unwatch(str(thing.data["name"]))


def _unwatch(name: str) -> None:
    """Stop it over a boot, too. What came with its package goes with that: by its files, which are had back before."""
    system = System()
    (one,) = (each for each in WATCHERS if each.name == name)
    system.ask("systemctl", "disable", "--quiet", "--now", one.unit)
    for wanted in system.units.glob(f"*.wants/{one.unit}"):
        if one.package is None:
            wanted.unlink()
    if one.package is None:
        (system.units / one.unit).unlink(missing_ok=True)
    if name == "prometheus":
        withdraw()
    if name == _GRAFANA:
        system.ask("docker", "rm", "--force", "tinderbox-grafana")
        system.ask("docker", "volume", "rm", "tinderbox-grafana")
    system.ask("systemctl", "reset-failed", one.unit)
    system.forget(one.note)


def is_of_engine(path: Path, settings: Path = SETTINGS) -> bool:
    """Whether a file that Tinderbox has placed belongs to this layer."""
    if path.is_relative_to(settings):
        return path.name not in {"network.env", "docker.env", "fabric.env"} and not path.name.startswith("hub-token.")
    return path.is_relative_to(UNITS) and any(
        part.startswith(("tinderbox-exporter", "tinderbox-grafana", "tinderbox-agent", "tinderbox-watch@"))
        or part in {"prometheus.service.d", "prometheus-node-exporter.service.d"}
        for part in path.relative_to(UNITS).parts
    )


def tidy(state: Path = STATE, settings: Path = SETTINGS) -> None:
    """Take away what is nobody's once the services are gone."""
    (settings / "services.json").unlink(missing_ok=True)
    for name in _FOLDERS:
        shutil.rmtree(state / name, ignore_errors=True)
    for path in (settings / "grafana", settings / "prometheus"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)


def every_unit(units: Path = UNITS) -> list[Path]:
    """All units of ours, and links to them."""
    found = [*units.glob("tinderbox-*"), *units.glob("*.wants/tinderbox-*"), *units.glob("*.requires/tinderbox-*")]
    return sorted(path for path in found if not path.name.startswith(_NOT_OURS))


def leftover_units(state: Path = STATE, units: Path = UNITS) -> list[Path]:
    """Those that no other thing stands for."""
    told = tuple(f"tinderbox-{name}." for name in (*services(state), *_OTHERS))
    return [path for path in every_unit(units) if not path.name.startswith((*told, *_INSTANCES))]


def drop_units(paths: list[Path]) -> None:
    """Stop them, and take them away."""
    for path in paths:
        if path.suffix in {".service", ".socket", ".timer", ".path"}:
            subprocess.run(["systemctl", "stop", path.name], capture_output=True, check=False)
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)


def reload_units() -> None:
    """Have systemd know of what was placed or taken away."""
    with gpus_kept(note_lost_gpu):
        subprocess.run(["systemctl", "daemon-reload"], check=True)
