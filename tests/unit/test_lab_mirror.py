"""The sites of the lab's mirror, and what it does on request when it misbehaves."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from modules.lab.mirror.faults import Faults
from modules.lab.mirror.message import Request
from modules.lab.mirror.names import answer
from modules.lab.mirror.ranges import UnsatisfiableRangeError, parse_range
from modules.lab.mirror.registry import registry_site
from modules.lab.mirror.server import _flipped
from modules.lab.mirror.static import static_site
from modules.lab.mirror.wheels import wheel_site


def get(path: str, method: str = "GET") -> Request:
    return Request("some.lab", method, path)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("bytes=0-", (0, 99)),
        ("bytes=10-19", (10, 19)),
        ("bytes=90-500", (90, 99)),
        ("bytes=-10", (90, 99)),
        ("bytes=-500", (0, 99)),
        ("bytes=0-1,5-6", None),
        ("lines=1-2", None),
        ("bytes=-", None),
    ],
)
def test_ranges_are_read_as_http_says(header: str | None, expected: tuple[int, int] | None) -> None:
    assert parse_range(header, 100) == expected


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=20-10"])
def test_a_range_outside_the_file_is_refused(header: str) -> None:
    with pytest.raises(UnsatisfiableRangeError):
        parse_range(header, 100)


def test_a_folder_is_served_and_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("no")
    (tmp_path / "root" / "cuda").mkdir(parents=True)
    (tmp_path / "root" / "cuda" / "Release").write_text("yes")
    serve = static_site(tmp_path / "root")
    assert serve(get("/cuda/Release")).file == tmp_path / "root" / "cuda" / "Release"
    assert serve(get("/cuda")).status == 404
    assert serve(get("/../secret")).status == 404


def test_the_wheel_index_has_hashes_and_the_metadata_beside_each_wheel(tmp_path: Path) -> None:
    wheel = tmp_path / "some_thing-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("some_thing-1.0.dist-info/METADATA", "Name: some-thing\n")
        archive.writestr("some_thing/_vendor/other-2.0.dist-info/METADATA", "Name: other\n")
    (tmp_path / "index.json").write_text(json.dumps({"some-thing": {wheel.name: "ab" * 32}}))
    serve = wheel_site(tmp_path)
    assert b'href="/simple/some-thing/"' in serve(get("/simple/")).body
    page = serve(get("/simple/some-thing/")).body.decode()
    assert f'href="/files/{wheel.name}#sha256={"ab" * 32}"' in page
    assert 'data-core-metadata="true"' in page
    assert serve(get(f"/files/{wheel.name}.metadata")).body == b"Name: some-thing\n"
    assert serve(get("/simple/unknown/")).status == 404
    assert serve(get("/files/index.json")).status == 404


def test_an_image_is_found_by_tag_and_by_digest(tmp_path: Path) -> None:
    manifest = json.dumps({"mediaType": "application/vnd.docker.distribution.manifest.v2+json"}).encode()
    digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    (tmp_path / "library" / "python" / "manifests").mkdir(parents=True)
    (tmp_path / "library" / "python" / "manifests" / digest).write_bytes(manifest)
    (tmp_path / "library" / "python" / "tags.json").write_text(json.dumps({"3.11": digest}))
    (tmp_path / "blobs").mkdir()
    (tmp_path / "blobs" / "sha256:00").write_bytes(b"layer")
    serve = registry_site(tmp_path)
    assert serve(get("/v2/")).headers["Docker-Distribution-API-Version"] == "registry/2.0"
    for reference in ("3.11", digest):
        found = serve(get(f"/v2/library/python/manifests/{reference}"))
        assert (found.body, found.headers["Docker-Content-Digest"]) == (manifest, digest)
    assert serve(get("/v2/library/python/blobs/sha256:00")).file == tmp_path / "blobs" / "sha256:00"
    assert json.loads(serve(get("/v2/library/python/tags/list")).body)["tags"] == ["3.11"]
    assert b"MANIFEST_UNKNOWN" in serve(get("/v2/library/python/manifests/3.12")).body
    assert serve(get("/v2/library/python/blobs/../tags.json")).status == 404
    assert b"NAME_UNKNOWN" in serve(get("/v2/library/ruby/manifests/3.11")).body


def test_faults_meet_what_they_name_and_end_after_their_times(tmp_path: Path) -> None:
    path = tmp_path / "faults.json"
    faults = Faults(path)
    request = Request("hub.lab", "GET", "/api/models/a/b")
    assert faults.match(request) is None
    path.write_text(json.dumps([{"host": "hub.lab", "path": "^/api/", "status": 500, "body": "x", "times": 2}]))
    assert faults.match(Request("pypi.lab", "GET", "/api/models/a/b")) is None
    assert faults.match(Request("hub.lab", "GET", "/a/b/resolve/main/c")) is None
    assert [fault.status if fault else None for fault in (faults.match(request) for _ in range(3))] == [500, 500, None]


def test_a_fault_file_that_is_half_written_means_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "faults.json"
    path.write_text('[{"status": 5')
    assert Faults(path).match(get("/")) is None


def test_the_same_faults_count_anew_after_they_were_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "faults.json"
    faults = Faults(path)
    for _ in range(2):
        path.write_text('[{"drop": true, "times": 1}]')
        assert faults.match(get("/")) is not None
        path.write_text("[]")
        assert faults.match(get("/")) is None


def query(name: str, kind: int = 1) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return (
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + labels + b"\x00" + kind.to_bytes(2, "big") + b"\x00\x01"
    )


def test_the_name_server_knows_its_names_whatever_their_case() -> None:
    reply = answer(query("Hub.Lab"), {"hub.lab": "10.1.2.3"})
    assert reply[:2] == b"\x12\x34"
    assert (reply[3] & 0x0F, reply[6:8]) == (0, b"\x00\x01")
    assert reply.endswith(bytes([10, 1, 2, 3]))


def test_the_name_server_has_no_ipv6_address_for_a_name_that_it_knows() -> None:
    reply = answer(query("hub.lab", 28), {"hub.lab": "10.1.2.3"})
    assert (reply[3] & 0x0F, reply[6:8]) == (0, b"\x00\x00")


def test_the_name_server_says_that_other_names_do_not_exist() -> None:
    reply = answer(query("example.com"), {"hub.lab": "10.1.2.3"})
    assert reply[3] & 0x0F == 3


def test_a_second_folder_of_images_is_asked_where_the_first_has_none(tmp_path: Path) -> None:
    for folder, image, text in (("own", "tiny", b"own"), ("given", "python", b"given")):
        digest = f"sha256:{hashlib.sha256(text).hexdigest()}"
        (tmp_path / folder / image).mkdir(parents=True)
        (tmp_path / folder / "blobs").mkdir()
        (tmp_path / folder / "blobs" / digest).write_bytes(text)
        (tmp_path / folder / image / "tags.json").write_text("{}")
    serve = registry_site(tmp_path / "own", tmp_path / "given", tmp_path / "not there")

    for image, text in (("tiny", b"own"), ("python", b"given")):
        found = serve(get(f"/v2/{image}/blobs/sha256:{hashlib.sha256(text).hexdigest()}"))
        assert found.file is not None
        assert found.file.read_bytes() == text
    assert serve(get("/v2/other/blobs/sha256:0")).status == 404


@pytest.mark.parametrize(
    ("at", "offset", "sent"),
    [(None, 0, b"abc"), (1, 0, b"a\x9dc"), (6, 5, b"a\x9dc"), (3, 0, b"abc"), (4, 5, b"abc")],
)
def test_one_byte_of_a_file_is_turned_over(at: int | None, offset: int, sent: bytes) -> None:
    assert _flipped(b"abc", at, offset) == sent
