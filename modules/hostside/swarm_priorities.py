"""Which pieces a host asks for first, so that hosts that begin together do not all ask one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass
else:
    pass


# Libtorrent's: 7 is the highest.
_FIRST, _USUAL, _NEVER = 7, 4, 0
# Of a host's share this much is asked for at a time: pieces, at least, and one so-manieth. Seconds' worth, even where a
# whole model takes seconds.
_LEAST_OF_SHARE, _PARTS_OF_SHARE = 16, 16


def priorities(elsewhere: Sequence[bool], have: Sequence[bool], share: tuple[int, int], *, starving: bool) -> list[int]:
    """How much each piece is wanted. `elsewhere`: another host that lacks some has this one. `have`: this one has it.

    Left to the rarest first, hosts that begin at the same time ask whoever has all of it for the same pieces: seven
    took 1.45 copies from one before each had one. So each asks him for its own share, and takes the rest from the
    others. One that is `starving`, since another is gone with its share, asks for everything.

    Of the share only what comes next is asked for, so that all hosts come forward at the same pace and the files are
    whole from their start on, for `Arriving`.
    """
    mine, hosts = share
    others = _USUAL if starving else _NEVER
    wanted = [_USUAL if had else others for had in elsewhere]
    lacked = [number for number in range(mine, len(elsewhere), hosts) if not elsewhere[number] and not have[number]]
    for place, number in enumerate(lacked):
        wanted[number] = _FIRST if place < max(_LEAST_OF_SHARE, len(elsewhere) // hosts // _PARTS_OF_SHARE) else others
    return wanted
