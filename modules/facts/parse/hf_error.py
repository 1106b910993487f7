"""What `hf download` and huggingface_hub say when they fail."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from modules.facts.parse.errors import ParseError
from modules.facts.parse.text import lines_of

_PROGRAM = "hf"
Kind = Literal[
    "not found", "gated", "revision not found", "rate limited", "no name resolution", "unreachable", "refused"
]

_ERROR = re.compile(r"(?:Error: |(?:huggingface_hub\.errors\.)?(\w+(?:Error|NotFound)): )(.*)")
_STATUS = re.compile(r"HTTP Error (\d{3}) thrown|(\d{3}) (?:Client|Server) Error|^(\d{3}) [A-Z][a-z]+ .*for url", re.M)
_REPOSITORY = re.compile(r"(?:[Mm]odel|[Dd]ataset) '([^']+)'|Access to (?:model|dataset) (\S+) is restricted")
_FROM_URL = re.compile(r"https?://[^/\s]+/(?:api/models/)?([A-Za-z0-9._-]+/[A-Za-z0-9._-]+)/(?:resolve|revision|tree)/")
_SIGNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("rate limited", re.compile(r"429 |HTTP Error 429")),
    ("revision not found", re.compile(r"Revision not found|RevisionNotFoundError")),
    ("gated", re.compile(r"requires approval|GatedRepoError|Cannot access gated repo|awaiting a review")),
    ("no name resolution", re.compile(r"Name or service not known|Temporary failure in name resolution|nodename nor")),
    (
        "not found",
        re.compile(r"(?:Model|Dataset|Repository) '[^']*' not found|RepositoryNotFoundError|Repository Not Found"),
    ),
    (
        "unreachable",
        re.compile(r"Connection refused|timed out|Network is unreachable|ConnectError|CERTIFICATE_VERIFY_FAILED"),
    ),
)


@dataclass(frozen=True)
class HfError:
    """Why a download failed.

    `not found` is also what the hub says of a private repository without a token. `gated`: 401 and 403 print the same
    words, so `status` is known only where a traceback shows it. `retries`: how often it tried again first.
    """

    kind: Kind
    repository: str | None
    status: int | None
    retries: int
    message: str


def parse_hf_error(text: str) -> HfError:
    """The closing message decides only where nothing before it is more exact: a 429 ends as `Local entry not found`."""
    plain = "\n".join(lines_of(text))
    errors = [match[2] for line in plain.splitlines() if (match := _ERROR.match(line))]
    if not errors:
        raise ParseError(_PROGRAM, "no error of huggingface_hub", text=text)
    kind: Kind = next((kind for kind, sign in _SIGNS if sign.search(plain)), "refused")
    statuses = [int(code) for match in _STATUS.finditer(plain) for code in match.groups() if code]
    named = _REPOSITORY.search(plain)
    url = _FROM_URL.search(plain)
    repository = next((group for group in named.groups() if group), None) if named else url and url[1]
    retries = [int(count) for count in re.findall(r"\[Retry (\d+)/\d+\]", plain)]
    return HfError(kind, repository, statuses[-1] if statuses else None, max(retries, default=0), errors[-1])
