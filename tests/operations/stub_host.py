"""A host that answers facts from a table, for operations whose commands are looked at and not run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyinfra.context import ctx_host


class StubHost:
    """`answers`: fact class → its value, or several values for one question after the other."""

    name = "spark-1"
    current_op_hash = None

    def __init__(self, answers: dict[type, Any]) -> None:
        self.answers = {fact: list(value) if isinstance(value, list) else [value] for fact, value in answers.items()}
        self.asked: list[tuple[type, dict[str, Any]]] = []
        self.noops: list[str] = []
        self.logged: list[str] = []

    def get_fact(self, fact: type, **arguments: Any) -> Any:
        self.asked.append((fact, arguments))
        values = self.answers[fact]
        return values.pop(0) if len(values) > 1 else values[0]

    def noop(self, text: str) -> None:
        self.noops.append(text)

    def log(self, text: str, log_func: object = None) -> None:
        self.logged.append(text)


def commands_of(host: StubHost, operation: Any, **arguments: Any) -> list[Any]:
    """Every command that the operation gives on that host."""
    with ctx_host.use(host):
        commands: Iterable[Any] = operation._inner(**arguments)
        return list(commands)
