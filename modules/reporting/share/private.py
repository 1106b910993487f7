"""What must not stand in a shared text."""

from __future__ import annotations

import getpass
import ipaddress
import re
import socket
from collections.abc import Iterable
from pathlib import Path

from modules.spec.fleet import ResolvedHost

# A slash that begins a path, and not one inside `owner/name` or a URL.
_PATH = re.compile(r"(?:^|[\s\"'=:,(\[{])(?:~|\.{1,2})?/[\w.-]")
_URL = re.compile(r"\bhttps?://([^/\s:]+)(?::\d+)?[^\s\"']*")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_ADDRESS = re.compile(r"[0-9A-Fa-f:.]*[0-9A-Fa-f][.:][0-9A-Fa-f:.]+")
_LOCAL_NAME = re.compile(r"\b[\w-]+\.(?:local|lan|internal|intranet|home|corp|lab)\b", re.IGNORECASE)
PUBLIC_HOSTS = (
    *("github.com", "gitlab.com", "codeberg.org", "huggingface.co"),
    *("nvcr.io", "docker.io", "ghcr.io", "quay.io"),
)
# Users that thousands of machines have, and that are parts of the names of packages and images.
_COMMON_USERS = frozenset({"nvidia", "root", "ubuntu", "user", "admin", "spark", "debian"})
# A shorter name is found inside of ordinary words.
_SHORTEST = 3


def private_words(host: ResolvedHost) -> frozenset[str]:
    """Names by which a host, its owner or this machine could be known."""
    users = {host.ssh.user, getpass.getuser(), Path.home().name} - _COMMON_USERS
    words = {host.name, host.address, socket.gethostname(), *users}
    words |= {part for name in (host.name, host.address) for part in re.split(r"[.:]", name) if not part.isdigit()}
    return frozenset(word.lower() for word in words if len(word) >= _SHORTEST)


def is_private(text: str, words: Iterable[str] = ()) -> bool:
    """Whether a value that a fleet file gives could tell who or where its owner is."""
    without_urls = _URL.sub(" ", text)
    if any(host.lower() not in PUBLIC_HOSTS for host in _URL.findall(text)):
        return True
    if _PATH.search(without_urls) or _MAIL.search(text) or _LOCAL_NAME.search(text) or _addresses(without_urls):
        return True
    lowered = text.lower()
    return any(re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", lowered) for word in words)


def is_private_image(reference: str) -> bool:
    """Whether an image comes from a registry of the owner's own."""
    registry = reference.split("/", maxsplit=1)[0]
    named = "/" in reference and ("." in registry or ":" in registry or registry == "localhost")
    return named and registry not in PUBLIC_HOSTS


def _addresses(text: str) -> list[str]:
    return [found for found in _ADDRESS.findall(text) if _is_address(found.strip(".:"))]


def _is_address(text: str) -> bool:
    for candidate in (text, text.rsplit(":", 1)[0]):
        try:
            ipaddress.ip_address(candidate)
        except ValueError:
            continue
        return True
    return False
