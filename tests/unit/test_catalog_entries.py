"""The catalog's entries: whole, consistent with each other, and with what their sources say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from modules.catalog import Catalog, load_catalog
from modules.fleet.compose import composed_flags, composed_recipe
from modules.fleet.source import read_tree
from modules.gating.direction import lower_is_better
from modules.spec.image import ImageOverride, Recipe
from modules.spec.settings import Service

FOLDER = Path(__file__).resolve().parents[2] / "modules" / "catalog"
CATALOG = load_catalog()
DEAD = "7554e4a32b15929289aa80e8bc8a4e5f6f779407"


def test_every_section_has_a_file_without_repeated_keys() -> None:
    files = {path.stem for path in FOLDER.glob("*.yaml")}

    assert files == set(Catalog.model_fields)
    for name in files:
        assert read_tree(FOLDER / f"{name}.yaml").keys


def test_every_entry_names_its_source() -> None:
    for section in (
        CATALOG.engines,
        CATALOG.flags,
        CATALOG.models,
        CATALOG.images,
        CATALOG.gates,
        CATALOG.baselines,
        CATALOG.signatures,
    ):
        for name, entry in section.items():
            assert entry.source, name


def test_only_what_ran_in_the_lab_calls_itself_verified() -> None:
    """Nothing in this project has run on a Spark yet."""
    lab = {"vllm-cpu", "lab-gpt-oss-tiny"}
    for section in (CATALOG.engines, CATALOG.models, CATALOG.images):
        for name, entry in section.items():
            assert entry.verified == ("in the lab" if name in lab else "unverified on hardware"), name


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("flags", {"max-num-sequences": 4}),
        ("profiles", {"latency": {"max-num-sequences": 4}}),
        ("command", ("vllm", "serve", "{model}", "--adress", "{listen}")),
    ],
)
def test_a_flag_that_the_engine_does_not_know_is_refused(key: str, value: object) -> None:
    document = CATALOG.model_dump(mode="json")
    document["engines"]["vllm"][key] = value
    with pytest.raises(ValidationError, match=r"the engine knows no flag --(max-num-sequences|adress)"):
        Catalog.model_validate(document)


def test_an_engine_whose_flags_nobody_knows_is_refused() -> None:
    document = CATALOG.model_dump(mode="json")
    del document["flags"]["vllm"]
    with pytest.raises(ValidationError, match="its flags are not known"):
        Catalog.model_validate(document)


@pytest.mark.parametrize("engine", CATALOG.engines)
def test_engine_serves_at_the_services_address_under_the_models_name(engine: str) -> None:
    command = CATALOG.engines[engine].command

    for flag, value in (("--host", "{listen}"), ("--port", "{port}")):
        assert command[command.index(flag) + 1] == value
    assert {"{model}", "{served_as}"} <= set(command)


@pytest.mark.parametrize("engine", [name for name in CATALOG.engines if name != "llama-cpp"])
@pytest.mark.parametrize("profile", ["latency", "balanced"])
def test_every_profile_keeps_reasoning_and_tools_apart_from_the_text(engine: str, profile: str) -> None:
    service = Service(engine=engine, model="gpt-oss-120b", profile=profile)
    flags = composed_flags(CATALOG.engines[engine], service, CATALOG.models["gpt-oss-120b"])

    assert {"reasoning-parser", "tool-call-parser"} <= flags.keys()


def test_native_mxfp4_is_eager_unless_the_profile_says_otherwise_by_its_name() -> None:
    for name, flags in CATALOG.engines["vllm-mxfp4"].profiles.items():
        assert flags.get("enforce-eager", False) is not name.endswith("-graphs"), name


def test_no_profile_batches_more_tokens_than_hung_a_host() -> None:
    for engine in CATALOG.engines.values():
        for flags in engine.profiles.values():
            assert int(str(flags.get("max-num-batched-tokens", 0))) <= 32768


def test_throughput_profile_is_made_for_many_small_chunks() -> None:
    flags = CATALOG.engines["vllm-mxfp4"].profiles["throughput"]

    assert flags["max-num-seqs"] == 1024
    assert flags["max-num-batched-tokens"] == 32768
    assert 4096 <= int(str(flags["max-model-len"])) <= 16384


def test_lab_engine_needs_no_gpu_and_no_raised_limit() -> None:
    container = CATALOG.engines["vllm-cpu"].container

    assert not container.gpus
    assert container.ulimits == {}
    assert "load-format" not in CATALOG.engines["vllm-cpu"].flags


@pytest.mark.parametrize(
    ("line", "ready", "refused"),
    [
        ("INFO 01-18 10:00:00 [mxfp4.py:246] [MXFP4] Using backend: CUTLASS (--mxfp4-backend)", True, False),
        ("INFO 01-18 10:00:00 [mxfp4.py:187] [MXFP4] Auto-selected: Marlin (universal fallback)", False, True),
        ("INFO 01-18 10:00:00 [mxfp4.py:99] Using Marlin backend", False, True),
        ("WARNING [MXFP4+LoRA] VLLM_MXFP4_BACKEND=CUTLASS does not support LoRA. Falling back to Marlin.", False, True),
        (
            "INFO 01-18 10:00:00 [cuda.py:300] Using FLASHINFER attention backend out of potential backends",
            False,
            False,
        ),
    ],
)
def test_log_tells_which_backend_serves(line: str, ready: bool, refused: bool) -> None:
    readiness = CATALOG.engines["vllm-mxfp4"].readiness

    assert any(re.search(pattern, line) for pattern in readiness.wanted_log) is ready
    assert any(re.search(pattern, line) for pattern in readiness.refused_log) is refused


def test_process_is_found_by_the_names_that_hosts_show() -> None:
    shown = {
        "vllm-mxfp4": ("/usr/bin/python3 /usr/local/bin/vllm serve openai/gpt-oss-120b", "VLLM::EngineCor"),
        "sglang": ("python3 -m sglang.launch_server --model-path x", "sglang::scheduler"),
        "llama-cpp": ("llama-server --model x",),
    }
    for engine, lines in shown.items():
        for line in lines:
            assert re.search(CATALOG.engines[engine].process, line), line
    assert not re.search(CATALOG.engines["vllm-mxfp4"].process, "/usr/bin/dockerd -H fd://")


def test_pins_of_the_native_image_are_the_maintained_triple() -> None:
    recipe = CATALOG.images["vllm-mxfp4"]

    assert recipe.base == "nvcr.io/nvidia/pytorch:26.01-py3"
    assert recipe.architecture == "12.1f"
    assert {name: pin.commit for name, pin in recipe.pins.items()} == {
        "vllm": "045293d82b832229560ac4a13152a095af603b6e",
        "flashinfer": "f349e52496a72a00d8c4ac02c7a1e38523ff7194",
        "cutlass": "fede53000a962b46e05bafe0c86311778caeb380",
    }
    assert [pin.commit for pin in recipe.dead_pins] == [DEAD]


# Base, vLLM, FlashInfer and CUTLASS as they were published; the sources stand in the catalog.
PUBLISHED = {
    "eugr-4537bfc": ("26.01", "045293d8", "f349e524", "fede5300", "maintained"),
    "fork-96c9d7f": ("26.01", "45954168", "f349e524", "11af7f02", "published"),
    "original-ffde5ab": ("25.12", "045293d8", "1660ee8d", "11af7f02", "published"),
    "original-196692b": ("26.01", "045293d8", "f349e524", "7554e4a3", "dead"),
    "reported-issue-5": (None, "045293d8", "f349e524", "11af7f02", "reported"),
}


def test_every_published_triple_is_there_with_its_status() -> None:
    found = {
        name: (
            triple.base.rpartition(":")[2].removesuffix("-py3") if triple.base is not None else None,
            *(triple.commits[pin][:8] for pin in ("vllm", "flashinfer", "cutlass")),
            triple.status,
        )
        for name, triple in CATALOG.images["vllm-mxfp4"].triples.items()
    }

    assert found == PUBLISHED
    assert all(triple.note and triple.source for triple in CATALOG.images["vllm-mxfp4"].triples.values())


def test_a_triple_is_taken_whole_with_its_base_and_other_pins_are_laid_over_it() -> None:
    recipe = CATALOG.images["vllm-mxfp4"]
    old = composed_recipe(recipe, ImageOverride(triple="original-ffde5ab"))
    mended = composed_recipe(
        recipe,
        ImageOverride.model_validate(
            {
                "triple": "original-196692b",
                "pins": {"cutlass": {"commit": recipe.pins["cutlass"].commit}},
            }
        ),
    )

    assert old.base == "nvcr.io/nvidia/pytorch:25.12-py3"
    assert old.pins["flashinfer"].commit.startswith("1660ee8d")
    assert old.architecture == "12.1f"
    assert old.pins["vllm"].repository == recipe.pins["vllm"].repository
    assert mended.pins == recipe.pins
    assert composed_recipe(recipe, ImageOverride(triple="eugr-4537bfc")) == recipe


def test_default_pins_that_are_no_published_triple_are_refused() -> None:
    recipe = CATALOG.images["vllm-mxfp4"].model_dump()
    recipe["pins"]["vllm"]["commit"] = "0" * 40

    with pytest.raises(ValueError, match="pins and base are of none of the recipe's triples"):
        Catalog.model_validate(
            CATALOG.model_dump() | {"images": CATALOG.model_dump()["images"] | {"vllm-mxfp4": recipe}}
        )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"status": "published"}, "dead when, and only when"),
        ({"commits": {"vllm": "0" * 40}}, "a commit of each of vllm, flashinfer, cutlass"),
    ],
)
def test_a_triple_says_what_it_is(change: dict[str, object], said: str) -> None:
    recipe = CATALOG.images["vllm-mxfp4"].model_dump()
    recipe["triples"]["original-196692b"] |= change

    with pytest.raises(ValueError, match=said):
        Recipe.model_validate(recipe)


def test_encodings_have_their_published_hashes() -> None:
    assert {name: (entry.sha256, entry.size) for name, entry in CATALOG.encodings.items()} == {
        "o200k_base.tiktoken": ("446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d", 3_613_922),
        "cl100k_base.tiktoken": ("223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7", 1_681_126),
    }


def test_models_are_pinned_to_commits_or_left_to_the_lock_and_leave_the_copies_out() -> None:
    for name, model in CATALOG.models.items():
        assert re.fullmatch(r"[0-9a-f]{40}|main", model.revision), name
        assert model.revision != "main" or not name.startswith("gpt-oss"), name
        assert set(model.exclude) >= {"original/*", "metal/*"}


def test_gates_of_published_figures_warn_before_they_fail() -> None:
    for name, gate in CATALOG.gates.items():
        for metric, threshold in gate.thresholds.items():
            if name.startswith("lab-"):
                continue
            if lower_is_better(metric):
                assert threshold.max is not None
                assert threshold.warn_max is not None
                assert threshold.warn_max < threshold.max, (name, metric)
            else:
                assert threshold.min is not None
                assert threshold.warn_min is not None
                assert threshold.min < threshold.warn_min, (name, metric)


def test_published_baseline_passes_its_own_gate_without_a_warning() -> None:
    baseline = CATALOG.baselines["vllm-mxfp4-single-stream"]
    assert baseline.gate is not None
    for metric, threshold in CATALOG.gates[baseline.gate].thresholds.items():
        published = [figure.value for name, figure in baseline.figures.items() if name.split(" (")[0] == metric]
        assert published, metric
        assert threshold.warn_min is not None
        assert min(published) > threshold.warn_min, metric


def test_marlins_figures_fail_the_native_gate() -> None:
    slow = CATALOG.baselines["vllm-marlin"].figures["tg32@pp2048 c1"].value
    threshold = CATALOG.gates["vllm-mxfp4-prompt-sizes"].thresholds["tg32@pp2048 c1"]

    assert threshold.min is not None
    assert slow < threshold.min


def test_baselines_name_engines_models_and_gates_that_there_are() -> None:
    for baseline in CATALOG.baselines.values():
        assert baseline.engine in CATALOG.engines
        assert baseline.model in CATALOG.models
        assert baseline.gate is None or baseline.gate in CATALOG.gates


@pytest.mark.parametrize(
    "value", ["8192", "-1", "32k", "2K", "1.5Gi", "1e3", ".9", "0.85", "1_000", "+4", 7, 0.5, False]
)
@pytest.mark.parametrize("engine", list(CATALOG.flags))
def test_whatever_an_engine_may_read_as_a_number_is_taken(engine: str, value: Any) -> None:
    known = CATALOG.flags[engine]
    assert known.numbers
    assert not any(known.lacks_number(flag, value) for flag in known.names)


@pytest.mark.parametrize("value", ["two", "", "auto", "8 GiB", "k", "none", "--", True, ("1", "2")])
@pytest.mark.parametrize("engine", list(CATALOG.flags))
def test_what_no_engine_can_read_as_one_is_not(engine: str, value: Any) -> None:
    known = CATALOG.flags[engine]
    lacking = {flag for flag in known.names if known.lacks_number(flag, value)}
    assert lacking == known.numbers - ({"max-model-len"} if value == "auto" else set())


def test_flags_that_take_words_are_no_numbers() -> None:
    for engine, words in {
        "vllm": ("dtype", "quantization", "optimization-level", "compilation-config", "tool-call-parser"),
        "sglang": ("dtype", "cuda-graph-bs", "mem-fraction"),
        "llama-cpp": ("n-gpu-layers", "gpu-layers", "flash-attn", "temp", "tensor-split"),
    }.items():
        assert not CATALOG.flags[engine].numbers & set(words)
