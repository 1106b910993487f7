"""What the encodings stage gives a host that lacks a vocabulary, and that it gives one that has it nothing."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from pyinfra.api import StringCommand

from modules.catalog import load_catalog
from modules.facts.encodings import EncodingDigests
from modules.operations.encodings import cache_name, encodings_present
from modules.operations.follow import follow
from modules.release import layout
from tests.operations.stub_host import StubHost, commands_of

WANTED = load_catalog().encodings
RIGHT = {name: entry.sha256 for name, entry in WANTED.items()} | {
    cache_name(entry.url): entry.sha256 for entry in WANTED.values()
}


def test_right_vocabularies_are_no_change() -> None:
    host = StubHost({EncodingDigests: RIGHT | {"stranger": "0" * 64}})

    assert commands_of(host, encodings_present, encodings=WANTED, mirror=None) == []
    assert host.noops


def test_only_what_is_wrong_is_fetched() -> None:
    host = StubHost({EncodingDigests: RIGHT | {"cl100k_base.tiktoken": "0" * 64}})

    start, following = commands_of(host, encodings_present, encodings=WANTED, mirror="https://encodings.lab")

    assert "https://encodings.lab/cl100k_base.tiktoken" in start.get_raw_value()
    assert "o200k_base" not in start.get_raw_value()
    assert following.function is follow


def test_a_host_without_an_answer_is_refused_alone() -> None:
    (refusal,) = commands_of(StubHost({EncodingDigests: None}), encodings_present, encodings=WANTED, mirror=None)

    assert "could not be read" in refusal.get_raw_value()


def test_the_fact_hashes_files_and_links_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "it's encodings"
    monkeypatch.setattr(layout, "ENCODINGS", folder)

    def found() -> dict[str, str] | None:
        command = StringCommand(EncodingDigests().command()).get_raw_value()
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
        return EncodingDigests().process(done.stdout.splitlines())

    assert found() == {}
    folder.mkdir()
    assert found() == {}
    (folder / "a b.tiktoken").write_bytes(b"content")
    (folder / "link").symlink_to("a b.tiktoken")
    (folder / "dangling").symlink_to("none")
    digest = hashlib.sha256(b"content").hexdigest()
    assert found() == {"a b.tiktoken": digest, "link": digest}
