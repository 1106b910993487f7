"""Imported services as the text of a fleet file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from modules.importer.convert import Imported

_SCHEMA = "# yaml-language-server: $schema=fleet.schema.json\n"
_WIDTH = 110


def fleet_text(found: Sequence[Imported], fleet: str, addresses: Sequence[str]) -> str:
    """A fleet file with a group for each service that could be made, and as many hosts as the first one needs.

    `addresses`: of the hosts; those that are not given are of a network that only examples use, to be corrected.
    """
    made = [one for one in found if one.service is not None]
    groups = {one.name: {"services": {one.name: _with_hosts(one)}} for one in made}
    count = max([len(addresses), *(one.hosts for one in made)])
    hosts = {
        f"spark-{number}": {
            "address": addresses[number - 1] if number <= len(addresses) else f"192.0.2.{number}",
            "groups": [one.name for one in made[:1] if number <= one.hosts],
        }
        for number in range(1, count + 1)
    }
    document = {"fleet": fleet, "groups": groups, "hosts": hosts}
    told = "".join(f"# {line}".rstrip() + "\n" for one in found for line in ("", *lines(one)))
    told += "#\n# The addresses below are examples: write your hosts'.\n" if count > len(addresses) else ""
    choice = "# A host serves what its groups say: give each host the groups that it is to have.\n" if made[1:] else ""
    return f"{_SCHEMA}{choice}{told}{document_text(document)}"


def distinct(found: Sequence[Imported]) -> list[Imported]:
    """The same, each of those that were made under a name of its own."""
    seen: Counter[str] = Counter()
    named = []
    for one in found:
        seen[one.name] += one.service is not None
        again = one.service is not None and seen[one.name] > 1
        named.append(replace(one, name=f"{one.name[:44].rstrip('-')}-{seen[one.name]}") if again else one)
    return named


def lines(one: Imported) -> list[str]:
    """What became of one recipe: the verdict, and what was not carried over as it stands."""
    verdict = {"read": "read whole", "partly": "read in part", "refused": "refused"}[one.status]
    return [f"{one.source}: {verdict}{f', as {one.name}' if one.service else ''}", *(f"  {line}" for line in one.left)]


def _with_hosts(one: Imported) -> Mapping[str, Any]:
    service = dict(one.service or {})
    if one.hosts > 1:
        service["cluster"] = {"hosts": [f"spark-{number}" for number in range(1, one.hosts + 1)]}
    return service


def document_text(document: Mapping[str, Any]) -> str:
    """YAML without anchors, in the order of its keys."""

    class Dumper(yaml.SafeDumper):
        """Without anchors, and tuples as lists."""

        def ignore_aliases(self, data: object) -> bool:
            """Every value is written out."""
            return True

    Dumper.add_representer(tuple, lambda dumper, value: dumper.represent_list(value))
    return yaml.dump(document, Dumper=Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True)
