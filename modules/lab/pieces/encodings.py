"""The tiktoken vocabularies, byte for byte as they are published."""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from pathlib import Path

from modules.lab.errors import LabError
from modules.lab.pieces.piece import Piece
from modules.lab.pieces.wheels import download

# This wheel carries the two files under the names that tiktoken gives them in its cache (sha1 of the published URL).
# Nothing of it is installed or run, and what is taken from it must have the published sha256.
_CARRIER = "litellm==1.80.0"
_FOLDER = "litellm/litellm_core_utils/tokenizers"
_PUBLISHED = {
    "o200k_base.tiktoken": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base.tiktoken": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}


def encodings() -> Piece:
    """A folder with `o200k_base.tiktoken` and `cl100k_base.tiktoken`."""

    def build(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as work:
            download([_CARRIER], Path(work))
            (wheel,) = Path(work).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                for name, (cached_as, sha256) in _PUBLISHED.items():
                    content = archive.read(f"{_FOLDER}/{cached_as}")
                    if hashlib.sha256(content).hexdigest() != sha256:
                        raise LabError(f"{name} out of {_CARRIER} does not have the published sha256 {sha256}")
                    (folder / name).write_bytes(content)

    return Piece("encodings", ["1", _CARRIER, _PUBLISHED], build)
