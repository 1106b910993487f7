"""Models as the catalog or a fleet file describes them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from modules.spec.base import Name, Sha256, Strict
from modules.spec.engine import Flags

# What a client asks of it: text, or a vector of a text, or how well texts answer a question.
Task = Literal["generate", "embed", "rerank"]


class Encoding(Strict):
    """A tiktoken vocabulary: its published URL, hash and size in bytes."""

    url: str
    sha256: Sha256
    size: int = Field(gt=0)


class Model(Strict):
    """A model on the hub.

    `repository`: `owner/name`. `revision`: commit (preferred), tag or branch; the lock pins it. `include`/`exclude`:
    glob patterns of files. `size_gib`: of the files that are fetched, approximate, for the disk check before the hub is
    asked; null: not known before. `encodings`: names in the catalog's encodings. `served_as`: the name in the API.
    `file`: for engines that are given one file of the snapshot and not its folder, that file. `load_seconds`: a host
    that needs longer to read the weights from its disk is warned of; null: none is. `flags`: engine → flags that this
    model needs there (its parsers among them), on top of the profile's and below the service's; false takes one away.
    `task`: what clients ask of it. `sparks`: the fewest that hold it. `context`: positions that it was made for; a
    profile's longer one is cut to it. `kv_bytes_per_token`: of the cache in 16 bits, for one more token of a sequence
    that is longer than every window; for people, a memory plan reads the checkpoint. `token`: the name of a secret.
    """

    repository: str = Field(pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")
    revision: str = "main"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ("original/*", "metal/*")
    size_gib: float | None = Field(default=None, gt=0)
    encodings: tuple[str, ...] = ()
    served_as: str
    file: str | None = None
    load_seconds: float | None = Field(default=None, gt=0)
    flags: dict[Name, Flags] = {}
    task: Task = "generate"
    sparks: int = Field(default=1, ge=1, le=8)
    context: int | None = Field(default=None, gt=0)
    kv_bytes_per_token: int | None = Field(default=None, gt=0)
    token: str | None = None  # name of a secret of the fleet file
    source: str
    verified: str = "unverified on hardware"
