"""What a fabric of a topology is known to reach."""

from __future__ import annotations

from pydantic import model_validator

from modules.spec.base import Strict, broken_rule


class Reach(Strict):
    """`expected`: what others have measured. Below `warn` it is slow, below `fail` it is broken."""

    expected: float
    warn: float
    fail: float

    @model_validator(mode="after")
    def _ordered(self) -> Reach:
        if not self.fail < self.warn <= self.expected:
            raise broken_rule("a failure is below a warning, and that not above what is expected", "warn")
        return self


class FabricFigures(Strict):
    """Of one topology. `rdma_gbps`: of one half of a port, in Gb/s. `nccl_gbs`: bus bandwidth over all, in GB/s.

    `verified`: whether this project has measured it on hardware.
    """

    rdma_gbps: Reach
    nccl_gbs: Reach | None = None
    verified: bool = False
    source: str
