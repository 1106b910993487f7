"""Find out, by compiling, which native FP4 features this host's nvcc has for an architecture.

    compile_probe.py --architecture 12.1f            probe, unless an answer is kept; print it as JSON
    compile_probe.py --architecture 12.1f --recall   print the kept answer, or null; never compile
    compile_probe.py --architecture 12.1f --digest   print the compiler's hash, by which an answer is kept

An answer is kept with the sha256 of the compiler's parts, so a changed toolkit is probed again.
Exit status: 0 every wanted feature compiles, 1 one does not (reasons on standard error), 2 there is no compiler.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

PROBES = Path("/var/lib/tinderbox/probes")
COMPILE_TIMEOUT_S = 120

_FLOATS = "float d0 = 0, d1 = 0, d2 = 0, d3 = 0;"
_ACCUMULATORS = '"+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)'
_OPERANDS = '"r"(in[0]), "r"(in[1]), "r"(in[2]), "r"(in[3]), "r"(in[4]), "r"(in[5])'
_STORE = "out[0] = __float_as_uint(d0 + d1 + d2 + d3);"


def _mma(shape: str) -> str:
    return (
        f'{_FLOATS} asm volatile("mma.sync.aligned.{shape} '
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        f'" : {_ACCUMULATORS} : {_OPERANDS}); {_STORE}'
    )


def _scaled_mma(shape: str) -> str:
    return (
        f'{_FLOATS} unsigned short zero = 0; asm volatile("mma.sync.aligned.{shape} '
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3}, {%10}, {%12,%12}, {%11}, {%12,%12};"
        f'" : {_ACCUMULATORS} : {_OPERANDS}, "r"(in[6]), "r"(in[7]), "h"(zero)); {_STORE}'
    )


@dataclass(frozen=True)
class Feature:
    """One PTX feature: the body of a kernel that uses it, and whether a GB10 is expected to have it."""

    name: str
    body: str
    wanted: bool = True


FEATURES = (
    Feature(
        "cvt.rn.satfinite.e2m1x2.f32",
        'asm volatile("{ .reg .b8 pair; cvt.rn.satfinite.e2m1x2.f32 pair, %1, %2; mov.b32 %0, {pair,pair,pair,pair}; }"'
        ' : "=r"(out[0]) : "f"(__uint_as_float(in[0])), "f"(__uint_as_float(in[1])));',
    ),
    Feature(
        "cvt.rz.satfinite.ue8m0x2.f32",
        'unsigned short pair; asm volatile("cvt.rz.satfinite.ue8m0x2.f32 %0, %1, %2;"'
        ' : "=h"(pair) : "f"(__uint_as_float(in[0])), "f"(__uint_as_float(in[1]))); out[0] = pair;',
    ),
    Feature("mma.kind::f8f6f4.m16n8k32.e2m1", _mma("kind::f8f6f4.m16n8k32.row.col.f32.e2m1.e2m1.f32")),
    Feature(
        "mma.kind::mxf8f6f4.block_scale.scale_vec::1X",
        _scaled_mma("kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e2m1.e2m1.f32.ue8m0"),
    ),
    Feature(
        "mma.kind::mxf4.block_scale.scale_vec::2X.m16n8k64",
        _scaled_mma("kind::mxf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0"),
    ),
    Feature(
        "mma.kind::mxf4nvf4.block_scale.scale_vec::4X",
        _scaled_mma("kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3"),
    ),
    Feature(
        "ldmatrix.m8n16.x2.shared.b8x16.b4x16_p64",
        "__shared__ unsigned tile[64]; tile[threadIdx.x % 64] = in[0]; __syncthreads(); unsigned r0, r1;"
        " unsigned address = (unsigned)__cvta_generic_to_shared(tile);"
        ' asm volatile("ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b4x16_p64 {%0,%1}, [%2];"'
        ' : "=r"(r0), "=r"(r1) : "r"(address)); out[0] = r0 + r1;',
    ),
    Feature(
        "tcgen05.alloc",
        "__shared__ unsigned tile[64]; unsigned address = (unsigned)__cvta_generic_to_shared(tile);"
        ' asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;"'
        ' :: "r"(address) : "memory");',
        wanted=False,
    ),
)


def target(architecture: str) -> str:
    """`12.1f` → `121f`, as nvcc spells it."""
    return architecture.replace(".", "")


def parts(nvcc: Path) -> list[Path]:
    """The programs that decide what compiles."""
    root = nvcc.resolve().parent.parent
    return [root / "bin" / "nvcc", root / "bin" / "ptxas", root / "nvvm" / "bin" / "cicc"]


def toolkit_digest(nvcc: Path) -> str:
    """The sha256 over what decides whether a feature compiles: the compiler's parts, and the kernels here."""
    digest = hashlib.sha256(repr(FEATURES).encode())
    for part in parts(nvcc):
        digest.update(f"{part.name}\0".encode())
        if part.exists():
            digest.update(part.read_bytes())
    return digest.hexdigest()


def identity(nvcc: Path) -> str:
    """Size and time of the compiler's parts: equal means that they need not be hashed again (150 MB, half a second)."""
    found = [(part.name, part.stat().st_size, part.stat().st_mtime_ns) for part in parts(nvcc) if part.exists()]
    return hashlib.sha256(repr((FEATURES, found)).encode()).hexdigest()


def reason_in(output: str, status: int) -> str:
    """The one line of nvcc's output that says why it refused, without the names of its temporary files."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\b(fatal|error)\b", line)] or lines
    if not errors:
        return f"nvcc ended with exit status {status}"
    return re.sub(r"^ptxas \S+, line \d+; error\s*:\s*", "ptxas: ", errors[0])


def compile_feature(nvcc: Path, architecture: str, feature: Feature, directory: Path) -> str | None:
    """Compile one feature. None when it compiles, else why not.

    Always -gencode: the shorthand -arch also asks for plain PTX, which has no FP4 and fails for that reason alone.
    """
    source = directory / f"{FEATURES.index(feature)}.cu"
    source.write_text(f'extern "C" __global__ void probe(unsigned *out, const unsigned *in) {{ {feature.body} }}\n')
    gencode = f"arch=compute_{target(architecture)},code=sm_{target(architecture)}"
    command = [str(nvcc), "-gencode", gencode, "-cubin", "-o", str(source.with_suffix(".cubin")), str(source)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"nvcc did not end within {COMPILE_TIMEOUT_S} s"
    return None if done.returncode == 0 else reason_in(done.stderr + done.stdout, done.returncode)


def compile_all(nvcc: Path, architecture: str) -> dict[str, object]:
    """The answer for one architecture: feature → whether it compiles, whether it is wanted, and why it does not."""
    with (
        tempfile.TemporaryDirectory(prefix="tinderbox-probe-") as directory,
        ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool,
    ):
        reasons = list(
            pool.map(lambda feature: compile_feature(nvcc, architecture, feature, Path(directory)), FEATURES)
        )
    return {
        "architecture": architecture,
        "toolkit": toolkit_digest(nvcc),
        "identity": identity(nvcc),
        "features": {
            feature.name: {"compiles": reason is None, "wanted": feature.wanted, "reason": reason}
            for feature, reason in zip(FEATURES, reasons, strict=True)
        },
    }


def missing(answer: dict[str, object]) -> list[str]:
    """A line for every wanted feature that does not compile."""
    features = answer["features"]
    assert isinstance(features, dict)
    return [
        f"{name}: {found['reason']}" for name, found in features.items() if found["wanted"] and not found["compiles"]
    ]


def recall(directory: Path, nvcc: Path, architecture: str) -> dict[str, object] | None:
    """The answer kept for this very toolkit, or None."""
    try:
        kept = json.loads((directory / f"{architecture}.json").read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(kept, dict):
        return None
    same = kept.get("identity") == identity(nvcc) or kept.get("toolkit") == toolkit_digest(nvcc)
    return kept if same else None


def keep(directory: Path, answer: dict[str, object]) -> None:
    """Keep an answer, for next time. Not for one with missing features: no g++, no memory are causes that pass."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{answer['architecture']}.json"
    fresh = path.with_suffix(f".{os.getpid()}.new")
    fresh.write_text(json.dumps(answer, indent=1) + "\n")
    fresh.replace(path)


def main(arguments: list[str]) -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description="Which native FP4 features does this host's nvcc compile?")
    parser.add_argument("--architecture", required=True, help="for example 12.1f")
    parser.add_argument("--nvcc", type=Path, default=Path("/usr/local/cuda/bin/nvcc"))
    parser.add_argument("--kept-in", type=Path, default=PROBES, help="directory of kept answers")
    parser.add_argument("--recall", action="store_true", help="only print the kept answer, or null")
    parser.add_argument("--digest", action="store_true", help="only print the sha256 of the compiler's parts")
    wish = parser.parse_args(arguments)

    if not wish.nvcc.exists():
        if wish.recall:
            print("null")
            return 0
        print(f"{wish.nvcc} is not there: is the CUDA toolkit installed?", file=sys.stderr)
        return 2
    if wish.digest:
        print(toolkit_digest(wish.nvcc))
        return 0
    answer = recall(wish.kept_in, wish.nvcc, wish.architecture)
    if wish.recall or answer is not None:
        print(json.dumps(answer))
        return 0
    answer = compile_all(wish.nvcc, wish.architecture)
    print(json.dumps(answer))
    if lacks := missing(answer):
        print(
            f"{wish.nvcc} lacks native FP4 features for {wish.architecture}:\n  " + "\n  ".join(lacks) + "\n"
            "Builds for this architecture would fall back to slow kernels. Check cuda.package and cuda.version in the "
            "fleet file (13.0 or newer), and that a host compiler (g++) is installed.",
            file=sys.stderr,
        )
        return 1
    keep(wish.kept_in, answer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
