"""Fetching a key: only the one that was asked for is kept."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from modules.hostside import fetch_key

KEYS = Path(__file__).parents[1] / "samples" / "keys"
RSA, ED25519 = "6FA863ECB61A0B3EDA07C43817AF59CA4C2AE020", "97246C6CC7C0166BEADAEDAAF7066BD588FA2A82"
ARMOURED = (KEYS / "two.asc").read_bytes()


class Server(BaseHTTPRequestHandler):
    answers: ClassVar[dict[str, tuple[int, bytes]]] = {
        "/two.asc": (200, ARMOURED),
        "/login": (200, b"\n<!doctype html><title>Sign in</title>"),
        "/gone": (404, b"not here"),
        "/empty": (200, b""),
        "/huge": (200, b"\x99" * (fetch_key.MOST_BYTES + 1)),
    }

    def do_GET(self) -> None:
        status, body = self.answers[self.path]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr("network_environment.load", lambda: None)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("fingerprint", [RSA, ED25519])
def test_only_the_wanted_key_of_a_keyring_is_chosen(fingerprint: str) -> None:
    key = fetch_key.chosen(ARMOURED, fingerprint)
    primaries = [body for tag, body, _ in fetch_key.packets(key) if tag == 6]
    assert [fetch_key.fingerprint(body) for body in primaries] == [fingerprint]


def test_armoured_and_binary_are_the_same_key() -> None:
    assert fetch_key.chosen((KEYS / "two.gpg").read_bytes(), RSA) == fetch_key.chosen(ARMOURED, RSA)


def test_armour_with_headers_and_windows_line_ends() -> None:
    lines = ARMOURED.split(b"\n")
    dressed = b"\r\n".join([lines[0], b"Version: GnuPG v2", b"Comment: a key", *lines[1:]])
    assert fetch_key.chosen(dressed, RSA) == fetch_key.chosen(ARMOURED, RSA)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (ARMOURED, "its fingerprint is"),
        (ARMOURED[: len(ARMOURED) // 2], "cut short"),
        ((KEYS / "two.gpg").read_bytes()[:-9], "cut short"),
        (ARMOURED.replace(b"m", b"?"), "damaged"),
        (b"", "empty"),
        (b"deb http://x / \n", "not an OpenPGP key"),
    ],
)
def test_everything_else_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(fetch_key.KeyRefusedError, match=reason):
        fetch_key.chosen(content, "0" * 40)


@pytest.mark.parametrize(("version", "digits"), [(4, 40), (5, 64), (6, 64)])
def test_newer_versions_have_longer_fingerprints(version: int, digits: int) -> None:
    assert len(fetch_key.fingerprint(bytes([version]) + b"body")) == digits


def test_a_fetched_key_is_written_for_apt_to_read(url: str, tmp_path: Path) -> None:
    target = tmp_path / "keyrings" / "cuda.gpg"
    assert fetch_key.main(["--url", f"{url}/two.asc", "--fingerprint", RSA.lower(), "--to", str(target)]) == 0
    assert target.read_bytes() == fetch_key.chosen(ARMOURED, RSA)
    assert target.stat().st_mode & 0o777 == 0o644
    assert [path.name for path in target.parent.iterdir()] == ["cuda.gpg"]


@pytest.mark.parametrize(
    ("page", "reason"),
    [("/login", "web page"), ("/gone", "404"), ("/empty", "empty"), ("/huge", "that is no key"), ("/two.asc", "not 0")],
)
def test_a_refusal_names_the_url_and_leaves_the_former_key(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], page: str, reason: str
) -> None:
    target = tmp_path / "cuda.gpg"
    target.write_bytes(b"former")
    assert fetch_key.main(["--url", url + page, "--fingerprint", "0" * 40, "--to", str(target)]) == 1
    said = capsys.readouterr().err
    assert f"{url}{page}: " in said
    assert reason in said
    assert target.read_bytes() == b"former"
