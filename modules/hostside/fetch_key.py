"""Fetch an OpenPGP key and keep it only if it is the one that was asked for.

    fetch_key.py --url https://… --fingerprint <40 or 64 hex digits> --to /etc/apt/keyrings/name.gpg

Only the key with that fingerprint is written (binary, by rename): apt trusts every key of a keyring, so others that
came along must not get in. Nothing but Python's standard library is needed: no gpg, no curl.
Exit status: 0 written, 1 refused or not reachable (reason on standard error).
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import network_environment
    from modules.hostside.wrong_clock import blames_clock, remedy
else:
    import network_environment
    from wrong_clock import blames_clock, remedy

ATTEMPTS = 3
TIMEOUT_S = 30
MOST_BYTES = 1 << 20  # NVIDIA's and Debian's keyrings are a few KiB

_BEGIN = b"-----BEGIN PGP PUBLIC KEY BLOCK-----"
_END = b"-----END PGP PUBLIC KEY BLOCK-----"
_PUBLIC_KEY = 6  # packet tag of a primary key (RFC 9580, 5)


class KeyRefusedError(Exception):
    """What came is not the key that was asked for."""


def dearmoured(content: bytes) -> bytes:
    """The packets of a key file: armour taken off where there is any."""
    start = content.find(_BEGIN)
    if start < 0:
        return content
    end = content.find(_END, start)
    if end < 0:
        raise KeyRefusedError("the armoured key is cut short: it has no END line")
    lines = content[start + len(_BEGIN) : end].replace(b"\r", b"").split(b"\n")
    body = lines[lines.index(b"", 1) + 1 :] if b"" in lines[1:] else lines
    encoded = b"".join(line.strip() for line in body if not line.startswith(b"="))
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise KeyRefusedError(f"the armoured key is damaged: {error}") from error


def packets(content: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Tag, body and whole bytes of each packet."""
    at = 0
    while at < len(content):
        start, head = at, content[at]
        if not head & 0x80:
            raise KeyRefusedError("not an OpenPGP key (neither armoured nor binary packets)")
        try:
            if head & 0x40:
                tag, first = head & 0x3F, content[at + 1]
                if first < 192:
                    length, at = first, at + 2
                elif first < 224:
                    length, at = ((first - 192) << 8) + content[at + 2] + 192, at + 3
                elif first == 255:
                    length, at = int.from_bytes(content[at + 2 : at + 6], "big"), at + 6
                else:
                    raise KeyRefusedError("a key with packets of partial length, which keys never have")
            else:
                tag, size = (head >> 2) & 0x0F, (1, 2, 4, 0)[head & 3]
                length = int.from_bytes(content[at + 1 : at + 1 + size], "big") if size else len(content) - at - 1
                at += 1 + size
        except IndexError as error:
            raise KeyRefusedError("the key is cut short") from error
        if at + length > len(content):
            raise KeyRefusedError("the key is cut short")
        yield tag, content[at : at + length], content[start : at + length]
        at += length


def fingerprint(body: bytes) -> str:
    """Of a public-key packet's body, in upper-case hex: 40 digits for version 4, 64 for versions 5 and 6."""
    version = body[0] if body else 0
    if version == 4:
        # SHA-1 is what the format prescribes for the name of a version 4 key.
        return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body).hexdigest().upper()  # noqa: S324
    if version in {5, 6}:
        return hashlib.sha256(bytes([0x95 + version]) + len(body).to_bytes(4, "big") + body).hexdigest().upper()
    raise KeyRefusedError(f"an OpenPGP key of version {version}; 4, 5 and 6 are known")


def chosen(content: bytes, wanted: str) -> bytes:
    """The packets of the key with fingerprint `wanted`, and no other key's."""
    keys: dict[str, bytes] = {}
    current = ""
    for tag, body, whole in packets(dearmoured(content)):
        if tag == _PUBLIC_KEY:
            current = fingerprint(body)
        if not current:
            raise KeyRefusedError("not a public key: it does not begin with one")
        keys[current] = keys.get(current, b"") + whole
    if not keys:
        raise KeyRefusedError("the answer is empty")
    if wanted not in keys:
        raise KeyRefusedError(f"its fingerprint is {', '.join(keys)}, not {wanted}")
    return keys[wanted]


def fetched(url: str) -> bytes:
    """The bytes behind `url`. KeyRefusedError when there are none, or a web page."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
                content: bytes = answer.read(MOST_BYTES + 1)
                break
        except urllib.error.HTTPError as error:
            if error.code < 500 or attempt == ATTEMPTS:
                raise KeyRefusedError(f"the server answers {error.code} {error.reason}") from error
        except OSError as error:
            if attempt == ATTEMPTS:
                why = remedy() if blames_clock(error) else f"not reachable: {getattr(error, 'reason', error)}"
                raise KeyRefusedError(why) from error
        time.sleep(attempt)
    if content.lstrip()[:1] == b"<":
        raise KeyRefusedError("the server answers with a web page (a login or a proxy's notice?), not with a key")
    if len(content) > MOST_BYTES:
        raise KeyRefusedError(f"the answer has more than {MOST_BYTES} bytes; that is no key")
    return content


def main(arguments: list[str]) -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description="Fetch an OpenPGP key and check its fingerprint.")
    parser.add_argument("--url", required=True)
    parser.add_argument("--fingerprint", required=True)
    parser.add_argument("--to", type=Path, required=True)
    wish = parser.parse_args(arguments)
    network_environment.load()
    try:
        key = chosen(fetched(wish.url), wish.fingerprint.replace(" ", "").upper())
    except KeyRefusedError as error:
        print(
            f"key {wish.url}: {error}.\nNothing was written. Check key_url and fingerprint of this repository in the "
            "fleet file, and the network's proxy and ca_bundle.",
            file=sys.stderr,
        )
        return 1
    wish.to.parent.mkdir(parents=True, exist_ok=True)
    fresh = wish.to.with_name(f".{wish.to.name}.{os.getpid()}.new")
    fresh.write_bytes(key)
    os.chmod(fresh, 0o644)  # noqa: PTH101 -- apt reads it as user _apt
    fresh.replace(wish.to)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
