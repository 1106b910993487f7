"""Measurements that are made once on a host: what came out is kept for as long as what it is about stays the same."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json, write_json
else:
    from atomic import read_json, write_json


TROUBLES: tuple[type[Exception], ...] = (OSError, ValueError)


def recall(kept: Path, about: dict[str, Any]) -> dict[str, Any] | None:
    """The answer that is kept about just this; None where there is none."""
    known = read_json(kept)
    answer = known.get("answer") if known is not None and known.get("about") == about else None
    return answer if isinstance(answer, dict) else None


def tell(
    kept: Path,
    about: Callable[[], dict[str, Any]],
    measure: Callable[[], dict[str, Any]],
    *,
    recall_only: bool,
    troubles: tuple[type[Exception], ...] = TROUBLES,
) -> int:
    """Print the kept answer, or measure, keep and print; `recall_only`: print null in place of measuring.

    Gives the exit status: 0, or 1 with the reason on standard error where `about` or `measure` raise one of `troubles`.
    """
    try:
        subject = about()
        answer = recall(kept, subject)
        if answer is None and not recall_only:
            answer = measure()
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_json(kept, {"about": subject, "answer": answer})
    except troubles as error:
        if recall_only:
            print("null")
            return 0
        print(f"{socket.gethostname()}: {error}", file=sys.stderr)
        return 1
    print(json.dumps(answer))
    return 0
