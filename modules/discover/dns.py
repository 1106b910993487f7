"""The part of DNS' wire format that multicast DNS needs (RFC 1035, RFC 6762): questions out, records in. Pure."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

A, PTR, TXT, AAAA, SRV, ANY = 1, 12, 16, 28, 33, 255
_IN = 1
# The top bit of a question's class asks for an answer to the asker alone.
_UNICAST = 0x8000
_MOST_JUMPS = 32


class MessageError(Exception):
    """What came is no message of DNS."""


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
    """A message that asks for these names and kinds."""
    kind_of_class = _IN | (_UNICAST if unicast else 0)
    asked = b"".join(_encoded(name) + struct.pack("!HH", kind, kind_of_class) for name, kind in names)
    return struct.pack("!6H", 0, 0, len(names), 0, 0, 0) + asked


def _encoded(name: str) -> bytes:
    labels = [label.encode() for label in name.rstrip(".").split(".")]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def records(message: bytes) -> list[Record]:
    """All records of an answer, of whatever section; kinds that are of no use here are left out.

    Raises `MessageError`: it is cut off, or no answer.
    """
    try:
        return list(_records(message))
    except (IndexError, struct.error, ValueError) as error:
        raise MessageError(str(error)) from error


def _records(message: bytes) -> Iterator[Record]:
    _, flags, questions, *sections = struct.unpack_from("!6H", message)
    if not flags & 0x8000:
        raise ValueError("a question, and no answer")
    at = 12
    for _ in range(questions):
        _, at = _name(message, at)
        at += 4
    for _ in range(sum(sections)):
        name, at = _name(message, at)
        kind, _, _, length = struct.unpack_from("!HHIH", message, at)
        at += 10
        if at + length > len(message):
            raise ValueError("cut off")
        record = _record(message, name, kind, at, length)
        if record is not None:
            yield record
        at += length


def _record(message: bytes, name: str, kind: int, at: int, length: int) -> Record | None:
    data = message[at : at + length]
    if (kind, length) in {(A, 4), (AAAA, 16)}:
        return Record(name, kind, str(ipaddress.ip_address(data)))
    if kind == PTR:
        return Record(name, kind, _name(message, at)[0])
    if kind == SRV:
        return Record(name, kind, _name(message, at + 6)[0], struct.unpack_from("!H", message, at + 4)[0])
    if kind == TXT:
        return Record(name, kind, "\n".join(_strings(data)))
    return None


def _strings(data: bytes) -> Iterator[str]:
    at = 0
    while at < len(data):
        yield data[at + 1 : at + 1 + data[at]].decode(errors="replace")
        at += 1 + data[at]


def _name(message: bytes, at: int) -> tuple[str, int]:
    """The name at this place, which may go on elsewhere, and where what follows it begins."""
    labels: list[str] = []
    after: int | None = None
    for _ in range(_MOST_JUMPS + len(message)):
        length = message[at]
        if length == 0:
            return ".".join(labels), at + 1 if after is None else after
        if length & 0xC0 == 0xC0:
            after = at + 2 if after is None else after
            (pointer,) = struct.unpack_from("!H", message, at)
            if pointer & 0x3FFF >= at:
                raise ValueError("a name that leads forward")
            at = pointer & 0x3FFF
        else:
            # A dot within an instance's name is a part of it.
            labels.append(message[at + 1 : at + 1 + length].decode(errors="replace").replace(".", "\\."))
            at += 1 + length
    raise ValueError("a name without an end")
