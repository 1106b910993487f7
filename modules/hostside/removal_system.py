"""Layer system of a removal: settings and files as they were, packages that came, our programs and notes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import added_packages as packages
    from modules.hostside import system_settings
    from modules.hostside.brought_images import brought
    from modules.hostside.disk_sizes import occupied
    from modules.hostside.docker_store import Store
    from modules.hostside.former_files import DAEMON, formers, have_back
    from modules.hostside.ledger import SETTINGS, STATE
    from modules.hostside.removal import ACCESS, ENGINE, SYSTEM, Thing
    from modules.hostside.removal_engine import is_of_engine, leftover_units
    from modules.hostside.system_host import System
else:
    import added_packages as packages
    import system_settings
    from brought_images import brought
    from disk_sizes import occupied
    from former_files import DAEMON, formers, have_back
    from ledger import SETTINGS, STATE
    from removal import ACCESS, ENGINE, SYSTEM, Thing
    from removal_engine import is_of_engine, leftover_units
    from system_host import System

SETTING, FORMER, PACKAGE, OLDER, FOLDER, UNIT = "setting", "file", "package", "version of", "folder", "unit"
PROGRAMS = Path("/usr/local/lib/tinderbox")
NETPLAN, _MARK = Path("/etc/netplan/40-cx7.yaml"), "inderbox"
FABRIC = "fabric"
# As the fleet file has it that asks for none of these settings.
NOTHING = {
    "earlyoom": False, "swappiness": None, "clock_cap_mhz": None, "desktop": None, "end_desktop": False,
    "gateway": True, "agent": True,
}  # fmt: skip
# In the state's folder, and layer weights'.
_OF_WEIGHTS = ("weights", "huggingface")
# Packages of what goes with layer engine.
_OF_ENGINE = {"haproxy", "prometheus", "prometheus-node-exporter"}
_KEYRINGS = Path("/etc/apt/keyrings")
_CERTIFICATES = "/usr/local/share/ca-certificates"
_DOCKER_UNIT = "docker.service.d"
# Package → what it keeps, which nobody else has something in when it goes.
_KEPT_BY = {packages.DOCKER: Path("/var/lib/docker"), "containerd": Path("/var/lib/containerd")}


def things(store: Store | None, state: Path = STATE, settings: Path = SETTINGS) -> Iterator[Thing]:
    """What there is of this layer, and the files and packages of layer engine."""
    yield from _fabric(state)
    noted = System().kept()
    for name in ("swappiness", "clocks", "default target", "earlyoom"):
        if name in noted:
            yield Thing(SYSTEM, SETTING, name, note="as it was before Tinderbox")
    for path in leftover_units():
        yield Thing(SYSTEM, UNIT, path.name, data={"path": str(path)})
    yield from _files(store)
    yield from _packages(store)
    own = _own(state)
    if own:
        note = "but for weights" if any(map(_is_of_weights, state.iterdir())) else ""
        yield Thing(SYSTEM, FOLDER, str(state), sum(map(occupied, own)), note=note)
    for folder in (settings, PROGRAMS):
        if folder.exists():
            yield Thing(SYSTEM, FOLDER, str(folder), occupied(folder))


def _of_others(state: Path) -> list[Path]:
    """Notes of what opened the host, which are layer access', and of bases that stay below others' containers."""
    undo = state / "undo"
    return [
        path for path in (undo / "docker-group", undo / "files/etc/sudoers.d", undo / "images.json") if path.exists()
    ]


def _own(state: Path) -> list[Path]:
    """What of the state's folder is this layer's: all but weights, and but for notes that others go by."""
    if not state.is_dir():
        return []
    undo, others = state / "undo", _of_others(state)
    found = [path for path in sorted(state.iterdir()) if path != undo and not _is_of_weights(path)]
    if not others:
        return [*found, *([undo] if undo.exists() else [])]
    notes = (path for path in sorted(undo.rglob("*")) if path.is_file())
    return found + [path for path in notes if not any(path.is_relative_to(one) for one in others)]


def _is_of_weights(path: Path) -> bool:
    """Whether a folder of ours is layer weights': by its name, or as the fleet file has a Hugging Face home there."""
    return path.name in _OF_WEIGHTS or any(next(path.glob(one), None) for one in ("hub/*--*", "*/hub/*--*"))


def _fabric(state: Path) -> Iterator[Thing]:
    ours = NETPLAN.exists() and _MARK in NETPLAN.read_text(errors="replace").partition("\n")[0]
    if ours or (state / "fabric" / "pending.json").exists():
        yield Thing(SYSTEM, FABRIC, "of the QSFP ports", note="its ports get what they had before")


def _files(store: Store | None) -> Iterator[Thing]:
    gpu = [f"container {one.name} runs by what stands there" for one in (store.others if store else ()) if one.gpu]
    for one in formers():
        layer = _layer(one.path)
        note = "had back as it was" if one.was_there else ""
        if one.is_as_before or layer == ACCESS:
            continue  # its record goes with the others; of what opens the host, another program tells
        users = tuple(gpu) if one.path == DAEMON and _names_the_runtime(DAEMON) else ()
        yield Thing(layer, FORMER, str(one.path), users=users, note=note, data={"path": str(one.path)})
    for path in keys():
        yield Thing(SYSTEM, FORMER, str(path))


def _names_the_runtime(daemon: Path) -> bool:
    try:
        return "nvidia" in daemon.read_text(errors="replace")
    except FileNotFoundError:  # its owner has taken it away since
        return False


def _layer(path: Path) -> str:
    if path.is_relative_to("/etc/sudoers.d"):
        return ACCESS
    return ENGINE if is_of_engine(path) else SYSTEM


def keys() -> list[Path]:
    """Keys of apt sources, which are placed without a record (fetch_key.py)."""
    return sorted(_KEYRINGS.glob("tinderbox-*"))


def _packages(store: Store | None) -> Iterator[Thing]:
    asked = packages.asked()
    for layer, of_it in ((ENGINE, [one for one in asked if one.name in _OF_ENGINE]),
                         (SYSTEM, [one for one in asked if one.name not in _OF_ENGINE])):  # fmt: skip
        added = {name for one in of_it for name in one.added}
        there = packages.present(added) if added else set()
        names = {one.name for one in of_it}
        used = {name: "; ".join(others) for name in there if (others := _users_of(name, store))}
        _, staying = packages.separated(there, names, packages.manual(), packages.simulated, used)
        for name in sorted(there):
            why = (staying[name],) if name in staying else ()
            yield Thing(layer, PACKAGE, name, _size(name), users=why, data={"asked": sorted(names)})
        for one in of_it:
            for name, version in one.before:
                now = packages.run("dpkg-query", "-W", "-f", "${Version}", name)[1]
                if now != version:
                    again = f"apt-get install --allow-downgrades {name}={version}"
                    yield Thing(layer, OLDER, name, users=(f"it was {version} before; to have that again: {again}",))


def _users_of(package: str, store: Store | None) -> list[str]:
    """Who needs what came with a package, beside other packages."""
    if store is None:
        return []
    if package == packages.DOCKER:
        ours = set(brought().values())
        foreign = [image for image in store.images if image.names and not image.our_names and image.id not in ours]
        return [
            *(f"container {one.name} is in it" for one in store.others),
            *(f"image {image.names[0]} is in it" for image in foreign),
            *(f"volume {name} is in it" for name in store.others_volumes),
        ]
    if package.startswith(("nvidia-container-toolkit", "libnvidia-container")):
        return [f"container {one.name} gets its GPU by it" for one in store.others if one.gpu]
    return []


def _size(name: str) -> int | None:
    _, said = packages.run("dpkg-query", "-W", "-f", "${Installed-Size}", name)
    return int(said) * 1024 if said.isdigit() else None


def settle(state: Path = STATE) -> list[str]:
    """Have the operating system's settings as they were. Returns what went wrong."""
    if not (state / "undo" / "system.json").exists():
        return []
    return system_settings.apply(System(), dict(NOTHING))


def restore(layers: Iterable[str], staying: set[str]) -> list[Path]:
    """Have back the files of these layers. Returns those that were touched."""
    wanted, touched = set(layers), []
    for one in formers():
        layer = _layer(one.path)
        if layer in wanted and str(one.path) not in staying:
            touched += [] if one.is_as_before else [one.path]
            have_back(one)
    for path in keys() if SYSTEM in wanted else ():
        path.unlink()
    return touched


def followed(touched: list[Path], store: Store | None) -> list[str]:
    """Have programs know of files that changed. Returns what is to be told."""
    told = []
    if any(str(path).startswith(_CERTIFICATES) for path in touched):
        subprocess.run(["update-ca-certificates", "--fresh"], capture_output=True, check=True)
    if any(path == DAEMON or _DOCKER_UNIT in str(path) for path in touched):
        running = [one.name for one in (store.others if store is not None else ()) if one.running]
        if running:
            told.append(
                f"dockerd was not restarted, since that would end {', '.join(running)}: what it was told before "
                "Tinderbox is in force after `systemctl restart docker`"
            )
        elif subprocess.run(["systemctl", "is-active", "--quiet", "docker.service"], check=False).returncode == 0:
            subprocess.run(["systemctl", "restart", "docker.service"], check=True)
    return told


def purge(things: list[Thing], root: Path = Path("/")) -> None:
    """Have these packages gone, and docker's own data where docker is among them. `root` is / but in tests."""
    names = {thing.name for thing in things}
    if not names:
        return
    if packages.DOCKER in names:
        subprocess.run(["systemctl", "stop", "docker.socket", "docker.service"], capture_output=True, check=False)
    packages.purge(names, {str(name) for thing in things for name in thing.data["asked"]})
    for name, path in _KEPT_BY.items():
        if name in names:
            shutil.rmtree(root / path.relative_to("/"), ignore_errors=True)
    if packages.DOCKER in names:
        # Its owner's files may have been there before docker was, and are had back by now.
        folder = root / DAEMON.parent.relative_to("/")
        (folder / "key.json").unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()


def forget(state: Path = STATE, settings: Path = SETTINGS) -> None:
    """Take away the rest, but weights that stay with what is known of them. Our programs go last."""
    shutil.rmtree(settings, ignore_errors=True)
    for path in _own(state):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    if state.is_dir() and not any(state.iterdir()):
        state.rmdir()
    shutil.rmtree(PROGRAMS, ignore_errors=True)
