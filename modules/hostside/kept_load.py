"""What was measured on this host of loading a served model, as far as it still holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside import probe_load, probe_ways
    from modules.hostside.atomic import read_json
    from modules.hostside.kept_answer import recall
else:
    import probe_load
    import probe_ways
    from atomic import read_json
    from kept_answer import recall


def kept_load(
    model: Path, commit: str | None, file: str | None, image: str | None, probes: Path = probe_load.PROBES
) -> dict[str, Any]:
    """`rates`: see `probe_load.py`; `ways`: see `load_ways.py`; each null where nothing that holds is kept.

    `model`: its directory in the hub cache. `image`: in which the ways were tried.
    """
    if commit is None:
        return {"rates": None, "ways": None}
    snapshot = model / "snapshots" / commit
    try:
        about = probe_load.about(probe_load.sizes_of(snapshot, file))
    except (OSError, ValueError, KeyError):
        return {"rates": None, "ways": None}
    ways = read_json(probe_ways.kept_file(snapshot, image, probes)) if image is not None else None
    # The image's name has a hash of its content in it, so docker need not be asked.
    tried_on = ways.get("about") if ways is not None else None
    known = isinstance(tried_on, dict) and tried_on.get("disk") == about["disk"]
    return {
        "rates": recall(probe_load.kept_file(snapshot, file, probes), about),
        "ways": ways["answer"] if ways is not None and known else None,
    }
