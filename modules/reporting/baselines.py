"""Baselines of one fleet file, in `<fleet file>.baseline.yaml` beside it. Reading a share block makes one."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import TypeAdapter, ValidationError

from modules.spec.base import Name
from modules.spec.baseline import Baseline

_BASELINES = TypeAdapter(dict[Name, Baseline])


class BaselineError(Exception):
    """A fleet's baselines can not be read; the message names the file."""


def baseline_path(fleet: Path) -> Path:
    """`inventory/fast.yaml` has `inventory/fast.baseline.yaml`."""
    return fleet.with_suffix(".baseline.yaml")


def fleet_baselines(fleet: Path) -> dict[str, Baseline]:
    """The fleet's own; none where there is no such file. Raises `BaselineError`."""
    path = baseline_path(fleet)
    try:
        return _BASELINES.validate_python(yaml.safe_load(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (yaml.YAMLError, ValidationError, UnicodeDecodeError) as error:
        raise BaselineError(f"{path}: {error}; correct it, or take it away") from None


def baselines_text(baselines: dict[str, Baseline]) -> str:
    """As the file holds them."""
    document = {name: baseline.model_dump(mode="json", exclude_none=True) for name, baseline in baselines.items()}
    return yaml.safe_dump(document, sort_keys=False, width=110, allow_unicode=True)
