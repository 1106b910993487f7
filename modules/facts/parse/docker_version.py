"""`docker --version` and `docker version`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of

_PROGRAM = "docker version"
_SHORT = re.compile(r"Docker version (\S+?),? build (\S+)")


@dataclass(frozen=True)
class DockerVersion:
    """`server` is None when the daemon was not asked or did not answer; `refusal` is what docker then said."""

    client: str
    server: str | None
    refusal: str | None


def parse_docker_version(text: str) -> DockerVersion:
    """Either form. A client without a server is a result: whether that is bad is for the caller to say."""
    versions: dict[str, str] = {}
    refusal: str | None = None
    part = ""
    for line in lines_of(text):
        stripped = line.strip()
        if short := _SHORT.fullmatch(stripped):
            return DockerVersion(short[1], None, None)
        if heading := re.match(r"(Client|Server)\b", line):
            part = heading[1]
        elif re.match(r"Cannot connect to the Docker daemon|permission denied|Error response from daemon", stripped):
            refusal = stripped
        elif line.startswith(" ") and (version := re.fullmatch(r"Version:\s+(\S+)", stripped)):
            versions.setdefault(part, version[1])  # containerd, runc and init follow with versions of their own
    if "Client" not in versions:
        raise ParseError(_PROGRAM, "no version of the client", text=text)
    if refusal is None and "Server" not in versions:
        raise ParseError(_PROGRAM, "neither a server nor a refusal: the output is cut off", text=text)
    return DockerVersion(versions["Client"], versions.get("Server"), refusal)
