"""A model from one host to all others over slow links, beside what people do otherwise."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from benchmarks.result import Result
from benchmarks.shaped_lab import Model, ShapedLab, shaped_lab

MBIT = 100
SIZE = 400_000_000
# The peers' times grow with the size as that of one copy does; they are measured with less, each over one copy of it.
PEERS_SIZE = 100_000_000


def weights_fanout(count: int) -> Result:
    """Wall time of the weights stage on `count` hosts of which one has the model, over that of one copy by rsync.

    Every host, and the hub, has a link of 100 Mbit/s each way. Ours is the whole command, from start to end: with
    facts, cutting into pieces, hashing and stamps on every host.
    """
    with shaped_lab(count) as lab:
        seed, *others = lab.hosts
        large, small = lab.model("fanout", SIZE), lab.model("fanout-peers", PEERS_SIZE)
        for model in (large, small):
            lab.weights(model, model.name.rpartition("/")[2], [seed])
        _open(lab, seed)
        lab.shape(MBIT)
        one = _rsync(lab, large, [others[0]])
        ours = lab.weights(large, "fanout", lab.hosts)
        short = _rsync(lab, small, [others[0]])
        in_turn = sum(_rsync(lab, small, [host]) for host in others)
        in_parallel = _rsync(lab, small, others)
        direct = lab.weights(small, "direct", lab.hosts, enabled=False)
    return Result(
        ours=ours,
        peer=one,
        ratio=ours / one,
        unit="s",
        workload=(
            f"{SIZE // 10**6} MB from one of {count} hosts to all others, {MBIT} Mbit/s each way, verified; peer: one "
            f"copy by rsync through one link; details: times over one copy, of {PEERS_SIZE // 10**6} MB"
        ),
        commands=("pyinfra inventory.py deploys/weights.py -y", "rsync -a --inplace <blobs> <host>:"),
        details={
            "rsync in turn": in_turn / short,
            "rsync in parallel": in_parallel / short,
            "all from the hub": direct / short,
            "ideal one copy s": SIZE * 8 / MBIT / 1e6,
        },
    )


def _open(lab: ShapedLab, seed: str) -> None:
    """Let the seed into the other hosts, as whoever copies by rsync has to."""
    key = lab.layout.key.read_text()
    lab.ssh(seed, f"umask 077; cat > ~/.ssh/id_ed25519 <<'EOF'\n{key}EOF")


def _rsync(lab: ShapedLab, model: Model, hosts: Sequence[str]) -> float:
    """Copy to these hosts at once; the seconds until the last has it."""
    lab.everywhere("rm -rf ~/copy", hosts)
    source = lab.folder(model, model.name.rpartition("/")[2])
    way = "ssh -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    started = time.perf_counter()
    with ThreadPoolExecutor(len(hosts)) as pool:
        command = f'rsync -a --inplace -e "{way}" {source} spark@%s:copy'
        list(pool.map(lambda host: lab.ssh(lab.hosts[0], command % host), hosts))
    return time.perf_counter() - started
