"""All images of a host that a run has to know about, in one round trip."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pyinfra.api import StringCommand

from modules.facts.base import HostFact
from modules.facts.image import ImageState
from modules.facts.program import AskProgram
from modules.release import layout

PROGRAM = str(layout.PROGRAMS / "image_state.py")
_ABSENT = "absent"


@dataclass(frozen=True)
class HostImages:
    """`images`: of those that were asked for. `removable`: names of ours that nothing on the host needs any more.

    `stale_bytes`: of layers that were kept for passing on images which are gone. `leftover`: whether a transfer that
    was cut has left a registry or keys behind. `caches`: of engines, for what no release is proved on any more.
    """

    images: dict[str, ImageState]
    removable: tuple[str, ...] = ()
    stale_bytes: int = 0
    leftover: bool = False
    caches: tuple[str, ...] = ()


class ImagesOnHost(HostFact[HostImages]):
    """What `image_state.py` tells; no images where the host has not got our programs yet."""

    def command(self, references: Sequence[str]) -> StringCommand:
        """Ask the program, where it is.

        + references: names of images
        """
        return AskProgram(layout.PYTHON, PROGRAM, references, absent=_ABSENT)

    def parse(self, lines: list[str]) -> HostImages:
        """The last line."""
        if lines[-1] == _ABSENT:
            return HostImages({})
        told = json.loads(lines[-1])
        images = {
            reference: ImageState(None, None) if found is None else ImageState(found["id"], found["recipe"])
            for reference, found in told["images"].items()
        }
        return HostImages(
            images,
            tuple(told["removable"]),
            int(told["registry"]),
            bool(told["offer"]),
            tuple(told.get("caches") or ()),
        )


class ReachedAt(HostFact[str]):
    """The host's own address at which the controller has reached it; ask without sudo. None: not known."""

    def command(self) -> StringCommand:
        """What sshd tells every session: the client's address and port, then the server's."""
        return StringCommand("echo $SSH_CONNECTION")

    def parse(self, lines: list[str]) -> str:
        """The third word."""
        return lines[-1].split()[2]
