"""What is in an image decides whether it may serve: FP4 compiled for 12.1f, for plain 12.1, and left out."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.facts.attestation import attestation_file
from modules.images import Build, base_reference, build_of
from modules.images.attestation import Needs, asked_of, refusals
from modules.operations.image import build_request
from modules.spec.attestation import Asked, Attestation
from modules.spec.image import Attest, Recipe
from modules.spec.settings import BuildLimits
from tests.lab.lab_driver import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST = "spark-2"
REGISTRY = "registry.lab:5000"
RECIPE = load_catalog().images["vllm-cpu-fp4"]
(PROBE,) = RECIPE.attest.fp4_libraries
FP4 = Needs(native_fp4=True, flags={})
# The base of a build for GPUs has the toolkit, a host compiler and Python, as the host itself has by now.
MAKE_BASE = """
set -e
sudo tar -C / --one-file-system -c --exclude='./proc/*' --exclude='./sys/*' --exclude='./run/*' --exclude='./tmp/*' \
    --exclude=./var/lib/docker --exclude=./var/lib/tinderbox --exclude='./etc/apt/sources.list.d/*' . \
    | sudo docker import - lab-toolkit > /dev/null
lib=/usr/lib/$(uname -m)-linux-gnu
sudo env DOCKER_BUILDKIT=1 docker build -q -t {base} - << END
FROM {python} AS base
FROM lab-toolkit
COPY --from=base $lib/libnuma.so.1* $lib/
RUN ldconfig
END
"""


@pytest.fixture(scope="module")
def fp4_fleet(lab: Lab) -> Path:
    """`spark-2` with code for a GPU in its image, and all that a build needs on it."""

    def change(content: dict[str, Any]) -> None:
        content["hosts"] = {HOST: content["hosts"][HOST]}
        for service in content["defaults"]["services"].values():
            service["image"] = {"recipe": "vllm-cpu-fp4"}

    fleet = lab.write_fleet("fleet-fp4", change)
    for stage in ("cuda", "runtime"):
        run = lab.converge(f"deploys/{stage}.py", fleet=fleet)
        assert run.rc == 0, run.text
    assert RECIPE.base is not None
    base = base_reference(RECIPE.base, REGISTRY)
    make = MAKE_BASE.format(python=f"{REGISTRY}/python:3.11-slim-bookworm", base=base)
    lab.ssh(HOST, f"sudo docker image inspect {base} > /dev/null 2>&1 || bash -c {shlex.quote(make)}", timeout_s=600)
    return fleet


@pytest.fixture(scope="module")
def native(lab: Lab, fp4_fleet: Path) -> Attestation:
    """What was seen in the image of the recipe as it stands, by the image stage."""
    run = lab.converge("deploys/image.py", fleet=fp4_fleet)
    assert run.rc == 0, run.text
    return Attestation.model_validate_json(lab.read(HOST, attestation_file(build_of(RECIPE).tag)))


@pytest.fixture(scope="module")
def seen_in(lab: Lab, native: Attestation) -> Callable[[Build], Attestation]:
    """Build another one on the host and look into it, for FP4 alone."""
    asked = asked_of(RECIPE.model_copy(update={"attest": Attest(fp4_libraries=(PROBE,))}))

    def look(build: Build) -> Attestation:
        folder = f"/tmp/{build.digest}"
        lab.ssh(HOST, f"mkdir -p {folder}")
        lab.write(HOST, f"{folder}/request.json", build_request(build, REGISTRY, RECIPE, BuildLimits()))
        lab.ssh(HOST, f"sudo python3 /usr/local/lib/tinderbox/build_image.py {folder}/request.json", timeout_s=900)
        ask = shlex.quote(asked.model_dump_json())
        program = "/usr/local/lib/tinderbox/attest_image.py"
        run = lab.ssh(HOST, f"sudo python3 {program} {build.tag} --ask {ask} --state {folder}/kept")
        return Attestation.model_validate_json(run.stdout)

    return look


def refused(seen: Attestation) -> str:
    (line,) = refusals(seen, _asking_only(RECIPE), FP4)
    return line


def _asking_only(recipe: Recipe) -> Recipe:
    return recipe.model_copy(update={"attest": Attest(fp4_libraries=(PROBE,))})


def test_the_kernel_compiled_for_121f_is_found_in_the_machine_code(native: Attestation) -> None:
    (library,) = native.libraries
    assert library.path == PROBE
    assert library.listed == ("sm_121",)
    assert set(library.machine) == {"sm_121f"}
    assert library.fp4["sm_121f"].opcode.startswith("OMMA.SF.")
    assert library.fp4["sm_121f"].function == "tinderbox_fp4_probe"
    assert native.tool is not None
    assert native.tool.origin == "image"


def test_imports_flags_and_parsers_are_asked_of_the_image_itself(native: Attestation) -> None:
    assert native.modules["vllm"].version == RECIPE.packages["vllm-cpu"]
    assert native.flags is not None
    assert {"enable-prefix-caching", "tool-call-parser"} <= set(native.flags)
    assert "mxfp4-backend" not in native.flags
    assert "openai" in native.choices["tool-call-parser"]
    assert "openai_gptoss" in native.choices["reasoning-parser"]
    assert native.provenance is not None
    assert native.provenance["digest"] == build_of(RECIPE).digest


def test_it_may_serve_an_fp4_engine_and_is_not_looked_into_again(
    lab: Lab, fp4_fleet: Path, native: Attestation
) -> None:
    assert refusals(native, RECIPE, FP4) == ()

    again = lab.converge("deploys/image.py", fleet=fp4_fleet)

    assert again.rc == 0, again.text
    assert "no change on any host" in again.stderr


def test_the_same_image_built_for_plain_121_is_refused(seen_in: Callable[[Build], Attestation]) -> None:
    """By its machine code: the compiler has passed its trial, and was then asked for plain 12.1."""
    build = build_of(RECIPE)
    dockerfile = build.files["Dockerfile"]
    plain = dockerfile.replace("arch=compute_121f,code=sm_121f", "arch=compute_121,code=sm_121")
    assert plain != dockerfile

    seen = seen_in(Build(build.name, build.base, {**build.files, "Dockerfile": plain}))

    assert seen.libraries[0].listed == ("sm_121",)
    assert set(seen.libraries[0].machine) == {"sm_121"}
    assert "no native FP4 for 12.1f" in refused(seen)


def test_a_build_for_plain_121_ends_at_the_trial_of_its_compiler(lab: Lab, native: Attestation) -> None:
    right = build_of(RECIPE)
    dockerfile = right.files["Dockerfile"].replace("--architecture 12.1f", "--architecture 12.1")
    build = Build(right.name, right.base, {**right.files, "Dockerfile": dockerfile})
    folder = f"/tmp/{build.digest}"
    lab.ssh(HOST, f"mkdir -p {folder}")
    lab.write(HOST, f"{folder}/request.json", build_request(build, REGISTRY, RECIPE, BuildLimits()))
    program = "sudo python3 /usr/local/lib/tinderbox/build_image.py"

    run = lab.ssh(HOST, f"{program} {folder}/request.json", check=False, timeout_s=600)

    assert run.rc != 0
    assert "lacks native FP4 features for 12.1:" in run.text
    for feature in native_features(native):
        assert f"{feature}: " in run.text
    assert "take another image.base or image.architecture" in run.text
    assert lab.ssh(HOST, f"sudo docker image inspect {build.tag}", check=False).rc != 0
    assert lab.ssh(HOST, f"sudo docker image inspect {build_of(RECIPE).tag}").rc == 0


def native_features(seen: Attestation) -> list[str]:
    assert seen.compiler is not None
    return [name for name, feature in seen.compiler.features.items() if feature.wanted]


def test_the_images_own_compilers_were_tried_for_every_feature(native: Attestation) -> None:
    assert native.compiler is not None
    assert native.compiler.origin == "build"
    assert native.compiler.architecture == "12.1f"
    assert {name for name, of in native.compiler.features.items() if not of.compiles} == {"tcgen05.alloc"}
    assert len(native_features(native)) == 7
    assert native.ptxas == {"/usr/local/cuda/bin/ptxas": None}


def test_an_image_that_was_not_built_by_us_is_tried_where_it_is(lab: Lab, native: Attestation) -> None:
    """The base has a compiler, and no word of ours in it. The answer is kept by the compiler's hash."""
    asked = Asked(architecture="12.1f", ptxas=("/usr/local/cuda/bin/ptxas",))
    assert RECIPE.base is not None
    words = f"{base_reference(RECIPE.base, REGISTRY)} --ask {shlex.quote(asked.model_dump_json())} --state /tmp/tried"
    program = f"sudo python3 /usr/local/lib/tinderbox/attest_image.py {words}"

    first, second = (Attestation.model_validate_json(lab.ssh(HOST, program).stdout) for _ in range(2))

    assert native.compiler is not None
    assert first.compiler == native.compiler.model_copy(update={"origin": "image"})
    assert second.compiler == first.compiler
    assert first.ptxas == {"/usr/local/cuda/bin/ptxas": None}
    kept = lab.ssh(HOST, "sudo ls /tmp/tried/probes/images").stdout.split()
    assert kept == [f"12.1f-{native.compiler.toolkit[:12]}.json"]


def test_labels_and_file_tell_where_the_image_is_from(lab: Lab, native: Attestation) -> None:
    form = shlex.quote("{{json .Config.Labels}}")
    labels = lab.ssh(HOST, f"sudo docker image inspect --format {form} {build_of(RECIPE).tag}").json

    told = native.provenance
    assert told is not None
    assert labels["tinderbox.recipe"] == told["digest"] == build_of(RECIPE).digest
    assert labels["tinderbox.architecture"] == told["architecture"] == "12.1f"
    assert labels["org.opencontainers.image.created"] == told["built_at"]
    assert labels["org.opencontainers.image.title"] == "vllm-cpu-fp4"
    assert labels["org.opencontainers.image.version"] == RECIPE.packages["vllm-cpu"]
    assert labels["org.opencontainers.image.base.name"] == RECIPE.base


def test_the_same_image_with_the_kernel_left_out_is_refused(seen_in: Callable[[Build], Attestation]) -> None:
    build = build_of(RECIPE)
    lines = build.files["Dockerfile"].splitlines(keepends=True)
    without = "".join(line for line in lines if not line.startswith("COPY --from=fp4-probe"))
    assert len(without.splitlines()) == len(lines) - 1

    seen = seen_in(Build(build.name, build.base, {**build.files, "Dockerfile": without}))

    assert f"no file fits {PROBE}" in refused(seen)


def test_an_fp4_engine_does_not_get_past_the_image_stage_with_another_image(
    lab: Lab, fp4_fleet: Path, native: Attestation
) -> None:
    def change(content: dict[str, Any]) -> None:
        content["hosts"] = {HOST: content["hosts"][HOST]}
        for service in content["defaults"]["services"].values():
            service |= {"engine": "vllm-mxfp4", "profile": "latency", "image": {"recipe": "vllm-cpu-fp4"}}

    run = lab.converge("deploys/image.py", fleet=lab.write_fleet("fleet-mxfp4", change))

    assert run.rc == 1
    assert "can not serve this engine" in run.text
    assert "does not know --mxfp4-backend, --mxfp4-layers" in run.text
    assert json.loads(lab.read(HOST, attestation_file(build_of(RECIPE).tag)))["image"] == native.image
