"""The blocks of all that was measured of the process's fleet."""

from __future__ import annotations

from modules.catalog import load_catalog
from modules.fleet import load_fleet
from modules.fleet.lock import read_lock
from modules.fleet.plan import host_plan
from modules.reporting.measured import load_measured
from modules.reporting.record import load_record
from modules.reporting.share.block import ShareError, write_block
from modules.reporting.share.collect import share_of


def share_text(wanted: str | None = None) -> str:
    """A block for every service that has figures, or for one. `wanted`: its host/service.

    Raises `ShareError`: nothing was measured, or it can not be shared; `FleetError`.
    """
    fleet, catalog = load_fleet(), load_catalog()
    measured, lock, blocks = load_measured(fleet.name).services, read_lock(fleet.path), list[str]()
    for host in fleet.hosts.values():
        for plan in host_plan(host, catalog).services:
            key = f"{host.name}/{plan.name}"
            if key in measured and wanted in {None, key}:
                record = load_record(fleet.name, host.name, plan.name)
                blocks.append(write_block(share_of(host, plan, lock, measured[key], record.driver)))
    if not blocks:
        raise ShareError(f"nothing was measured{f' of {wanted}' if wanted else ''}: run stage gate first")
    return "".join(f"{block}\n" for block in blocks)
