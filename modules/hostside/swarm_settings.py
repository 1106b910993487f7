"""How the client of a swarm behaves, and whom it speaks to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import libtorrent as lt

if TYPE_CHECKING:
    pass
else:
    pass


_OFF = (
    "enable_dht",
    "enable_lsd",
    "enable_upnp",
    "enable_natpmp",
    "enable_incoming_utp",
    "enable_outgoing_utp",
    "close_redundant_connections",
    "prefer_rc4",
    "allow_multiple_connections_per_ip",
    "smooth_connects",
    "listen_system_port_fallback",
)
_FORCED, _PLAIN_AFTER_HANDSHAKE = 0, 1
# The default asks a peer for three seconds' worth ahead: in a small swarm that is a large part of what there is, and
# several hosts ask the seed for the same piece. Measured on links of 20 Mbit/s: 46 s against 56 s.
_AHEAD_S = 1
SETTINGS: dict[str, Any] = {
    **dict.fromkeys(_OFF, False),
    "in_enc_policy": _FORCED,
    "out_enc_policy": _FORCED,
    "allowed_enc_level": _PLAIN_AFTER_HANDSHAKE,
    "request_queue_time": _AHEAD_S,
    "whole_pieces_threshold": 1,
    "unchoke_slots_limit": -1,
    "min_reconnect_time": 1,
    "connection_speed": 200,
    "peer_turnover": 0,
    "max_retry_port_bind": 0,
    "mixed_mode_algorithm": 0,
    "allowed_fast_set_size": 0,
    # It would have hosts ask whoever has all of it for the rest of pieces that others give them already.
    "prioritize_partial_pieces": False,
}
_BLOCKED, _ALLOWED = 1, 0


def only(peers: Iterable[str]) -> Any:
    """A filter that lets no other address in or be asked."""
    allowed = lt.ip_filter()
    allowed.add_rule("0.0.0.0", "255.255.255.255", _BLOCKED)  # noqa: S104 - a range, no place to listen
    allowed.add_rule("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", _BLOCKED)
    for peer in peers:
        allowed.add_rule(peer, peer, _ALLOWED)
    return allowed
