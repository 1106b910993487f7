"""The network between Sparks on a host: configured, undone, and tried cable by cable."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence

from pyinfra import host, logger, state
from pyinfra.api import StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from modules.fabric.environment import ENVIRONMENT, engine_environment, environment_text
from modules.fabric.findings import (
    cable_faults,
    firmware_warning,
    kernel_warning,
    port_warnings,
    possible_pings,
    without_peers,
)
from modules.fabric.kernel import ARGUMENT, GRUB, GRUB_TEXT, writes_argument
from modules.fabric.netplan import NETPLAN
from modules.fabric.ports import PlannedPort, PortsError, planned_ports
from modules.fabric.wish import (
    FILES,
    LIMITS,
    LIMITS_TEXT,
    configured,
    in_the_way,
    taken_addresses,
    ways_out,
)
from modules.facts.fabric import SIMULATED_SYSFS, SYSFS, FabricState, FabricSurvey
from modules.facts.survey import Question
from modules.operations.fabric_netplan import netplan_changes, unapplied_edits
from modules.operations.managed_files import ManagedFile, settle, unsettled
from modules.operations.require import foreseen, unreadable
from modules.spec.fabric import Fabric

# A ConnectX-7 that got another MTU takes seconds until its link is up again, and so may the other host be slower.
_TRIES, _PAUSE_S = 6, 2.0
# Per host of this run: the firmware that was seen, whether all cables answered already, whether it is to be changed.
_firmware: dict[str, str | None] = {}
_answered: dict[str, bool] = {}
_changed: dict[str, bool] = {}


def fabric_there(fabric: Fabric | None, member: str, simulated: bool) -> Question[FabricState]:
    """What the host has of it, and which of its neighbours answer."""
    pings = possible_pings(fabric, member) if fabric is not None else ()
    sysfs = SIMULATED_SYSFS if simulated else SYSFS
    return Question(FabricSurvey, {"files": (NETPLAN, *FILES), "pings": pings, "sysfs": sysfs})


def wanted_files(fabric: Fabric | None, ports: Sequence[PlannedPort], found: FabricState) -> list[ManagedFile]:
    """Every file beside netplan's; those that are not asked for are to be absent."""
    if fabric is None:
        return [ManagedFile(path, None) for path in FILES]
    kernel = writes_argument(found.kernel, found.arguments, ours=found.files.get(GRUB) is not None)
    return [
        ManagedFile(ENVIRONMENT, environment_text(engine_environment(fabric, ports, found.management))),
        ManagedFile(LIMITS, LIMITS_TEXT),
        ManagedFile(GRUB, GRUB_TEXT if kernel else None),
    ]


def refusals(fabric: Fabric, ports: Sequence[PlannedPort], found: FabricState) -> list[str]:
    """Why this host is left as it is."""
    if not found.has_netplan:
        return ["netplan is not installed; `sudo apt-get install netplan.io`"]
    own = [*taken_addresses(fabric, found.others), *ways_out(ports, found.routed)]
    return [*own, *in_the_way(fabric, ports, found.foreign, found.text)]


@operation()
def fabric_settled(
    fabric: Fabric | None, member: str, simulated: bool = False
) -> Generator[PyinfraCommand, None, None]:
    """Have the QSFP ports as the fleet file says; without a fabric there, as they were before Tinderbox.

    + fabric: the host's fabric
    + member: the host's name in it
    + simulated: a lab host, which has its own stand-in for what the kernel says of devices
    """
    _answered[host.name] = _changed[host.name] = False
    found = fabric_there(fabric, member, simulated).of(host)
    if found is None:
        yield from unreadable("what it has of the fabric")
        return
    try:
        ports = planned_ports(fabric, member, found.ports, configured(found.text)) if fabric is not None else ()
    except PortsError as error:
        yield foreseen(f"{host.name}: {error}")
        return
    troubles = refusals(fabric, ports, found) if fabric is not None else []
    if troubles:
        yield foreseen("\n".join(f"{host.name}: {trouble}" for trouble in troubles))
        return
    netplan = netplan_changes(fabric, ports, found)
    if netplan and (others := unapplied_edits(found)):
        yield foreseen(f"{host.name}: {others}")
        return
    _tell(fabric, ports, found)
    changes = [*_file_changes(fabric, ports, found), *netplan]
    if not changes:
        host.noop("the fabric is as the fleet file says")
        if fabric is not None:
            _answered[host.name] = not faults_of(ports, found)
    _changed[host.name] = bool(changes)
    yield from changes


def _tell(fabric: Fabric | None, ports: Sequence[PlannedPort], found: FabricState) -> None:
    """Known bad states that keep nothing from being configured."""
    if fabric is None:
        return
    _firmware[host.name] = next((port.port.firmware for port in ports if port.port.firmware is not None), None)
    for warning in (*port_warnings(ports), kernel_warning(found.kernel, found.arguments)):
        if warning is not None:
            host.log(warning, log_func=logger.warning)


def _file_changes(
    fabric: Fabric | None, ports: Sequence[PlannedPort], found: FabricState
) -> Generator[PyinfraCommand, None, None]:
    files = unsettled(wanted_files(fabric, ports, found), found.files)
    yield from settle(files)
    wanted = next((file for file in wanted_files(fabric, ports, found) if file.path == GRUB), None)
    asked = wanted is not None and wanted.content is not None
    if any(file.path == GRUB for file in files) or (asked and ARGUMENT not in found.boots_with):
        yield StringCommand("update-grub")


@operation()
def fabric_answers(fabric: Fabric, member: str, simulated: bool = False) -> Generator[PyinfraCommand, None, None]:
    """Send whole packets over each half of each cable to each neighbour; name those that do not come back.

    Comes after all members have their addresses. Asks nothing of a host that answered before and was not changed.

    + fabric: the host's fabric
    + member: the host's name in it
    + simulated: a lab host
    """
    warning = firmware_warning({name: _firmware.get(name) for name in fabric.members})
    if warning is not None and member == fabric.members[0]:
        host.log(warning, log_func=logger.warning)
    if _answered.get(host.name):
        host.noop("every cable answers")
        return
    dry = host.current_op_hash is not None and not state.is_executing
    if dry and any(_changed.get(name, False) for name in fabric.members):
        return  # before the changes that a dry run only shows, nothing need answer
    faults: list[str] = []
    for attempt in range(1 if dry else _TRIES):
        if attempt:
            time.sleep(_PAUSE_S)
        found = fabric_there(fabric, member, simulated).of(host)
        if found is None:
            yield from unreadable("what it has of the fabric")
            return
        try:
            faults = faults_of(planned_ports(fabric, member, found.ports, configured(found.text)), found)
        except PortsError as error:
            faults = [str(error)]
        if not faults:
            host.noop("every cable answers")
            return
    yield foreseen("\n".join(f"{host.name}: {fault}" for fault in faults))


def faults_of(ports: Sequence[PlannedPort], found: FabricState) -> list[str]:
    """What does not answer, by what was tried. Neighbours that have failed in this run are not waited for."""
    failed = {one.name for one in state.failed_hosts} if host.current_op_hash is not None else set[str]()
    tries = {(ping.source, ping.target, ping.size): ping.trouble for ping in found.pings}
    for name in sorted(failed & {peer for port in ports for peer in port.peers}):
        host.log(f"{name} has failed in this run: whether its cable answers is not asked", log_func=logger.warning)
    return list(cable_faults(without_peers(ports, failed), tries))
