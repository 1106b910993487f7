"""A model that one host has fetched comes to the other from there, to nobody else, and nothing listens afterwards."""

from __future__ import annotations

import base64
import json
import socket
import time
from collections.abc import Iterator

import libtorrent as lt
import pytest

from modules.hostside.swarm_pieces import information, ordered
from modules.hostside.weights_stamp import WantedFile
from modules.lab.model.repository import COMMIT, REPOSITORY
from tests.lab.lab_driver import Lab
from tests.lab.spread_driver import PORT, SHARD, SIZES, TOTAL, Spread, spread_of

pytestmark = pytest.mark.lab
ONE, OTHER = "spark-1", "spark-2"


@pytest.fixture
def spread(lab: Lab) -> Iterator[Spread]:
    with spread_of(lab, "pair", ONE, OTHER) as found:
        yield found


def test_one_host_fetches_from_outside_and_the_other_takes_it_from_there(spread: Spread) -> None:
    before = len(spread.lab.requests())

    run = spread.run()

    assert run.rc == 0, run.text
    # Each file came into the house once, to one host.
    assert sorted((host, file, size) for host, file, size, _ in spread.fetched(before)) == sorted(
        (ONE, name, size) for name, size in SIZES.items()
    )
    for host in (ONE, OTHER):
        spread.whole(host)
    spread.nobody_listens()
    assert TOTAL <= spread.taken(OTHER) < TOTAL * 1.02
    again = spread.run()
    assert again.rc == 0, again.text
    assert "no change on any host" in again.stderr
    the_client_takes_it_for_its_own(spread)


def the_client_takes_it_for_its_own(spread: Spread) -> None:
    """What came from a peer is what huggingface_hub itself would have fetched: found offline, and verified online."""
    tools, cache = "/var/lib/tinderbox/tools/current/bin", f"{spread.home}/hub"
    asked = (
        "from huggingface_hub import snapshot_download; print(snapshot_download("
        f'"{REPOSITORY}", revision="{COMMIT}", cache_dir="{cache}", ignore_patterns=["original/*", "metal/*"]))'
    )
    offline = spread.lab.ssh(OTHER, f"sudo env HF_HUB_OFFLINE=1 {tools}/python -c '{asked}'")
    assert offline.stdout.strip() == spread.snapshot
    verify = f"{tools}/hf cache verify {REPOSITORY} --revision {COMMIT} --cache-dir {cache}"
    online = spread.lab.ssh(OTHER, f"sudo sh -c 'set -a; . /etc/tinderbox/network.env; {verify}'", check=False)
    assert online.rc == 0, online.text
    assert "mismatch" not in online.text.lower()


@pytest.mark.long
def test_a_host_that_joins_late_and_one_that_has_half_take_what_they_lack_from_the_other(spread: Spread) -> None:
    assert spread.run(ONE).rc == 0
    before = len(spread.lab.requests())
    run = spread.run()
    assert run.rc == 0, run.text
    spread.whole(OTHER)
    late = spread.taken(OTHER)
    assert TOTAL <= late < TOTAL * 1.02

    lab, shard = spread.lab, f"{spread.snapshot}/{SHARD}"
    lab.ssh(OTHER, f"sudo sh -c 'printf X | dd of=$(readlink -f {shard}) bs=1 seek=1000000 conv=notrunc status=none'")
    run = spread.run()

    assert run.rc == 0, run.text
    assert f"{shard}: sha256" in run.stderr
    assert "it was taken anew" in run.stderr
    spread.whole(OTHER)
    assert SIZES[SHARD] <= spread.taken(OTHER) - late < SIZES[SHARD] * 1.02
    # The hub was not asked for any of it.
    assert spread.fetched(before) == []


@pytest.mark.long
def test_who_is_not_of_the_fleet_gets_nothing_though_he_knows_all_there_is_to_know(spread: Spread) -> None:
    lab, address = spread.lab, spread.lab.address(ONE)
    assert spread.run(ONE).rc == 0
    with spread.running(limit_mbit=25) as child:
        spread.await_held(OTHER, TOTAL // 20)
        # This machine is on the hosts' network, and no host.
        session, torrent = outsider(spread)
        ends = time.monotonic() + 6
        while time.monotonic() < ends:
            torrent.connect_peer((address, PORT))
            time.sleep(0.5)
            assert not any(peer.flags & lt.peer_info.seed or peer.num_pieces for peer in torrent.get_peer_info()), (
                "a stranger was let in"
            )
        assert torrent.status().total_payload_download == 0
        assert answer_to_a_stranger(address) == b""
        del session
        # It was possible all the while.
        assert lab.ssh(OTHER, f"timeout 3 bash -c '</dev/tcp/{address}/{PORT}'").rc == 0
        said, _ = child.communicate(timeout=120)
        assert child.returncode == 0, said
    spread.whole(OTHER)
    spread.nobody_listens()


@pytest.mark.long
def test_the_fabric_is_used_where_both_hosts_have_an_address_in_it(spread: Spread) -> None:
    lab, fabric = spread.lab, {ONE: "192.168.77.1", OTHER: "192.168.77.2"}
    assert spread.run(ONE).rc == 0
    for host, address in fabric.items():
        lab.ssh(host, f"sudo ip address add {address}/24 dev eth0")
    try:
        with spread.running(limit_mbit=60, network="192.168.77.0/24") as child:
            spread.await_held(OTHER, TOTAL // 5)
            connected = lab.ssh(OTHER, f"ss -Htn state established '( sport = :{PORT} or dport = :{PORT} )'").stdout
            said, _ = child.communicate(timeout=120)
    finally:
        for host, address in fabric.items():
            lab.ssh(host, f"sudo ip address del {address}/24 dev eth0")
    assert child.returncode == 0, said
    spread.whole(OTHER)
    lines = connected.splitlines()
    assert lines
    assert all(fabric[ONE] in line and fabric[OTHER] in line for line in lines), connected


def answer_to_a_stranger(address: str) -> bytes:
    """What a connection from this machine gets."""
    with socket.create_connection((address, PORT), timeout=5) as stranger:
        try:
            stranger.sendall(b"\x13BitTorrent protocol")
            return stranger.recv(1)
        except ConnectionResetError:
            return b""


def outsider(spread: Spread) -> tuple[lt.session, lt.torrent_handle]:
    """A swarm's client with the right name and the right hashes."""
    (path,) = spread.lab.ssh(
        ONE, f"sudo sh -c 'ls -t /var/lib/tinderbox/weights/*@{COMMIT}*.pieces.json | head -1'"
    ).stdout.split()
    cut = json.loads(spread.lab.read(ONE, path))
    stamp = json.loads(spread.lab.read(ONE, path.replace(".pieces.json", ".json")))
    files = ordered(WantedFile(each["path"], each["size"], each["digest"], each["lfs"]) for each in stamp["files"])
    described = information(cut["name"], files, cut["piece_bytes"], base64.b64decode(cut["pieces"]))
    session = lt.session({"enable_dht": False, "enable_lsd": False, "listen_interfaces": "0.0.0.0:0"})
    parameters = lt.add_torrent_params()
    parameters.ti = lt.torrent_info(lt.bencode({b"info": described}))  # type: ignore[arg-type]
    parameters.save_path = str(spread.lab.layout.folder / "outsider")
    return session, session.add_torrent(parameters)
