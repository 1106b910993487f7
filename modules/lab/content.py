"""What the mirror serves, and what hosts are made from."""

from __future__ import annotations

from modules.lab.model.repository import hub
from modules.lab.pieces.apt import apt
from modules.lab.pieces.encodings import encodings
from modules.lab.pieces.identity import identity
from modules.lab.pieces.piece import Piece
from modules.lab.pieces.registry import registry
from modules.lab.pieces.wheels import wheelhouse


def mirror_content() -> dict[str, Piece]:
    """Name of a folder under the mirror's /srv/mirror → the piece that it is."""
    return {
        "apt": apt(),
        "encodings": encodings(),
        "hub": hub(),
        "registry": registry(),
        "tls": identity(),
        "wheels": wheelhouse(),
    }
