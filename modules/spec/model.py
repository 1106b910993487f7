"""Models as the catalog or a fleet file describes them."""

from __future__ import annotations

from pydantic import Field

from modules.spec.base import Sha256, Strict


class Encoding(Strict):
    """A tiktoken vocabulary: its published URL, hash and size in bytes."""

    url: str
    sha256: Sha256
    size: int = Field(gt=0)


class Model(Strict):
    """A model on the hub.

    `repository`: `owner/name`. `revision`: commit (preferred), tag or branch; the lock pins it. `include`/`exclude`:
    glob patterns of files. `size_gib`: of the files that are fetched, approximate, for the disk check before the hub is
    asked. `encodings`: names in the catalog's encodings. `served_as`: the name in the API. `file`: for engines that are
    given one file of the snapshot and not its folder, that file. `load_seconds`: a host that needs longer to read the
    weights from its disk is warned of; null: none is.
    """

    repository: str = Field(pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$")
    revision: str = "main"
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ("original/*", "metal/*")
    size_gib: float = Field(gt=0)
    encodings: tuple[str, ...] = ()
    served_as: str
    file: str | None = None
    load_seconds: float | None = Field(default=None, gt=0)
    token: str | None = None  # name of a secret of the fleet file
    source: str
    verified: str = "unverified on hardware"
