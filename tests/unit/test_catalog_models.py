"""Every model of the catalog: its figures, its source, and that engines know what it asks of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from modules.catalog import Catalog, load_catalog
from modules.fleet.compose import composed_flags
from modules.spec.model import Model
from modules.spec.settings import OWN_PROFILE, Service

CATALOG = load_catalog()
DOCS = Path(__file__).resolve().parents[2] / "docs" / "models.md"
_PARSERS = ("tool-call-parser", "reasoning-parser")


@pytest.mark.parametrize("name", CATALOG.models)
def test_entry_is_whole(name: str) -> None:
    model = CATALOG.models[name]

    assert re.search(r"https://huggingface\.co/\S+|made by the lab", model.source), "where it lies"
    assert name.startswith("lab-") or model.repository in model.source
    assert model.size_gib is None or model.size_gib > 0
    assert 1 <= model.sparks <= 8
    assert model.revision == "main" or re.fullmatch(r"[0-9a-f]{40}", model.revision), "no tag is a model's commit"


@pytest.mark.parametrize("name", CATALOG.models)
def test_its_flags_and_parsers_are_known_to_the_engines(name: str) -> None:
    for engine, flags in CATALOG.models[name].flags.items():
        known = CATALOG.flags[engine]
        for flag, value in flags.items():
            assert known.knows(flag), flag
            if flag in _PARSERS:
                assert value in known.values[flag]


@pytest.mark.parametrize("name", CATALOG.models)
def test_weights_fit_the_sparks_that_it_is_said_to_need(name: str) -> None:
    model = CATALOG.models[name]

    if model.size_gib is not None:
        # 119 GiB at least, of which the system keeps 8 and a load needs a few more.
        assert model.size_gib / model.sparks < 100


def test_what_generates_keeps_its_tools_apart_from_the_text() -> None:
    for name, model in CATALOG.models.items():
        if model.task == "generate" and "vllm" in model.flags:
            assert "tool-call-parser" in model.flags["vllm"], name
            assert model.flags["vllm"].get("enable-auto-tool-choice") is True, name


def test_what_embeds_or_reranks_is_pooled() -> None:
    pooled = {name for name, model in CATALOG.models.items() if model.task != "generate"}

    assert pooled >= {"qwen3-embedding-4b", "qwen3-vl-reranker-8b"}
    for name in pooled:
        assert CATALOG.models[name].flags["vllm"]["runner"] == "pooling", name


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        ({"vllm": {"tool-call-parser": "qwen3coder"}}, "--tool-call-parser does not take 'qwen3coder'"),
        ({"vllm": {"max-num-sequences": 4}}, "the engine knows no flag --max-num-sequences"),
        ({"wllm": {}}, "no engine 'wllm'"),
    ],
)
def test_an_entry_that_no_engine_takes_is_refused(flags: dict[str, object], fault: str) -> None:
    document = CATALOG.model_dump(mode="json")
    document["models"]["gpt-oss-20b"]["flags"] = flags
    with pytest.raises(ValidationError, match=re.escape(fault)):
        Catalog.model_validate(document)


@pytest.mark.parametrize("change", [{"size_gib": 0}, {"sparks": 0}, {"context": -1}, {"kv_bytes_per_token": 0}])
def test_figures_are_positive(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Model.model_validate({"repository": "a/b", "served_as": "b", "source": "x", **change})


def composed(profile: str = "latency", model: str = "qwen3-6-35b-a3b-nvfp4", **flags: object) -> dict[str, object]:
    service = Service.model_validate({"engine": "vllm", "model": model, "profile": profile, "flags": flags})
    return dict(composed_flags(CATALOG.engines["vllm"], service, CATALOG.models[model]))


def test_a_models_flags_lie_over_the_profiles_and_under_the_services() -> None:
    assert composed()["attention-backend"] == "FLASHINFER"
    assert composed()["tool-call-parser"] == "qwen3_xml"
    assert composed(**{"tool-call-parser": "hermes"})["tool-call-parser"] == "hermes"
    assert "attention-backend" not in composed(model="gemma-4-26b-a4b")


def test_gpt_oss_has_the_parsers_that_it_always_had() -> None:
    flags = composed(model="gpt-oss-120b")

    assert (flags["tool-call-parser"], flags["reasoning-parser"]) == ("openai", "openai_gptoss")


def test_a_profiles_length_ends_with_the_models() -> None:
    model = CATALOG.models["gpt-oss-20b"].model_copy(update={"context": 40960})
    for wish, length in (({}, 40960), ({"max-model-len": 65536}, 65536)):
        service = Service.model_validate({"engine": "vllm", "model": "gpt-oss-20b", "flags": wish})
        assert composed_flags(CATALOG.engines["vllm"], service, model)["max-model-len"] == length


def test_profile_own_has_the_services_flags_alone() -> None:
    assert composed(OWN_PROFILE, seed=1) == {"seed": 1}


def row(name: str, model: Model) -> str:
    """A model's row in the docs."""
    flags = model.flags.get("vllm", {})
    parsers = ", ".join(f"`{flags[parser]}`" for parser in _PARSERS if parser in flags)
    size = "" if model.size_gib is None else f"{model.size_gib:g}"
    context, cache = ("" if one is None else f"{one:,}" for one in (model.context, model.kv_bytes_per_token))
    told = parsers or ("" if model.task == "generate" else model.task)
    return f"| `{name}` | {model.repository} | {size} | {model.sparks} | {context} | {cache} | {told} |"


@pytest.mark.parametrize("name", [name for name in CATALOG.models if not name.startswith("lab-")])
def test_docs_tell_what_the_entry_says(name: str) -> None:
    assert row(name, CATALOG.models[name]) in DOCS.read_text().splitlines()


def test_every_key_of_a_model_is_in_the_docs() -> None:
    text = DOCS.read_text()

    assert [key for key in Model.model_fields if f"`{key}`" not in text and key != "verified"] == []
