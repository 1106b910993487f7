"""Messages of multicast DNS: questions out, records in. How they are written is zeroconf's business. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from zeroconf import DNSAddress, DNSIncoming, DNSOutgoing, DNSPointer, DNSQuestion, DNSRecord, DNSService, DNSText

A, PTR, TXT, AAAA, SRV, ANY = 1, 12, 16, 28, 33, 255
_IN = 1
_QUERY = 0


@dataclass(frozen=True)
class Record:
    """An answer. `data`: of A and AAAA the address, of PTR and SRV the name, of TXT its strings joined by newlines.

    `port`: of SRV; 0 elsewhere.
    """

    name: str
    kind: int
    data: str
    port: int = 0


def question(names: Sequence[tuple[str, int]], *, unicast: bool) -> bytes:
    """A message that asks for these names and kinds. `unicast`: and for an answer to the asker alone."""
    message = DNSOutgoing(_QUERY, multicast=True)
    for name, kind in names:
        asked = DNSQuestion(f"{name.rstrip('.')}.", kind, _IN)
        asked.unicast = unicast
        message.add_question(asked)
    (packet,) = message.packets()
    return packet


def records(message: bytes) -> list[Record]:
    """All records of an answer, of whatever section, as far as it can be read; none of anything else.

    Kinds that are of no use here are left out.
    """
    incoming = DNSIncoming(message)
    if not incoming.valid or not incoming.is_response():
        return []
    return [record for one in incoming.answers() for record in _record(one)]


def _record(one: DNSRecord) -> Iterator[Record]:
    name = one.name.rstrip(".")
    if isinstance(one, DNSAddress):
        yield Record(name, one.type, str(ipaddress.ip_address(one.address)))
    elif isinstance(one, DNSPointer):
        yield Record(name, one.type, one.alias.rstrip("."))
    elif isinstance(one, DNSService):
        yield Record(name, one.type, one.server.rstrip("."), one.port)
    elif isinstance(one, DNSText):
        yield Record(name, one.type, "\n".join(_strings(one.text)))


def _strings(data: bytes) -> Iterator[str]:
    at = 0
    while at < len(data):
        yield data[at + 1 : at + 1 + data[at]].decode(errors="replace")
        at += 1 + data[at]
