"""A name server for the lab: the mirror's names and the hosts', and nothing else.

Lab hosts ask it directly, and so do the containers on them: a resolver on the host's loopback, such as docker's own,
could not be reached from their network namespaces.
"""

from __future__ import annotations

import ipaddress
import json
import socketserver
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_HEADER = struct.Struct(">6H")
_QUESTION = struct.Struct(">2H")
_A, _ANY_CLASS = 1, 1
_ANSWER, _NO_SUCH_NAME = 0x8580, 0x8583  # a response, authoritative, recursion desired and available
_SECONDS_TO_LIVE = 5


def answer(query: bytes, names: Mapping[str, str]) -> bytes:
    """The reply to one DNS query. A known name without a record of the wanted type gets an empty answer."""
    identity, _, questions, *_ = _HEADER.unpack_from(query)
    if questions != 1:
        return _HEADER.pack(identity, 0x8581, 0, 0, 0, 0)
    labels, position = [], _HEADER.size
    while query[position]:
        length = query[position]
        labels.append(query[position + 1 : position + 1 + length].decode("ascii", "replace").lower())
        position += 1 + length
    kind, network = _QUESTION.unpack_from(query, position + 1)
    question = query[_HEADER.size : position + 1 + _QUESTION.size]
    address = names.get(".".join(labels))
    found = address is not None and (kind, network) == (_A, _ANY_CLASS)
    header = _HEADER.pack(identity, _NO_SUCH_NAME if address is None else _ANSWER, 1, int(found), 0, 0)
    if address is None or not found:
        return header + question
    record = struct.pack(">3HIH", 0xC00C, _A, _ANY_CLASS, _SECONDS_TO_LIVE, 4) + ipaddress.IPv4Address(address).packed
    return header + question + record


class NameServer(socketserver.ThreadingUDPServer):
    """Answers on UDP."""

    daemon_threads = True
    max_packet_size = 4096

    def __init__(self, address: tuple[str, int], names: Path) -> None:
        """`names`: a JSON file, name → IPv4 address; read anew for each query, for hosts join a lab that is up."""
        self.names = names
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A packet that is no query gets no reply."""


class _Handler(socketserver.BaseRequestHandler):
    server: NameServer

    def handle(self) -> None:
        packet, connection = self.request
        connection.sendto(answer(packet, json.loads(self.server.names.read_text())), self.client_address)
