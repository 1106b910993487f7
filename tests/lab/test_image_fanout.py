"""One host of a run makes an image, the others get it from there: what travels, is refused, and is left behind."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from modules.images import Build
from modules.operations.transfer_keys import transfer_keys
from tests.lab.lab_driver import Lab, Run
from tests.lab.layered_image import NAME, forget_images, layered_build, layered_fleet

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOSTS = ("spark-1", "spark-2", "spark-3", "spark-4")
BUILDER, *RECEIVERS = HOSTS
MIB = 16
STORE = "/var/lib/tinderbox/registry"
# What the fleet's runs themselves and TCP add to what is passed on.
OVERHEAD = 1.1


@dataclass(frozen=True)
class Fanout:
    """The lab, every host of it with docker."""

    lab: Lab

    def run(self, layers: Sequence[str], *arguments: str, hosts: Sequence[str] = HOSTS, **settings: Any) -> Run:
        """The image stage, with an image of these layers."""
        fleet = layered_fleet(self.lab, hosts, layers, MIB, **settings)
        return self.lab.converge("deploys/image.py", *arguments, fleet=fleet)

    def build(self, layers: Sequence[str]) -> Build:
        """What it should come to."""
        return layered_build(self.lab, layers, MIB)

    def ids(self, layers: Sequence[str], hosts: Sequence[str] = HOSTS) -> list[str]:
        """The image's id on each host; empty where it is not."""
        command = f"sudo docker image inspect -f '{{{{.Id}}}}' {self.build(layers).tag} 2>/dev/null || true"
        return [self.lab.ssh(host, command).stdout.strip() for host in hosts]

    def blobs(self, layers: Sequence[str], host: str = BUILDER) -> dict[str, int]:
        """Digest → bytes of all that the image is made of, compressed, as the builder offered it."""
        entry = json.loads(self.lab.read(host, f"{STORE}/names/tinderbox/{NAME}/{self.build(layers).digest}.json"))
        names = " ".join(f"{STORE}/blobs/{digest.removeprefix('sha256:')}" for digest in entry["blobs"])
        sizes = self.lab.ssh(host, f"sudo stat -c %s {names}").stdout.split()
        return dict(zip(entry["blobs"], map(int, sizes), strict=True))

    def sent(self, host: str = BUILDER) -> int:
        """Bytes that the host's network interface has sent."""
        return int(self.lab.ssh(host, "cat /sys/class/net/eth0/statistics/tx_bytes").stdout)

    def left(self, host: str) -> str:
        """What a transfer has left behind on a host."""
        looks = [
            "ss -Hltn 'sport = :5599'",
            "systemctl list-units --no-legend --all tinderbox-offer.service",
            "find /run/tinderbox -type f 2>/dev/null",
            "ls /etc/docker/certs.d/ | grep -v registry.lab",
        ]
        return self.lab.ssh(host, f"sudo sh -c {shlex.quote('; '.join(looks))} || true").stdout.strip()

    def jobs(self, host: str, name: str) -> list[dict[str, Any]]:
        """The host's jobs of that name."""
        told = self.lab.ssh(host, "sudo python3 /usr/local/lib/tinderbox/job.py list").json
        return [job for job in told if job["job"].startswith(f"{name}-")]


@pytest.fixture(scope="module")
def fanout(wide_lab: Lab) -> Fanout:
    run = wide_lab.converge("deploys/runtime.py")
    assert run.rc == 0, run.text
    forget_images(wide_lab, HOSTS)
    return Fanout(wide_lab)


@pytest.fixture(scope="module")
def first(fanout: Fanout) -> tuple[Run, int]:
    """The run that brings the image to four bare hosts, and the bytes that the builder sent meanwhile."""
    before = fanout.sent()
    run = fanout.run(("a", "b", "c"))
    assert run.rc == 0, run.text
    return run, fanout.sent() - before


def test_one_host_builds_and_three_receive(fanout: Fanout, first: tuple[Run, int]) -> None:
    (built, *received) = fanout.ids(("a", "b", "c"))
    assert built.startswith("sha256:")
    assert received == [built] * 3
    assert [len(fanout.jobs(host, "image")) for host in HOSTS] == [1, 0, 0, 0]
    assert "image layered" in first[0].text


def test_no_more_travels_than_the_layers_times_the_hosts_that_lack_them(fanout: Fanout, first: tuple[Run, int]) -> None:
    lacking = sum(fanout.blobs(("a", "b", "c")).values())
    assert lacking > 3 * MIB << 20
    assert 3 * lacking <= first[1] <= OVERHEAD * 3 * lacking


def test_nothing_listens_and_no_key_is_left(fanout: Fanout, first: tuple[Run, int]) -> None:
    assert [fanout.left(host) for host in HOSTS] == [""] * 4
    for host in HOSTS:
        logs = fanout.lab.ssh(host, "sudo sh -c 'cat /var/lib/tinderbox/jobs/*/* ; journalctl -o cat'").stdout
        assert "PRIVATE KEY" not in logs


def test_the_second_run_changes_nothing(fanout: Fanout, first: tuple[Run, int]) -> None:
    run = fanout.run(("a", "b", "c"))
    assert run.rc == 0, run.text
    assert "no change on any host" in run.stderr


def test_with_one_layer_changed_only_that_layer_travels(fanout: Fanout, first: tuple[Run, int]) -> None:
    before, had = fanout.sent(), fanout.blobs(("a", "b", "c"))

    run = fanout.run(("a", "b", "d"))

    assert run.rc == 0, run.text
    sent = fanout.sent() - before
    lacking = sum(size for digest, size in fanout.blobs(("a", "b", "d")).items() if digest not in had)
    assert MIB << 20 < lacking < (MIB + 1) << 20
    assert 3 * lacking <= sent <= OVERHEAD * 3 * lacking
    assert len(set(fanout.ids(("a", "b", "d")))) == 1


def test_a_host_alone_builds_for_itself_and_is_then_the_one_that_others_get_it_from(
    fanout: Fanout, first: tuple[Run, int]
) -> None:
    alone = fanout.run(("a", "e"), "--limit", "spark-3")
    assert alone.rc == 0, alone.text
    assert not fanout.jobs("spark-3", "offer")
    assert fanout.ids(("a", "e"))[2] != ""

    rest = fanout.run(("a", "e"))
    assert rest.rc == 0, rest.text
    assert len(set(fanout.ids(("a", "e")))) == 1
    assert len(fanout.jobs("spark-3", "offer")) == 1
    assert fanout.left("spark-3") == ""


def test_the_named_builder_builds(fanout: Fanout, first: tuple[Run, int]) -> None:
    run = fanout.run(("a", "f"), hosts=("spark-1", "spark-2"), image={"builder": "spark-2"})
    assert run.rc == 0, run.text
    assert fanout.jobs("spark-2", "image")[-1]["state"] == "succeeded"
    assert len(fanout.jobs("spark-2", "offer")) == 1


def test_when_the_build_fails_the_others_are_told_so_and_build_nothing(fanout: Fanout, first: tuple[Run, int]) -> None:
    before = [len(fanout.jobs(host, "image")) for host in HOSTS]

    run = fanout.run(("a", "no-python-string'"))

    assert run.rc == 1
    summary = run.stderr.partition("Disconnecting from hosts...")[2]
    for host in RECEIVERS:
        told = [line for line in summary.splitlines() if line.strip().startswith(f"{host}: the image layered")]
        assert len(told) == 1
        assert "was to come from spark-1, which failed" in told[0]
    after = [len(fanout.jobs(host, "image")) for host in HOSTS]
    assert [now - then for now, then in zip(after, before, strict=True)] == [1, 0, 0, 0]
    assert [fanout.left(host) for host in HOSTS] == [""] * 4


CORRUPT = """
until test -e /run/tinderbox/offer/listening; do sleep 0.02; done
printf X | dd of={blob} bs=1 seek=1000000 conv=notrunc
"""


def test_a_damaged_layer_is_refused_and_the_next_run_sends_a_good_one(fanout: Fanout, first: tuple[Run, int]) -> None:
    lab, layers = fanout.lab, ("a", "g")
    run = fanout.run(layers, hosts=HOSTS[:3])
    assert run.rc == 0, run.text
    (digest,) = {digest for digest, size in fanout.blobs(layers).items() if size > MIB << 20} - set(
        fanout.blobs(("a", "b", "c"))
    )
    # The layer is found whole when the offer begins, and damaged after that.
    script = CORRUPT.format(blob=f"{STORE}/blobs/{digest.removeprefix('sha256:')}")
    lab.ssh(BUILDER, f"sudo systemd-run --quiet --collect --unit=damage sh -c {shlex.quote(script)}")
    old = fanout.ids(("a", "b", "c"), ["spark-4"])

    refused = fanout.run(layers)

    assert refused.rc == 1
    assert "spark-4: FAILED" in refused.stderr
    assert "came damaged from" in refused.stderr
    assert fanout.ids(layers, ["spark-4"]) == [""]
    assert fanout.ids(("a", "b", "c"), ["spark-4"]) == old
    assert fanout.left("spark-4") == ""

    mended = fanout.run(layers)
    assert mended.rc == 0, mended.text
    assert len(set(fanout.ids(layers))) == 1


def test_a_receiver_that_dies_in_the_middle_has_it_after_the_next_run(fanout: Fanout, first: tuple[Run, int]) -> None:
    lab, layers = fanout.lab, ("h", "i")
    slow = "sudo tc qdisc add dev eth0 root tbf rate 40mbit burst 256k latency 50ms"
    lab.ssh(BUILDER, slow)
    try:
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(fanout.run, layers)
            while not (receiving(fanout, "spark-4") or running.done()):
                time.sleep(0.5)
            lab.crash("spark-4")
            run = running.result()
    finally:
        lab.ssh(BUILDER, "sudo tc qdisc del dev eth0 root", check=False)
    assert run.rc == 1
    assert "spark-4: FAILED" in run.stderr
    assert "spark-3: FAILED" not in run.stderr
    assert len(set(fanout.ids(layers, HOSTS[:3]))) == 1
    assert fanout.ids(layers, ["spark-4"]) == [""]

    again = fanout.run(layers)

    assert again.rc == 0, again.text
    assert len(set(fanout.ids(layers))) == 1
    assert [fanout.left(host) for host in HOSTS] == [""] * 4


def receiving(fanout: Fanout, host: str) -> bool:
    """Whether part of an image has arrived there."""
    return any(
        job["state"] == "running" and (job["progress"] or {}).get("done") for job in fanout.jobs(host, "receive")
    )


def test_what_a_cut_run_has_left_is_taken_away_by_the_next(fanout: Fanout, first: tuple[Run, int]) -> None:
    lab = fanout.lab
    keys = "sudo sh -c 'mkdir -p /run/tinderbox/receive && echo left > /run/tinderbox/receive/0.pem'"
    lab.ssh("spark-2", keys)
    begin = "sudo python3 /usr/local/lib/tinderbox/offer_images.py begin"
    offer = shlex.quote(json.dumps(_offer(lab.address(BUILDER))))
    lab.ssh(BUILDER, f"printf %s {offer} | {begin} > /dev/null")
    assert fanout.left(BUILDER) != ""

    run = fanout.run(("a", "b", "c"))

    assert run.rc == 0, run.text
    assert [fanout.left(host) for host in HOSTS] == [""] * 4


def _offer(address: str) -> dict[str, Any]:
    return {"address": address, "port": 5599, **vars(transfer_keys(address))}


def test_an_unreachable_host_is_never_the_builder(fanout: Fanout, first: tuple[Run, int]) -> None:
    fleet = layered_fleet(fanout.lab, HOSTS[:2], ("a", "j"), MIB)
    content = yaml.safe_load(fleet.read_text())
    content["hosts"] = {"spark-0": {"address": "127.0.0.1", "ssh": {"port": 9}}, **content["hosts"]}
    content["defaults"]["image"] = {"builder": "spark-0"}
    fleet.write_text(yaml.safe_dump(content, sort_keys=False))

    run = fanout.lab.converge("deploys/image.py", fleet=fleet)

    assert run.rc == 1
    assert "spark-0: FAILED" in run.stderr
    assert len(set(fanout.ids(("a", "j"), HOSTS[:2]))) == 1
    assert fanout.jobs("spark-1", "image")[-1]["state"] == "succeeded"
