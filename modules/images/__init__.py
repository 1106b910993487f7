"""Container images as their recipes describe them: what is built, from what, and under which name. Pure."""

from modules.images.build import Build, build_of
from modules.images.reference import (
    base_reference,
    image_key,
    image_reference,
    is_pinned,
    own_repository,
    pinned,
    pinned_digest,
    pull_reference,
)

__all__ = [
    "Build",
    "base_reference",
    "build_of",
    "image_key",
    "image_reference",
    "is_pinned",
    "own_repository",
    "pinned",
    "pinned_digest",
    "pull_reference",
]
