"""What was seen in a release's image is kept with the release in the ledger."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from modules.facts import attestation as facts

# As the programs import them on a host, so that what is patched here is what they use.
if TYPE_CHECKING:
    from modules.hostside import service_state
    from modules.hostside.attestation_file import attestation_file
    from modules.hostside.ledger import Ledger, attest, stage
else:
    import service_state
    from attestation_file import attestation_file
    from ledger import Ledger, attest, stage

IMAGE = "tinderbox/vllm-cpu:0123456789ab"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: None)
    monkeypatch.setattr(service_state, "attestation_file", lambda image: attestation_file(image, tmp_path))
    return tmp_path


def see(root: Path, what: str) -> str:
    """Look into the image; gives the sha256 of what was seen."""
    path = attestation_file(IMAGE, root)
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"image": "sha256:1", "seen": what}))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def put_in_force(root: Path, image: str = IMAGE) -> Ledger:
    request: dict[str, Any] = {
        "service": "gpt-oss", "id": "r1", "release": {"image": image}, "files": [], "caches": [],
    }  # fmt: skip
    stage(request, root)
    ledger = Ledger("gpt-oss", root)
    ledger.mark("r1", "activated")
    return ledger


def entry(ledger: Ledger) -> dict[str, Any]:
    found = ledger.entry("r1")
    assert found is not None
    return found


def test_a_release_that_is_put_in_force_has_a_copy_and_its_hash(root: Path) -> None:
    sha256 = see(root, "OMMA")

    ledger = put_in_force(root)

    assert entry(ledger)["attestation"] == {"sha256": sha256, "image": "sha256:1"}
    assert json.loads(ledger.attestation("r1").read_text())["seen"] == "OMMA"
    assert service_state.attested(ledger, "r1")


def test_the_ledger_keeps_what_it_has_when_the_image_and_its_attestation_are_gone(root: Path) -> None:
    sha256 = see(root, "OMMA")
    ledger = put_in_force(root)
    attestation_file(IMAGE, root).unlink()

    put_in_force(root)

    assert entry(ledger)["attestation"]["sha256"] == sha256
    assert service_state.attested(ledger, "r1")


def test_an_entry_of_before_is_read_and_gets_its_attestation_later(root: Path) -> None:
    ledger = put_in_force(root)
    assert "attestation" not in entry(ledger)
    assert service_state.attested(ledger, "r1")  # nothing was looked for
    sha256 = see(root, "OMMA")
    assert not service_state.attested(ledger, "r1")

    attest("gpt-oss", "r1", root)

    assert entry(ledger)["attestation"]["sha256"] == sha256
    assert service_state.attested(ledger, "r1")
    assert [event["event"] for event in entry(ledger)["events"]] == ["activated"]


def test_a_newer_look_and_a_lost_copy_show(root: Path) -> None:
    see(root, "OMMA")
    ledger = put_in_force(root)
    see(root, "more")
    assert not service_state.attested(ledger, "r1")

    attest("gpt-oss", "r1", root)
    assert service_state.attested(ledger, "r1")
    ledger.attestation("r1").write_text("{}")
    assert not service_state.attested(ledger, "r1")


def test_without_a_release_there_is_nothing_to_attest(root: Path) -> None:
    assert service_state.attested(Ledger("gpt-oss", root), None)
    assert service_state.attested(Ledger("gpt-oss", root), "r9")


def test_host_and_controller_look_in_the_same_place() -> None:
    reference = "nvcr.io/nvidia/vllm@sha256:12"

    assert facts.attestation_file(reference) == str(attestation_file(reference))
