"""Python's own tiktoken finds what was fetched, by the directory that engines are told of, and asks nobody for it."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from tiktoken import load

from modules.hostside import fetch_encodings

PUBLISHED = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
CONTENT = b"".join(base64.b64encode(bytes([byte])) + b" %d\n" % byte for byte in range(256))


def test_it_is_found_offline_and_never_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "o200k_base.tiktoken").write_bytes(CONTENT)
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    wanted = fetch_encodings.Wanted("o200k_base.tiktoken", PUBLISHED, sha256, len(CONTENT), PUBLISHED)
    fetch_encodings.put_link(wanted, tmp_path)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(load, "read_file", lambda _: pytest.fail("it asked for the published URL"))

    ranks = load.load_tiktoken_bpe(PUBLISHED, expected_hash=sha256)

    assert ranks[b"\x00"] == 0
    assert len(ranks) == 256
