"""Disks and secrets: what goes wrong is told by file and host, and the next run finishes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.lab.lab_driver import Lab
from tests.lab.spread_driver import CHUNK, DEPLOY, SHARD, SIZES, TOTAL, Spread, spread_of

pytestmark = [pytest.mark.lab, pytest.mark.long]
ONE, HOST = "spark-1", "spark-2"
MIB = 1024 * 1024
FULL = "the disk is full (df -h): make room and run again"
TOKEN = "hf_" + "AnotherTokenThatNobodyMaySee0123456"
# Sees every process that lives longer than a moment; its own words do not hold the token.
SAMPLER = (
    "sudo sh -c 'while ! test -e /root/enough; do grep -lsaFf /root/token /proc/[0-9]*/cmdline /proc/[0-9]*/environ; "
    "sleep 0.1; done'"
)


@pytest.fixture
def spread(lab: Lab) -> Iterator[Spread]:
    with spread_of(lab, "faults", HOST) as found:
        yield found


@contextmanager
def small_disk(spread: Spread, options: str) -> Iterator[None]:
    """The home is a disk of its own."""
    lab = spread.lab
    lab.ssh(HOST, f"sudo mkdir -p {spread.home} && sudo mount -t tmpfs -o {options} none {spread.home}")
    try:
        yield
    finally:
        lab.ssh(HOST, f"sudo umount -l {spread.home}", check=False)


def no_reserve(content: dict[str, object]) -> None:
    content["defaults"]["hardware"]["reserve_disk_gib"] = 0  # type: ignore[index]


@pytest.mark.parametrize("giver", [None, ONE])
def test_a_disk_that_is_full_at_95_percent_keeps_what_came_and_the_next_run_finishes(
    lab: Lab, giver: str | None
) -> None:
    """From the hub, and from a peer."""
    hosts = (HOST,) if giver is None else (giver, HOST)
    with spread_of(lab, "full", *hosts) as spread:
        if giver is not None:
            assert spread.run(giver).rc == 0
        room = TOTAL + 30 * MIB
        with small_disk(spread, f"size={room}"):
            with lab.shaped(HOST, 60), spread.running(change=no_reserve) as child:
                spread.await_held(HOST, TOTAL // 5)
                # Others have filled it so far that 95 % of the model find room.
                lab.ssh(HOST, f"sudo fallocate -l {room - TOTAL * 95 // 100} {spread.home}/others")
                said, _ = child.communicate(timeout=300)
            assert child.returncode == 1, said
            assert "Traceback" not in said
            line = next(line for line in said.splitlines() if FULL in line)
            assert "spark-2: " in line
            assert ".safetensors" in line
            held = spread.held(HOST)
            assert held > TOTAL * 9 // 10
            lab.ssh(HOST, f"sudo rm {spread.home}/others")
            before = len(lab.requests())
            run = lab.converge(DEPLOY, fleet=spread.fleet(change=no_reserve))
            assert run.rc == 0, run.text
            spread.whole(HOST)
            came = sum(size for _, _, size, _ in spread.fetched(before)) if giver is None else spread.taken(HOST)
            assert came <= TOTAL - held + CHUNK


def test_a_disk_that_is_too_small_is_refused_before_the_first_byte(spread: Spread) -> None:
    before = len(spread.lab.requests())
    with small_disk(spread, f"size={TOTAL // 2}"):
        run = spread.lab.converge(DEPLOY, fleet=spread.fleet(change=no_reserve))
        assert run.rc == 1, run.text
        assert f"spark-2: {spread.home} has 0.1 GiB free; tinderbox-lab/gpt-oss-tiny needs 0.1 GiB more" in run.stderr
        assert spread.fetched(before) == []


def test_a_disk_that_is_read_only_is_told(spread: Spread) -> None:
    with small_disk(spread, "size=300m"):
        spread.lab.ssh(HOST, f"sudo mount -o remount,ro {spread.home}")
        fleet = spread.fleet(change=no_reserve)
        run = spread.lab.converge(DEPLOY, fleet=fleet)
        assert run.rc == 1, run.text
        assert "spark-2: tinderbox-lab/gpt-oss-tiny@" in run.stderr
        assert "the disk is mounted read-only here" in run.stderr
        spread.lab.ssh(HOST, f"sudo mount -o remount,rw {spread.home}")
        run = spread.lab.converge(DEPLOY, fleet=fleet)
        assert run.rc == 0, run.text
        spread.whole(HOST)


def test_a_users_cache_that_root_has_written_in_is_the_users_again(spread: Spread) -> None:
    spread.lab.ssh(HOST, f"sudo mkdir -p {spread.blobs} && sudo chown spark {spread.home}")
    assert spread.run().rc == 0
    # All of the home: another model that the user fetches goes beside this one.
    assert spread.lab.ssh(HOST, f"sudo find {spread.home} ! -user spark").stdout == ""
    spread.lab.ssh(HOST, f"mkdir {spread.home}/hub/models--another && rm {spread.snapshot}/{SHARD}")
    assert spread.run().rc == 0
    spread.whole(HOST)


def test_every_damage_is_named_and_only_what_is_wrong_comes_again(spread: Spread) -> None:
    """A flipped byte, a truncated file, a missing one, a dangling link, and one that is not of the model."""
    lab, names = spread.lab, sorted(SIZES, key=lambda name: SIZES[name])
    flipped, cut, missing, dangling, stray = (
        names[-1],
        names[-2],
        names[0],
        names[1],
        "model-00009-of-00003.safetensors",
    )
    assert spread.run().rc == 0
    lab.ssh(
        HOST,
        f"sudo sh -ec 'cd {spread.snapshot}; printf X | dd of=$(readlink -f {flipped}) bs=1 seek=5000000 conv=notrunc "
        f"status=none; truncate -s 1000000 $(readlink -f {cut}); rm $(readlink -f {missing}) {missing}; "
        f"rm $(readlink -f {dangling}); echo X > {stray}'",
    )
    verified = lab.converge("deploys/verify_weights.py", fleet=spread.fleet())
    assert verified.rc == 1, verified.text
    said = {flipped: "sha256 ", cut: f"1000000 bytes, the hub publishes {SIZES[cut]}"}
    unknown = "the hub publishes no such file"
    for name, words in {**said, missing: "missing", dangling: "missing", stray: unknown}.items():
        assert f"spark-2: {spread.snapshot}/{name}: {words}" in verified.stderr
    before = len(lab.requests())

    run = spread.run()

    assert run.rc == 0, run.text
    for name, words in {**said, stray: f"{unknown}; it is kept as"}.items():
        assert f"{spread.snapshot}/{name}: {words}" in run.stderr
    came = sorted(file for _, file, _, _ in spread.fetched(before))
    assert came == sorted([flipped, cut, missing, dangling])
    kept = lab.ssh(HOST, f"sudo find {spread.home}/tinderbox-set-aside -type f").stdout.split()
    assert len(kept) == 3
    spread.whole(HOST)
    assert "no change on any host" in spread.run().stderr


def test_hashing_on_demand_names_the_file_and_the_next_run_makes_it_right(spread: Spread) -> None:
    assert spread.run().rc == 0
    shard = f"{spread.snapshot}/{SHARD}"
    flip = f"f=$(readlink -f {shard}); t=$(stat -c %y $f); printf X | dd of=$f bs=1 seek=9 conv=notrunc status=none"
    spread.lab.ssh(HOST, f"sudo sh -c '{flip}; touch -d \"$t\" $f'")
    fleet = spread.fleet()

    run = spread.lab.converge("deploys/verify_weights.py", fleet=fleet)

    assert run.rc == 1, run.text
    assert f"spark-2: {shard}: sha256 " in run.stderr
    assert spread.run().rc == 0
    spread.whole(HOST)
    assert spread.lab.converge("deploys/verify_weights.py", fleet=fleet).rc == 0


def test_a_token_is_in_no_process_unit_log_or_debug_output(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINDERBOX_TEST_TOKEN", TOKEN)

    def with_token(content: dict[str, object]) -> None:
        content["secrets"] = {"hub": {"env": "TINDERBOX_TEST_TOKEN"}}
        model = {
            "repository": "tinderbox-lab/gpt-oss-tiny", "size_gib": 0.11, "served_as": "tiny", "source": "the lab",
            "token": "hub",
        }  # fmt: skip
        content["defaults"]["services"]["gpt-oss"].update(model=model)  # type: ignore[index]

    with spread_of(lab, "token", ONE, HOST) as pair:
        fleet = pair.fleet(change=with_token)
        for host in (ONE, HOST):
            lab.write(host, "/root/token", TOKEN)
            lab.ssh(host, "sudo rm -f /root/enough")
        samplers = {host: sampler(lab, host) for host in (ONE, HOST)}
        run = lab.pyinfra("--debug", "-vvv", "-y", DEPLOY, fleet=fleet)
        seen = {}
        for host, child in samplers.items():
            lab.ssh(host, "sudo touch /root/enough")
            seen[host], _ = child.communicate(timeout=30)
        assert run.rc == 0, run.text
        assert TOKEN not in run.text
        assert seen == {ONE: "", HOST: ""}
        holders = [
            host for host in (ONE, HOST) if lab.ssh(host, "sudo ls /etc/tinderbox/hub-token.hub", check=False).rc == 0
        ]
        # Only who asked the hub was ever given it.
        assert len(holders) == 1
        for host in (ONE, HOST):
            places = "/etc /var/lib/tinderbox /var/log /tmp /run/systemd"
            found = lab.ssh(
                host, f"sudo grep -rlsFf /root/token {places}; sudo journalctl | sudo grep -cFf /root/token; true"
            )
            assert [line for line in found.stdout.split() if line != "/etc/tinderbox/hub-token.hub"] == ["0"]
            lab.ssh(host, "sudo rm -f /root/token /root/enough /etc/tinderbox/hub-token.hub")
    assert not [path for path in Path(lab.layout.folder).rglob("*.yaml") if TOKEN in path.read_text()]


def sampler(lab: Lab, host: str) -> subprocess.Popen[str]:
    """Says which processes show the token."""
    argv = ["ssh", "-F", str(lab.layout.ssh_config), host, SAMPLER]
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
