"""The links between Sparks, measured: by RDMA half by half, and by NCCL over all members."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence

from pyinfra import host, logger, state
from pyinfra.api import StringCommand, operation
from pyinfra.api.command import PyinfraCommand

from modules.catalog import load_catalog
from modules.fabric import PlannedPort, PortsError, planned_ports
from modules.fabric.kernel import ARGUMENT, needs_argument
from modules.fabric.measuring import MeasuredLink, part_of
from modules.fabric.verdict import Grade, Line, judge_nccl, judge_rdma
from modules.fabric.wish import configured
from modules.facts.fabric import FabricState
from modules.facts.fabric_measured import PROGRAMS, FabricMeasured, Measured
from modules.operations.apt import package_installed
from modules.operations.fabric import fabric_there, faults_of
from modules.operations.fabric_gate_members import (
    NCCL_PROGRAMS,
    Member,
    absent,
    links_of,
    members,
    needed,
    needs_nccl,
    wish_of,
)
from modules.operations.require import refusal, unreadable
from modules.release import layout
from modules.spec.fabric import Fabric

PROGRAM = str(layout.PROGRAMS / "fabric_measure.py")
RDMA_PROGRAM = PROGRAMS[0]


@operation()
def fabric_looked_at(fabric: Fabric, member: str, simulated: bool = False) -> Generator[PyinfraCommand, None, None]:
    """See that this member's cables answer and what was measured; everything after it needs that of all members.

    + fabric: the host's fabric
    + member: the host's name in it
    + simulated: a lab host
    """
    members.pop(member, None)
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
    members[member] = Member(part_of(ports, found.kernel), ports, found.management, measured)
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
    if missing := absent(fabric):
        yield refusal(f"{host.name}: {', '.join(missing)} must take part in this run, too: a link has two ends")
        return
    wanted = needed(fabric)
    if not wanted:
        host.noop("measured before, and nothing has changed since")
        return
    yield from _with_perftest(members[member].measured)
    ours = [link for link in wanted if link.server == member]
    if ours:
        yield StringCommand(layout.PYTHON, PROGRAM, "serve", _stdin=json.dumps(wish_of(fabric, member, ours)))


def _with_perftest(measured: Measured) -> Generator[PyinfraCommand, None, None]:
    if RDMA_PROGRAM not in measured.programs:
        yield from package_installed("perftest", "*", None)


@operation()
def fabric_measured(fabric: Fabric, member: str) -> Generator[PyinfraCommand, None, None]:
    """Measure the links whose client this member is, and hold them against what they should reach.

    To be run on one host after the other: two measurements at once share the PCIe links.

    + fabric: the host's fabric
    + member: the host's name in it
    """
    if not state.is_executing and host.current_op_hash is not None:
        return
    if absent(fabric):
        return  # was refused
    mine = [link for link in links_of(fabric) if link.client == member]
    wanted = [link for link in needed(fabric) if link.client == member]
    with_nccl = fabric.gate.nccl and member == fabric.members[0]
    nccl_needed = with_nccl and needs_nccl(fabric, members[member].measured)
    if wanted:
        yield StringCommand(layout.PYTHON, PROGRAM, "measure", _stdin=json.dumps(wish_of(fabric, member, wanted)))
    if nccl_needed:
        yield StringCommand(layout.PYTHON, PROGRAM, "nccl", _stdin=json.dumps(wish_of(fabric, member, [])))
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
    elif not wanted and not nccl_needed:
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
    if not absent(fabric) and any(link.server == member for link in needed(fabric)):
        yield StringCommand(layout.PYTHON, PROGRAM, "end")
