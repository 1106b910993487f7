"""How a job of this host stands, or how it ended: by what it wrote, and by its unit."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.atomic import read_json
else:
    from atomic import read_json


TAIL_LINES = 25
_TAIL_BYTES = 16_384
_WAIT_TICK_S = 0.1
_ALIVE = {"active", "activating", "deactivating", "reloading"}
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def unit_of(job: str) -> str:
    """The job's systemd unit."""
    return f"tinderbox-job-{job}.service"


def alive(job: str, run: Run = subprocess.run) -> bool:
    """Whether the job's unit is running (or about to, or ending)."""
    shown = run(
        ["systemctl", "show", "--property=ActiveState", "--value", unit_of(job)],
        capture_output=True,
        text=True,
        check=False,
    )
    return shown.stdout.strip() in _ALIVE


def describe(directory: Path, is_alive: Callable[[str], bool] = alive, now: float | None = None) -> dict[str, object]:
    """How the job of `directory` stands.

    `state`: absent (never started), running, succeeded, failed, or lost (its host was restarted under it).
    `elapsed_s`: since it started, until it ended. `cause`: systemd's word for a failure. `tail`: the log's last lines.
    """
    status = read_json(directory / "status.json")
    if status is None:
        return {"job": directory.name, "state": "absent"}
    if status["state"] == "running" and not is_alive(directory.name):
        # It may have ended between the two looks.
        status = read_json(directory / "status.json") or status
        if status["state"] == "running":
            status["state"] = "lost"
    ended = float(str(status.get("ended") or (time.time() if now is None else now)))
    return {
        "job": directory.name,
        "state": status["state"],
        "title": status.get("title"),
        "cause": status.get("cause"),
        "exit_code": status.get("exit_code"),
        "elapsed_s": round(max(0.0, ended - float(str(status["started"]))), 1),
        "progress": _progress(directory, ended),
        "result": read_json(directory / "result.json"),
        "tail": tail(directory / "log"),
        "directory": str(directory),
    }


def wait_for(directory: Path, seconds: float) -> None:
    """Wait for a job that runs, so long at most: who looks need not come again and again to see its end at once."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if (read_json(directory / "status.json") or {}).get("state") != "running":
            return
        time.sleep(_WAIT_TICK_S)


def _progress(directory: Path, now: float) -> dict[str, object] | None:
    """What the program reports, with the time that is left by its estimate; an estimate that is past says nothing."""
    progress = read_json(directory / "progress.json")
    if progress is not None and "ends_at" in progress:
        left = round(float(str(progress.pop("ends_at"))) - now)
        progress |= {"left_s": left} if left > 0 else {}
    return progress


def tail(log: Path) -> list[str]:
    """The last lines of a log; of a line that a program drew over with carriage returns, what stood there last."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    lines = [line.rstrip("\r").rsplit("\r", 1)[-1].rstrip() for line in text.split("\n")]
    return [line for line in lines if line][-TAIL_LINES:]
