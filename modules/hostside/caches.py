"""What engines compile for themselves, kept by what it depends on: image, kind of GPU, driver.

    /var/lib/tinderbox/caches/<service>/keyed/<key>/<cache>/    what an engine has written
    /var/lib/tinderbox/caches/<service>/keyed/<key>/key.json    what the key stands for
    /var/lib/tinderbox/caches/<service>/<cache>                 → the one of the start that serves; mounted by that path

The link is set at each start, so neither a unit nor a release says which driver a host has. A key that comes back finds
what it had. Two services share nothing, since not every engine locks what it writes.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import version_changes as part
    from modules.hostside.atomic import read_json, write_json
    from modules.hostside.kept_releases import kept_of, wished
    from modules.hostside.ledger import STATE, Ledger, point
else:
    import version_changes as part
    from atomic import read_json, write_json
    from kept_releases import kept_of, wished
    from ledger import STATE, Ledger, point

# The compiler comes with the image.
_DECIDE = (part.IMAGE, part.CAPABILITY, part.DRIVER)
_KEYED, _KEY_FILE, _ASIDE, _GOING = "keyed", "key.json", "not-keyed", ".going-"

Key = dict[str, "str | None"]


def key_of(versions: part.Versions) -> Key:
    """What of a machine's versions and of the release's image decides whether a cache holds."""
    return {name: versions.get(name) for name in _DECIDE}


def key_name(key: Key, reference: str) -> str:
    """Readable first (`vllm-mxfp4-12.1-580.142-0a1b2c3d`), then eight hex digits of the key's hash that make it one."""
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:8]
    words = [reference.rpartition("/")[2].partition(":")[0], *(key[name] or "" for name in _DECIDE[1:]), digest]
    return re.sub(r"[^\w.-]+", "-", "-".join(word for word in words if word)).lstrip(".-")


def use(service: str, caches: Iterable[str], versions: part.Versions, reference: str, root: Path = STATE) -> str:
    """Have the caches of this key in place for a start. Returns the key's name. Raises `OSError`: nothing was mounted.

    A directory that stands where a link belongs is of an older Tinderbox, which had no keys: what it was made by is not
    known, so it is laid aside, and goes with the next ones that nothing needs.
    """
    place, key = root / "caches" / service, key_of(versions)
    name = key_name(key, reference)
    folder = place / _KEYED / name
    folder.mkdir(parents=True, exist_ok=True)
    if read_json(folder / _KEY_FILE) is None:
        write_json(folder / _KEY_FILE, {**key, "made for": reference})
    for cache in caches:
        (folder / cache).mkdir(exist_ok=True)
        link = place / cache
        if link.is_dir() and not link.is_symlink():
            aside = place / _KEYED / _ASIDE / cache
            shutil.rmtree(aside, ignore_errors=True)
            aside.parent.mkdir(exist_ok=True)
            link.rename(aside)
        point(link, f"{_KEYED}/{name}/{cache}")
    return name


def unneeded(root: Path = STATE) -> list[str]:
    """Those that may go, as `<service>/keyed/<key>`.

    They are of no start that serves, and no release that stays startable was proved on such a machine. Of a service
    whose ledger can not be read, nothing may go.
    """
    found: list[str] = []
    for place in sorted(path.parent for path in (root / "caches").glob(f"*/{_KEYED}")):
        kept = _kept(Ledger(place.name, root))
        if kept is None:
            continue
        linked = {path.readlink().parent.name for path in place.iterdir() if path.is_symlink()}
        for folder in sorted((place / _KEYED).iterdir()):
            stands_for = read_json(folder / _KEY_FILE) or {}
            if folder.name not in linked and {name: stands_for.get(name) for name in _DECIDE} not in kept:
                found.append(str(folder.relative_to(root / "caches")))
    return found


def _kept(ledger: Ledger) -> list[Key] | None:
    """The keys of the releases that stay startable, by what they were proved on."""
    found = kept_of(ledger, wished().get(ledger.service, 1))
    if any(one.entry is None for one in found):
        return None
    return [key_of(one.entry["proved_on"]) for one in found if one.entry is not None and one.entry.get("proved_on")]


def remove(names: Iterable[str], root: Path = STATE) -> None:
    """Take them away. A key that is gone by half would be taken for a whole one, so its name goes first."""
    for name in names:
        folder = root / "caches" / name
        going = folder if folder.name.startswith(_GOING) else folder.with_name(f"{_GOING}{folder.name}")
        if folder != going:
            if going.exists():
                shutil.rmtree(going)
            folder.rename(going)
        shutil.rmtree(going)
