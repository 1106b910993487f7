"""The CUDA toolkit and the container toolkit."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase

import pytest

from tests.verify.conftest import Spark


@pytest.mark.parametrize("stage", ["cuda", "runtime"])
def test_the_package_is_installed_at_its_version(spark: Spark, stage: str) -> None:
    """As pinned by the fleet file."""
    settings = spark.plan.settings
    package, wanted = {
        "cuda": (settings.cuda.package, settings.cuda.version),
        "runtime": ("nvidia-container-toolkit", settings.runtime.container_toolkit_version),
    }[stage]
    found = spark.host.package(package)
    assert found.is_installed, f"{spark.name}: package {package} is not installed; run deploys/{stage}.py"
    assert fnmatchcase(found.version, wanted), (
        f"{spark.name}: package {package} is {found.version}, wanted {wanted}; run deploys/{stage}.py"
    )


def test_the_compiler_has_native_fp4(spark: Spark) -> None:
    """Every wanted feature was seen to compile by the very compiler that is there now."""
    architecture = spark.plan.settings.cuda.architecture
    probe = f"python3 /usr/local/lib/tinderbox/compile_probe.py --recall --architecture {architecture}"
    answer = json.loads(spark.root(probe))
    assert answer is not None, (
        f"{spark.name}: this nvcc was never probed for {architecture}, or there is none; run deploys/cuda.py"
    )
    lacking = [name for name, feature in answer["features"].items() if feature["wanted"] and feature["reason"]]
    assert not lacking, f"{spark.name}: nvcc does not compile {', '.join(lacking)} for {architecture}"
