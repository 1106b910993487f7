"""PromQL for panels, over every engine's own names."""

from __future__ import annotations

from collections.abc import Iterable

from modules.monitoring.engine_names import EngineFigure

# Grafana's variables. A host's own page shows one, the fleet's all of them.
FLEET = 'fleet="$fleet"'
ONE_HOST = 'fleet="$fleet", host="$host"'
_BY = "host, service"
_WINDOW = "[$__rate_interval]"


def rate(figure: EngineFigure, of: str) -> str:
    """A counter's speed, by service."""
    return _any(f"sum by ({_BY}) (rate({name}{{{of}}}{_WINDOW}))" for name in figure.names)


def total(figure: EngineFigure, of: str) -> str:
    """A gauge over all processes of an engine."""
    return _any(f"sum by ({_BY}) ({name}{{{of}}})" for name in figure.names)


def fullest(figure: EngineFigure, of: str) -> str:
    """A share of one, of the process that has the most."""
    return _any(f"max by ({_BY}) ({name}{{{of}}})" for name in figure.names)


def quantile(share: float, figure: EngineFigure, of: str) -> str:
    """Of a histogram."""
    assert figure.histogram
    return _any(
        f"histogram_quantile({share:g}, sum by ({_BY}, le) (rate({name}_bucket{{{of}}}{_WINDOW})))"
        for name in figure.names
    )


def _any(each: Iterable[str]) -> str:
    return " or ".join(each)
