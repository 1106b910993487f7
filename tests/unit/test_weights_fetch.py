"""The real client against the lab mirror's hub on loopback, in this process."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import snapshot_download
from huggingface_hub.errors import IncompleteSnapshotError

from modules.hostside import fetch_weights, verify_weights, weights_blobs, weights_stamp
from modules.lab.mirror.faults import Faults
from modules.lab.mirror.hub import hub_site
from modules.lab.mirror.journal import Journal
from modules.lab.mirror.server import MirrorServer
from tests.unit.safetensors_samples import shard

COMMIT = "c" * 40
NAME = "owner/tiny"
LARGE = {"model-1.safetensors": shard(15000, b"one"), "model-2.safetensors": shard(21000, b"two")}
SMALL = {"config.json": b'{"a": 1}'}
DECOYS = {"original/model.bin": b"decoy", "metal/model.bin": b"decoy"}


def blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@dataclass
class Hub:
    """A hub with one model, and a host that fetches from it."""

    root: Path
    endpoint: str

    def faults(self, *rules: dict[str, Any]) -> None:
        (self.root / "faults.json").write_text(json.dumps(rules))

    def publish(self, more: dict[str, bytes], **index: str) -> None:
        """Have the model on the hub, with `more` files; `index`: further keys of its hub.json."""
        folder = self.root / "hub" / "owner" / "tiny"
        files = []
        for path, data in {**LARGE, **SMALL, **DECOYS, **more}.items():
            (folder / COMMIT / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / COMMIT / path).write_bytes(data)
            sha256 = hashlib.sha256(data).hexdigest() if path in LARGE else None
            files.append({"path": path, "size": len(data), "oid": blob_id(data), "sha256": sha256})
        document = {"refs": {"main": COMMIT}, "commits": {COMMIT: files}, **index}
        (folder / "hub.json").write_text(json.dumps(document))

    def requests(self, method: str = "GET") -> list[str]:
        path = self.root / "requests.jsonl"
        lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
        return [line["path"] for line in lines if line["method"] == method and "agent-harnesses" not in line["path"]]

    def given(self, name: str) -> int:
        """How many bytes of a file the hub sent, in all its answers."""
        lines = map(json.loads, (self.root / "requests.jsonl").read_text().splitlines())
        return sum(line["bytes"] for line in lines if line["method"] == "GET" and line["path"].endswith(f"/{name}"))

    def lines(self, name: str) -> list[dict[str, Any]]:
        """What the hub noted of each request for a file."""
        lines = map(json.loads, (self.root / "requests.jsonl").read_text().splitlines())
        return [line for line in lines if line["path"].endswith(f"/{name}")]

    def forget(self) -> None:
        (self.root / "requests.jsonl").unlink(missing_ok=True)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def snapshot(self) -> Path:
        return self.home / "hub" / "models--owner--tiny" / "snapshots" / COMMIT

    def fetch(self, *more: str) -> int:
        words = ["--repository", NAME, "--revision", "main", "--home", str(self.home), *more]
        words += ["--exclude", "original/*", "--exclude", "metal/*"]
        request = fetch_weights.parse(words)
        return fetch_weights.attempt(request)

    def look(self, *, hashes: bool = False) -> dict[str, Any]:
        repository = weights_stamp.Repository(self.home, NAME)
        return verify_weights.look(repository, "main", hashes=hashes)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    faults, journal = Faults(tmp_path / "faults.json"), Journal(tmp_path / "requests.jsonl")
    server = MirrorServer(("127.0.0.1", 0), {"127.0.0.1": hub_site(tmp_path / "hub")}, faults, journal, None)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    monkeypatch.setenv("TINDERBOX_JOB_DIR", str(tmp_path))
    # The programs import each other as they lie on a host, flat, so the module is there under two names.
    for module in ("weights_stamp", "modules.hostside.weights_stamp"):
        monkeypatch.setattr(f"{module}.STAMPS", tmp_path / "stamps")
    (tmp_path / "home").mkdir()
    served = Hub(tmp_path, endpoint)
    served.publish({})
    yield served
    server.shutdown()
    server.server_close()


def test_wanted_files_come_once_in_the_ordinary_layout_and_are_known_again(hub: Hub) -> None:
    assert hub.fetch() == 0

    assert {path.name: path.read_bytes() for path in hub.snapshot.iterdir()} == {**LARGE, **SMALL}
    assert (hub.snapshot.parents[1] / "refs" / "main").read_text() == COMMIT
    found = json.loads((hub.root / "result.json").read_text())
    assert (found["commit"], found["notes"]) == (COMMIT, [])
    assert found["files"]["config.json"] == f"git:{blob_id(SMALL['config.json'])} {len(SMALL['config.json'])}"
    assert found["files"].keys() == {**LARGE, **SMALL}.keys()
    assert not [path for path in hub.requests() if "original" in path or "metal" in path]
    seen = hub.look()
    assert (seen["stamped"], seen["problems"], seen["files"]) == (True, [], 3)
    assert seen["filters"] == {"include": [], "exclude": ["original/*", "metal/*"]}
    assert hub.look(hashes=True)["problems"] == []


def test_a_commit_that_was_verified_here_is_made_right_without_asking_the_hub(hub: Hub) -> None:
    hub.fetch()
    hub.forget()

    assert hub.fetch("--commit", COMMIT) == 0

    assert hub.requests() == []


def test_a_flipped_byte_is_noticed_kept_and_only_that_file_fetched_anew(hub: Hub) -> None:
    hub.fetch()
    hub.forget()
    shard = hub.snapshot / "model-2.safetensors"
    with shard.open("r+b") as file:
        file.seek(100)
        file.write(b"X")
    (quick,) = hub.look()["problems"]
    assert quick == f"{shard}: changed since it was verified"
    (full,) = hub.look(hashes=True)["problems"]
    assert str(shard) in full
    assert hashlib.sha256(LARGE[shard.name]).hexdigest() in full

    assert hub.fetch("--commit", COMMIT) == 0

    assert shard.read_bytes() == LARGE[shard.name]
    assert [path.rsplit("/", 1)[1] for path in hub.requests()] == [shard.name]
    (kept,) = (hub.home / "tinderbox-set-aside" / "models--owner--tiny").iterdir()
    assert kept.read_bytes() != LARGE[shard.name]
    (note,) = json.loads((hub.root / "result.json").read_text())["notes"]
    assert str(shard) in note
    assert str(kept) in note
    assert hub.look()["problems"] == []


def test_a_flip_that_keeps_size_and_time_is_found_by_hashing_and_remembered_until_it_is_right(hub: Hub) -> None:
    hub.fetch()
    shard = hub.snapshot / "model-2.safetensors"
    times = shard.stat().st_atime_ns, shard.stat().st_mtime_ns
    with shard.open("r+b") as file:
        file.seek(100)
        file.write(b"X")
    os.utime(shard, ns=times)
    assert hub.look()["problems"] == []
    (full,) = hub.look(hashes=True)["problems"]
    assert hub.look()["problems"] == [full]

    assert hub.fetch("--commit", COMMIT) == 0

    assert shard.read_bytes() == LARGE[shard.name]
    assert hub.look()["problems"] == []


def test_what_was_found_wrong_is_taken_back_when_it_is_right_again(hub: Hub) -> None:
    hub.fetch()
    shard = hub.snapshot / "model-2.safetensors"
    times = shard.stat().st_atime_ns, shard.stat().st_mtime_ns
    for content in (b"X" * len(LARGE[shard.name]), LARGE[shard.name]):
        shard.write_bytes(content)
        os.utime(shard, ns=times)
        hub.look(hashes=True)

    assert hub.look()["problems"] == []


@pytest.mark.parametrize("name", [*LARGE, *SMALL])
def test_a_truncated_or_missing_file_is_noticed_and_made_right(hub: Hub, name: str) -> None:
    hub.fetch()
    content = {**LARGE, **SMALL}[name]
    (hub.snapshot / name).resolve().write_bytes(content[:3])
    (short,) = hub.look()["problems"]
    assert short == f"{hub.snapshot / name}: 3 bytes, was {len(content)}"
    assert hub.fetch("--commit", COMMIT) == 0

    (hub.snapshot / name).unlink()
    (missing,) = hub.look()["problems"]
    assert missing == f"{hub.snapshot / name}: missing"
    assert hub.fetch("--commit", COMMIT) == 0

    assert (hub.snapshot / name).read_bytes() == content
    assert hub.look(hashes=True)["problems"] == []


def test_a_home_that_was_removed_is_filled_anew_with_the_commits_listing(hub: Hub) -> None:
    hub.fetch()
    shutil.rmtree(hub.home / "hub")

    assert hub.fetch("--commit", COMMIT) == 0

    assert (hub.snapshot.parents[1] / "trees" / f"{COMMIT}.json").exists()
    assert hub.look(hashes=True)["problems"] == []


def test_touching_a_file_without_changing_it_costs_a_hash_and_no_download(hub: Hub) -> None:
    hub.fetch()
    hub.forget()
    (hub.snapshot / "config.json").resolve().touch()
    assert hub.look()["problems"]

    assert hub.fetch("--commit", COMMIT) == 0

    assert hub.requests() == []
    assert hub.look()["problems"] == []


def test_a_hub_that_gives_wrong_content_twice_is_refused_by_name_and_leaves_no_stamp(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    other = b"TWO" * 7000
    (hub.root / "hub" / "owner" / "tiny" / COMMIT / "model-2.safetensors").write_bytes(other)

    assert hub.fetch() == 1

    told = capsys.readouterr().err
    assert "model-2.safetensors" in told
    assert hashlib.sha256(LARGE["model-2.safetensors"]).hexdigest() in told
    assert hub.look()["stamped"] is False


def test_a_cut_connection_is_resumed_and_pieces_of_a_killed_client_are_cleared(hub: Hub) -> None:
    blobs = hub.home / "hub" / "models--owner--tiny" / "blobs"
    blobs.mkdir(parents=True)
    orphan, growing = (blobs / f"{'a' * 64}.{name}.incomplete" for name in ("12ab", "34cd"))
    for path in (orphan, growing):
        path.write_bytes(b"of another client")
    os.utime(orphan, (1, 1))
    hub.faults({"path": "model-1", "method": "GET", "cut_after": 1000, "times": 1})

    assert hub.fetch() == 0

    assert list(blobs.glob("*.incomplete")) == [growing]
    assert hub.given("model-1.safetensors") == len(LARGE["model-1.safetensors"])
    assert hub.look(hashes=True)["problems"] == []


def test_what_a_killed_client_of_ours_gathered_is_taken_up_to_the_byte(hub: Hub) -> None:
    shard, content = "model-2.safetensors", LARGE["model-2.safetensors"]
    digest = hashlib.sha256(content).hexdigest()
    part = hub.home / "hub" / "models--owner--tiny" / "blobs" / f"{digest}{weights_blobs.HUB_PART}"
    part.parent.mkdir(parents=True)
    part.write_bytes(content[:15000])

    assert hub.fetch() == 0

    assert hub.given(shard) == len(content) - 15000
    assert (hub.snapshot / shard).read_bytes() == content
    assert not part.exists()


@pytest.mark.parametrize("gathered", [b"X" * 15000, b"X" * 40000, b"X" * 21000])
def test_what_was_gathered_wrongly_is_found_kept_and_fetched_anew(hub: Hub, gathered: bytes) -> None:
    shard, content = "model-2.safetensors", LARGE["model-2.safetensors"]
    digest = hashlib.sha256(content).hexdigest()
    part = hub.home / "hub" / "models--owner--tiny" / "blobs" / f"{digest}{weights_blobs.HUB_PART}"
    part.parent.mkdir(parents=True)
    part.write_bytes(gathered)

    assert hub.fetch() == 0

    assert (hub.snapshot / shard).read_bytes() == content


def test_a_hub_that_knows_no_ranges_is_read_from_the_start(hub: Hub) -> None:
    content = LARGE["model-2.safetensors"]
    digest = hashlib.sha256(content).hexdigest()
    part = hub.home / "hub" / "models--owner--tiny" / "blobs" / f"{digest}{weights_blobs.HUB_PART}"
    part.parent.mkdir(parents=True)
    part.write_bytes(content[:15000])
    hub.faults({"path": "model-2", "status": 200, "body": content.decode()})

    assert hub.fetch() == 0

    assert (hub.snapshot / "model-2.safetensors").read_bytes() == content


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_hub_that_is_busy_is_asked_again(hub: Hub, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setattr("fetch_file.WAITS_S", (0.01,) * 3)
    hub.faults({"path": "model-2", "status": status, "times": 2})

    assert hub.fetch() == 0

    assert hub.look(hashes=True)["problems"] == []


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"status": 429}, "limits our rate (429)"),
        ({"status": 500}, "in trouble itself (500)"),
        ({"status": 404}, "no such repository (404)"),
        ({"status": 200, "body": "<html>please log in</html>"}, "model-2.safetensors: the answer has 26 bytes"),
        ({"drop": True}, "the connection broke"),
    ],
)
def test_a_file_that_does_not_come_is_told_and_the_others_are_kept(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fault: dict[str, Any], words: str
) -> None:
    monkeypatch.setattr("fetch_file.WAITS_S", (0.01,) * 3)
    hub.faults({"path": "model-2", **fault})

    assert hub.fetch("--workers", "1") == 1

    told = capsys.readouterr().err
    assert words in told
    assert "owner/tiny@main, model-2.safetensors, from" in told
    hub.faults()
    assert hub.fetch() == 0
    assert hub.look(hashes=True)["problems"] == []


def test_the_client_itself_finds_what_was_placed_without_asking_the_hub(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.fetch()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    wanted = [*LARGE, *SMALL]

    found = snapshot_download(NAME, revision="main", cache_dir=hub.home / "hub", allow_patterns=wanted)

    assert Path(found) == hub.snapshot
    # It knows the whole commit, so that it can say what is not there.
    with pytest.raises(IncompleteSnapshotError):
        snapshot_download(NAME, revision="main", cache_dir=hub.home / "hub")


def test_a_cache_without_links_is_taken_over_and_its_dangling_links_are_mended(hub: Hub) -> None:
    blobs = hub.snapshot.parents[1] / "blobs"
    hub.snapshot.mkdir(parents=True)
    (hub.snapshot / "model-1.safetensors").write_bytes(LARGE["model-1.safetensors"])
    (hub.snapshot / "model-2.safetensors").symlink_to("../../blobs/gone")

    assert hub.fetch() == 0

    assert hub.given("model-1.safetensors") == 0
    assert {path.name: path.read_bytes() for path in hub.snapshot.iterdir()} == {**LARGE, **SMALL}
    assert all(path.readlink().parent.name == "blobs" for path in hub.snapshot.iterdir())
    assert len(list(blobs.iterdir())) == 3


def test_a_file_that_is_not_of_the_model_is_noticed_and_put_where_no_engine_loads_it(hub: Hub) -> None:
    hub.fetch()
    hub.forget()
    stray = hub.snapshot / "model-3.safetensors"
    stray.write_bytes(b"of another model")
    (problem,) = hub.look()["problems"]
    assert problem == f"{stray}: the hub publishes no such file"
    assert hub.look(hashes=True)["problems"] == [problem]

    assert hub.fetch("--commit", COMMIT) == 0

    assert not stray.exists()
    assert hub.look()["problems"] == []
    (note,) = json.loads((hub.root / "result.json").read_text())["notes"]
    assert f"{stray}: the hub publishes no such file; it is kept as " in note
    assert hub.requests() == []


def test_a_file_of_the_commit_that_the_filters_leave_out_is_nothing_strange(hub: Hub) -> None:
    hub.fetch()
    (hub.snapshot / "original").mkdir()
    (hub.snapshot / "original" / "model.bin").write_bytes(DECOYS["original/model.bin"])

    assert hub.look()["problems"] == []


def test_a_connection_that_stalls_is_renewed_and_goes_on_where_it_stood(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DOWNLOAD_TIMEOUT", 0.5)
    hub.faults({"path": "model-2", "method": "GET", "stall_after": 9000, "times": 1})

    assert hub.fetch() == 0

    assert hub.look(hashes=True)["problems"] == []
    (resumed,) = (line for line in hub.lines("model-2.safetensors") if line["range"])
    assert resumed["range"] == "bytes=9000-"


def test_a_flip_on_the_way_is_fetched_anew_and_told(hub: Hub) -> None:
    hub.faults({"path": "model-2", "method": "GET", "flip_at": 9000, "times": 1})

    assert hub.fetch() == 0

    (note,) = json.loads((hub.root / "result.json").read_text())["notes"]
    assert note.startswith("model-2.safetensors: sha256 ")
    assert (hub.snapshot / "model-2.safetensors").read_bytes() == LARGE["model-2.safetensors"]


@pytest.mark.parametrize("length", [20_000, 30_000])
def test_a_length_that_is_wrong_is_told_before_a_byte_is_taken(
    hub: Hub, capsys: pytest.CaptureFixture[str], length: int
) -> None:
    hub.faults({"path": "model-2", "method": "GET", "length": length})

    assert hub.fetch() == 1

    assert f"model-2.safetensors: the answer has {length} bytes" in capsys.readouterr().err
    hub.faults()
    assert hub.fetch() == 0


def test_a_disk_that_is_too_small_is_refused_before_the_first_byte(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    assert hub.fetch("--reserve-bytes", str(10**18)) == 1

    assert "hardware.reserve_disk_gib" in capsys.readouterr().err
    assert not [path for path in hub.requests() if "resolve" in path]


def test_what_is_there_counts_as_space_that_is_not_needed(hub: Hub) -> None:
    hub.fetch()

    assert hub.fetch("--reserve-bytes", str(10**18)) == 0


def test_filters_that_leave_nothing_are_refused(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert hub.fetch("--include", "*.gguf") == 1

    assert "no file of owner/tiny" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"status": 404, "headers": {"X-Error-Code": "RepoNotFound"}}, "no such repository (404)"),
        ({"status": 404, "headers": {"X-Error-Code": "RevisionNotFound"}}, "no revision 'main'"),
        ({"status": 401}, "wants to know who asks (401)"),
        ({"status": 403, "headers": {"X-Error-Code": "GatedRepo"}}, "gated (403): accept the model's licence"),
        ({"status": 500}, "in trouble itself (500)"),
        ({"status": 200, "body": "<html>please log in</html>"}, "not JSON: a proxy or a login page"),
        ({"drop": True}, "the connection broke"),
    ],
)
def test_every_trouble_of_the_hub_names_the_hub_and_the_model_and_says_what_to_do(
    hub: Hub, capsys: pytest.CaptureFixture[str], fault: dict[str, Any], words: str
) -> None:
    hub.faults({"path": "/api/models", **fault})

    assert hub.fetch() == 1

    told = capsys.readouterr().err
    assert words in told
    assert hub.endpoint in told
    assert "owner/tiny@main" in told
    assert "Traceback" not in told
    assert hub.look()["stamped"] is False


@pytest.mark.parametrize(("status", "words"), [(401, "gated (401): accept"), (403, "gated (403): accept")])
def test_a_gated_model_shows_its_files_and_gives_none(
    hub: Hub, capsys: pytest.CaptureFixture[str], status: int, words: str
) -> None:
    # As on the real hub: anybody may list what only those may fetch who have accepted the licence.
    hub.faults({"path": "/resolve/", "status": status, "headers": {"X-Error-Code": "GatedRepo"}})

    assert hub.fetch() == 1

    assert words in capsys.readouterr().err
    assert hub.look()["stamped"] is False
    hub.faults()
    assert hub.fetch() == 0
    assert hub.look(hashes=True)["problems"] == []


def test_files_that_are_right_one_by_one_but_make_no_checkpoint_are_told_and_never_taken_for_good(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    index = {"weight_map": {"of.6f6e65": "model-1.safetensors", "of.74776f": "model-2.safetensors"}}
    hub.publish({"model.safetensors.index.json": json.dumps(index).encode()})

    assert hub.fetch("--exclude", "model-2*") == 1

    told = capsys.readouterr().err
    assert "no engine can load them: model-2.safetensors: not here, and the index names it" in told
    assert "`include` and `exclude`" in told
    assert hub.look()["stamped"] is False
    assert hub.fetch() == 0
    assert hub.look()["problems"] == []


def test_a_hub_that_lists_other_content_than_the_lock_has_is_refused_before_a_byte(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = {name: f"sha256:{hashlib.sha256(data).hexdigest()} {len(data)}" for name, data in LARGE.items()}
    altered = shard(21000, b"evil")
    hub.publish({"model-2.safetensors": altered})
    (hub.root / "locked.json").write_text(json.dumps(lines))

    assert hub.fetch("--locked", str(hub.root / "locked.json")) == 1

    told = capsys.readouterr().err
    assert f"owner/tiny@{COMMIT}, model-2.safetensors: {hub.endpoint} lists sha256:" in told
    assert f"the fleet's lock has {lines['model-2.safetensors']}" in told
    assert not [path for path in hub.requests() if "resolve" in path]
    hub.publish({})
    assert hub.fetch("--locked", str(hub.root / "locked.json")) == 0


GATED_TOKEN = "hf_" + "OfSomebodyWhoHasAccepted0123456789"


def test_a_gated_model_is_fetched_with_the_token_of_who_may_have_it(
    hub: Hub, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.publish({}, gated=hashlib.sha256(GATED_TOKEN.encode()).hexdigest())
    for token, words in ((None, "gated (401)"), ("hf_another", "gated (403)")):
        (hub.root / "token").write_text(token or "")
        assert hub.fetch(*(["--token-file", str(hub.root / "token")] if token else [])) == 1
        assert words in capsys.readouterr().err
    (hub.root / "token").write_text(f"{GATED_TOKEN}\n")

    assert hub.fetch("--token-file", str(hub.root / "token")) == 0

    assert hub.look(hashes=True)["problems"] == []
    assert GATED_TOKEN not in "".join(capsys.readouterr())


def test_nothing_that_listens_is_told(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")

    assert hub.fetch() == 1

    assert "nothing listens there" in capsys.readouterr().err


def test_progress_ends_at_all_bytes(hub: Hub) -> None:
    hub.fetch()

    progress = json.loads((hub.root / "progress.json").read_text())
    assert (progress["step"], progress["unit"]) == ("verifying", "bytes")
    assert progress["done"] == progress["total"] == sum(map(len, [*LARGE.values(), *SMALL.values()]))
