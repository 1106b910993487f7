"""The lock: what loose wishes resolved to."""

from __future__ import annotations

from modules.spec.base import Commit, Digest, Strict


class Lock(Strict):
    """`models`: `repository@revision` → commit. `images`: reference with its tag → digest."""

    models: dict[str, Commit] = {}
    images: dict[str, Digest] = {}

    def commit(self, repository: str, revision: str) -> str | None:
        """Give the commit that a revision of a model resolved to."""
        return self.models.get(f"{repository}@{revision}")

    def digest(self, reference: str) -> str | None:
        """Give the digest that an image's tag resolved to."""
        return self.images.get(reference)
