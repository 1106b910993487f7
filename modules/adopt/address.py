"""Where a server can be reached on its host. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from modules.adopt.observed import Observed

# What each listens on without being told (vllm/entrypoints/openai/cli_args.py; sglang/srt/server_args.py;
# llama.cpp tools/server/README.md).
_DEFAULTS = {"vllm": ("0.0.0.0", 8000), "sglang": ("127.0.0.1", 30000), "llama-server": ("127.0.0.1", 8080)}  # noqa: S104
_VARIABLES = {"host": "LLAMA_ARG_HOST", "port": "LLAMA_ARG_PORT"}


@dataclass(frozen=True)
class Listening:
    """`told`: what of it is no more so when ours serves."""

    listen: str
    port: int
    told: tuple[str, ...] = ()


def listening(server: Observed, program: str) -> Listening:
    """By its flags, or its program's own defaults, and by what docker publishes of it."""
    host, port = _DEFAULTS[program]
    seen: Mapping[str, str] = {} if server.docker is None else server.docker["Config"]["Env"]
    host = value_of(server.words, "host") or seen.get(_VARIABLES["host"]) or host
    told = value_of(server.words, "port") or seen.get(_VARIABLES["port"]) or ""
    port = int(told) if told.isdecimal() else port
    if server.docker is not None and server.docker["HostConfig"]["NetworkMode"] != "host":
        return _published(server.docker, port)
    return _usable(host, port)


def _published(docker: Mapping[str, Any], port: int) -> Listening:
    bindings = (docker["HostConfig"].get("PortBindings") or {}).get(f"{port}/tcp") or []
    if not bindings:
        return Listening("127.0.0.1", port, (f"port {port} of its container is not published: loopback of the host",))
    first = bindings[0]
    found = _usable(first.get("HostIp") or "0.0.0.0", int(first.get("HostPort") or port))  # noqa: S104
    others = [f"{one.get('HostIp') or '*'}:{one.get('HostPort')}" for one in bindings[1:] if one != first]
    more = (f"published at {', '.join(others)}, too: a service has one port",) if others else ()
    return Listening(found.listen, found.port, (*found.told, *more))


def _usable(host: str, port: int) -> Listening:
    told = []
    if port < 1024:
        told.append(f"port {port} is none that a service may have (1024 or above): 8000 instead")
        port = 8000
    if host == "localhost":
        host = "127.0.0.1"
    try:
        ipaddress.ip_address(host)
    except ValueError:
        told.append(f"it listens on {host}, which is no address: loopback instead")
        host = "127.0.0.1"
    return Listening(host, port, tuple(told))


def value_of(words: Iterable[str], flag: str) -> str | None:
    """The value that a command line gives a flag: the last one counts."""
    found, waiting = None, False
    for word in words:
        name, equals, value = word.partition("=")
        if waiting and not word.startswith("--"):
            found = word
        waiting = word == f"--{flag}"
        if equals and name == f"--{flag}":
            found = value
    return found


def without(words: Iterable[str], *flags: str) -> list[str]:
    """The command line without these flags and their values, one each."""
    kept: list[str] = []
    skip = False
    for word in words:
        named = word.partition("=")[0].lstrip("-").replace("_", "-")
        if word.startswith("-") and not word.lstrip("-")[:1].isdigit():
            skip = named in flags
            if not skip:
                kept.append(word)
            skip = skip and "=" not in word
        elif not skip:
            kept.append(word)
        else:
            skip = False
    return kept
