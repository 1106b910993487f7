"""What went wrong on which host: told with what to do, and kept for the summary at the end of a run.

pyinfra logs every error of a host behind the host's name, and that is all that it hands on: a host that can not be
reached gets there before any code of a deploy runs.
"""

from __future__ import annotations

import json
import logging
import os
import re
from pathlib import Path
from typing import NotRequired, TypedDict

from modules.fleet import Fleet, load_fleet
from modules.reporting.connection_advice import advice

# Names the file to which each error is added as a line of JSON, for whoever runs pyinfra as a child.
ERRORS_FILE = "TINDERBOX_ERRORS"

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_OF_HOST = re.compile(r"^\[(?P<host>[^\]]+)\](?: nested)?\s+(?P<said>.*)$", re.DOTALL)
_STARTING = re.compile(r"^--> Starting operation: (?P<name>.*?)\s*$")
# Says only that the lines before it were an error.
_COUNT = re.compile(r"^Error: executed \d+ commands")
_NOBODY_LEFT = "No hosts remaining!"


class HostError(TypedDict):
    """`operation`: the one that was under way, empty before the first. `foreseen`: known before anything was tried."""

    host: str
    operation: str
    said: str
    foreseen: NotRequired[bool]


_here: dict[str, list[HostError]] = {}


def errors_here() -> dict[str, list[HostError]]:
    """What went wrong in this process so far: host → its errors, in order."""
    return _here


def note_foreseen(host: str, operation: str, said: str) -> None:
    """Keep why an operation will fail its host, as it is known before the run has begun."""
    _keep(HostError(host=host, operation=operation, said=said, foreseen=True), os.environ.get(ERRORS_FILE))


def _keep(error: HostError, path: str | None) -> None:
    _here.setdefault(error["host"], []).append(error)
    if path is not None:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(error) + "\n")


def watch_errors() -> None:
    """Have the errors of this process's hosts explained, and written to `ERRORS_FILE` where that is named."""
    logger = logging.getLogger("pyinfra")
    logger.addFilter(_is_trouble)
    if not any(isinstance(handler, _Errors) for handler in logger.handlers):
        logger.addHandler(_Errors(logger, os.environ.get(ERRORS_FILE)))
    # Where nobody takes paramiko's records, Python prints them: tracebacks of what the host's error says in a line.
    paramiko = logging.getLogger("paramiko")
    if not paramiko.handlers:
        paramiko.addHandler(logging.NullHandler())


def _is_trouble(record: logging.LogRecord) -> bool:
    """False for what tells people nothing.

    That is pyinfra's warning of a known_hosts file that is not there, as on a machine that never used SSH yet; and how
    many commands it had executed, or that no host is left, below what a host has said for itself.
    """
    args = record.args if isinstance(record.args, tuple) else ()
    if str(record.msg).startswith("Failed to load host keys") and isinstance(args[-1], FileNotFoundError):
        return False
    text = _STYLE.sub("", record.getMessage())
    of_host = _OF_HOST.match(text)
    if of_host is not None and _COUNT.match(of_host["said"]):
        return of_host["host"] not in _here
    return not (_here and text.endswith(_NOBODY_LEFT))


def read_errors(path: Path) -> dict[str, list[HostError]]:
    """What was written to `path`: host → its errors, in order. A last line that was cut off is left out."""
    found: dict[str, list[HostError]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            error: HostError = json.loads(line)
        except ValueError:
            continue
        found.setdefault(error["host"], []).append(error)
    return found


class _Errors(logging.Handler):
    def __init__(self, logger: logging.Logger, path: str | None) -> None:
        super().__init__(logging.INFO)
        self._logger = logger
        self._path = path
        self._operation = ""
        self._advised: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        text = _STYLE.sub("", record.getMessage())
        starting = _STARTING.match(text)
        if starting is not None:
            self._operation = starting["name"]
        of_host = _OF_HOST.match(text) if record.levelno >= logging.ERROR else None
        if of_host is not None and not _COUNT.match(of_host["said"]):
            self._tell(record.getMessage(), of_host["host"], of_host["said"])

    def _tell(self, message: str, host: str, said: str) -> None:
        _keep(HostError(host=host, operation=self._operation, said=said), self._path)
        todo = None if host in self._advised else _todo(load_fleet(), host, said)
        if todo is not None:
            # Once: a run that waits for a host to come back fails to reach it again and again.
            self._advised.add(host)
            self._logger.error(f"{message[: message.index(']') + 1]} {todo}")


def _todo(fleet: Fleet, host: str, said: str) -> str | None:
    return advice(said, fleet.hosts[host], fleet.path) if host in fleet.hosts else None
