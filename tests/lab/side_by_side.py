"""Services that share hosts: as their hosts' systemd and journal show them, and as clients ask them all the time."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tests.lab.gateway_load import Account, under_load
from tests.lab.lab_driver import Lab

_START_S = 600
_PAUSE_S = 0.5
# What the memory gate and the readiness say at the beginning and the end of a load (modules/hostside).
_GATE, _BEGINS, _ENDS = "memory-gate: ", ("GiB are available, ", "no memory was asked"), "await-ready: ready after"


@dataclass(frozen=True)
class Neighbour:
    """One of several services of a lab host."""

    lab: Lab
    host: str
    name: str

    @property
    def unit(self) -> str:
        return f"tinderbox-{self.name}.service"

    def shown(self, name: str) -> str:
        """A property of its unit."""
        return self.lab.ssh(self.host, f"systemctl show -P {name} {self.unit}", check=False).stdout.strip()

    def await_ready(self) -> None:
        """Until its unit is active, and nothing is to happen to it."""
        deadline = time.monotonic() + _START_S
        while (self.shown("ActiveState"), self.shown("Job")) not in {("active", ""), ("active", "0")}:
            told = self.lab.ssh(self.host, f"sudo journalctl --no-pager -n 60 -u {self.unit}", check=False).stdout
            assert time.monotonic() < deadline, told
            time.sleep(_PAUSE_S)

    def invocation(self) -> str:
        """Another one for each start."""
        return self.shown("InvocationID")

    def kill(self) -> None:
        """End its engine as a crash does."""
        self.lab.ssh(self.host, f"sudo kill -9 $(sudo docker inspect -f '{{{{.State.Pid}}}}' tinderbox-{self.name})")

    def await_another(self, before: str) -> None:
        """Until it is ready by another start than `before`."""
        deadline = time.monotonic() + _START_S
        while self.invocation() == before or self.shown("ActiveState") != "active":
            assert time.monotonic() < deadline, self.lab.ssh(self.host, "systemctl list-units 'tinderbox-*'").stdout
            time.sleep(_PAUSE_S)

    def loads(self, since: float) -> list[tuple[float, float]]:
        """When each load of it began and ended, by the host's clock."""
        command = f"sudo journalctl -o short-unix --no-pager --since @{since:.0f} -u {self.unit}"
        found, began = list[tuple[float, float]](), None
        for line in self.lab.ssh(self.host, command).stdout.splitlines():
            at = line.split(" ", 1)[0]
            if _GATE in line and any(begins in line for begins in _BEGINS):
                began = float(at)
            elif _ENDS in line and began is not None:
                found.append((began, float(at)))
                began = None
        return found

    def await_loading(self, since: float) -> None:
        """Until its memory gate has let it pass; a stop tells of available memory, too."""
        command = f"sudo journalctl -o cat --no-pager --since @{since:.0f} -u {self.unit} --grep '^memory-gate: [0-9]'"
        deadline = time.monotonic() + _START_S
        while not self.lab.ssh(self.host, command, check=False).stdout.strip():
            assert time.monotonic() < deadline, f"{self.unit} did not begin to load"
            time.sleep(_PAUSE_S)

    def said(self, since: float, words: str) -> bool:
        """Whether its journal has a line with these words."""
        command = f"sudo journalctl -o cat --no-pager --since @{since:.0f} -u {self.unit}"
        return words in self.lab.ssh(self.host, command).stdout


def now(lab: Lab, host: str) -> float:
    """The host's clock."""
    return float(lab.ssh(host, "date +%s.%N").stdout)


def one_after_the_other(*loads: list[tuple[float, float]]) -> bool:
    """Whether no two of these loads were at the same time."""
    ranked = sorted(span for spans in loads for span in spans)
    return all(before[1] <= after[0] for before, after in itertools.pairwise(ranked))


def await_backends(lab: Lab, gateway_host: str, servers: int) -> None:
    """Until the gateway there sends requests to so many servers."""
    deadline = time.monotonic() + _START_S
    while True:
        # Through ssh, since its figures are told on loopback.
        text = lab.ssh(gateway_host, "curl -sS 'http://127.0.0.1:8405/stats;csv'").stdout
        rows = [
            line.split(",") for line in text.splitlines() if line.split(",")[1:2] and "spark-" in line.split(",")[1]
        ]
        if sum(any(field.startswith("UP") for field in row) for row in rows) == servers:
            return
        assert time.monotonic() < deadline, text
        time.sleep(_PAUSE_S)


@contextmanager
def asked(urls: Mapping[str, tuple[str, str]], key: str, **how: int) -> Iterator[dict[str, Account]]:
    """While this lasts, each of these is asked all the time. `urls`: name → URL and model. Every answer counts."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(under_load(url, key, model, **{"streams": 1, "plain": 0, "tokens": 8, **how}))
            for name, (url, model) in urls.items()
        }
