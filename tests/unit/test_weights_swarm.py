"""Real swarms on loopback: hosts are addresses of 127/8, each with a home of its own."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modules.hostside import offer_weights, share_weights, take_weights, weights_stamp
from modules.hostside.progress import Progress
from modules.hostside.swarm_pieces import hashes, information, ordered, piece_bytes, pieces
from modules.hostside.weights_blobs import HUB_PART, PEER_PART
from modules.hostside.weights_stamp import Repository
from tests.unit.safetensors_samples import shard

if TYPE_CHECKING:
    from modules.hostside.swarm import Swarm
    from modules.hostside.swarm_priorities import priorities
    from modules.hostside.swarm_request import Request
    from modules.hostside.weights_blobs import GiveUpError
    from modules.hostside.weights_stamp import WantedFile
else:
    # The programs import each other as they lie on a host, flat: these are the classes that they see.
    from swarm import Swarm
    from swarm_priorities import priorities
    from swarm_request import Request
    from weights_blobs import GiveUpError
    from weights_stamp import WantedFile

COMMIT, NAME = "c" * 40, "owner/tiny"
# Each of the processes that run tests at once, also of other copies of the project, has a port of its own, below those
# that outgoing connections take.
PORT = 22000 + os.getpid() % 10000
CONTENT = {
    "model-1.safetensors": shard(1_500_000, os.urandom(1_500_000)),
    "model-2.safetensors": shard(700_001, os.urandom(700_001)),
    "empty": b"",
}
FILES = [WantedFile(name, len(data), hashlib.sha256(data).hexdigest(), lfs=True) for name, data in CONTENT.items()]
TREE: dict[str, object] = {"model-1.safetensors": {"size": 1_500_000, "blob_id": "x"}}
FILTERS: dict[str, list[str]] = {"include": [], "exclude": []}


@dataclass
class Place:
    """A host: an address and a home."""

    number: int
    root: Path

    @property
    def address(self) -> str:
        return f"127.0.0.{self.number}"

    @property
    def repository(self) -> Repository:
        return Repository(self.root / str(self.number), NAME)

    def put(self, name: str, data: bytes, kind: str = "") -> Path:
        file = next(file for file in FILES if file.path == name)
        path = self.repository.folder / "blobs" / (file.digest + kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def request(self, giver: Request, *others: Place, share: tuple[int, int] = (0, 1)) -> Request:
        return replace(
            giver,
            share=share,
            repository=self.repository,
            listen=[self.address],
            peers=[(other.address, PORT) for other in others],
            takers=[other.address for other in others if [other.address] != giver.listen],
        )

    def content(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.repository.snapshot(COMMIT).iterdir()}


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Place]:
    """Three hosts; the first has the model, and its stamp."""
    for module in ("weights_stamp", "modules.hostside.weights_stamp"):
        monkeypatch.setattr(f"{module}.STAMPS", tmp_path / "stamps")
    monkeypatch.setenv("TINDERBOX_JOB_DIR", str(tmp_path))
    found = [Place(number, tmp_path) for number in (11, 12, 13)]
    for place in found:
        place.repository.folder.mkdir(parents=True)
    for name, data in CONTENT.items():
        blob = found[0].put(name, data)
        entry = found[0].repository.snapshot(COMMIT) / name
        entry.parent.mkdir(parents=True, exist_ok=True)
        entry.symlink_to(blob)
    weights_stamp.write_stamp(found[0].repository, COMMIT, FILTERS, FILES, "now")
    return found


@pytest.fixture
def offered(places: list[Place]) -> Request:
    """The first host's request, of what it offers itself."""
    offer = offer_weights.offer(places[0].repository, COMMIT, Progress())
    return Request(
        repository=places[0].repository, revision="main", commit=COMMIT, filters=FILTERS, files=FILES, tree=TREE,
        name=str(offer["name"]), piece_bytes=int(str(offer["piece_bytes"])),
        pieces=base64.b64decode(str(offer["pieces"])), listen=[places[0].address], port=PORT,
        peers=[(place.address, PORT) for place in places[1:]], takers=[place.address for place in places[1:]],
        allowed=[], limit_bytes=0, reserve_bytes=0,
    )  # fmt: skip


@dataclass
class Giver:
    """The first host gives."""

    thread: threading.Thread
    stopped: threading.Event


@pytest.fixture
def giver(offered: Request) -> Iterator[Giver]:
    stopped = threading.Event()
    thread = threading.Thread(target=share_weights.share, args=(offered, Progress(), stopped))
    thread.start()
    yield Giver(thread, stopped)
    stopped.set()
    thread.join(10)
    assert not thread.is_alive()


def test_what_is_offered_is_cut_once_and_told_by_the_same_name(places: list[Place]) -> None:
    first = offer_weights.offer(places[0].repository, COMMIT, Progress())

    assert offer_weights.offer(places[0].repository, COMMIT, Progress()) == first
    assert len(str(first["name"])) == 40
    (kept,) = (path for path in weights_stamp.STAMPS.iterdir() if "pieces" in path.name)
    assert kept.stat().st_mode & 0o777 == 0o600


def test_what_was_touched_is_not_offered(places: list[Place]) -> None:
    places[0].repository.blob(FILES[0]).touch()

    with pytest.raises(ValueError, match="changed since it was verified"):
        offer_weights.offer(places[0].repository, COMMIT, Progress())


@pytest.mark.parametrize(
    ("total", "size"), [(1, 256), (400_000_000, 256), (4_000_000_000, 1024), (16_000_000_000, 4096), (10**12, 4096)]
)
def test_pieces_are_few_and_small(total: int, size: int) -> None:
    assert piece_bytes(total) == size * 1024


def test_every_file_begins_with_a_piece_of_its_own() -> None:
    files = ordered(FILES)
    cut = pieces(files, 262144)

    assert [sum(piece.size for piece in cut if piece.file == number) for number in range(2)] == [f.size for f in files]
    assert all(piece.size + piece.padding == 262144 for piece in cut if piece.file == 0)
    described = information("name", files, 262144, b"")
    assert [entry[b"length"] for entry in described[b"files"]] == [  # type: ignore[attr-defined]
        files[0].size, -files[0].size % 262144, files[1].size,
    ]  # fmt: skip


@pytest.mark.usefixtures("giver")
def test_two_hosts_take_it_at_once_verified_and_in_the_ordinary_layout(places: list[Place], offered: Request) -> None:
    requests = [
        places[1].request(offered, places[0], places[2], share=(0, 2)),
        places[2].request(offered, places[0], places[1], share=(1, 2)),
    ]
    takers = [threading.Thread(target=take_weights.run, args=(request, Progress())) for request in requests]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join(60)

    for place in places[1:]:
        assert place.content() == CONTENT
        assert (place.repository.folder / "refs" / "main").read_text() == COMMIT
        assert json.loads(place.repository.tree(COMMIT).read_text()) == {"format_version": 1, "files": TREE}
        assert not list(place.repository.folder.rglob("*incomplete")) + list(place.repository.folder.glob(".*swarm*"))


def test_who_gives_ends_when_all_have_it(places: list[Place], offered: Request, giver: Giver) -> None:
    for place in places[1:]:
        take_weights.run(place.request(offered, places[0]), Progress())

    giver.thread.join(20)

    assert not giver.thread.is_alive()


def test_who_gives_ends_when_nobody_comes(offered: Request) -> None:
    share_weights.share(offered, Progress(), threading.Event(), patience_s=0.2)


def test_what_is_there_is_not_taken_again(places: list[Place], offered: Request, giver: Giver) -> None:
    place = places[1]
    place.put("model-1.safetensors", CONTENT["model-1.safetensors"])
    place.put("model-2.safetensors", CONTENT["model-2.safetensors"][:600_000], HUB_PART)

    taken = payload(place.request(offered, places[0]))

    assert place.content() == CONTENT
    # The beginning that the hub gave holds two whole pieces.
    assert is_about(taken, len(CONTENT["model-2.safetensors"]) - 2 * 262144)
    assert giver.thread.is_alive()


def payload(request: Request) -> int:
    """Take all; how many bytes came from peers."""
    taken: list[int] = []
    closing = Swarm.close

    def close(swarm: Swarm) -> None:
        taken.append(int(swarm.status().total_payload_download))
        closing(swarm)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(take_weights, "linger", lambda *_: None)
        patch.setattr(Swarm, "close", close)
        take_weights.run(request, Progress())
    return taken[0]


def is_about(taken: int, wanted: int) -> bool:
    """Blocks of 16 KiB come whole, zeros behind a file's end and all."""
    return wanted <= taken < wanted + 2 * 16384


@pytest.mark.usefixtures("giver")
def test_a_wrong_file_is_set_aside_and_taken_alone(places: list[Place], offered: Request) -> None:
    place = places[1]
    request = place.request(offered, places[0])
    take_weights.run(request, Progress())
    wrong = place.repository.snapshot(COMMIT) / "model-2.safetensors"
    wrong.resolve().write_bytes(b"X" * len(CONTENT["model-2.safetensors"]))

    taken = payload(request)

    assert is_about(taken, len(CONTENT["model-2.safetensors"]))
    assert place.content() == CONTENT
    (note,) = json.loads((place.root / "result.json").read_text())["notes"]
    assert str(wrong) in note
    assert "it was taken anew" in note


@pytest.mark.usefixtures("giver")
def test_what_a_killed_process_had_is_believed_by_its_hash_only(places: list[Place], offered: Request) -> None:
    place, content = places[1], CONTENT["model-1.safetensors"]
    place.put("model-1.safetensors", content[:262144] + b"X" * 262144 + content[524288:], PEER_PART)

    taken = payload(place.request(offered, places[0]))

    assert is_about(taken, 262144 + len(CONTENT["model-2.safetensors"]))
    assert place.content() == CONTENT


def test_who_is_not_named_or_does_not_know_the_name_gets_nothing(places: list[Place], offered: Request) -> None:
    named, stranger = places[1], places[2]
    only = replace(offered, peers=[(named.address, PORT)])
    files = ordered(FILES)
    giving = Swarm(only, {file.digest: file.digest for file in files}, [True] * len(offered.pieces[::20]), {})
    guessing = replace(named.request(offered, places[0]), name="another name")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(take_weights, "PATIENCE_S", 2.0)
        for request in (stranger.request(offered, places[0]), guessing):
            with pytest.raises(GiveUpError, match=r"no peer gave anything for 2 s; 0\.00 of .* Connected: none"):
                take_weights.run(request, Progress())
    assert giving.status().total_payload_upload == 0
    take_weights.run(named.request(offered, places[0]), Progress())
    giving.close()

    assert named.content() == CONTENT


def test_a_port_that_is_taken_is_told(places: list[Place], offered: Request) -> None:
    files = ordered(FILES)
    have = [True] * len(pieces(files, offered.piece_bytes))
    names = {file.digest: file.digest for file in files}
    first = Swarm(offered, names, have, {})

    with pytest.raises(OSError, match=rf"port {PORT} for peers \(weights\.spread\.port\)"):
        Swarm(offered, names, have, {})
    first.close()


def test_a_disk_that_is_too_small_is_refused_before_the_first_byte(places: list[Place], offered: Request) -> None:
    with pytest.raises(GiveUpError, match=r"hardware\.reserve_disk_gib"):
        take_weights.run(replace(places[1].request(offered, places[0]), reserve_bytes=10**18), Progress())


def test_a_request_is_read_as_it_was_written(tmp_path: Path, offered: Request) -> None:
    document = {
        **{name: getattr(offered, name) for name in ("revision", "commit", "filters", "tree", "name", "piece_bytes")},
        **{name: getattr(offered, name) for name in ("listen", "port", "takers", "allowed", "limit_bytes")},
        "reserve_bytes": 0,
        "repository": NAME,
        "home": str(offered.repository.home),
        "files": [asdict(file) for file in FILES],
        "pieces": base64.b64encode(offered.pieces).decode(),
        "peers": offered.peers,
        "share": [0, 1],
    }
    (tmp_path / "request.json").write_text(json.dumps(document))

    found = Request.read(tmp_path / "request.json")

    assert found.repository.folder == offered.repository.folder
    assert replace(found, repository=offered.repository) == offered


def test_who_has_all_is_asked_for_ones_own_share_until_another_is_gone_with_his() -> None:
    elsewhere, none = [False, False, True, True], [False] * 4

    assert priorities(elsewhere, none, (0, 2), starving=False) == [7, 0, 4, 4]
    assert priorities(elsewhere, none, (1, 2), starving=False) == [0, 7, 4, 4]
    assert priorities(elsewhere, none, (0, 2), starving=True) == [7, 4, 4, 4]
    assert priorities(elsewhere, none, (0, 1), starving=False) == [7, 7, 4, 4]


def test_of_a_share_only_what_comes_next_is_asked_for() -> None:
    pieces_of_all, hosts = 2 * 64, 2
    nothing = [False] * pieces_of_all
    wanted = priorities(nothing, nothing, (1, hosts), starving=False)
    assert [number for number, priority in enumerate(wanted) if priority] == list(range(1, 32, 2))

    have = [number < 10 for number in range(pieces_of_all)]
    wanted = priorities(nothing, have, (1, hosts), starving=False)
    assert [number for number, priority in enumerate(wanted) if priority] == list(range(11, 42, 2))

    # Of a large model, seconds' worth all the same.
    many = [False] * (2 * 1600)
    assert priorities(many, many, (0, hosts), starving=False).count(7) == 100


@pytest.mark.usefixtures("giver")
def test_a_host_takes_the_share_of_one_that_does_not_come(
    places: list[Place], offered: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(take_weights, "_STARVING_S", 0.5)

    take_weights.run(places[1].request(offered, places[0], places[2], share=(1, 2)), Progress())

    assert places[1].content() == CONTENT


def test_pieces_of_a_file_that_is_not_there_have_no_hash(tmp_path: Path) -> None:
    assert set(hashes([tmp_path / "none"] * 2, pieces(ordered(FILES), 262144))) == {None}


@pytest.mark.usefixtures("giver")
def test_a_limit_holds_on_the_local_network(places: list[Place], offered: Request) -> None:
    limit = 400_000
    request = replace(places[1].request(offered, places[0]), limit_bytes=limit)
    started = time.monotonic()

    take_weights.run(request, Progress())

    # A bound that a busy machine can not break: it takes longer there, not shorter.
    assert time.monotonic() - started > sum(map(len, CONTENT.values())) / limit * 0.5
