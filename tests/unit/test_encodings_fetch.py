from __future__ import annotations

import hashlib
import json
import ssl
import threading
import urllib.error
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.hostside import fetch_encodings
from modules.lab.mirror.faults import Faults
from modules.lab.mirror.journal import Journal
from modules.lab.mirror.server import MirrorServer
from modules.lab.mirror.static import static_site
from modules.operations.encodings import cache_name, fetch_job, source, wrong
from modules.spec.model import Encoding

NAME = "o200k_base.tiktoken"
CONTENT = b"".join(b"token%d %d\n" % (number, number) for number in range(5000))
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PUBLISHED = f"https://openaipublic.blob.core.windows.net/encodings/{NAME}"


@dataclass
class Mirror:
    root: Path
    url: str

    def faults(self, *rules: dict[str, Any]) -> None:
        (self.root / "faults.json").write_text(json.dumps(rules))

    @property
    def encodings(self) -> Path:
        return self.root / "encodings"

    def fetch(self) -> int:
        return fetch_encodings.run([NAME, f"{self.url}/{NAME}", SHA256, str(len(CONTENT)), PUBLISHED])

    def left(self) -> list[str]:
        return sorted(path.name for path in self.encodings.iterdir())


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / NAME).write_bytes(CONTENT)
    faults, journal = Faults(tmp_path / "faults.json"), Journal(tmp_path / "requests.jsonl")
    server = MirrorServer(("127.0.0.1", 0), {"127.0.0.1": static_site(tmp_path / "site")}, faults, journal, None)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    monkeypatch.setattr(fetch_encodings, "ENCODINGS", tmp_path / "encodings")
    monkeypatch.delenv("TINDERBOX_JOB_DIR", raising=False)
    yield Mirror(tmp_path, f"http://127.0.0.1:{server.server_address[1]}")
    server.shutdown()
    server.server_close()


def test_a_vocabulary_gets_both_its_names_and_is_fetched_once(mirror: Mirror) -> None:
    assert mirror.fetch() == 0
    assert mirror.fetch() == 0

    link = mirror.encodings / "fb374d419588a4632f3f557e76b4b70aebbca790"  # as python's tiktoken names it
    assert (mirror.encodings / NAME).read_bytes() == link.read_bytes() == CONTENT
    assert mirror.left() == sorted([NAME, link.name])
    assert len((mirror.root / "requests.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"status": 200, "headers": {"Content-Type": "text/html"}, "body": "<html>log in</html>"}, "web page"),
        ({"status": 200, "body": "<!DOCTYPE html>"}, "web page"),
        ({"status": 200, "body": "short"}, f"gave 5 bytes; {NAME} has {len(CONTENT)}"),
        ({"status": 200, "body": "x" * (len(CONTENT) + 9)}, "gave more than"),
        ({"status": 200, "body": "x" * len(CONTENT)}, f"is published with {SHA256}"),
        ({"status": 404}, "answered 404"),
        ({"drop": True}, "network.encodings"),
        ({"cut_after": 100}, "gave 100 bytes"),
    ],
)
def test_nothing_but_the_published_content_gets_the_name(
    mirror: Mirror, capsys: pytest.CaptureFixture[str], fault: dict[str, Any], words: str
) -> None:
    mirror.faults(fault)

    assert mirror.fetch() == 1

    assert mirror.left() == []
    told = capsys.readouterr().err
    assert words in told
    assert mirror.url in told


def test_a_wrong_clock_is_told_from_an_authority_that_is_not_trusted() -> None:
    late = urllib.error.URLError(ssl.SSLCertVerificationError(1, "certificate verify failed: certificate has expired"))
    other = urllib.error.URLError(ssl.SSLCertVerificationError(1, "CERTIFICATE_VERIFY_FAILED: self-signed certificate"))

    assert "set the clock (timedatectl)" in fetch_encodings.explain(late, PUBLISHED)
    assert "network.ca_bundle" in fetch_encodings.explain(other, PUBLISHED)


def test_a_file_that_was_truncated_on_the_host_is_replaced(mirror: Mirror) -> None:
    mirror.fetch()
    (mirror.encodings / NAME).write_bytes(CONTENT[:-1])

    assert mirror.fetch() == 0

    assert (mirror.encodings / NAME).read_bytes() == CONTENT


def test_a_right_file_stays_while_a_new_one_can_not_be_had(mirror: Mirror) -> None:
    mirror.fetch()
    mirror.faults({"status": 500})

    assert mirror.fetch() == 0


def test_words_that_do_not_come_in_fives_are_refused() -> None:
    with pytest.raises(SystemExit, match="five words"):
        fetch_encodings.parse(["a", "b"])


ENTRY = Encoding(url=PUBLISHED, sha256=SHA256, size=len(CONTENT))


def test_a_vocabulary_is_right_only_under_both_names() -> None:
    link = cache_name(PUBLISHED)
    other = "0" * 64

    assert wrong({NAME: ENTRY}, {NAME: SHA256, link: SHA256}) == {}
    for found in ({}, {NAME: SHA256}, {link: SHA256}, {NAME: other, link: SHA256}, {NAME: SHA256, link: other}):
        assert wrong({NAME: ENTRY}, found) == {NAME: ENTRY}


def test_a_mirror_has_it_under_its_own_name() -> None:
    assert source(NAME, ENTRY, "https://encodings.lab/") == f"https://encodings.lab/{NAME}"
    assert source(NAME, ENTRY, None) == PUBLISHED


def test_the_job_says_what_the_program_reads() -> None:
    job = fetch_job({NAME: ENTRY}, "https://encodings.lab")

    (read,) = fetch_encodings.parse(list(job.command[2:]))
    assert (read.name, read.url, read.sha256, read.size) == (
        NAME,
        f"https://encodings.lab/{NAME}",
        SHA256,
        len(CONTENT),
    )
    assert read.link == cache_name(PUBLISHED)


def test_the_catalogs_vocabularies_have_the_names_that_tiktoken_looks_for() -> None:
    names = {name: cache_name(entry.url) for name, entry in load_catalog().encodings.items()}

    assert names["o200k_base.tiktoken"] == "fb374d419588a4632f3f557e76b4b70aebbca790"
    assert names["cl100k_base.tiktoken"] == "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
