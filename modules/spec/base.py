"""What every model of the spec has in common."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError


class Strict(BaseModel):
    """A model that is frozen and refuses keys that it does not know."""

    # YAML reads `driver: 580` and `version: 13.0` as numbers, and nobody means a number by them.
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, coerce_numbers_to_str=True)

    @field_validator("*", mode="before")
    @classmethod
    def _truth_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        # pydantic would take true for 1, and `replicas: true` for one replica.
        if isinstance(value, bool):
            kind = _number_of(cls.model_fields[str(info.field_name)].annotation)
            if kind is not None:
                raise PydanticCustomError(kind, "not a number")
        return value


def _number_of(annotation: Any) -> Literal["int_type", "float_type"] | None:
    """Which error a truth value is, where a number is wanted; None: it may stand there."""
    kinds = set(_kinds(annotation))
    if bool in kinds or not kinds & {int, float}:
        return None
    return "float_type" if float in kinds else "int_type"


def _kinds(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _kinds(get_args(annotation)[0])
    elif origin in {UnionType, Union}:
        for one in get_args(annotation):
            yield from _kinds(one)
    else:
        yield annotation


def broken_rule(message: str, *key: str) -> PydanticCustomError:
    """Give the error of a rule that spans several fields, to be raised by a validator.

    `key`: which key inside the validated mapping is to be changed, so that the message can name its line.
    """
    return PydanticCustomError("rule", "{message}", {"message": message, "key": list(key)})


def is_loopback(address: str) -> bool:
    """Tell whether an address is this machine's own and nobody else's."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _ip_address(value: str) -> str:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        raise ValueError("not an IP address: write one of the host's own, 127.0.0.1, or 0.0.0.0 for all") from None
    return value


_FOUR_NUMBERS = re.compile(r"\d+(\.\d+){3}")


def _address(value: str) -> str:
    # A colon stands in IPv6 addresses alone: behind a name or an IPv4 address it is a port.
    if ":" in value:
        try:
            ipaddress.IPv6Address(value)
        except ValueError:
            raise ValueError("not an address: write it without a port, which goes under ssh: {port: 22}") from None
    if _FOUR_NUMBERS.fullmatch(value):  # No name ends in a number.
        try:
            reached = not ipaddress.IPv4Address(value).is_unspecified
        except ValueError:
            reached = False
        if not reached:
            raise ValueError("not an address that a host can have: write it as 10.0.0.11, or a name")
    return value


def _ipv4_network(value: str) -> str:
    try:
        if "/" not in value:
            raise ValueError(value)  # Python reads a lone address as a network of one, which no other host is in.
        ipaddress.IPv4Network(value)
    except ValueError:
        raise ValueError("not an IPv4 network: write it as 192.168.100.0/24, without host bits") from None
    return value


# The two ways to give a thing of the catalog: by its name, or its fields in its place. They stand in errors' paths.
NAMED = "named"
WRITTEN_OUT = "written-out"


def named_or_written_out(value: Any) -> str:
    """Tell a reference into the catalog from fields that stand in its place."""
    return WRITTEN_OUT if isinstance(value, dict | BaseModel) else NAMED


# Docker refuses one-letter container names, systemd dislikes most punctuation: one form that both take.
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", min_length=2, max_length=48)]
# pyinfra and OpenSSH accept more, but a host name is also shown, logged and used as a file name.
HostName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$", min_length=2, max_length=253)
]
# What getaddrinfo takes: a name, an IPv4 or an IPv6 address (with its zone).
Address = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9:]([A-Za-z0-9.:%_-]*[A-Za-z0-9:])?$", max_length=253),
    AfterValidator(_address),
]
# What a client may write for a model, and HAProxy takes for a name and nothing else.
ModelName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/@+-]*$", max_length=200)]
IpAddress = Annotated[str, AfterValidator(_ip_address)]
Ipv4Network = Annotated[str, AfterValidator(_ipv4_network)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
# Docker reads environment files line by line and knows no quotes.
EnvironmentValue = Annotated[str, StringConstraints(pattern=r"^[^\r\n]*$")]
Port = Annotated[int, Field(ge=1024, le=65535)]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+(/\S*)?$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
# As `ssh-keygen -lf` prints it.
KeyFingerprint = Annotated[str, StringConstraints(pattern=r"^SHA256:[A-Za-z0-9+/]{43}$")]
AbsolutePath = Annotated[str, StringConstraints(pattern=r"^/\S*$")]
# A version as apt knows it; with a star at its end, any that begins so.
PackageVersion = Annotated[str, StringConstraints(pattern=r"^(\*|\d[A-Za-z0-9.+~:-]*\*?)$")]
