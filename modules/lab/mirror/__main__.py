"""`python3 -m mirror`: everything of the lab mirror in one process.

Reads `/srv/mirror` (`hub`, `encodings`, `apt`, `wheels`, `registry`, `tls`) and `/var/lib/mirror` (`names.json`,
`faults.json`, `hub` with more models, `registry` with more images); writes `/var/lib/mirror/requests.jsonl`.
"""

from __future__ import annotations

import threading
from pathlib import Path

from .faults import Faults
from .hub import hub_site
from .journal import Journal
from .names import NameServer
from .registry import registry_site
from .server import MirrorServer, tls_context
from .static import static_site
from .wheels import wheel_site

CONTENT = Path("/srv/mirror")
STATE = Path("/var/lib/mirror")


def main() -> None:
    """Serve until killed."""
    faults, journal = Faults(STATE / "faults.json"), Journal(STATE / "requests.jsonl")
    tls = tls_context(CONTENT / "tls" / "server.pem", CONTENT / "tls" / "server.key")
    sites = {
        "hub.lab": hub_site(CONTENT / "hub", STATE / "hub"),
        "encodings.lab": static_site(CONTENT / "encodings"),
        "apt.lab": static_site(CONTENT / "apt"),
        "pypi.lab": wheel_site(CONTENT / "wheels"),
    }
    registry = registry_site(STATE / "registry", CONTENT / "registry")
    servers = (
        NameServer(("", 53), STATE / "names.json"),
        MirrorServer(("", 443), sites, faults, journal, tls),
        MirrorServer(("", 5000), {"registry.lab": registry}, faults, journal, tls),
    )
    threads = [threading.Thread(target=server.serve_forever) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
