"""The lab's hub, asked by the real client."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi, hf_hub_download, snapshot_download
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

from modules.lab.mirror.faults import Faults
from modules.lab.mirror.hub import hub_site
from modules.lab.mirror.journal import Journal
from modules.lab.mirror.server import MirrorServer
from modules.lab.model.repository import commit_of, listing

REPOSITORY = "someone/something"
# Larger than what the client writes at a time: of less than that it keeps nothing.
SHARD = bytes(range(256)) * (12 << 12)
FILES = {
    "config.json": b"{}\n",
    "model-00001-of-00001.safetensors": SHARD,
    "original/model.bin": b"decoy",
}


@dataclass(frozen=True)
class Hub:
    endpoint: str
    commit: str
    state: Path

    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.state / "requests.jsonl").read_text().splitlines()]

    def forget(self) -> None:
        (self.state / "requests.jsonl").write_text("")

    def break_it(self, *faults: dict[str, Any]) -> None:
        (self.state / "faults.json").write_text(json.dumps(faults))

    def snapshot(self, cache: Path, **more: Any) -> Path:
        return Path(snapshot_download(REPOSITORY, endpoint=self.endpoint, cache_dir=cache, max_workers=1, **more))


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    files = tmp_path / "files"
    for name, content in FILES.items():
        (files / name).parent.mkdir(parents=True, exist_ok=True)
        (files / name).write_bytes(content)
    listed = listing(files)
    commit = commit_of(listed)
    repository = tmp_path / "hub" / REPOSITORY
    repository.mkdir(parents=True)
    files.rename(repository / commit)
    (repository / "hub.json").write_text(json.dumps({"refs": {"main": commit}, "commits": {commit: listed}}))
    state = tmp_path / "state"
    state.mkdir()
    journal = Journal(state / "requests.jsonl")
    sites = {"127.0.0.1": hub_site(tmp_path / "hub")}
    server = MirrorServer(("127.0.0.1", 0), sites, Faults(state / "faults.json"), journal, None)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield Hub(f"http://127.0.0.1:{server.server_port}", commit, state)
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_snapshot_of_a_branch_is_whole_and_keeps_the_form_of_the_real_hub(hub: Hub, tmp_path: Path) -> None:
    snapshot = hub.snapshot(tmp_path / "cache")
    assert snapshot.name == hub.commit
    assert {name: (snapshot / name).read_bytes() for name in FILES} == FILES
    shard = (snapshot / "model-00001-of-00001.safetensors").resolve()
    assert shard.name == hashlib.sha256(SHARD).hexdigest()


def test_filters_leave_files_out(hub: Hub, tmp_path: Path) -> None:
    snapshot = hub.snapshot(tmp_path / "cache", ignore_patterns=["original/*"])
    assert not (snapshot / "original").exists()


def test_a_pinned_commit_that_is_there_asks_nothing(hub: Hub, tmp_path: Path) -> None:
    hub.snapshot(tmp_path / "cache", revision=hub.commit)
    hub.forget()
    hub.snapshot(tmp_path / "cache", revision=hub.commit)
    assert hub.requests() == []


def test_a_download_that_was_cut_goes_on_where_it_stopped(hub: Hub, tmp_path: Path) -> None:
    hub.break_it({"method": "GET", "path": "safetensors$", "cut_after": 11 << 20, "times": 1})
    snapshot = hub.snapshot(tmp_path / "cache")
    assert (snapshot / "model-00001-of-00001.safetensors").read_bytes() == SHARD
    ranges = [each["range"] for each in hub.requests() if each["method"] == "GET" and "safetensors" in each["path"]]
    assert ranges == [None, f"bytes={10 << 20}-"]


def test_what_is_not_there_has_the_hubs_error_codes(hub: Hub, tmp_path: Path) -> None:
    api = HfApi(endpoint=hub.endpoint)
    with pytest.raises(RepositoryNotFoundError):
        api.model_info("someone/nothing")
    with pytest.raises(RevisionNotFoundError):
        api.model_info(REPOSITORY, revision="0" * 40)
    with pytest.raises(EntryNotFoundError):
        hf_hub_download(REPOSITORY, "absent.json", endpoint=hub.endpoint, cache_dir=tmp_path / "cache")


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_reaches_the_client(hub: Hub, status: int) -> None:
    hub.break_it({"path": "^/api/", "status": status, "body": "no"})
    with pytest.raises(HfHubHTTPError) as refused:
        HfApi(endpoint=hub.endpoint).model_info(REPOSITORY)
    assert refused.value.response.status_code == status


def test_the_tree_tells_what_each_file_must_hash_to(hub: Hub) -> None:
    tree = {entry.path: entry for entry in HfApi(endpoint=hub.endpoint).list_repo_tree(REPOSITORY, recursive=True)}
    shard = tree["model-00001-of-00001.safetensors"]
    assert shard.lfs.sha256 == hashlib.sha256(SHARD).hexdigest()  # type: ignore[union-attr]
    assert tree["config.json"].lfs is None  # type: ignore[union-attr]
