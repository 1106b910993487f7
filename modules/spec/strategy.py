"""How a change goes over a fleet: on which hosts first, on how many at once, and when it stops."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints, field_validator

from modules.spec.base import Strict

_UNITS = {"s": 1, "m": 60, "h": 3600}
_MOST_SOAK_S = 24 * 3600

# A number of hosts, or a share of them.
Share = Annotated[str, StringConstraints(pattern=r"^[1-9]\d{0,5}%?$")]
Duration = Annotated[str, StringConstraints(pattern=r"^(0|\d{1,6}[smh])$")]


class Strategy(Strict):
    """How releases are put in force on the hosts of a fleet.

    `canary`: how many hosts go first, or which hosts and groups. `batch`: how many go together after them, or which
    share of the fleet's hosts. `max_failures`: so many hosts may fail before the fleet stops. `soak`: how long the
    canary must have served before others follow.
    """

    canary: int | tuple[str, ...] = 1
    batch: Share = "25%"
    max_failures: int = Field(default=0, ge=0)
    soak: Duration = "10m"

    @field_validator("canary", mode="before")
    @classmethod
    def _number_or_names(cls, canary: object) -> object:
        number = isinstance(canary, int) and not isinstance(canary, bool) and canary >= 0
        names = isinstance(canary, list | tuple) and canary and all(isinstance(one, str) for one in canary)
        if not number and not names:
            raise ValueError(
                "neither a number of hosts nor a list of names: write 1, 0 for none, or hosts and groups as [spark-1]"
            )
        return canary

    @field_validator("batch")
    @classmethod
    def _of_a_hundred(cls, batch: str) -> str:
        if batch.endswith("%") and int(batch[:-1]) > 100:
            raise ValueError("more than all hosts: write 1% to 100%, or a number of hosts")
        return batch

    @field_validator("soak")
    @classmethod
    def _within_a_day(cls, soak: str) -> str:
        if soak != "0" and int(soak[:-1]) * _UNITS[soak[-1]] > _MOST_SOAK_S:
            raise ValueError("longer than a day, in which one run would have to go on: write at most 24h")
        return soak

    @property
    def soak_s(self) -> int:
        """In seconds."""
        return 0 if self.soak == "0" else int(self.soak[:-1]) * _UNITS[self.soak[-1]]

    def batch_of(self, hosts: int) -> int:
        """How many go together in a fleet of so many hosts: at least one, and of a share no more than it says."""
        if self.batch.endswith("%"):
            return max(1, hosts * int(self.batch[:-1]) // 100)
        return int(self.batch)
