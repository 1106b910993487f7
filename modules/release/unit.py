"""The systemd unit of a service, as text."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from modules.release import layout
from modules.release.container import DOCKER
from modules.spec.base import is_loopback

# A crash loop on GB10 leaks GPU memory until the host wedges (35 restarts did it): few attempts, then `failed`.
START_ATTEMPTS = 3
RESTART_PAUSE_S = 15
LONGEST_PAUSE_S = 300
STOP_S = 60
GROWING_PAUSE_SINCE = 254  # systemd's RestartSteps=

_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./-]+")


@dataclass(frozen=True)
class UnitText:
    """What the template needs. `start_s`: seconds until a start counts as failed.

    `home`: of the weights, whose file system a start waits for. `listen`: the address at which the engine is asked.
    `spans`: it is one of several hosts' parts.
    """

    service: str
    description: str
    image: str
    run: tuple[str, ...]
    await_ready: tuple[str, ...]
    start_s: int
    systemd: int
    home: str
    listen: str
    watched: bool = False
    spans: bool = False


def word(text: str) -> str:
    """One word of an `Exec…=` line: quoted where systemd would split, expand or unescape it."""
    if _PLAIN.fullmatch(text):
        return text
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("$", "$$").replace("%", "%%")
    return f'"{quoted}"'


def lines(words: tuple[str, ...], *starts: str) -> str:
    """An argument vector, one flag with its values a line: a difference between two units then shows what changed.

    `starts`: other words that begin a line.
    """
    rows: list[list[str]] = [[]]
    for item in words:
        if rows[-1] and (item.startswith("--") or item in starts):
            rows.append([])
        rows[-1].append(word(item))
    return " \\\n    ".join(" ".join(row) for row in rows)


@cache
def _template(name: str) -> Template:
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=loader,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (a unit is no markup)
    )
    return environment.get_template(name)


def attempts_window_s(start_s: int) -> int:
    """Seconds in which `START_ATTEMPTS` slow starts and the pauses between them still count as one crash loop."""
    return START_ATTEMPTS * (start_s + LONGEST_PAUSE_S + STOP_S)


def _allowed(listen: str) -> str:
    """Addresses that the unit's programs may speak to: they ask the engine, wherever that listens, and nobody else."""
    within = is_loopback(listen) or ipaddress.ip_address(listen).is_unspecified
    return "localhost" if within else f"localhost {listen.partition('%')[0]}"


def render_watch(service: str, watch: tuple[str, ...], every_s: float) -> str:
    """Text of the unit that watches a service. `watch`: its program's argument vector."""
    text = _template("watch.unit.j2").render(
        service=service, unit=layout.unit_name(service), watch=lines(watch), pause_s=f"{every_s:g}"
    )
    return str(text)


def render_pair(service: str) -> str:
    """Text of the unit that keeps a service together over its hosts."""
    agent = (layout.PYTHON, str(layout.PROGRAMS / "pair_agent.py"), service)
    return str(_template("pair.unit.j2").render(service=service, agent=lines(agent), state=layout.STATE))


def _program(name: str, *words: str) -> str:
    return " ".join(word(one) for one in (layout.PYTHON, str(layout.PROGRAMS / name), *words))


def render_unit(unit: UnitText) -> str:
    """Text of the unit file. The container's name is ours alone, so removing a leftover of it touches nobody else's."""
    return _template("service.unit.j2").render(
        unit=unit,
        run=lines(unit.run, unit.image),
        await_ready=lines(unit.await_ready),
        memory_gate=_program(
            "memory_gate.py",
            layout.memory_file(unit.service),
            *("--beside", layout.services_file(), "--before", layout.before_file(unit.service)),
        ),
        memory_return=_program("memory_return.py", layout.memory_file(unit.service), layout.before_file(unit.service)),
        watch=layout.watch_unit_name(unit.service) if unit.watched else None,
        prepare_start=_program("prepare_start.py", unit.service),
        condition=_program("pair_condition.py", unit.service) if unit.spans else None,
        pair=layout.pair_unit_name(unit.service),
        docker=DOCKER,
        container=layout.container_name(unit.service),
        attempts=START_ATTEMPTS,
        attempts_window_s=attempts_window_s(unit.start_s),
        pause_s=RESTART_PAUSE_S,
        longest_pause_s=LONGEST_PAUSE_S,
        growing_pause=unit.systemd >= GROWING_PAUSE_SINCE,
        stop_s=STOP_S,
        state=layout.STATE,
        mounts=f"{unit.home} {layout.STATE}".replace("%", "%%"),
        allowed=_allowed(unit.listen),
    )
