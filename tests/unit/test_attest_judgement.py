"""Which images may serve which engines, by what was seen in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.facts.parse.cuobjdump import parse_device_code, parse_list_elf
from modules.images.attestation import Needs, asked_of, refusals, runs_on_gb10, target_of
from modules.spec.attestation import (
    Attestation,
    Compiler,
    Fp4Evidence,
    ImportedModule,
    LibraryCode,
    ProbedFeature,
)
from modules.spec.base import Strict
from modules.spec.image import Attest, Recipe

SAMPLES = Path(__file__).parents[1] / "samples"
PROBE = "/opt/tinderbox/lib/libtinderbox_fp4_probe.so"
FP4 = Needs(native_fp4=True, flags={})
RECIPE = Recipe(
    template="x.Dockerfile.j2", base="x", architecture="12.1f", size_gib=1, source="test",
    attest=Attest(fp4_libraries=(PROBE,)),
)  # fmt: skip


COMPILER = Compiler(
    origin="build",
    architecture="12.1f",
    toolkit="0" * 64,
    features={
        "mma.kind::mxf4": ProbedFeature(compiles=True, wanted=True),
        "tcgen05.alloc": ProbedFeature(compiles=False, wanted=False, reason="not supported on .target 'sm_121f'"),
    },
)


def library(architecture: str, **other: Any) -> LibraryCode:
    """As it is seen when compiled for an architecture."""
    code = parse_device_code((SAMPLES / f"cuobjdump-dump-sass-{architecture}.txt").read_text())
    listed = parse_list_elf((SAMPLES / f"cuobjdump-list-elf-{architecture}.txt").read_text())
    fp4 = {target: Fp4Evidence(opcode=of.opcode, function=of.function) for target, of in code.fp4.items()}
    names = tuple(sorted({elf.target for elf in listed}))
    seen = LibraryCode(path=PROBE, size=989104, listed=names, machine=code.machine, searched=True, fp4=fp4)
    return seen.model_copy(update=other)


def attestation(recipe: Recipe = RECIPE, **seen: Any) -> Attestation:
    return Attestation(
        reference="x:1",
        image="sha256:1",
        asked=asked_of(recipe),
        examined_at="2026-11-30T05:00:00Z",
        seconds=1,
        **{"compiler": COMPILER, **seen},
    )


def without(*features: str) -> Compiler:
    """A compiler that lacks features."""
    lacking = {name: ProbedFeature(compiles=False, wanted=True, reason="Unsupported") for name in features}
    return COMPILER.model_copy(update={"features": COMPILER.features | lacking})


def test_an_images_own_compiler_that_lacks_a_wanted_feature_is_refused_for_native_fp4_alone() -> None:
    seen = attestation(libraries=(library("121f"),), compiler=without("mma.kind::mxf4"))

    (line,) = refusals(seen, RECIPE, FP4)

    assert line == "its own nvcc does not compile native FP4 for 12.1f: mma.kind::mxf4: Unsupported"
    assert refusals(seen, RECIPE, Needs(native_fp4=False, flags={})) == ()


def test_a_built_image_that_does_not_tell_of_its_compiler_is_refused_and_a_pulled_one_without_any_is_not() -> None:
    seen = attestation(libraries=(library("121f"),), compiler=None)

    (line,) = refusals(seen, RECIPE, FP4)

    assert "does not tell what its compiler has" in line
    pulled = changed(RECIPE, template=None, base=None, reference="nvcr.io/nvidia/vllm:1")
    assert refusals(seen, pulled, FP4) == ()


def test_a_compiler_that_could_not_be_tried_is_told() -> None:
    seen = attestation(libraries=(library("121f"),), compiler=None, trouble={"compiler": "it did not end"})

    assert refusals(seen, RECIPE, FP4) == ("its compiler could not be tried: it did not end",)


def test_a_ptxas_that_does_not_know_the_gpu_is_refused() -> None:
    seen = attestation(libraries=(library("121f"),), ptxas={"/good/ptxas": None, "/old/ptxas": "'sm_121f' unknown"})

    assert refusals(seen, RECIPE, FP4) == (
        "/old/ptxas, which Triton compiles with, does not know 12.1f: 'sm_121f' unknown",
    )


def changed(model: Recipe, **fields: Any) -> Recipe:
    return Recipe.model_validate(
        model.model_dump()
        | {name: value.model_dump() if isinstance(value, Strict) else value for name, value in fields.items()}
    )


def test_native_fp4_for_the_wanted_architecture_may_serve() -> None:
    assert refusals(attestation(libraries=(library("121f"),)), RECIPE, FP4) == ()


def test_plain_121_is_refused_although_it_is_listed_under_the_same_name() -> None:
    """The name in the list is `sm_121` for both."""
    assert library("121").listed == library("121f").listed == ("sm_121",)

    (line,) = refusals(attestation(libraries=(library("121"),)), RECIPE, FP4)

    assert "no native FP4 for 12.1f" in line
    assert f"{PROBE} holds code for sm_121, without it" in line


def test_the_same_architecture_without_the_kernel_is_refused() -> None:
    (line,) = refusals(attestation(libraries=(library("121f", fp4={}),)), RECIPE, FP4)

    assert f"{PROBE} holds code for sm_121f, listed as sm_121, without it" in line


def test_a_library_that_is_left_out_is_refused() -> None:
    (line,) = refusals(attestation(unmatched=(PROBE,)), RECIPE, FP4)

    assert f"no file fits {PROBE}" in line


def test_fp4_for_another_architecture_is_named() -> None:
    (line,) = refusals(attestation(libraries=(library("121a"),)), RECIPE, FP4)

    assert f"{PROBE} has it for sm_121a only" in line
    assert refusals(attestation(libraries=(library("121a"),)), changed(RECIPE, architecture="12.1a"), FP4) == ()


@pytest.mark.parametrize("wanted", ["12.1f", "12.1a"])
@pytest.mark.parametrize("found", ["sm_120f", "sm_121f"])
def test_fp4_for_the_family_serves_as_well(wanted: str, found: str) -> None:
    of = library(
        "121f", machine={found: 1}, fp4={found: Fp4Evidence(opcode="QMMA.SF.16832.F32.E4M3.E2M1.E8", function="f")}
    )

    assert refusals(attestation(libraries=(of,)), changed(RECIPE, architecture=wanted), FP4) == ()


def test_one_library_with_fp4_is_enough() -> None:
    both = (library("121f", path="/a.so", fp4={}), library("121f", path="/b.so"))

    assert refusals(attestation(libraries=both), RECIPE, FP4) == ()


def test_code_that_was_not_searched_to_its_end_is_not_taken_for_code_without_fp4() -> None:
    trouble = "its machine code was not searched to its end within 1800 s"
    (line,) = refusals(attestation(libraries=(library("121f", fp4={}, trouble=trouble),)), RECIPE, FP4)

    assert f"{PROBE}: {trouble}" in line


def test_an_engine_that_computes_in_other_formats_needs_no_fp4() -> None:
    assert refusals(attestation(libraries=(library("121"),)), RECIPE, Needs(native_fp4=False, flags={})) == ()


def test_a_recipe_that_does_not_say_where_its_fp4_is_can_not_serve_an_fp4_engine() -> None:
    recipe = changed(RECIPE, attest=Attest())
    (line,) = refusals(attestation(recipe), recipe, FP4)

    assert "attest.fp4_libraries" in line


def test_libraries_that_can_not_be_examined_are_one_refusal() -> None:
    seen = attestation(trouble={"libraries": "there is no cuobjdump"}, libraries=(LibraryCode(path=PROBE, size=1),))

    assert refusals(seen, RECIPE, FP4) == ("its libraries could not be examined: there is no cuobjdump",)


@pytest.mark.parametrize(
    ("machine", "ptx", "runs"),
    [
        ({"sm_121f": 1}, {}, True),
        ({"sm_121a": 1}, {}, True),
        ({"sm_120f": 1}, {}, True),
        ({"sm_120": 1, "sm_90a": 1}, {}, True),
        ({"sm_120a": 1}, {}, False),  # only on 12.0 itself
        ({"sm_100f": 1}, {}, False),
        ({"sm_90": 1}, {}, False),
        ({"sm_90": 1}, {"sm_90": 1}, True),
        ({}, {"sm_90a": 1}, False),
        ({}, {}, False),
    ],
)
def test_what_a_gb10_runs(machine: dict[str, int], ptx: dict[str, int], runs: bool) -> None:
    assert runs_on_gb10(LibraryCode(path="/x.so", size=1, machine=machine, ptx=ptx)) is runs


def test_libraries_for_other_gpus_are_refused() -> None:
    recipe = changed(RECIPE, attest=Attest(libraries=("/x/*.so", "/y.so")))
    seen = attestation(
        recipe, libraries=(LibraryCode(path="/x/a.so", size=1, machine={"sm_90": 3}),), unmatched=("/y.so",)
    )

    assert refusals(seen, recipe, Needs(native_fp4=False, flags={})) == (
        "no file fits /y.so, which must hold its GPU code",
        "/x/a.so holds code for sm_90, which a GB10 does not run",
    )


ASKING = changed(RECIPE, attest=Attest(modules=("vllm",), help=("vllm", "serve"), choices={"reasoning-parser": "a:b"}))
FLAGS = Needs(
    native_fp4=False, flags={"quantization": "mxfp4", "mxfp4-backend": "CUTLASS", "reasoning-parser": "openai_gptoss"}
)
WELL = {
    "modules": {"vllm": ImportedModule(version="0.14.0")},
    "flags": ("mxfp4-backend", "quantization", "reasoning-parser"),
    "choices": {"reasoning-parser": ("openai_gptoss", "qwen3")},
}


def test_imports_and_flags_that_are_there_may_serve() -> None:
    assert refusals(attestation(ASKING, **WELL), ASKING, FLAGS) == ()


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (
            {"modules": {"vllm": ImportedModule(error="ImportError: libcuda")}},
            "vllm does not import: ImportError: libcuda",
        ),
        ({"flags": ("quantization", "reasoning-parser")}, "vllm serve does not know --mxfp4-backend:"),
        ({"choices": {"reasoning-parser": ("qwen3",)}}, "--reasoning-parser does not take 'openai_gptoss', but qwen3"),
        (
            {"flags": None, "trouble": {"help": "vllm did not end"}},
            "could not be asked for its flags: vllm did not end",
        ),
        ({"modules": {}, "trouble": {"python": "no python3"}}, "its Python could not be asked: no python3"),
    ],
)
def test_what_is_missing_is_named(seen: dict[str, Any], said: str) -> None:
    (line,) = refusals(attestation(ASKING, **{**WELL, **seen}), ASKING, FLAGS)

    assert said in line


def test_values_that_are_not_known_refuse_nothing() -> None:
    assert refusals(attestation(ASKING, **{**WELL, "choices": {}}), ASKING, FLAGS) == ()


def test_every_engine_of_the_catalog_that_needs_fp4_has_a_recipe_that_says_where_it_is() -> None:
    catalog = load_catalog()
    needing = {name: catalog.images[engine.recipe] for name, engine in catalog.engines.items() if engine.native_fp4}

    assert set(needing) == {"vllm-mxfp4"}
    for recipe in needing.values():
        assert recipe.attest.fp4_libraries
        assert recipe.architecture is not None
        assert target_of(recipe.architecture) == "sm_121f"
