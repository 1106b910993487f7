"""Whether links are as fast as they should be, and which known bad state it is where not. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from modules.facts.parse.errors import ParseError
from modules.facts.parse.ib_write_bw import parse_ib_write_bw
from modules.facts.parse.nccl_info import parse_nccl_info
from modules.facts.parse.nccl_tests import parse_nccl_test
from modules.spec.fabric import Fabric
from modules.spec.fabric_figures import FabricFigures, Reach

_AC = "unplug the cables and take both hosts off the mains for a minute; update the ConnectX-7's firmware by fwupdmgr"


FIGURE_BYTES = 64 << 20
"""The message that the catalog's figures of NCCL are for."""


class Grade(Enum):
    """SLOW: it works, below what others reach. NONE: measured, with nothing to hold it against."""

    PASS = "pass"  # noqa: S105, no password
    SLOW = "slow"
    FAIL = "fail"
    NONE = "not judged"


@dataclass(frozen=True)
class Line:
    """One figure, in words. `remedy`: for what is not a pass."""

    grade: Grade
    what: str
    measured: str
    wanted: str
    remedy: str = ""

    def __str__(self) -> str:
        remedy = f". What to do: {self.remedy}" if self.remedy else ""
        return f"{self.what}: {self.measured} ({self.grade.value}; {self.wanted}){remedy}"


def judge_rdma(fabric: Fabric, figures: FabricFigures, outputs: Mapping[str, str]) -> Iterator[Line]:
    """Each half of each cable. `outputs`: its name → what ib_write_bw's client printed."""
    reach = _with_own(figures.rdma_gbps, fabric.gate.rdma_min_gbps)
    speeds: dict[str, float] = {}
    for name, output in outputs.items():
        try:
            speeds[name] = max(row.average_gbps for row in parse_ib_write_bw(output).rows)
        except ParseError as error:
            yield Line(
                Grade.FAIL,
                name,
                f"not measured: {error}",
                _wanted(reach, "Gb/s", figures.verified),
                _failure_remedy(output),
            )
    best = max(speeds.values(), default=0.0)
    for name, speed in speeds.items():
        grade = _grade(speed, reach)
        remedy = "" if grade is Grade.PASS else _rdma_remedy(speed, best, reach)
        yield Line(grade, name, f"{speed:.1f} Gb/s by RDMA", _wanted(reach, "Gb/s", figures.verified), remedy)


def _rdma_remedy(speed: float, best: float, reach: Reach) -> str:
    if speed < 20:
        return f"the state that gives about 13 Gb/s on a link that says 200: {_AC}"
    if best >= reach.warn:
        return f"one half is slower than the other, so its PCIe link is: {_AC}"
    if speed >= reach.fail:
        return "about 92 Gb/s is what MTU 1500 gives: see that every port and switch between has fabric.mtu"
    return f"see the port's warnings above (PCIe, cable, firmware); then {_AC}"


def _failure_remedy(output: str) -> str:
    if "Couldn't allocate MR" in output or "Cannot allocate memory" in output:
        return "RDMA can not register memory: a 7.0 kernel wants kho=off, others `ulimit -l unlimited`"
    if "not found" in output and "IB device" in output:
        return "the RDMA device is not there: `sudo modprobe mlx5_ib`, and see `ibv_devinfo`"
    return (
        "see that the other host takes part in this run, and that nothing filters TCP ports 18515 and on between them"
    )


def judge_nccl(fabric: Fabric, figures: FabricFigures, output: str) -> Iterator[Line]:
    """The NCCL test over all members, by its best message: its average is low on a good link, too."""
    # Smaller messages are slower on a good link, too, and nobody has published how much.
    reach = figures.nccl_gbs if fabric.gate.nccl_bytes >= FIGURE_BYTES else None
    own = fabric.gate.nccl_min_gbs
    if reach is not None or own is not None:
        reach = _with_own(reach or Reach(expected=own or 1, warn=own or 1, fail=(own or 1) * 0.999), own)
    wanted = "no published figure" if reach is None else _wanted(reach, "GB/s", figures.verified)
    try:
        test = parse_nccl_test(output)
    except ParseError as error:
        yield Line(Grade.FAIL, "NCCL", f"not measured: {error}", wanted, _nccl_failure(output))
        return
    if test.wrong or test.out_of_bounds:
        yield Line(Grade.FAIL, "NCCL", f"{test.wrong or test.out_of_bounds} wrong values", "none", _AC)
    speed = test.peak.busbw
    sockets = _sockets(output)
    grade = Grade.FAIL if sockets else Grade.NONE if reach is None else _grade(speed, reach)
    remedy = "" if grade in {Grade.PASS, Grade.NONE} else _nccl_remedy(speed, sockets)
    yield Line(grade, f"NCCL {test.test}", f"{speed:.2f} GB/s with {test.peak.size} bytes", wanted, remedy)


def _sockets(output: str) -> bool:
    try:
        return any(not transport.rdma for transport in parse_nccl_info(output))
    except ParseError:  # it was not asked to tell
        return False


def _nccl_remedy(speed: float, sockets: bool) -> str:
    if sockets:
        return "NCCL fell back to sockets: see NCCL_IB_HCA in /etc/tinderbox/fabric.env, /dev/infiniband and IPC_LOCK"
    if speed < 5:
        return "about 3 GB/s comes of a wrong NCCL_IB_HCA, of MTU 1500, or of sockets: use /etc/tinderbox/fabric.env"
    if 11 <= speed < 15:
        return "about 13.9 GB/s is what one half of a port gives: NCCL_IB_HCA must name both, and both must answer"
    return "see the RDMA figures above: NCCL is no faster than its links"


def _nccl_failure(output: str) -> str:
    if "Permission denied" in output or "Host key verification failed" in output:
        return "mpirun reaches the other members by ssh: give root of the first member a key that they take"
    return "run it by hand as docs/fabric.md says, and look at what NCCL prints"


def _with_own(reach: Reach, least: float | None) -> Reach:
    """The fleet file's bound in place of the catalog's."""
    if least is None:
        return reach
    return Reach.model_construct(expected=max(reach.expected, least), warn=max(reach.warn, least), fail=least)


def _grade(speed: float, reach: Reach) -> Grade:
    return Grade.FAIL if speed < reach.fail else Grade.SLOW if speed < reach.warn else Grade.PASS


def _wanted(reach: Reach, unit: str, verified: bool) -> str:
    doubt = "" if verified else ", unverified on hardware"
    return f"at least {reach.fail:g} {unit}, expected {reach.expected:g}{doubt}"
