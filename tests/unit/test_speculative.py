"""A draft model is a model like the served one: pinned, fetched, counted in, and part of the release."""

from __future__ import annotations

import json
import shlex
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.fleet import HostPlan
from modules.hostside import release_needs
from modules.hostside.release_needs import lacks
from modules.hostside.service_state import draft_state
from modules.hostside.unneeded_weights import released
from modules.memory import describe
from modules.memory.checkpoint import with_draft
from modules.memory.sizes import GIB
from modules.release.build import build_release
from modules.release.decision import lacking
from modules.release.history import differences
from modules.spec.settings import HostSettings
from roles.preflight.space import models_asked
from roles.weights.models import everywhere, needed
from tests.unit.release_samples import COMMIT, HOME, service_plan, surroundings
from tests.unit.test_engine_decision import SERVING

DRAFT_COMMIT = "d" * 40
MODELS = {"llama-cpp": "gpt-oss-120b-gguf"}


def plan_of(engine: str, method: str, **settings: Any) -> Any:
    # Whatever is a GGUF file will do for llama.cpp.
    draft = {"model": MODELS.get(engine, "gpt-oss-20b"), "tokens": 4, "method": method}
    return service_plan(engine=engine, model=MODELS.get(engine, "gpt-oss-120b"), speculative=draft, **settings)


def command(engine: str, method: str) -> tuple[str, ...]:
    return build_release(plan_of(engine, method), surroundings(draft_commit=DRAFT_COMMIT)).command


def flag(words: tuple[str, ...], name: str) -> str:
    return words[words.index(name) + 1]


def path_of(repository: str) -> str:
    return f"{HOME}/hub/models--{repository.replace('/', '--')}/snapshots/{DRAFT_COMMIT}"


@pytest.mark.parametrize(
    ("engine", "method", "called"),
    [("vllm-mxfp4", "eagle3", "eagle3"), ("vllm", "eagle3", "eagle3"), ("vllm", "draft", "draft_model")],
)
def test_vllm_takes_it_as_one_flag_of_json(engine: str, method: str, called: str) -> None:
    told = json.loads(flag(command(engine, method), "--speculative-config"))
    assert told == {"method": called, "model": path_of("openai/gpt-oss-20b"), "num_speculative_tokens": 4}


def test_and_systemd_hands_it_on_as_it_is() -> None:
    made = build_release(plan_of("vllm", "eagle3"), surroundings(draft_commit=DRAFT_COMMIT))
    (line,) = [row for row in made.unit.splitlines() if "--speculative-config" in row]
    assert json.loads(shlex.split(line.rstrip("\\"))[1])["num_speculative_tokens"] == 4


@pytest.mark.parametrize(("method", "called"), [("eagle3", "EAGLE3"), ("draft", "STANDALONE")])
def test_sglang_drafts_one_token_more_than_there_are_steps(method: str, called: str) -> None:
    words = command("sglang", method)
    assert flag(words, "--speculative-algorithm") == called
    assert flag(words, "--speculative-draft-model-path") == path_of("openai/gpt-oss-20b")
    assert (flag(words, "--speculative-num-steps"), flag(words, "--speculative-num-draft-tokens")) == ("4", "5")


def test_llama_takes_a_file() -> None:
    words = command("llama-cpp", "draft")
    model = load_catalog().models["gpt-oss-120b-gguf"]
    assert flag(words, "--model-draft") == f"{path_of(model.repository)}/{model.file}"
    assert flag(words, "--draft-max") == "4"


def test_the_fleet_files_own_flags_go_before() -> None:
    plan = plan_of("sglang", "eagle3", flags={"speculative-eagle-topk": 8})
    assert flag(build_release(plan, surroundings()).command, "--speculative-eagle-topk") == "8"


def test_its_commit_is_part_of_the_release_and_without_one_nothing_of_it_is() -> None:
    plan = plan_of("vllm", "eagle3")
    made = build_release(plan, surroundings(draft_commit=DRAFT_COMMIT))
    assert (made.draft, made.draft_commit) == ("openai/gpt-oss-20b", DRAFT_COMMIT)
    assert made.id != build_release(plan, surroundings(draft_commit="e" * 40)).id
    plain = build_release(service_plan(engine="vllm", model="gpt-oss-120b"), surroundings())
    assert "draft" not in plain.model_dump_json(exclude_none=True)
    told = differences(plain.model_dump(mode="json", exclude_none=True), made.model_dump(mode="json"))
    assert f"draft_commit: None → {DRAFT_COMMIT}" in told


def test_nothing_is_stopped_for_a_release_whose_draft_is_not_there() -> None:
    made = build_release(plan_of("vllm", "eagle3"), surroundings(draft_commit=DRAFT_COMMIT))
    (told,) = lacking(made, SERVING)
    assert told == f"weights of the draft openai/gpt-oss-20b at {DRAFT_COMMIT} (stage: weights)"
    assert lacking(made, replace(SERVING, draft_is_here=True)) == []


def test_it_is_fetched_and_given_room_like_the_served_one() -> None:
    plan = HostPlan("spark-1", HostSettings(), (plan_of("vllm", "eagle3"),))
    names = {"openai/gpt-oss-120b", "openai/gpt-oss-20b"}
    assert {model.repository for model in needed(plan.models)} == names
    assert {repository for repository, _ in everywhere([plan])} == names
    assert {key.partition("@")[0] for key in models_asked(plan)} == names


def test_one_that_a_release_needs_is_not_removed_and_one_that_was_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = build_release(plan_of("vllm", "eagle3"), surroundings(draft_commit=DRAFT_COMMIT)).model_dump(mode="json")
    made["environment"]["HF_HUB_CACHE"] = str(tmp_path / "hub")
    ledger = tmp_path / "ledger" / "gpt-oss"
    ledger.mkdir(parents=True)
    (ledger / "r1.json").write_text(json.dumps({"release": made}))
    (ledger / "current").symlink_to("r1.json")
    assert released(tmp_path) == {("openai/gpt-oss-120b", COMMIT), ("openai/gpt-oss-20b", DRAFT_COMMIT)}

    monkeypatch.setattr(release_needs, "run", lambda *_: "sha256:1")
    (tmp_path / f"hub/models--openai--gpt-oss-120b/snapshots/{COMMIT}").mkdir(parents=True)
    assert lacks({"release": made}) == [f"the weights of openai/gpt-oss-20b at {DRAFT_COMMIT}"]


def asked(folder: Path | None, file: str = "config.json") -> dict[str, Any]:
    return draft_state(Namespace(draft=folder, draft_revision="main", draft_file=file))


def test_the_host_tells_whether_it_has_the_draft_and_at_which_commit(tmp_path: Path) -> None:
    assert asked(None) == {}
    assert asked(tmp_path) == {"draft_commit": None, "draft_is_here": False}
    (tmp_path / "refs").mkdir()
    (tmp_path / "refs/main").write_text(DRAFT_COMMIT)
    assert asked(tmp_path) == {"draft_commit": DRAFT_COMMIT, "draft_is_here": False}
    snapshot = tmp_path / "snapshots" / DRAFT_COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").touch()
    assert asked(tmp_path)["draft_is_here"]
    assert not asked(tmp_path, "draft.gguf")["draft_is_here"]


CONFIG = {"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8, "hidden_size": 512}


def test_its_weights_and_its_layers_count_in_the_memory_plan() -> None:
    served = describe({"BF16": 10 * GIB, "U8": GIB}, CONFIG)
    both = with_draft(served, describe({"BF16": GIB}, {**CONFIG, "num_hidden_layers": 1}))
    assert both.tensors == {"BF16": 11 * GIB, "U8": GIB}
    assert len(both.layers) == len(served.layers) + 1
    assert both.shape == served.shape
    # What is not known of one is not known of both.
    vague = with_draft(served, describe({"BF16": GIB}, {}))
    assert vague.layers == ()
    assert str(vague.unknown).startswith("of the draft model: ")
