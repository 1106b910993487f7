"""What the role says of a host, and that it changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api.exceptions import FactProcessError
from pyinfra.context import ctx_host

from modules.facts.checkpoint import CheckpointFiles
from modules.facts.evidence import Evidence
from modules.fleet import FleetError
from modules.fleet.problem import Origin, Problem
from roles import diagnose as role
from tests.operations.stub_host import StubHost
from tests.unit.failure_logs import KERNEL, STORIES, VLLM_HEAD

FAILED = {
    "logs": [
        {
            "name": "journal",
            "kind": "engine",
            "text": VLLM_HEAD + STORIES["gds-unsupported"].log + "for s3cret-of-the-fleet\n",
            "trouble": None,
        },
        {"name": "kernel", "kind": "kernel", "text": KERNEL, "trouble": None},
    ],
    "files": {},
    "gpu": None,
    "unit": {"ActiveState": "failed", "NRestarts": "2"},
}


class Secrets:
    """A fleet with one secret that is here and one that is not."""

    secrets: Mapping[str, Any] = {"here": None, "missing": None}
    path = Path("fleet.yaml").absolute()

    def secret(self, name: str) -> str:
        if name == "missing":
            raise FleetError(self.path, [Problem(Origin(1, ("secrets", name)), "missing", "write it")])
        return "s3cret-of-the-fleet"


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    monkeypatch.setattr(role, "load_fleet", Secrets)
    monkeypatch.setattr(logging.getLogger("pyinfra"), "propagate", True)
    caplog.set_level(logging.DEBUG)
    return caplog


def test_findings_are_told_with_remedy_and_without_secrets(said: pytest.LogCaptureFixture) -> None:
    host = StubHost({Evidence: FAILED})
    with ctx_host.use(host):
        role.tell("spark-1", "gpt-oss")

    text = said.text
    assert "spark-1: gpt-oss" in text
    assert "1. fastsafetensors wants GPUDirect Storage" in text
    assert "what to do: set VLLM_FASTSAFETENSORS_NOGDS=1" in text
    assert "not looked at: figures: nvidia-smi is not installed" in text
    assert "s3cret" not in text
    assert host.asked == [(Evidence, {"service": "gpt-oss"})]


def test_a_host_without_our_programs_is_told_so(said: pytest.LogCaptureFixture) -> None:
    with ctx_host.use(StubHost({Evidence: None})):
        role.tell("spark-1", None)

    assert "spark-1: the host: Tinderbox's programs are not on this host yet; deploys/site.py" in said.text


def test_the_facts_ask_only_what_is_there_and_quote_it() -> None:
    evidence = Evidence().command("gpt-oss; reboot").get_raw_value()
    files = CheckpointFiles().command("/home/a b/snapshots/1", "x.gguf").get_raw_value()

    assert evidence.startswith("! test -e /usr/local/lib/tinderbox/gather_evidence.py || ")
    assert evidence.endswith("gather_evidence.py 'gpt-oss; reboot'")
    assert "|| ! test -d '/home/a b/snapshots/1' ||" in files
    assert files.endswith("--file x.gguf")
    assert Evidence().command().get_raw_value().endswith("--host")


def test_an_answer_that_is_no_document_fails_that_host_alone() -> None:
    with pytest.raises(FactProcessError):
        CheckpointFiles().process(["Traceback (most recent call last):", "KeyError"])

    found = CheckpointFiles().process(
        [
            '{"format": "safetensors", "tensors": {"BF16": 6}, "config": null, "problems": ["a: cut off"], '
            '"memory_total": 130000000000}'
        ]
    )
    assert found is not None
    assert found.checkpoint.size == 6
    assert found.problems == ("a: cut off",)
