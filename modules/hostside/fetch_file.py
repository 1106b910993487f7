"""One file from a hub, by plain HTTP, taken up where it was left.

The hub's own client begins a file anew when its process was killed. This appends to what is there, says so to the disk
every few megabytes, and looks at what the hub answers before it takes a byte of it.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import httpx2
from huggingface_hub import constants, get_session, hf_hub_url
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.utils._headers import build_hf_headers
from huggingface_hub.utils._http import hf_raise_for_status

if TYPE_CHECKING:
    from modules.hostside.weights_stamp import WantedFile
else:
    from weights_stamp import WantedFile

# What a host that loses its power may have to fetch again, for each file that is under way.
_SYNC_BYTES = 4 * 1024 * 1024
# Patience with a hub that gives nothing at all; whatever it gives sets this back.
WAITS_S = (1.0, 2.0, 4.0, 8.0, 16.0)
_LONGEST_WAIT_S = 60.0
_BUSY = frozenset({408, 429})


class WrongAnswerError(Exception):
    """What the hub sent is not the file."""


class StoppedError(Exception):
    """Another file failed, so this one was left where it is."""


@dataclass(frozen=True)
class Source:
    """Where files come from. `stopped`: set to leave."""

    endpoint: str
    repository: str
    commit: str
    token: str | None
    stopped: threading.Event


def fetch_file(source: Source, file: WantedFile, part: Path) -> None:
    """Have all of a file in `part`, whatever of its beginning is there already.

    Raises `HfHubHTTPError`, `httpx2.TransportError` (after several tries that brought nothing), `WrongAnswerError`,
    `OSError` of the disk, `StoppedError`.
    """
    part.parent.mkdir(parents=True, exist_ok=True)
    barren = 0
    with part.open("ab") as sink:
        if sink.tell() > file.size:
            sink.truncate(0)
        while (before := _size(sink)) < file.size:
            try:
                _take(source, file, sink, before)
                error: Exception = WrongAnswerError(f"{file.path}: the hub ended it at byte {_size(sink)}")
            except (httpx2.TransportError, HfHubHTTPError) as met:
                error = met
            if _size(sink) == file.size:
                return
            barren = 0 if _size(sink) > before else barren + 1
            if barren > len(WAITS_S) or not _passes(error, grew=barren == 0):
                raise error
            pause = _pause(error, WAITS_S[max(0, barren - 1)])
            print(f"{file.path}: {type(error).__name__}; going on at byte {_size(sink)} in {pause:.0f} s", flush=True)
            if source.stopped.wait(pause):
                raise StoppedError


def _size(sink: BinaryIO) -> int:
    return os.fstat(sink.fileno()).st_size


def _passes(error: Exception, *, grew: bool) -> bool:
    """Whether it is worth to try again."""
    if not isinstance(error, HfHubHTTPError):
        return True
    status = error.response.status_code
    # The signed address that a hub redirects to is good for an hour.
    return status in _BUSY or status >= 500 or (status == 403 and grew)


def _pause(error: Exception, usual: float) -> float:
    asked: Any = error.response.headers.get("Retry-After") if isinstance(error, HfHubHTTPError) else None
    return min(float(asked), _LONGEST_WAIT_S) if asked is not None and str(asked).isdigit() else usual


def _take(source: Source, file: WantedFile, sink: BinaryIO, start: int) -> None:
    url = hf_hub_url(source.repository, file.path, revision=source.commit, endpoint=source.endpoint)
    headers: dict[str, str] = build_hf_headers(token=source.token or False)
    headers["Accept-Encoding"] = "identity"
    if start:
        headers["Range"] = f"bytes={start}-"
    timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
    with get_session().stream("GET", url, headers=headers, timeout=timeout, follow_redirects=True) as response:
        hf_raise_for_status(response)
        if start and response.status_code != 206:
            sink.truncate(0)
            start = 0
        _check(file, start, response)
        _copy(source, sink, file.size - start, response)


def _check(file: WantedFile, start: int, response: httpx2.Response) -> None:
    length = response.headers.get("Content-Length")
    if length is None or int(length) == file.size - start:
        return
    kind = response.headers.get("Content-Type", "of no type")
    raise WrongAnswerError(
        f"{file.path}: the answer has {length} bytes ({kind}), where {file.size - start} were to come: a proxy or a "
        f"login page stands in between, or a mirror has another copy; try: curl -vLo /dev/null {response.url}"
    )


def _copy(source: Source, sink: BinaryIO, wanted: int, response: httpx2.Response) -> None:
    unsynced = 0
    try:
        for piece in response.iter_raw():
            if source.stopped.is_set():
                raise StoppedError
            kept = piece[:wanted]
            sink.write(kept)
            wanted -= len(kept)
            unsynced += len(kept)
            if unsynced >= _SYNC_BYTES:
                sink.flush()
                os.fdatasync(sink.fileno())
                unsynced = 0
    finally:
        sink.flush()
