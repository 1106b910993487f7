"""Bring tiktoken vocabularies to this host: each is hashed before it gets its name, so no other content ever has it.

    fetch_encodings.py [NAME URL SHA256 SIZE PUBLISHED_URL]...      SIZE in bytes

Beside each file lies a link named by the sha1 of the published URL, which is how python's tiktoken looks it up in
TIKTOKEN_CACHE_DIR. Exit status: 0 all files are there and right; 1 with the reason on standard error.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import socket
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.progress import Progress
    from modules.hostside.wrong_clock import blames_clock, remedy
else:
    from progress import Progress
    from wrong_clock import blames_clock, remedy

ENCODINGS = Path("/var/lib/tinderbox/encodings")
_TIMEOUT_S = 60
_PIECE = 256 * 1024


class RefusedError(Exception):
    """Why a file was not taken."""


@dataclass(frozen=True)
class Wanted:
    """A vocabulary. `url`: where to fetch it; `published`: where its makers have it, which names the link."""

    name: str
    url: str
    sha256: str
    size: int
    published: str

    @property
    def link(self) -> str:
        """The name by which python's tiktoken finds it."""
        return hashlib.sha1(self.published.encode(), usedforsecurity=False).hexdigest()


def parse(words: list[str]) -> list[Wanted]:
    """The command line: five words a vocabulary (name, URL to fetch, sha256, size in bytes, published URL)."""
    if len(words) % 5:
        raise SystemExit(f"five words for each vocabulary, got {len(words)}")
    rows = [words[at : at + 5] for at in range(0, len(words), 5)]
    return [Wanted(name, url, sha256, int(size), published) for name, url, sha256, size, published in rows]


def is_right(path: Path, wanted: Wanted) -> bool:
    """Whether the file is there with the published content."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == wanted.sha256
    except OSError:
        return False


def fetch(wanted: Wanted, directory: Path, progress: Progress) -> None:
    """Download beside, compare, rename. Raises `RefusedError` when what came is not what was published."""
    beside = directory / f".{wanted.name}.part"
    found, done = hashlib.sha256(), 0
    first = b""
    try:
        with urllib.request.urlopen(wanted.url, timeout=_TIMEOUT_S) as answer, beside.open("wb") as file:
            kind = answer.headers.get_content_type()
            # More than was announced is wrong already, and may never end.
            while done <= wanted.size and (piece := answer.read(_PIECE)):
                first = first or piece[:64]
                file.write(piece)
                found.update(piece)
                done += len(piece)
                progress.report(f"fetching {wanted.name}", done, wanted.size, "bytes")
            file.flush()
            os.fsync(file.fileno())
        if found.hexdigest() != wanted.sha256:
            raise RefusedError(_mismatch(wanted, done, found.hexdigest(), kind, first))
        beside.chmod(0o644)
        beside.replace(directory / wanted.name)
    finally:
        beside.unlink(missing_ok=True)


def _mismatch(wanted: Wanted, done: int, sha256: str, kind: str, first: bytes) -> str:
    if kind == "text/html" or first.lstrip().lower().startswith((b"<!doctype", b"<html")):
        return f"{wanted.url} gave a web page (of a proxy or a login?) in place of {wanted.name}"
    if done != wanted.size:
        more = "more than " if done > wanted.size else ""
        return (
            f"{wanted.url} gave {more}{min(done, wanted.size)} bytes; {wanted.name} has {wanted.size}: cut or replaced"
        )
    return f"{wanted.url} has sha256 {sha256}; {wanted.name} is published with {wanted.sha256}"


def put_link(wanted: Wanted, directory: Path) -> None:
    """Name the file for python's tiktoken as well."""
    link = directory / wanted.link
    if link.is_symlink() and link.readlink() == Path(wanted.name):
        return
    beside = directory / f".{wanted.link}.part"
    beside.unlink(missing_ok=True)
    beside.symlink_to(wanted.name)
    beside.replace(link)


def explain(error: OSError | http.client.HTTPException, url: str) -> str:
    """What to do about a connection or a disk that failed."""
    if url.startswith("file:"):
        return f"{getattr(error, 'reason', error)}: is the bundle's disk mounted? Copy the file again, or export anew"
    if isinstance(error, urllib.error.HTTPError):
        return f"answered {error.code} {error.reason}: check `network.encodings`"
    if blames_clock(error):
        return remedy()
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "its certificate is not trusted here: set `network.ca_bundle` to the authority that signed it"
    return f"{getattr(error, 'reason', error)}: check `network.encodings`, `network.proxy` and the host's DNS"


def run(words: list[str]) -> int:
    """Have every vocabulary of the command line here; gives the exit status."""
    progress = Progress()
    ENCODINGS.mkdir(parents=True, exist_ok=True)
    for wanted in parse(words):
        try:
            if not is_right(ENCODINGS / wanted.name, wanted):
                fetch(wanted, ENCODINGS, progress)
            put_link(wanted, ENCODINGS)
        except RefusedError as refused:
            print(f"{socket.gethostname()}: {refused}", file=sys.stderr)
            return 1
        # An answer that ends too early is no OSError.
        except (OSError, http.client.HTTPException) as error:
            print(f"{socket.gethostname()}: {wanted.url}: {explain(error, wanted.url)}", file=sys.stderr)
            return 1
        print(f"{wanted.name}: {wanted.sha256}")
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
