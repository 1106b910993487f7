"""An image is looked into once, and one without what its engine needs fails its host."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api import FunctionCommand

from modules.catalog import load_catalog
from modules.facts import attestation as facts
from modules.facts.attestation import Attested, ImageAttestation, attestation_file
from modules.images import build_of
from modules.images.attestation import Needs, asked_of
from modules.operations import attestation as operations
from modules.operations.attestation import image_attested
from modules.operations.follow import follow
from modules.spec.attestation import Attestation, Compiler, Fp4Evidence, ImportedModule, LibraryCode
from modules.spec.image import Attest, Recipe
from modules.spec.lock import Lock
from tests.operations.stub_host import StubHost, commands_of

RECIPE = load_catalog().images["vllm-cpu-fp4"]
REFERENCE = build_of(RECIPE).tag
NEEDS = Needs(native_fp4=True, flags={"reasoning-parser": "openai_gptoss"})
ID = "sha256:" + "b" * 64
(PROBE,) = RECIPE.attest.fp4_libraries
NATIVE = LibraryCode(
    path=PROBE,
    size=1,
    machine={"sm_121f": 2},
    searched=True,
    fp4={"sm_121f": Fp4Evidence(opcode="OMMA.SF.16864.F32.E2M1.E2M1.E8", function="tinderbox_fp4_probe")},
)


@pytest.fixture(autouse=True)
def lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "load_fleet", lambda: SimpleNamespace(path=Path("fleet.yaml")))
    monkeypatch.setattr(operations, "read_lock", lambda _: Lock())


def seen(recipe: Recipe = RECIPE, library: LibraryCode = NATIVE) -> Attestation:
    return Attestation(
        reference=REFERENCE,
        image=ID,
        asked=asked_of(recipe),
        libraries=(library,),
        modules=dict.fromkeys(recipe.attest.modules, ImportedModule(version="0.32.0")),
        compiler=Compiler(origin="build", architecture="12.1f", toolkit="0" * 64, features={}),
        flags=("reasoning-parser",),
        choices={"reasoning-parser": ("openai_gptoss",)},
        examined_at="2026-11-30T05:00:00Z",
        seconds=4,
    )


def given(state: Attested | None, needs: Needs = NEEDS, recipe: Recipe = RECIPE) -> tuple[StubHost, list[Any]]:
    host = StubHost({ImageAttestation: state})
    return host, commands_of(host, image_attested, recipe=recipe, needs=needs)


def test_an_image_that_was_seen_to_hold_what_is_needed_is_no_change() -> None:
    host, commands = given(Attested(ID, seen()))

    assert commands == []
    assert REFERENCE in host.noops[0]
    assert host.asked == [(ImageAttestation, {"reference": REFERENCE})]


@pytest.mark.parametrize(
    "state",
    [
        Attested(None, None),  # a dry run on a bare host
        Attested(ID, None),
        Attested(ID, seen(RECIPE.model_copy(update={"architecture": "12.1a"}))),
    ],
    ids=["no image", "never", "asked for something else"],
)
def test_an_image_is_looked_into_as_a_job_and_then_judged(state: Attested) -> None:
    _, (start, following, judging) = given(state)

    words = shlex.split(start.get_raw_value())
    program = words[words.index("--", words.index("--timeout")) + 1 :]
    assert program[1:4] == ["/usr/local/lib/tinderbox/attest_image.py", REFERENCE, "--ask"]
    assert json.loads(program[4])["fp4_libraries"] == [PROBE]
    assert following.function is follow
    assert isinstance(judging, FunctionCommand)


@pytest.mark.parametrize(("name", "gpus"), [("sglang", True), ("vllm-cpu-fp4", False)])
def test_a_pulled_image_is_given_the_gpu_while_it_is_looked_into(name: str, gpus: bool) -> None:
    """One of ours has a label that says so."""
    _, (start, *_) = given(Attested(ID, None), recipe=load_catalog().images[name])

    assert start.get_raw_value().endswith(" --gpus all") is gpus


def judged(state: Attested | None) -> tuple[bool, list[str]]:
    """What comes of the judgement after the job."""
    _, (*_, judging) = given(Attested(ID, None))
    said: list[str] = []
    host = SimpleNamespace(
        name="spark-1", get_fact=lambda *_, **__: state, log=lambda text, log_func: said.append(text)
    )
    return bool(judging.function(None, host, *judging.args)), said


def test_what_the_job_saw_decides() -> None:
    assert judged(Attested(ID, seen())) == (True, [])

    ok, (said,) = judged(Attested(ID, seen(library=NATIVE.model_copy(update={"fp4": {}, "machine": {"sm_121": 2}}))))
    assert not ok
    assert said.startswith(f"spark-1: the image {REFERENCE} can not serve this engine:\n  no native FP4 for 12.1f")


@pytest.mark.parametrize("state", [None, Attested(ID, None)], ids=["unreadable", "nothing kept"])
def test_a_job_without_an_answer_fails_the_host(state: Attested | None) -> None:
    assert judged(state)[0] is False


def test_an_image_that_was_refused_is_refused_again_without_looking() -> None:
    _, (refusal,) = given(Attested(ID, seen(library=NATIVE.model_copy(update={"fp4": {}}))))

    done = subprocess.run(["sh", "-c", refusal.get_raw_value()], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no native FP4 for 12.1f" in done.stderr


def test_an_answer_that_is_not_understood_fails_the_host() -> None:
    _, (refusal,) = given(None)

    assert "could not be read" in refusal.get_raw_value()


def test_a_recipe_that_asks_nothing_is_no_change_for_an_engine_without_fp4() -> None:
    recipe = RECIPE.model_copy(update={"attest": Attest()})

    host, commands = given(None, Needs(native_fp4=False, flags={}), recipe)

    assert (commands, host.asked) == ([], [])


@pytest.fixture
def host_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A docker that knows one image, and attestations in a folder with a space in its name."""
    docker = tmp_path / "docker"
    docker.write_text(
        f'#!/bin/sh\nfor last; do :; done\n[ "$last" = {REFERENCE} ] && echo {ID} && exit\necho; exit 1\n'
    )
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(facts, "ATTESTATIONS", tmp_path / "kept here")
    (tmp_path / "kept here").mkdir()
    return tmp_path


def fact(reference: str = REFERENCE) -> Attested | None:
    asked = ImageAttestation()
    command = asked.command(reference).get_raw_value()
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    return asked.process(done.stdout.splitlines())


def test_the_fact_reads_what_is_kept_of_this_very_image(host_files: Path) -> None:
    assert fact() == Attested(ID, None)
    Path(attestation_file(REFERENCE)).write_text(seen().model_dump_json(indent=1))
    assert fact() == Attested(ID, seen())
    Path(attestation_file(REFERENCE)).write_text(seen().model_copy(update={"image": "sha256:1"}).model_dump_json())
    assert fact() == Attested(ID, None)
    assert fact("absent:1") == Attested(None, None)
