"""The lock: what loose wishes resolved to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from modules.spec.base import Commit, Digest, HostName, Name, Strict

# A large file's sha256, or a small one's git blob id, as the hub publishes them; and its size in bytes.
FileLine = Annotated[str, StringConstraints(pattern=r"^(sha256:[0-9a-f]{64}|git:[0-9a-f]{40}) \d+$")]


def _once_each(hosts: tuple[str, ...]) -> tuple[str, ...]:
    """A host that stood there twice would count as two replicas."""
    twice = next((host for at, host in enumerate(hosts) if host in hosts[:at]), None)
    if twice is not None:
        raise ValueError(f"{twice} stands there twice: write it once")
    return hosts


class Lock(Strict):
    """`models`: `repository@revision` → commit. `images`: reference with its tag → digest.

    `files`: `repository@commit` → path → hash and size of each file that was fetched of it. `placements`: service of
    the fleet's own → the hosts that were chosen for it.
    """

    models: dict[str, Commit] = {}
    images: dict[str, Digest] = {}
    files: dict[str, dict[str, FileLine]] = {}
    placements: dict[Name, Annotated[tuple[HostName, ...], AfterValidator(_once_each)]] = {}

    def commit(self, repository: str, revision: str) -> str | None:
        """Give the commit that a revision of a model resolved to."""
        return self.models.get(f"{repository}@{revision}")

    def digest(self, reference: str) -> str | None:
        """Give the digest that an image's tag resolved to."""
        return self.images.get(reference)

    def listing(self, repository: str, commit: str) -> Mapping[str, str]:
        """Give what is known of the files of a model's commit."""
        return self.files.get(f"{repository}@{commit}", {})
