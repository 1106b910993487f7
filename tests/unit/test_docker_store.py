"""What docker holds, by its own answers."""

from __future__ import annotations

import http.server
import json
import socketserver
import threading
from pathlib import Path
from typing import Any

import pytest

from modules.hostside.docker_store import Cached, ask, look, made_within, store_of

OURS = "tinderbox/vllm:0123456789ab"
DISK: dict[str, Any] = {
    "Images": [
        {"Id": "sha256:1", "RepoTags": [OURS], "Size": 100, "SharedSize": 40},
        {"Id": "sha256:2", "RepoTags": ["mine:1"], "Size": 50, "SharedSize": -1},
        {"Id": "sha256:3", "RepoTags": ["<none>:<none>"], "Size": 50, "SharedSize": 0},
    ],
    "Containers": [
        {"Id": "c1", "Names": ["/tinderbox-gpt-oss"], "ImageID": "sha256:1", "State": "running",
         "Labels": {"tinderbox.service": "gpt-oss"}, "Mounts": [{"Type": "bind", "Source": "/data/hub"}]},
        {"Id": "c2", "Names": ["/mine"], "ImageID": "sha256:1", "State": "exited", "Labels": None,
         "Mounts": [{"Type": "bind", "Source": "/data"}, {"Type": "volume", "Source": "/var/lib/docker/volumes/x"}]},
    ],
    "Volumes": [{"Name": "mine", "Driver": "local"}, {"Name": "tinderbox-grafana", "Driver": "local"}],
    "BuildCache": [
        {"ID": "b1", "Size": 7, "InUse": False, "CreatedAt": "2026-11-30T20:00:01.123456789Z",
         "LastUsedAt": "2026-11-30T20:00:05.5Z"},
        {"ID": "b2", "Size": 8, "Shared": True, "InUse": False, "CreatedAt": "2026-11-30T20:00:01Z",
         "LastUsedAt": None},
        {"ID": "b3", "Size": 9, "InUse": True, "CreatedAt": "2026-11-30T20:00:01Z", "LastUsedAt": None},
    ],
}  # fmt: skip


def answers(path: str) -> Any:
    if path == "/version":
        return {"ApiVersion": "1.41"}
    if path == "/v1.41/system/df":
        return DISK
    return {"HostConfig": {"Runtime": "nvidia" if "/c2/" in path else "runc", "DeviceRequests": None}}


def test_images_containers_and_cache_are_read() -> None:
    store = look(answers)
    assert store is not None
    assert [(image.our_names, image.bytes) for image in store.images] == [([OURS], 60), ([], 50), ([], 50)]
    assert [(one.name, one.ours, one.running, one.gpu) for one in store.containers] == [
        ("tinderbox-gpt-oss", True, True, False),
        ("mine", False, False, True),
    ]
    assert store.users_of(store.images[0]) == ["container mine uses it"]
    assert store.users_of(store.images[1]) == []


def test_volumes_of_others_are_told_from_ours() -> None:
    store = store_of(DISK, {})
    assert store.volumes == ("mine", "tinderbox-grafana")
    assert store.others_volumes == ["mine"]
    assert store_of({**DISK, "Volumes": None}, {}).volumes == ()


def test_who_mounts_a_folder_or_one_around_or_in_it_needs_it() -> None:
    store = store_of(DISK, {})
    assert store.mounted(Path("/data/hub/models--x--y")) == ["container mine mounts /data"]
    assert store.mounted(Path("/elsewhere")) == []


def test_the_cache_of_others_builds_is_not_ours() -> None:
    cache = store_of(DISK, {}).cache
    # What an image has, too, is not freed by it.
    assert [one.bytes for one in cache] == [7, 0, 9]
    (begin,) = {one.created for one in cache if one.id == "b2"}
    assert [one.id for one in made_within(cache, [(begin - 1, begin + 10)])] == ["b1", "b2", "b3"]
    # Somebody's build has used it afterwards.
    later = Cached("b4", 1, begin, begin + 99)
    assert made_within([later], [(begin - 1, begin + 10)]) == []
    assert made_within([later], [(begin - 1, begin + 10), (begin + 98, begin + 100)]) == [later]
    assert made_within(cache, []) == []


def test_a_docker_that_does_not_answer_is_unknown() -> None:
    def silent(path: str) -> Any:
        raise ConnectionRefusedError(path)

    assert look(silent) is None


class Daemon(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers at a socket as dockerd does."""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        said = json.dumps(answers(self.path) if self.path != "/broken" else {"message": "no such thing"}).encode()
        self.send_response(404 if self.path == "/broken" else 200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


def test_docker_is_asked_at_its_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "docker.sock")
    monkeypatch.setattr("docker_api.SOCKET", path)
    assert look() is None
    with Daemon(path, Handler) as daemon:
        threading.Thread(target=daemon.serve_forever, daemon=True).start()
        assert look() == look(answers)
        with pytest.raises(OSError, match="/broken: no such thing"):
            ask("/broken")
        daemon.shutdown()
