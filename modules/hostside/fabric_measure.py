"""Measure the links between Sparks: by RDMA (perftest's `ib_write_bw`) and by NCCL (`all_gather_perf` of nccl-tests).

    fabric_measure.py serve < WISH      wait for the clients of these links, each in a unit that ends by itself
    fabric_measure.py measure < WISH    be the client of these links, one after the other; keep what was printed
    fabric_measure.py nccl < WISH       run NCCL's test over all members; keep what was printed
    fabric_measure.py end               stop what still waits

WISH, as JSON: `key` (what the measurement is remembered by), `links` (`name`, `device`, `gid`, `port`, `address`),
`bytes` (of NCCL's largest message), `addresses` (of the members), `environment` (for NCCL). What was measured is in
MEASURED. Exit status 0 also where a test failed: what it printed tells why.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
else:
    from atomic import read_json, write_json

MEASURED = Path("/var/lib/tinderbox/fabric/measured.json")
# An end that nobody calls for waits no longer, in seconds; nor does a client whose server hangs.
WAIT_S = 180
CLIENT_S = 60
NCCL_S = 300
_TRIES = 5
# NCCL's buffers lie in the one memory that the host has: 16 GB froze nodes.
LARGEST = 1 << 30
_SMALLEST = 8 << 20
_UNIT = "tinderbox-fabric-bw-"
_OUTPUT = 20_000

Run = Callable[[list[str], float], "tuple[int, str]"]


def run(command: list[str], timeout_s: float) -> tuple[int, str]:
    """Exit status and output of a program; 124 where it does not end, 127 where it is not there."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout_s, check=False, text=True,
            errors="replace",
        )  # fmt: skip
    except FileNotFoundError:
        return 127, f"{command[0]} is not installed"
    except subprocess.TimeoutExpired as error:
        said = error.stdout or b""
        return 124, (said.decode(errors="replace") if isinstance(said, bytes) else said) + "\nit did not end"
    return done.returncode, done.stdout[-_OUTPUT:]


def bandwidth_command(link: dict[str, Any], server: str | None) -> list[str]:
    """The command line of ib_write_bw; `server`: where the client finds it, None for the server itself."""
    words = ["ib_write_bw", "-d", link["device"], "-x", str(link["gid"]), "-p", str(link["port"])]
    words += ["--report_gbits", "-F"]
    return words if server is None else [*words, server]


def serve(wish: dict[str, Any], ask: Run = run) -> None:
    """Start one waiting end for each link."""
    for link in wish["links"]:
        unit = f"{_UNIT}{link['port']}"
        ask(["systemctl", "stop", f"{unit}.service"], 30)
        words = ["systemd-run", "--quiet", "--collect", f"--unit={unit}", f"--property=RuntimeMaxSec={WAIT_S}"]
        words += ["--property=LimitMEMLOCK=infinity"]
        code, said = ask([*words, *bandwidth_command(link, None)], 30)
        if code != 0:
            sys.exit(f"{link['name']}: its waiting end could not be started: {said.strip()}")


def measure(
    wish: dict[str, Any], path: Path = MEASURED, ask: Run = run, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Be the client of each link. A server that is not up yet is asked again."""
    outputs: dict[str, Any] = {}
    for link in wish["links"]:
        for _ in range(_TRIES):
            code, said = ask(bandwidth_command(link, link["address"]), CLIENT_S)
            if code == 0 or "Couldn't connect" not in said:
                break
            sleep(1)
        outputs[link["name"]] = {"rc": code, "output": said}
    _keep(path, wish["key"], rdma=outputs)


def nccl_command(wish: dict[str, Any]) -> list[str]:
    """MPI's command line for one rank on each member."""
    largest = min(int(wish["bytes"]), LARGEST)
    environment = {**wish["environment"], "NCCL_DEBUG": "INFO"}
    words = ["mpirun", "--allow-run-as-root", "-np", str(len(wish["addresses"])), "-H", ",".join(wish["addresses"])]
    words += ["--mca", "plm_rsh_args", "-o BatchMode=yes -o ConnectTimeout=10"]
    for name, value in sorted(environment.items()):
        words += ["-x", f"{name}={value}"]
    sizes = ["-b", str(min(_SMALLEST, largest)), "-e", str(largest), "-f", "2", "-g", "1"]
    return [*words, "all_gather_perf", *sizes]


def nccl(wish: dict[str, Any], path: Path = MEASURED, ask: Run = run) -> None:
    """NCCL's test over all members."""
    code, said = ask(nccl_command(wish), NCCL_S)
    _keep(path, wish["key"], nccl={"rc": code, "output": said})


def _keep(path: Path, key: str, **results: Any) -> None:
    before: Any = read_json(path) or {}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    kept: dict[str, Any] = before if before.get("key") == key else {"key": key}
    if "rdma" in results:
        results["rdma"] = {**kept.get("rdma", {}), **results["rdma"]}
    write_json(path, {**kept, **results, "at": int(time.time())}, 0o600)


def main(arguments: list[str]) -> int:
    """Entry point."""
    if arguments == ["end"]:
        run(["systemctl", "stop", f"{_UNIT}*.service"], 60)
        return 0
    ways: dict[str, Callable[[dict[str, Any]], None]] = {"serve": serve, "measure": measure, "nccl": nccl}
    if len(arguments) != 1 or arguments[0] not in ways:
        sys.stderr.write((__doc__ or "").splitlines()[2].strip() + "\n")
        return 2
    ways[arguments[0]](json.load(sys.stdin))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
