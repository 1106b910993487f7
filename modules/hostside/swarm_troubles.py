"""Why nothing more came of a swarm, and what to do, in words."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modules.hostside import weights_blobs as blobs
    from modules.hostside.swarm import Swarm
    from modules.hostside.swarm_request import Request
else:
    import weights_blobs as blobs
    from swarm import Swarm
    from swarm_request import Request

_GIB = 1024**3


def disk_trouble(request: Request, error: OSError) -> str:
    """Libtorrent has stopped since a file can not be written, or read."""
    digest = Path(str(error.filename)).name.removesuffix(blobs.PEER_PART)
    paths = [file.path for file in request.files if file.digest == digest]
    what = f"{error.strerror}: mend that and run again"
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        what = "the disk is full (df -h): make room and run again; what came is kept"
    return (
        f"{request.repository.name}{''.join(f', {path},' for path in paths[:1])} in {request.repository.folder}: {what}"
    )


def stalled(swarm: Swarm, done: int, total: int, patience_s: float) -> str:
    """No peer has given anything for so long."""
    peers = swarm.peers()
    whole = [peer.address for peer in peers if peer.whole]
    return (
        f"{swarm.request.repository.name}: no peer gave anything for {patience_s:.0f} s; {done / _GIB:.2f} of "
        f"{total / _GIB:.2f} GiB are here and stay. Connected: {', '.join(peer.address for peer in peers) or 'none'}; "
        f"with all of it: {', '.join(whole) or 'none'}. Run again; where none connects, hosts must reach each other at "
        f"port {swarm.request.port} (weights.spread)"
    )
