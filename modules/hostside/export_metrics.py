"""Tell Prometheus of this host: GPU, memory, services, releases, gates, and what the engines count.

    export_metrics.py --settings /etc/tinderbox/monitoring.json [--once]

Writes one textfile for node exporter every few seconds, by rename, and removes it at its end: what is not known is
absent, and an old file would look like a fine host. One process that stays costs less than a timer that starts Python
anew each time, and leaves no two lines in the journal for each. It asks nvidia-smi twice and systemd once a round.

An engine's own figures are copied from its `/metrics` on this host, so no engine has to listen for Prometheus, and no
API key leaves the host. Settings: `file`, `every_s`, `simulated`, `services`: name → `url` (null: it has no API here),
`engine`, `prefix` (of the engine's names), `key_file` and `key_variable` (where it has a key), `gate`, `bounds`,
`units`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.api_key import variables
    from modules.hostside.exposition import Family, parsed, text_of
    from modules.hostside.gpu_metrics import gpu_families
    from modules.hostside.host_metrics import host_families
    from modules.hostside.service_metrics import Services
else:
    from api_key import variables
    from exposition import Family, parsed, text_of
    from gpu_metrics import gpu_families
    from host_metrics import host_families
    from service_metrics import Services

SETTINGS = Path("/etc/tinderbox/monitoring.json")
_TIMEOUT_S = 5.0
# What an engine may tell at most; vLLM 0.32 tells some 60 KiB.
_MOST_BYTES = 4 * 1024**2


def engine_families(name: str, wish: Mapping[str, Any]) -> list[Family]:
    """What one engine counts; `tinderbox_engine_up` is 0 where it tells nothing."""
    labels = {"service": name, "engine_name": str(wish.get("engine", ""))}
    text = _asked(str(wish["url"]), _key(wish))
    found = [] if text is None else parsed(text, (str(wish["prefix"]),), labels)
    up = Family("tinderbox_engine_up", "1 where the engine told its figures.")
    return [up.add(float(bool(found)), service=name), *found]


def _key(wish: Mapping[str, Any]) -> str | None:
    file, variable = wish.get("key_file"), wish.get("key_variable")
    return variables(Path(file)).get(variable) if file and variable else None


def _asked(url: str, key: str | None) -> str | None:
    request = urllib.request.Request(
        f"{url}/metrics", headers={} if key is None else {"Authorization": f"Bearer {key}"}
    )
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=_TIMEOUT_S) as answer:
            return str(answer.read(_MOST_BYTES).decode("utf-8", errors="replace"))
    except (OSError, ValueError, http.client.HTTPException):
        return None


def collected(settings: Mapping[str, Any], services: Services) -> Iterator[Family]:
    """All families of one round."""
    began = time.monotonic()
    wishes: dict[str, dict[str, Any]] = settings["services"]
    yield Family("tinderbox_simulated", "1 where the GPU is simulated: such figures say nothing about a Spark.").add(
        float(bool(settings["simulated"]))
    )
    yield from host_families()
    yield from gpu_families()
    yield from services.families(wishes)
    for name, wish in wishes.items():
        if wish["url"] is not None:
            yield from engine_families(name, wish)
    yield Family("tinderbox_collection_seconds", "How long it took to collect this.").add(time.monotonic() - began)
    yield Family("tinderbox_collected_timestamp_seconds", "When this was collected.").add(time.time())


def place(file: Path, text: str) -> None:
    """By rename, and without waiting for the disk: what a power cut takes is out of date after it anyhow.

    Others may write to that folder, so nothing that lies there by then is written through.
    """
    beside = file.with_name(f".{file.name}.new")
    beside.unlink(missing_ok=True)
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "w", encoding="utf-8") as fresh:
        os.fchmod(fresh.fileno(), 0o644)
        fresh.write(text)
    beside.replace(file)


def serve(settings: Mapping[str, Any], end: threading.Event) -> None:
    """Collect and write until the end."""
    file, services = Path(settings["file"]), Services()
    # Of a former start that was killed.
    file.unlink(missing_ok=True)
    try:
        while not end.is_set():
            place(file, text_of(collected(settings, services)))
            end.wait(float(settings["every_s"]))
    finally:
        file.unlink(missing_ok=True)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", type=Path, default=SETTINGS)
    parser.add_argument("--once", action="store_true", help="print one round, and write no file")
    options = parser.parse_args()
    settings = json.loads(options.settings.read_text(encoding="utf-8"))
    if options.once:
        sys.stdout.write(text_of(collected(settings, Services())))
        return 0
    end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: end.set())
    serve(settings, end)
    return 0


if __name__ == "__main__":
    sys.exit(main())
