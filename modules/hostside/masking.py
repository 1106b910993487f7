"""Take secrets out of logs before anybody reads them: what looks like one, and what stands where one stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MASK = "***"

# By its form: Hugging Face, OpenAI and the like, NVIDIA, GitHub, GitLab, Slack, AWS, and signed JSON (JWT).
_FORMS = re.compile(
    r"\b(hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{12,}|nvapi-[A-Za-z0-9_-]{16,}|gh[oprsu]_[A-Za-z0-9]{20,}"
    r"|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}"
    r"|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]+)"
)
_HEADER = re.compile(r"(authorization[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic|token)\s+)?)[^\s\"',;]+", re.IGNORECASE)
_BEARER = re.compile(r"(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_URL_LOGIN = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@:\"']*:[^\s/@\"']+@", re.IGNORECASE)
_URL_FIELD = re.compile(
    r"([?&](?:[\w-]*(?:token|key|secret|password|signature|credential)|sig|key-pair-id|policy)=)[^&\s\"']+",
    re.IGNORECASE,
)
_VALUE = r"\"[^\"]*\"|'[^']*'|\[[^\]]*\]|[^\s,;)}\"']+"
# NAME=value of an environment, anywhere in a capital name.
_VARIABLE = re.compile(
    rf"\b([A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSW(?:OR)?D|CREDENTIAL)[A-Z0-9_]*)([\"']?\s*[=:]\s*)({_VALUE})"
)
# api_key=…, --api-key …, "password": …: only as a name's last word, since logs of models are full of tokens.
_NAME = r"(?:(?<![A-Za-z])|(?<=[_-]))(?:api[_-]?key|access[_-]?key|private[_-]?key|token|secret|password|passwd)"
_FIELD = re.compile(rf"({_NAME})([\"']?\s*[=:]\s*|(?<=-key)\s+|(?<=-token)\s+)({_VALUE})", re.IGNORECASE)
# What such names hold when it is no secret; a log without it would hide the cause of a failure.
_PLAIN = re.compile(
    r"[\"'\[]*(?:none|null|true|false|auto|\d+(?:\.\d+)?|<\|[^|]*\|>|/[\w./-]*|\*+)?[\"'\]]*", re.IGNORECASE
)
_KEY_START, _KEY_END = (
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    re.compile(r"-----END [A-Z ]*PRIVATE KEY-----"),
)


def masked(line: str) -> str:
    """The line without what is secret in it."""
    line = _FORMS.sub(MASK, line)
    line = _HEADER.sub(rf"\1{MASK}", line)
    line = _BEARER.sub(rf"\1{MASK}", line)
    line = _URL_LOGIN.sub(rf"\1{MASK}@", line)
    line = _URL_FIELD.sub(rf"\1{MASK}", line)
    line = _VARIABLE.sub(_hidden, line)
    return _FIELD.sub(_hidden, line)


class Masker:
    """Masks a log line by line, as it comes."""

    def __init__(self) -> None:
        self._inside = False

    def line(self, line: str) -> str | None:
        """The line, masked; a private key that goes over several lines becomes one, and None for the others."""
        if self._inside:
            self._inside = _KEY_END.search(line) is None
            return None
        if _KEY_START.search(line):
            self._inside = _KEY_END.search(line) is None
            return f"{MASK} (a private key)"
        return masked(line)


def masked_lines(lines: Iterable[str]) -> Iterator[str]:
    """The lines, each masked; a private key that goes over several lines becomes one."""
    masker = Masker()
    for line in lines:
        shown = masker.line(line)
        if shown is not None:
            yield shown


def _hidden(found: re.Match[str]) -> str:
    if _PLAIN.fullmatch(found[3]):
        return found[0]
    return f"{found[1]}{found[2]}{MASK}"
