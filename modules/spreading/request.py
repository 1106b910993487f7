"""What a host is told of its part in a swarm; `modules/hostside/swarm.py` reads it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from modules.spec.settings import Weights
from modules.spreading.parts import Member, listening, seen_from, takers

_BYTES_PER_MEGABIT = 125_000


def swarm_request(
    me: Member,
    members: Sequence[Member],
    *,
    repository: str,
    revision: str,
    weights: Weights,
    reserve_bytes: int,
    offer: Mapping[str, object],
) -> str:
    """The document, as text that ends in a newline. `offer`: what `offer_weights.py` says of it."""
    others = [member for member in members if member.name != me.name and member.spread.enabled]
    reached = [(seen_from(me, other), other) for other in others]
    taking = [member.name for member in takers(members)]
    document = {
        **{key: offer[key] for key in ("commit", "filters", "files", "tree", "name", "piece_bytes", "pieces")},
        "repository": repository,
        "revision": revision,
        "home": weights.home,
        "listen": listening(me),
        "port": weights.spread.port,
        "peers": [[address, other.spread.port] for address, other in reached if address is not None],
        "takers": [address for address, other in reached if address is not None and other.name in taking],
        "share": [taking.index(me.name), len(taking)] if me.name in taking else [0, 1],
        "allowed": sorted({address for _, other in reached for address in other.addresses}),
        "limit_bytes": int((weights.spread.limit_mbit or 0) * _BYTES_PER_MEGABIT),
        "reserve_bytes": reserve_bytes,
    }
    return json.dumps(document) + "\n"
