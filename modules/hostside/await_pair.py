"""Wait, on a worker of a service that spans hosts, until the head answers with generated text. `ExecStartPost=`.

    await_pair.py SERVICE --timeout SECONDS --memory FILE

A worker has no API: its part is ready when the whole is. Meanwhile `load_guard.py` watches the memory here, too.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import pair_place as place
    from modules.hostside.await_ready import MARK, guarded, server_gone, why_gone
    from modules.hostside.load_stops import note_load_stop
    from modules.hostside.pair_worker import order_of
else:
    import pair_place as place
    from await_ready import MARK, guarded, server_gone, why_gone
    from load_stops import note_load_stop
    from pair_worker import order_of

_FRESH_S = 30.0
_PAUSE_S = 1.0


def main(arguments: list[str]) -> int:
    """0 when the head is ready; 1, with the reason, when this part has ended or time is up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("service")
    parser.add_argument("--timeout", type=float, required=True, help="seconds")
    parser.add_argument("--memory", type=Path, required=True)
    options = parser.parse_args(arguments)
    began, mine = time.monotonic(), place.noted_start(options.service)
    guard, why = guarded(options.service, options.memory), "the head was not ready in time"
    try:
        while time.monotonic() - began < options.timeout:
            if server_gone():
                why = why_gone(guard, lambda: note_load_stop(options.service))
                break
            order = order_of(place.published(options.service, _FRESH_S))
            if order is not None and order.generation == mine and order.ready:
                print(f"{MARK}ready after {time.monotonic() - began:.0f} s: the head answers", flush=True)
                return 0
            time.sleep(_PAUSE_S)
    finally:
        guard.terminate()
    print(f"{MARK}not ready after {time.monotonic() - began:.0f} s: {why}", flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
