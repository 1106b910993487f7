"""A fleet file, read and found right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from modules.fleet.problem import FleetError, Origin, Problem
from modules.fleet.secret import SecretMissingError, fetch
from modules.fleet.tree import Tree, find
from modules.spec.fleet import FleetFile, ResolvedHost
from modules.spec.secret import SecretReference
from modules.spec.strategy import Strategy


@dataclass(frozen=True)
class Fleet:
    """The hosts of one fleet file, each with its settings.

    `lines`: where each secret is declared. `remarks`: what is odd, and not refused. `needed`: secrets that hosts use.
    `placements`: service of the fleet's own → its hosts.
    """

    name: str
    path: Path
    hosts: dict[str, ResolvedHost]
    secrets: dict[str, SecretReference] = field(default_factory=dict)
    lines: dict[str, Origin] = field(default_factory=dict, repr=False)
    strategy: Strategy | None = None
    remarks: tuple[Problem, ...] = ()
    needed: tuple[str, ...] = ()
    placements: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    _values: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        file: FleetFile,
        path: Path,
        hosts: Iterable[ResolvedHost],
        tree: Tree,
        *,
        remarks: tuple[Problem, ...] = (),
        needed: tuple[str, ...] = (),
        placements: Mapping[str, tuple[str, ...]] | None = None,
    ) -> Fleet:
        """Put a fleet together from what was read. `tree`: the whole file's, for the places of its secrets."""
        return cls(
            name=file.fleet,
            path=path,
            hosts={host.name: host for host in hosts},
            secrets=file.secrets,
            strategy=file.strategy,
            lines={name: find(tree, ("secrets", name)).origin for name in file.secrets},
            remarks=remarks,
            needed=needed,
            placements=dict(placements or {}),
        )

    def fetch_needed(self) -> None:
        """Fetch every secret that hosts use; before any of them is contacted.

        Raises `FleetError`: with all that are not where the file says.
        """
        problems: list[Problem] = []
        for name in self.needed:
            try:
                self.secret(name)
            except FleetError as error:
                problems += error.problems
        if problems:
            raise FleetError(self.path, problems)

    def secret(self, name: str) -> str:
        """Give a secret's value, fetched on the controller at most once.

        Raises `FleetError`: the fleet file does not declare it, or it is not where the file says.
        """
        if name not in self._values:
            self._values[name] = self._fetched(name)
        return self._values[name]

    def _fetched(self, name: str) -> str:
        origin = self.lines.get(name, Origin(1, ("secrets", name)))
        if name not in self.secrets:
            raise FleetError(self.path, [Problem(origin, "no such secret", "declare it under secrets:")])
        try:
            return fetch(self.secrets[name], self.path.parent)
        except SecretMissingError as missing:
            problem = Problem(origin, f"secret {name} is missing: {missing.looked}", missing.todo)
            raise FleetError(self.path, [problem]) from None
