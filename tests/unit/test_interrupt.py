"""Ctrl-C ends a run of pyinfra by its main greenlet, wherever the signal finds the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

_PREPARED = """
import os, signal, gevent
from gevent.hub import Hub
from modules.operations.interrupt import end_run_at_ctrl_c

def interrupt(*_): os.kill(os.getpid(), signal.SIGINT)

def used_again():
    gevent.spawn(gevent.sleep, 0.01).join()
    print("hub in order", flush=True)

end_run_at_ctrl_c()
try:
{scene}
    gevent.sleep(20)
    print("not interrupted", flush=True)
finally:
    # As pyinfra does when it disconnects from its hosts.
    used_again()
"""

SCENES = {
    "in the main greenlet": "interrupt()",
    "in another greenlet": "gevent.spawn(interrupt)",
    "in the hub's loop": "gevent.get_hub().loop.run_callback(interrupt)",
    "in the hub before its loop has begun": "Hub.start_periodic_monitoring_thread = interrupt",
    "while another greenlet is waited for": "gevent.spawn_later(0.05, interrupt); gevent.spawn(gevent.sleep, 9).join()",
    "while one of many greenlets is waited for": (
        "gevent.spawn_later(0.05, interrupt); list(gevent.iwait([gevent.spawn(gevent.sleep, 9) for _ in range(3)]))"
    ),
}


@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_an_interrupt_ends_the_run_and_leaves_the_hub_in_order(scene: str) -> None:
    code = _PREPARED.replace("{scene}", f"    {scene}")
    argv = [sys.executable, "-c", code]
    done = subprocess.run(argv, check=False, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "hub in order\n", "")
