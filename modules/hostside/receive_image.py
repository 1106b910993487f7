"""Receive an image from the host of the fleet that offers it: only the layers that are not here, each by its digest.

    receive_image.py KEYS ADDRESS PORT NAME DIGEST ID

KEYS: file with this host's certificate and key for the transfer, and last the authority's; it is removed. NAME: what
the image is called here and there. DIGEST: of its manifest there. ID: the image's there, which it must have here too.
The name is given last, so that whatever had it before has it until then. Exit status: 0 it is here; 1 not, with the
reason in the last lines.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import docker_cli as docker
    from modules.hostside.build_steps import PullLayers
    from modules.hostside.docker_cli import DockerError
    from modules.hostside.peer_tunnel import Tunnel, client_tls
    from modules.hostside.progress import Progress
else:
    import docker_cli as docker
    from build_steps import PullLayers
    from docker_cli import DockerError
    from peer_tunnel import Tunnel, client_tls
    from progress import Progress

_TRIES = 4
_WAIT_S = 10.0
_LOOK_S = 0.5
_HERE = re.compile(r"^([0-9a-f]{12}): Already exists")
_DAMAGED = re.compile(r"verification failed|unexpected commit digest|digest invalid")
_FULL = re.compile(r"no space left on device")


@dataclass(frozen=True)
class Wanted:
    """See the usage above."""

    keys: Path
    address: str
    port: int
    name: str
    digest: str
    id: str


@dataclass
class Arrival:
    """What is known of a pull while it goes on. `sizes`: of each layer (its digest's first 12 digits), compressed."""

    sizes: dict[str, int]
    layers: PullLayers = field(default_factory=PullLayers)
    here: set[str] = field(default_factory=set)
    last: list[str] = field(default_factory=list)

    def hear(self, line: str) -> None:
        """Take in a line of docker's."""
        self.layers.hear(line)
        if found := _HERE.match(line.strip()):
            self.here.add(found[1])
        self.last = [*self.last[-5:], line.strip()]

    @property
    def lacking(self) -> int:
        """Bytes of the layers that were not here."""
        return sum(size for layer, size in self.sizes.items() if layer not in self.here)


def layer_sizes(tunnel: Tunnel, wanted: Wanted) -> dict[str, int]:
    """Sizes of the image's layers, from its manifest. Raises `DockerError`: the other host does not answer well."""
    repository = wanted.name.rpartition(":")[0]
    try:
        connection = http.client.HTTPConnection(wanted.address, wanted.port)
        connection.sock = tunnel.connect()
        connection.request("GET", f"/v2/{repository}/manifests/{wanted.digest}")
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
    except ssl.SSLError as error:
        raise DockerError(
            f"{wanted.address} port {wanted.port} does not take this host's key ({error.reason}), or something else "
            "answers there: run again, which makes new keys; else set image.port to a free one"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise DockerError(
            f"{wanted.address} port {wanted.port} can not be reached from here ({error}): open that port between the "
            "hosts, or name in network.peer_address where the others reach the offering host"
        ) from error
    if answer.status != 200:
        raise DockerError(f"{wanted.address} does not offer {wanted.name} ({wanted.digest}) any more: run again")
    return {layer["digest"][7:19]: int(layer["size"]) for layer in json.loads(body)["layers"]}


def pull(tunnel: Tunnel, wanted: Wanted, progress: Progress) -> str:
    """Pull once. Returns the name by which docker has it then; raises `DockerError`."""
    arrival = Arrival(layer_sizes(tunnel, wanted))
    reference = f"127.0.0.1:{tunnel.port}/{wanted.name.rpartition(':')[0]}@{wanted.digest}"
    ended = threading.Event()

    def report() -> None:
        while not ended.wait(_LOOK_S):
            step = f"layers {arrival.layers.done}/{arrival.layers.total} from {wanted.address}"
            total = arrival.lacking
            progress.report(step, min(tunnel.received, total), total, "bytes")

    before = tunnel.received
    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    try:
        with docker.lines("pull", reference) as said:
            for line in said:
                arrival.hear(line)
    except DockerError as error:
        raise DockerError(reason(arrival.last, wanted)) from error
    finally:
        ended.set()
        reporter.join()
    lacked = len(arrival.sizes) - len(arrival.here)
    print(f"{tunnel.received - before} bytes for {lacked} of {len(arrival.sizes)} layers", flush=True)
    return reference


def reason(last: list[str], wanted: Wanted) -> str:
    """Why docker refused, in words that say what to do."""
    said = "\n".join(last)
    if _DAMAGED.search(said):
        return (
            f"a layer of {wanted.name} came damaged from {wanted.address} and was refused: run again; it is then "
            "checked there and sent anew. What this host had before is as it was"
        )
    if _FULL.search(said):
        return f"docker's disk is full on this host: make room for {wanted.name} (docker system df), and run again"
    return f"{wanted.name} could not be received from {wanted.address}: the lines above say why. Run again"


def receive(wanted: Wanted, progress: Progress, sleep: Callable[[float], None] = time.sleep) -> None:
    """Pull, trying again where the way broke; verify; name."""
    docker.await_daemon()
    if not wanted.keys.exists():
        raise DockerError("the key for this transfer is gone, as after a restart of this host: run again")
    tls = client_tls(wanted.keys)
    with Tunnel(wanted.address, wanted.port, tls) as tunnel:
        for left in reversed(range(_TRIES)):
            try:
                reference = pull(tunnel, wanted, progress)
                break
            except DockerError as error:
                if not left or "could not be received" not in str(error):
                    raise
                print(f"{error}; trying again in {_WAIT_S:.0f} s", flush=True)
                sleep(_WAIT_S)
    try:
        found = str((docker.inspect(reference) or {}).get("Id"))
        # A docker with containerd's image store calls an image by its manifest.
        if found not in {wanted.id, wanted.digest}:
            raise DockerError(
                f"what came from {wanted.address} is {found} and not {wanted.id}, so it does not get the name "
                f"{wanted.name}: look at what changed the image there meanwhile, and run again"
            )
        tagged = docker.capture("image", "tag", reference, wanted.name)
        if tagged.returncode != 0:
            raise DockerError(f"docker tag: {tagged.stderr.strip()}")
    finally:
        docker.capture("image", "rm", reference)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("keys", type=Path)
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    for name in ("name", "digest", "id"):
        parser.add_argument(name)
    wanted = Wanted(**vars(parser.parse_args()))
    try:
        receive(wanted, Progress())
    except (DockerError, OSError) as error:
        print(f"{socket.gethostname()}: {error}", file=sys.stderr)
        return 1
    finally:
        wanted.keys.unlink(missing_ok=True)
    print(f"{wanted.name} is {wanted.id}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
