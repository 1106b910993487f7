"""An image with one changed layer, from one lab host to three others, beside `docker save | ssh docker load`."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable

from benchmarks.result import Result
from modules.lab.layout import USER, Layout
from tests.lab.lab_driver import Lab
from tests.lab.layered_image import layered_build, layered_fleet

HOSTS = ("spark-1", "spark-2", "spark-3", "spark-4")
BUILDER, *RECEIVERS = HOSTS
# Besides its base, of 210 MB: layers that no compression makes smaller, of which the last one changes.
BEFORE, OURS, PEER = ("a", "b", "c", "d"), ("a", "b", "c", "e"), ("a", "b", "c", "f")
MIB = 24
_LAB = "bench-fanout"
_KEY = "/tmp/bench-key"  # noqa: S108, of a lab host
_SSH = f"ssh -i {_KEY} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"


class NotPassedOnError(Exception):
    """The image did not reach every host: the figures would mean nothing."""


def image_fanout() -> Result:
    """Bytes that the builder's network interface sends, by us over by the peer; times beside it.

    Brings up a lab of its own, of four hosts, and takes it away. All hosts have the image as it was; the builder has it
    as it is, so that no build is in the figures.
    """
    lab = Lab(Layout.named(_LAB))
    lab.command("up", "--hosts", str(len(HOSTS)))
    try:
        return _measured(lab)
    finally:
        lab.command("down")


def _measured(lab: Lab) -> Result:
    _converged(lab, BEFORE, "deploys/runtime.py")
    _converged(lab, BEFORE, "deploys/image.py")
    _converged(lab, OURS, "deploys/image.py", "--limit", BUILDER)
    ours, seconds = _counted(lab, lambda: _converged(lab, OURS, "deploys/image.py"))
    _check(lab, OURS)
    _converged(lab, PEER, "deploys/image.py", "--limit", BUILDER)
    lab.write(BUILDER, _KEY, lab.layout.key.read_text())
    lab.ssh(BUILDER, f"sudo chown {USER} {_KEY} && sudo chmod 600 {_KEY}")
    command = _peer_command(lab)
    peer, peer_seconds = _counted(lab, lambda: lab.ssh(BUILDER, command, timeout_s=1800))
    _check(lab, PEER)
    return Result(
        ours=ours / 1e6,
        peer=peer / 1e6,
        ratio=ours / peer,
        unit="MB sent",
        workload=(
            f"one of {len(BEFORE)} layers of {MIB} MiB changed, image of 310 MB with its base, one lab host to "
            f"{len(RECEIVERS)} others; bytes by the counter of the builder's network interface"
        ),
        commands=("pyinfra inventory.py deploys/image.py -y", "docker save IMAGE | ssh HOST docker load"),
        details={"seconds": round(seconds, 1), "seconds of the peer": round(peer_seconds, 1)},
    )


def _converged(lab: Lab, layers: tuple[str, ...], deploy: str, *arguments: str) -> None:
    run = lab.converge(deploy, *arguments, fleet=layered_fleet(lab, HOSTS, layers, MIB))
    if run.rc != 0:
        raise NotPassedOnError(run.text[-3000:])


def _peer_command(lab: Lab) -> str:
    """The peer, to all receivers at once, as whoever writes such a script would have it."""
    image = layered_build(lab, PEER, MIB).tag
    loads = [
        f'(sudo docker save {image} | {_SSH} {USER}@{lab.address(host)} sudo docker load) & pids="$pids $!"'
        for host in RECEIVERS
    ]
    script = "set -o pipefail; pids=; " + "; ".join(loads) + '; for pid in $pids; do wait "$pid" || exit 1; done'
    return f"bash -c {shlex.quote(script)}"


def _counted(lab: Lab, action: Callable[[], object]) -> tuple[int, float]:
    """Bytes that the builder sends meanwhile, and seconds that it takes."""
    before, started = _sent(lab), time.perf_counter()
    action()
    seconds = time.perf_counter() - started
    return _sent(lab) - before, seconds


def _sent(lab: Lab) -> int:
    return int(lab.ssh(BUILDER, "cat /sys/class/net/eth0/statistics/tx_bytes").stdout)


def _check(lab: Lab, layers: tuple[str, ...]) -> None:
    image = layered_build(lab, layers, MIB).tag
    look = f"sudo docker image inspect -f '{{{{.Id}}}}' {image}"
    ids = {lab.ssh(host, look, check=False).stdout.strip() for host in HOSTS}
    if len(ids) != 1 or "" in ids:
        raise NotPassedOnError(f"{image} is not the same on all hosts: {sorted(ids)}")
