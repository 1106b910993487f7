"""The links between Sparks, measured: by RDMA half by half, and by NCCL over all members."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from pyinfra import host, logger, state
from pyinfra.api import StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from modules.catalog import load_catalog
from modules.fabric import PlannedPort, PortsError, address_for, engine_environment, planned_ports
from modules.fabric.kernel import ARGUMENT, needs_argument
from modules.fabric.measuring import MeasuredLink, device_of, key_of, measured_links, part_of
from modules.fabric.verdict import Grade, Line, judge_nccl, judge_rdma
from modules.fabric.wish import configured
from modules.facts.fabric import FabricState
from modules.facts.fabric_measured import PROGRAMS, FabricMeasured, Measured
from modules.operations.apt import package_installed
from modules.operations.fabric import fabric_there, faults_of
from modules.operations.require import refusal, unreadable
from modules.release import layout
from modules.spec.fabric import Fabric

PROGRAM = str(layout.PROGRAMS / "fabric_measure.py")
RDMA_PROGRAM, NCCL_PROGRAMS = PROGRAMS[0], frozenset(PROGRAMS[1:])


@dataclass(frozen=True)
class _Member:
    """What this run knows of a member: it was asked, and its cables answer."""

    part: str
    ports: tuple[PlannedPort, ...]
    management: str | None
    measured: Measured


_members: dict[str, _Member] = {}


def _links(fabric: Fabric) -> list[MeasuredLink]:
    first = _members[fabric.members[0]]
    return measured_links(fabric, len({port.slot for port in first.ports}))


def _key(fabric: Fabric) -> str:
    return key_of(fabric, {name: _members[name].part for name in fabric.members})


def _absent(fabric: Fabric) -> list[str]:
    return [name for name in fabric.members if name not in _members]


def _needed(fabric: Fabric) -> list[MeasuredLink]:
    """The links that were not measured as things are now, and those that were too slow: it may have been put right."""
    key = _key(fabric)
    return [link for link in _links(fabric) if not _is_good(fabric, key, link)]


def _is_good(fabric: Fabric, key: str, link: MeasuredLink) -> bool:
    measured = _members[link.client].measured
    if not measured.has(key, link.name):
        return False
    lines = judge_rdma(fabric, load_catalog().fabrics[fabric.topology], {link.name: measured.rdma[link.name]})
    return all(line.grade is not Grade.FAIL for line in lines)


def _needs_nccl(fabric: Fabric, measured: Measured) -> bool:
    if not measured.has_nccl(_key(fabric)):
        return measured.programs >= NCCL_PROGRAMS
    lines = judge_nccl(fabric, load_catalog().fabrics[fabric.topology], measured.nccl or "")
    return any(line.grade is Grade.FAIL for line in lines)


@operation()
def fabric_looked_at(fabric: Fabric, member: str, simulated: bool = False) -> Generator[PyinfraCommand, None, None]:
    """See that this member's cables answer and what was measured; everything after it needs that of all members.

    + fabric: the host's fabric
    + member: the host's name in it
    + simulated: a lab host
    """
    _members.pop(member, None)
    found, measured = fabric_there(fabric, member, simulated).of(host), host.get_fact(FabricMeasured)
    if found is None or measured is None:
        yield from unreadable("what it has of the fabric")
        return
    try:
        ports = planned_ports(fabric, member, found.ports, configured(found.text))
    except PortsError as error:
        yield refusal(f"{host.name}: {error}")
        return
    trouble = _hindrance(ports, found)
    if trouble is not None:
        yield refusal(f"{host.name}: {trouble}")
        return
    _members[member] = _Member(part_of(ports, found.kernel), ports, found.management, measured)
    host.noop("every cable answers")


def _hindrance(ports: Sequence[PlannedPort], found: FabricState) -> str | None:
    if needs_argument(found.kernel) and ARGUMENT not in found.arguments:
        return (
            f"kernel {found.kernel} runs without {ARGUMENT}: run deploys/fabric.py, restart the host, and measure then"
        )
    without = [port.name for port in ports if port.port.rdma is None]
    if without:
        return f"{', '.join(without)} have no RDMA device, so nothing can be measured: `sudo modprobe mlx5_ib`"
    faults = faults_of(ports, found)
    return "\n".join(faults) + "\nrun deploys/fabric.py first" if faults else None


@operation()
def fabric_served(fabric: Fabric, member: str) -> Generator[PyinfraCommand, None, None]:
    """Have this member's waiting ends wait, for links that are to be measured.

    + fabric: the host's fabric
    + member: the host's name in it
    """
    if not state.is_executing and host.current_op_hash is not None:
        return
    if absent := _absent(fabric):
        yield refusal(f"{host.name}: {', '.join(absent)} must take part in this run, too: a link has two ends")
        return
    needed = _needed(fabric)
    if not needed:
        host.noop("measured before, and nothing has changed since")
        return
    yield from _with_perftest(_members[member].measured)
    ours = [link for link in needed if link.server == member]
    if ours:
        yield StringCommand(layout.PYTHON, PROGRAM, "serve", _stdin=json.dumps(_wish(fabric, member, ours)))


def _with_perftest(measured: Measured) -> Generator[PyinfraCommand, None, None]:
    if RDMA_PROGRAM not in measured.programs:
        yield from package_installed("perftest", "*", None)


def _wish(fabric: Fabric, member: str, links: Sequence[MeasuredLink]) -> dict[str, object]:
    ours, others = _members[member], [name for name in fabric.members if name != member]
    devices = {link.name: device_of(link, ours.ports) for link in links}
    return {
        "key": _key(fabric),
        "links": [
            {"name": link.name, "device": device[0], "gid": device[1], "port": link.port, "address": link.address}
            for link in links
            if (device := devices[link.name]) is not None
        ],
        "bytes": fabric.gate.nccl_bytes,
        "addresses": [str(ours.ports[0].address.ip), *(address_for(fabric, other, member) for other in others)],
        "environment": {
            name: value
            for name, value in engine_environment(fabric, ours.ports, ours.management).items()
            if name.startswith(("NCCL_", "OMPI_")) and "IFNAME" not in name and name != "NCCL_IB_HCA"
        },
    }


@operation()
def fabric_measured(fabric: Fabric, member: str) -> Generator[PyinfraCommand, None, None]:
    """Measure the links whose client this member is, and hold them against what they should reach.

    To be run on one host after the other: two measurements at once share the PCIe links.

    + fabric: the host's fabric
    + member: the host's name in it
    """
    if not state.is_executing and host.current_op_hash is not None:
        return
    if _absent(fabric):
        return  # was refused
    mine = [link for link in _links(fabric) if link.client == member]
    needed = [link for link in _needed(fabric) if link.client == member]
    with_nccl = fabric.gate.nccl and member == fabric.members[0]
    nccl_needed = with_nccl and _needs_nccl(fabric, _members[member].measured)
    if needed:
        yield StringCommand(layout.PYTHON, PROGRAM, "measure", _stdin=json.dumps(_wish(fabric, member, needed)))
    if nccl_needed:
        yield StringCommand(layout.PYTHON, PROGRAM, "nccl", _stdin=json.dumps(_wish(fabric, member, [])))
    found = host.get_fact(FabricMeasured)
    if found is None:
        yield from unreadable("what was measured")
        return
    lines = _judged(fabric, mine, found, with_nccl)
    for line in lines:
        host.log(str(line), log_func=logger.info if line.grade is Grade.PASS else logger.warning)
    failed = [str(line) for line in lines if line.grade is Grade.FAIL]
    if failed:
        yield refusal("\n".join(f"{host.name}: {line}" for line in failed))
    elif not needed and not nccl_needed:
        host.noop("as measured before")


def _judged(fabric: Fabric, links: Sequence[MeasuredLink], found: Measured, with_nccl: bool) -> list[Line]:
    figures = load_catalog().fabrics[fabric.topology]
    lines = list(judge_rdma(fabric, figures, {link.name: found.rdma.get(link.name, "") for link in links}))
    missing = sorted(NCCL_PROGRAMS - found.programs)
    if with_nccl and missing:
        told = f"not measured: {' and '.join(missing)} not installed"
        remedy = "docs/fabric.md says how to have it, or set fabric.gate.nccl: false"
        lines.append(Line(Grade.NONE, "NCCL", told, "nccl-tests with MPI", remedy))
    elif with_nccl:
        lines += judge_nccl(fabric, figures, found.nccl or "")
    return lines


@operation()
def fabric_served_no_longer(fabric: Fabric, member: str) -> Generator[PyinfraCommand, None, None]:
    """Stop ends that still wait; they would end by themselves after some minutes.

    + fabric: the host's fabric
    + member: the host's name in it
    """
    if not state.is_executing and host.current_op_hash is not None:
        return
    if not _absent(fabric) and any(link.server == member for link in _needed(fabric)):
        yield StringCommand(layout.PYTHON, PROGRAM, "end")
