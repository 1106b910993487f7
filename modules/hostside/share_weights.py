"""Give a verified model to the other hosts of the fleet, until all of them have it.

    share_weights.py REQUEST

Runs in the tools' environment, as a job, which the controller stops when all is done; left alone, it ends by itself.
REQUEST: see `swarm.Request`. Exit status: 0; 1 with the reason in the last lines.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside.progress import Progress
    from modules.hostside.swarm import Swarm
    from modules.hostside.swarm_pieces import ordered, pieces
    from modules.hostside.swarm_request import Request
else:
    from progress import Progress
    from swarm import Swarm
    from swarm_pieces import ordered, pieces
    from swarm_request import Request

# Short, so that none is missed who leaves when it has all.
_TICK_S = 0.2
_CALL_S = 5.0
# Nobody has taken anything for so long: the controller is gone, and so are those who were to take.
PATIENCE_S = 600.0


def share(request: Request, progress: Progress, stopped: threading.Event, patience_s: float = PATIENCE_S) -> None:
    """Give until every taker was seen with all of it, or nobody has wanted anything for `patience_s`, or stopped."""
    files = ordered(request.files)
    names = {file.digest: file.digest for file in files}
    swarm = Swarm(request, names, [True] * len(pieces(files, request.piece_bytes)), {})
    served: set[str] = set()
    wanted, called = time.monotonic(), 0.0
    try:
        while not stopped.is_set() and time.monotonic() - wanted < patience_s:
            # Takers come by themselves, and stay away while others can give them what they lack.
            if time.monotonic() - called > _CALL_S:
                swarm.connect()
                called = time.monotonic()
            peers = swarm.peers()
            served |= {peer.address for peer in peers if peer.whole}
            if any(not peer.whole for peer in peers):
                wanted, called = time.monotonic(), 0.0
            elif served >= set(request.takers):
                return
            progress.report("given to peers", swarm.status().total_payload_upload, 0, "bytes")
            stopped.wait(_TICK_S)
    finally:
        print(f"given to peers: {swarm.status().total_payload_upload} bytes", flush=True)
        swarm.close()


def main() -> int:
    """Entry point."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    path = Path(sys.argv[1])
    try:
        share(Request.read(path), Progress(), stopped)
    except (OSError, KeyError) as reason:
        print(f"{socket.gethostname()}: {reason}", file=sys.stderr)
        return 1
    path.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
