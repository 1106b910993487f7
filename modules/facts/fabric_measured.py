"""What a host keeps of the measurement of its links."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyinfra.api import StringCommand
from typing_extensions import override

from modules.facts.base import HostFact

PROGRAMS = ("ib_write_bw", "mpirun", "all_gather_perf")
MEASURED = "/var/lib/tinderbox/fabric/measured.json"


@dataclass(frozen=True)
class Measured:
    """`rdma`: link → what ib_write_bw printed; `ended`: those links whose test ended well. `nccl`: nccl-tests' output.

    `programs`: which of PROGRAMS the host has.
    """

    key: str | None
    rdma: Mapping[str, str]
    ended: frozenset[str]
    nccl: str | None
    nccl_ended: bool
    programs: frozenset[str]

    def has(self, key: str, link: str) -> bool:
        """Whether that link was measured as things are now; one whose test did not end is none."""
        return self.key == key and link in self.ended

    def has_nccl(self, key: str) -> bool:
        """Whether NCCL was measured as things are now."""
        return self.key == key and self.nccl_ended


class FabricMeasured(HostFact[Measured]):
    """What was measured last, and whether it can be."""

    @override
    def command(self) -> StringCommand:
        look = 'command -v "$each" >/dev/null && printf "%s " "$each"'
        return StringCommand(
            "for each in", *PROGRAMS, f"; do {look}; done; echo; ! test -e", MEASURED, "|| cat", MEASURED
        )

    @override
    def parse(self, lines: list[str]) -> Measured:
        said: dict[str, Any] = json.loads("\n".join(lines[1:]) or "{}")
        rdma, nccl = said.get("rdma", {}), said.get("nccl") or {}
        return Measured(
            key=said.get("key"),
            rdma={name: one["output"] for name, one in rdma.items()},
            ended=frozenset(name for name, one in rdma.items() if one["rc"] == 0),
            nccl=nccl.get("output"),
            nccl_ended=nccl.get("rc") == 0,
            programs=frozenset(lines[0].split()),
        )
