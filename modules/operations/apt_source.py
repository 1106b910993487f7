"""Signed repositories as sources of apt's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from modules.catalog import load_catalog
from modules.facts.apt import PackageState
from modules.operations.managed_files import ManagedFile, is_settled
from modules.spec.network import AptRepository


@dataclass(frozen=True)
class AptSource:
    """A repository as a source of apt's. `name`: of our files for it.

    `asked_for`: the fleet file names this repository, so the host gets it in any case; otherwise only where the package
    can be had from no source that the host has (DGX OS brings the CUDA repository).
    """

    name: str
    repository: AptRepository
    asked_for: bool

    @property
    def key_path(self) -> str:
        """Where the repository's key lies on a host."""
        return f"/etc/apt/keyrings/tinderbox-{self.name}.gpg"

    @property
    def paths(self) -> tuple[str, str]:
        """Our files on a host."""
        return self.file.path, self.key_path

    @property
    def file(self) -> ManagedFile:
        """The source in apt's deb822 form. The fingerprint stands in it so that another one makes it another file."""
        repository = self.repository
        components = f"Components: {' '.join(repository.components)}\n" if repository.components else ""
        return ManagedFile(
            f"/etc/apt/sources.list.d/tinderbox-{self.name}.sources",
            f"# Key: {repository.fingerprint}\n"
            f"Types: deb\nURIs: {repository.uri}\nSuites: {repository.suite}\n{components}Signed-By: {self.key_path}\n",
        )


def other_source(mentions: Mapping[str, Iterable[str]], source: AptSource) -> str | None:
    """A sources file, not ours, that has the repository already.

    apt refuses to work at all when two files name one repository with different keys.
    """
    uri = source.repository.uri.rstrip("/")
    for path, lines in mentions.items():
        if path == source.file.path or not path.endswith((".list", ".sources")):
            continue
        for line in lines:
            if not line.lstrip().startswith("#") and uri in (word.rstrip("/") for word in line.split()):
                return path
    return None


def has_source(found: PackageState, source: AptSource) -> bool:
    """Whether our source file and its key are on the host as they should be."""
    return is_settled(source.file, found.files.get(source.file.path)) and found.files.get(source.key_path) is not None


def source_of(name: str, named: AptRepository | None) -> AptSource:
    """The source for a repository of the catalog, or for the one that the fleet file names in its place."""
    return AptSource(name, named or load_catalog().repositories[name], asked_for=named is not None)
