"""The compile probe with the real nvcc that the cuda stage has installed by apt: what each spelling has."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from modules.hostside.compile_probe import FEATURES, target
from tests.lab.lab_driver import Lab, Run

pytestmark = pytest.mark.lab
HOST = "spark-1"
PROGRAMS = "/usr/local/lib/tinderbox"
SPELLINGS = ("12.0", "12.0a", "12.0f", "12.1", "12.1a", "12.1f")
# Compiled with nvcc 13.0.88. A GB10 has no tcgen05 under any suffix, and plain 12.x has no FP4 at all.
TABLE = """
cvt.rn.satfinite.e2m1x2.f32                          -  ok  ok   -  ok  ok
cvt.rz.satfinite.ue8m0x2.f32                         -  ok  ok   -  ok  ok
mma.kind::f8f6f4.m16n8k32.e2m1                       -  ok  ok   -  ok  ok
mma.kind::mxf8f6f4.block_scale.scale_vec::1X         -  ok  ok   -  ok  ok
mma.kind::mxf4.block_scale.scale_vec::2X.m16n8k64    -  ok  ok   -  ok  ok
mma.kind::mxf4nvf4.block_scale.scale_vec::4X         -  ok  ok   -  ok  ok
ldmatrix.m8n16.x2.shared.b8x16.b4x16_p64             -  ok  ok   -  ok  ok
tcgen05.alloc                                        -   -   -   -   -   -
"""
ROWS = {name: dict(zip(SPELLINGS, cells, strict=True)) for name, *cells in map(str.split, TABLE.strip().splitlines())}
CVT = f'extern "C" __global__ void probe(unsigned *out, const unsigned *in) {{ {FEATURES[0].body} }}\n'


def probe(lab: Lab, architecture: str) -> Run:
    """Compile anew, whatever is kept."""
    kept = f"/tmp/probe-{target(architecture)}"
    command = f"rm -rf {kept}; python3 {PROGRAMS}/compile_probe.py --architecture {architecture} --kept-in {kept}"
    return lab.ssh(HOST, command, check=False)


@pytest.fixture(scope="module")
def answers(lab: Lab, first_run: Run) -> dict[str, Run]:
    """One call of the program for each spelling."""
    return {architecture: probe(lab, architecture) for architecture in SPELLINGS}


@pytest.mark.parametrize("architecture", SPELLINGS)
@pytest.mark.parametrize("feature", ROWS)
def test_a_cell_of_the_table_is_as_it_was_published(answers: dict[str, Run], feature: str, architecture: str) -> None:
    found: dict[str, Any] = answers[architecture].json["features"][feature]

    assert found["compiles"] == (ROWS[feature][architecture] == "ok"), found["reason"]
    # A cell is empty because ptxas knows the instruction and refuses it for this target, and for no other reason.
    if not found["compiles"]:
        assert f"not supported on .target 'sm_{target(architecture)}'" in found["reason"]


def test_the_table_has_every_feature_that_is_probed(answers: dict[str, Run]) -> None:
    assert list(ROWS) == [feature.name for feature in FEATURES]
    for run in answers.values():
        assert list(run.json["features"]) == list(ROWS)


def test_plain_12_1_is_refused_with_each_feature_that_it_lacks(answers: dict[str, Run]) -> None:
    for plain in ("12.0", "12.1"):
        assert answers[plain].rc == 1
        for feature in FEATURES:
            assert (f"{feature.name}: ptxas: " in answers[plain].stderr) == feature.wanted
    for whole in ("12.0a", "12.0f", "12.1a", "12.1f"):
        assert (answers[whole].rc, answers[whole].stderr) == (0, "")


def test_a_fleet_file_with_plain_12_1_is_refused_before_any_host_is_asked(lab: Lab) -> None:
    def plain(content: dict[str, Any]) -> None:
        content["hosts"] = {HOST: content["hosts"][HOST]}
        content["defaults"]["cuda"] = {"architecture": "12.1"}

    run = lab.converge("deploys/cuda.py", fleet=lab.write_fleet("fleet-plain", plain))

    assert run.rc == 1
    assert "defaults.cuda.architecture: plain 12.1 has none of the native FP4 instructions" in run.stderr
    assert "use 12.1f (or 12.1a)" in run.stderr
    assert "Connecting" not in run.stderr


@pytest.mark.parametrize("suffix", ["a", "f"])
def test_the_shorthand_fails_for_fp4_where_the_spelt_out_form_works(lab: Lab, first_run: Run, suffix: str) -> None:
    nvcc = f"echo {shlex.quote(CVT)} > /tmp/cvt.cu && /usr/local/cuda/bin/nvcc -c -o /tmp/cvt.o /tmp/cvt.cu"

    spelt_out = lab.ssh(HOST, f"{nvcc} -gencode arch=compute_121{suffix},code=sm_121{suffix}", check=False)
    shorthand = lab.ssh(HOST, f"{nvcc} -arch=sm_121{suffix}", check=False)

    assert spelt_out.rc == 0, spelt_out.text
    assert shorthand.rc != 0
    assert "not supported on .target 'sm_121'" in shorthand.text


def test_the_ptxas_that_triton_uses_assembles_for_a_gb10_and_another_one_is_told(lab: Lab, first_run: Run) -> None:
    ask = f"sudo python3 {PROGRAMS}/ptxas_probe.py --architecture"
    good = lab.ssh(HOST, f"{ask} 12.1f --tell")
    unknown = lab.ssh(HOST, f"{ask} 19.9f", check=False)

    assert good.json == {"path": "/usr/local/cuda/bin/ptxas", "reason": None}
    assert unknown.rc == 1
    assert "Value 'sm_199f' is not defined" in unknown.stderr
