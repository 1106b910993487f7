"""Offer this host's images to the fleet's other hosts, for the time of a transfer and to nobody else.

    offer_images.py begin < OFFER   have the registry run; prints the JSON of what receivers need, their key among it
    offer_images.py end             have it stop when nobody is served any more; what a cut run has left goes too
    offer_images.py serve           what the unit runs

OFFER: `address` of this host on the fleet's network, `port`, and in PEM form the certificates `authority`, and `server`
and `client` with their keys. The registry listens on that address over TLS, where only who shows a certificate of this
very authority may read, and on loopback in plain HTTP, where docker pushes to it. An offer that is already open is kept
with its keys, since others may be receiving by them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json, write_text
    from modules.hostside.image_registry import Registry, mutual_tls
    from modules.hostside.image_store import STORE, Store
else:
    from atomic import read_json, write_json, write_text
    from image_registry import Registry, mutual_tls
    from image_store import STORE, Store

UNIT = "tinderbox-offer.service"
# In memory: the keys are gone with a restart of the host.
FOLDER = Path("/run/tinderbox/offer")
RECEIVED_KEYS = Path("/run/tinderbox/receive")
# An offer that a cut run forgot ends by itself.
LONGEST_S = 6 * 3600
IDLE_S = 15 * 60
_START_S = 30.0
_DRAIN_S = 10.0
_LOOK_S = 0.2


def unit_command(python: str, program: str) -> list[str]:
    """`systemd-run` for the registry."""
    words = ["systemd-run", "--quiet", "--collect", f"--unit={UNIT}", "--description=Tinderbox: images for the fleet"]
    properties = {
        "Type": "exec",
        "RuntimeMaxSec": str(LONGEST_S),
        "TimeoutStopSec": "10",
        # Outside of what the registry itself may do.
        "ExecStopPost": f"+/bin/rm -rf {FOLDER}",
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "PrivateTmp": "yes",
        "NoNewPrivileges": "yes",
        "ReadWritePaths": f"{STORE} {FOLDER}",
    }
    words += [f"--property={name}={value}" for name, value in properties.items()]
    return [*words, "--setenv=PYTHONUNBUFFERED=1", python, program, "serve"]


def begin(offer: dict[str, object]) -> dict[str, object]:
    """Have the registry run. Returns what receivers need."""
    place = {"address": offer["address"], "port": offer["port"]}
    if is_active() and (kept := read_json(FOLDER / "offer.json")) is not None:
        if kept["place"] == place and STORE.is_dir():
            subprocess.run(["systemctl", "kill", "--signal=SIGUSR2", UNIT], check=False, capture_output=True)
            return answer(place)
        subprocess.run(["systemctl", "stop", UNIT], check=False)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True, mode=0o700)
    STORE.mkdir(parents=True, exist_ok=True)
    for name in ("authority", "server", "client"):
        write_text(FOLDER / f"{name}.pem", str(offer[name]), 0o600)
    write_json(FOLDER / "offer.json", {"place": place}, 0o600)
    subprocess.run(["systemctl", "reset-failed", UNIT], check=False, capture_output=True)
    command = unit_command(sys.executable or "/usr/bin/python3", str(Path(__file__).resolve()))
    started = subprocess.run(command, capture_output=True, text=True, check=False)
    deadline = time.monotonic() + _START_S
    while started.returncode == 0 and time.monotonic() < deadline:
        if (FOLDER / "listening").exists():
            return answer(place)
        if not is_active():
            break
        time.sleep(_LOOK_S)
    said = subprocess.run(
        ["journalctl", "-u", UNIT, "-n", "3", "-o", "cat"], capture_output=True, text=True, check=False
    )
    end()
    raise SystemExit(f"{started.stderr.strip()}\n{said.stdout.strip()}".strip())


def answer(place: dict[str, object]) -> dict[str, object]:
    """What receivers need."""
    keys = "".join((FOLDER / f"{name}.pem").read_text() for name in ("client", "authority"))
    return {**place, "keys": keys}


def is_active() -> bool:
    """Whether the registry runs."""
    return subprocess.run(["systemctl", "is-active", "--quiet", UNIT], check=False).returncode == 0


def end() -> bool:
    """Have the registry stop: at once when nobody is connected, else as soon as nobody is. Returns whether it has."""
    shutil.rmtree(RECEIVED_KEYS, ignore_errors=True)
    if is_active():
        subprocess.run(["systemctl", "kill", "--signal=SIGUSR1", UNIT], check=False, capture_output=True)
        deadline = time.monotonic() + _DRAIN_S
        while is_active():
            if time.monotonic() > deadline:
                return False
            time.sleep(_LOOK_S)
    subprocess.run(["systemctl", "reset-failed", UNIT], check=False, capture_output=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    return True


def serve() -> None:
    """Run both registries until told to stop, or until nobody was heard for a while."""
    offer = read_json(FOLDER / "offer.json") or {}
    place = offer.get("place")
    if not isinstance(place, dict):
        raise SystemExit(f"{FOLDER}/offer.json holds no offer")
    store, address, port = Store(), str(place["address"]), int(place["port"])
    damaged = store.drop_damaged()
    if damaged:
        print(f"{len(damaged)} damaged layers were dropped", flush=True)
    try:
        registries = [
            Registry(("127.0.0.1", port), store),
            Registry((address, port), store, mutual_tls(FOLDER / "server.pem", FOLDER / "authority.pem")),
        ]
    except OSError as error:
        raise SystemExit(
            f"the registry can not listen on {address}, 127.0.0.1 port {port}: {error.strerror}. "
            "Set image.port to a free one, or network.peer_address to an address that this host has"
        ) from error
    leaving = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: leaving.set())
    signal.signal(signal.SIGUSR2, lambda *_: leaving.clear())
    for registry in registries:
        threading.Thread(target=registry.serve_forever, daemon=True).start()
    (FOLDER / "listening").touch(mode=0o600)
    while True:
        leaving.wait(1.0)
        quiet = time.monotonic() - max(registry.heard_at for registry in registries)
        if not any(registry.connections for registry in registries) and (leaving.is_set() or quiet > IDLE_S):
            break
        if leaving.is_set():
            time.sleep(_LOOK_S)
    sent = sum(registries[1].sent.values())
    print(f"{sent} bytes of {len(registries[1].sent)} layers were sent to other hosts", flush=True)


def main(arguments: list[str]) -> int:
    """Run one command of the usage above."""
    verb = arguments[0] if len(arguments) == 1 else ""
    if verb == "begin":
        os.umask(0o077)
        print(json.dumps(begin(json.load(sys.stdin))))
    elif verb == "end":
        if not end():
            print("others are still receiving: the registry stops when they are done")
    elif verb == "serve":
        serve()
    else:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
