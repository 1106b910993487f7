"""What the registry of a transfer keeps, serves and refuses: docker's own requests, over real sockets."""

from __future__ import annotations

import hashlib
import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modules.hostside.image_registry import Registry, mutual_tls
from modules.hostside.peer_tunnel import Tunnel, client_tls
from modules.operations.transfer_keys import TransferKeys, transfer_keys

# The registry's own, as on a host.
if TYPE_CHECKING:
    from modules.hostside.image_store import Store, WrongContentError
else:
    from image_store import Store, WrongContentError

NAME, TAG = "tinderbox/vllm", "0123456789ab"
MEDIA_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
LAYER, CONFIG = b"layer" * 1000, b'{"os": "linux"}'


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def manifest(*layers: bytes) -> bytes:
    parts = [{"digest": digest(layer), "size": len(layer)} for layer in layers]
    return json.dumps({"config": {"digest": digest(CONFIG), "size": len(CONFIG)}, "layers": parts}).encode()


def add(store: Store, content: bytes) -> None:
    upload = store.begin()
    store.append(upload, [content])
    store.finish(upload, digest(content))


def fill(store: Store, name: str = NAME, tag: str = TAG, *layers: bytes) -> str:
    for content in (CONFIG, *(layers or (LAYER,))):
        add(store, content)
    return store.put_manifest(name, tag, manifest(*(layers or (LAYER,))), MEDIA_TYPE)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "registry")


@pytest.fixture
def served(store: Store) -> Iterator[http.client.HTTPConnection]:
    """The registry as docker on its own host sees it."""
    with Registry(("127.0.0.1", 0), store) as registry:
        threading.Thread(target=registry.serve_forever, daemon=True).start()
        connection = http.client.HTTPConnection("127.0.0.1", registry.server_address[1], timeout=10)
        yield connection
        connection.close()
        registry.shutdown()


def test_an_upload_in_pieces_gets_its_place_and_comes_back_whole(
    store: Store, served: http.client.HTTPConnection
) -> None:
    served.request("POST", f"/v2/{NAME}/blobs/uploads/")
    answer = served.getresponse()
    answer.read()
    assert answer.status == 202
    place = answer.headers["Location"]
    served.request(
        "PATCH", place, iter([LAYER[:10], LAYER[10:]]), {"Transfer-Encoding": "chunked"}, encode_chunked=True
    )
    answer = served.getresponse()
    answer.read()
    assert (answer.status, answer.headers["Range"]) == (202, f"0-{len(LAYER) - 1}")
    served.request("PUT", f"{place}?digest={digest(LAYER)}")
    answer = served.getresponse()
    answer.read()
    assert answer.status == 201

    served.request("GET", f"/v2/{NAME}/blobs/{digest(LAYER)}")
    assert served.getresponse().read() == LAYER
    served.request("GET", f"/v2/{NAME}/blobs/{digest(LAYER)}", headers={"Range": "bytes=100-"})
    answer = served.getresponse()
    assert (answer.status, answer.read()) == (206, LAYER[100:])
    assert list((store.root / "uploads").iterdir()) == []


def test_an_upload_with_another_digest_is_refused_and_gone(store: Store, served: http.client.HTTPConnection) -> None:
    upload = store.begin()
    served.request("PUT", f"/v2/{NAME}/blobs/uploads/{upload}?digest={digest(b'other')}", LAYER)
    answer = served.getresponse()
    assert (answer.status, "DIGEST_INVALID" in answer.read().decode()) == (400, True)
    assert store.blob(digest(LAYER)) is None
    assert list((store.root / "uploads").iterdir()) == []


def test_a_manifest_is_found_by_tag_and_digest_and_only_with_its_layers(
    store: Store, served: http.client.HTTPConnection
) -> None:
    add(store, CONFIG)
    served.request("PUT", f"/v2/{NAME}/manifests/{TAG}", manifest(LAYER), {"Content-Type": MEDIA_TYPE})
    answer = served.getresponse()
    answer.read()
    assert answer.status == 400

    known = fill(store)
    for reference in (TAG, known):
        served.request("GET", f"/v2/{NAME}/manifests/{reference}")
        answer = served.getresponse()
        assert answer.read() == manifest(LAYER)
        assert (answer.headers["Docker-Content-Digest"], answer.headers["Content-Type"]) == (known, MEDIA_TYPE)
    served.request("GET", f"/v2/{NAME}/manifests/other")
    assert served.getresponse().status == 404


@pytest.mark.parametrize("name", ["../../etc", "tinderbox/../../x", "Upper/case", ""])
def test_no_name_leads_out_of_the_store(store: Store, name: str) -> None:
    add(store, CONFIG)
    add(store, LAYER)
    with pytest.raises(WrongContentError):
        store.put_manifest(name, TAG, manifest(LAYER), MEDIA_TYPE)
    assert store.manifest(name, TAG) is None
    assert store.blob("sha256:../../../etc/passwd") is None


def test_only_what_an_image_of_this_host_is_made_of_is_kept(store: Store) -> None:
    fill(store, NAME, "aaaaaaaaaaaa", b"shared", b"old" * 100)
    fill(store, NAME, "bbbbbbbbbbbb", b"shared", b"new")
    store.append(store.begin(), [b"cut"])
    wanted = {f"{NAME}:bbbbbbbbbbbb"}

    old = manifest(b"shared", b"old" * 100)
    assert sum(store.unneeded(wanted).values()) == len(b"old" * 100) + len(old) + len(b"cut")
    assert store.keep_only(wanted) == len(b"old" * 100) + len(old) + len(b"cut")

    assert store.unneeded(wanted) == {}
    assert store.images().keys() == wanted
    assert store.blob(digest(b"shared")) is not None
    assert store.blob(digest(b"new")) is not None


def test_a_layer_that_was_damaged_on_the_disk_is_dropped(store: Store) -> None:
    fill(store)
    blob = store.blob(digest(LAYER))
    assert blob is not None
    blob.write_bytes(b"x" + LAYER[1:])

    assert store.drop_damaged() == [blob.name]
    assert store.blob(digest(CONFIG)) is not None


@pytest.fixture
def keys() -> TransferKeys:
    return transfer_keys("127.0.0.1")


@pytest.fixture
def offered(store: Store, keys: TransferKeys, tmp_path: Path) -> Iterator[Registry]:
    """The registry as other hosts see it."""
    (tmp_path / "server.pem").write_text(keys.server)
    (tmp_path / "authority.pem").write_text(keys.authority)
    tls = mutual_tls(tmp_path / "server.pem", tmp_path / "authority.pem")
    with Registry(("127.0.0.1", 0), store, tls) as registry:
        threading.Thread(target=registry.serve_forever, daemon=True).start()
        yield registry
        registry.shutdown()


def tunnel_to(registry: Registry, keys: TransferKeys, folder: Path) -> Tunnel:
    path = folder / "receiver.pem"
    path.write_text(keys.client + keys.authority)
    return Tunnel("127.0.0.1", int(registry.server_address[1]), client_tls(path))


def ask(port: int, path: str, method: str = "GET") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_a_host_of_the_fleet_reads_by_the_tunnel_and_can_not_write(
    store: Store, offered: Registry, keys: TransferKeys, tmp_path: Path
) -> None:
    fill(store)
    with tunnel_to(offered, keys, tmp_path) as tunnel:
        assert ask(tunnel.port, f"/v2/{NAME}/blobs/{digest(LAYER)}") == (200, LAYER)
        assert ask(tunnel.port, f"/v2/{NAME}/blobs/uploads/", "POST")[0] == 405
        assert tunnel.received > len(LAYER)
    assert offered.sent == {digest(LAYER): len(LAYER)}


def test_who_has_no_key_of_this_transfer_is_not_let_in(
    store: Store, offered: Registry, keys: TransferKeys, tmp_path: Path
) -> None:
    fill(store)
    port = int(offered.server_address[1])
    stranger = TransferKeys(keys.authority, "", transfer_keys("127.0.0.1").client)
    for shown in (None, stranger):
        context = ssl.create_default_context(cadata=keys.authority)
        if shown is not None:
            (tmp_path / "stranger.pem").write_text(shown.client)
            context.load_cert_chain(tmp_path / "stranger.pem")
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            _asked(connection)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        ask(port, "/v2/")
    assert offered.sent == {}


def test_a_receiver_takes_nothing_from_another_authority(offered: Registry, tmp_path: Path) -> None:
    with tunnel_to(offered, transfer_keys("127.0.0.1"), tmp_path) as tunnel, pytest.raises(ssl.SSLError):
        tunnel.connect()


def _asked(connection: http.client.HTTPSConnection) -> http.client.HTTPResponse:
    connection.request("GET", "/v2/")
    return connection.getresponse()


def test_many_at_once_get_all_of_it(store: Store, offered: Registry, keys: TransferKeys, tmp_path: Path) -> None:
    layers = [bytes([number]) * (3 << 20) for number in range(4)]
    fill(store, NAME, TAG, *layers)
    wanted = [layers[number % 4] for number in range(40)]
    with tunnel_to(offered, keys, tmp_path) as tunnel, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda layer: ask(tunnel.port, f"/v2/{NAME}/blobs/{digest(layer)}"), wanted))
    assert [(status, len(body)) for status, body in answers] == [(200, 3 << 20)] * 40
    assert [body for _, body in answers] == wanted
