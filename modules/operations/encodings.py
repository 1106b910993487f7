"""Tiktoken vocabularies on a host."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping

from pyinfra import host
from pyinfra.api import operation
from pyinfra.api.command import PyinfraCommand

from modules.facts.encodings import EncodingDigests
from modules.facts.survey import Question
from modules.operations.differences import differs
from modules.operations.job import Job, run_job
from modules.operations.require import unreadable
from modules.release import layout
from modules.spec.model import Encoding
from modules.spec.network import Network

_TIMEOUT_S = 1800
ENCODINGS_THERE = Question(EncodingDigests)


def cache_name(published: str) -> str:
    """The name by which python's tiktoken looks a vocabulary up in its cache: the sha1 of the published URL."""
    return hashlib.sha1(published.encode(), usedforsecurity=False).hexdigest()


def wrong(encodings: Mapping[str, Encoding], found: Mapping[str, str]) -> dict[str, Encoding]:
    """Those of `encodings` (name → entry) that the host has not under both their names with the published content."""
    return {
        name: encoding
        for name, encoding in encodings.items()
        if {found.get(name), found.get(cache_name(encoding.url))} != {encoding.sha256}
    }


def source(name: str, encoding: Encoding, mirror: str | None) -> str:
    """Where to fetch a vocabulary: the site's mirror has it under its own name."""
    return f"{mirror.rstrip('/')}/{name}" if mirror is not None else encoding.url


def encodings_mirror(network: Network) -> str | None:
    """Where the vocabularies lie under their own names, if it is not where they were published."""
    return f"file://{network.bundle}/encodings" if network.bundle is not None else network.encodings


def fetch_job(encodings: Mapping[str, Encoding], mirror: str | None) -> Job:
    """The job that fetches `encodings`."""
    words: list[str] = []
    for name, encoding in sorted(encodings.items()):
        words += [name, source(name, encoding, mirror), encoding.sha256, str(encoding.size), encoding.url]
    command = (layout.PYTHON, str(layout.PROGRAMS / "fetch_encodings.py"), *words)
    key = hashlib.sha256("\n".join(words).encode()).hexdigest()[:12]
    return Job("encodings", key, f"encodings {', '.join(sorted(encodings))}", command, _TIMEOUT_S, "fetch")


@operation()
def encodings_present(encodings: Mapping[str, Encoding], mirror: str | None) -> Generator[PyinfraCommand, None, None]:
    """Have vocabularies on the host with exactly the published content.

    + encodings: file name → catalog entry
    + mirror: base URL of a mirror of the site's, or None for the published URLs
    """
    found = ENCODINGS_THERE.of(host)
    if found is None:
        yield from unreadable(f"the encodings in {layout.ENCODINGS}")
        return
    missing = wrong(encodings, found)
    if not missing:
        host.noop(f"{len(encodings)} encodings are there and right")
        return
    for name in sorted(missing):
        differs(str(layout.ENCODINGS / name), "holds something else" if name in found else "is not there")
    yield from run_job(fetch_job(missing, mirror))
