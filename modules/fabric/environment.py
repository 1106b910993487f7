"""What NCCL and its like are told, so that engines on several Sparks talk over the fabric and by RDMA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from modules.fabric.ports import PlannedPort
from modules.spec.fabric import Fabric

ENVIRONMENT = "/etc/tinderbox/fabric.env"
# Where every neighbour has a network of its own: eugr/spark-vllm-docker, docs/NETWORKING.md.
_MESH = {"NCCL_NET_PLUGIN": "none", "NCCL_IB_SUBNET_AWARE_ROUTING": "1", "NCCL_IB_MERGE_NICS": "0"}
# Those that open sockets beside the RDMA traffic.
_SOCKETS = (
    "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "UCX_NET_DEVICES", "OMPI_MCA_btl_tcp_if_include"
)  # fmt: skip


def engine_environment(fabric: Fabric, ports: Sequence[PlannedPort], management: str | None) -> dict[str, str]:
    """The variables for engines that span hosts.

    `management`: the interface of the host's default route, by which the members of a ring or a mesh meet each other;
    a pair or a switch has one network of the fabric that joins all of them. No index of a GID is named: NCCL finds the
    one of RoCE v2 and IPv4 by itself, and a wrong one makes its start hang.
    """
    joined = fabric.topology in {"direct", "switch"}
    socket = ports[0].name if joined and ports else management
    variables = dict.fromkeys(_SOCKETS, socket) if socket is not None else {}
    if joined and ports:
        variables["VLLM_HOST_IP"] = str(ports[0].address.ip)
    devices = [port.port.rdma for port in ports if port.port.rdma is not None]
    if devices and len(devices) == len(ports):
        # Named, so that NCCL ends with an error where RDMA does not work, and does not crawl along by sockets.
        variables |= {"NCCL_NET": "IB", "NCCL_IB_DISABLE": "0", "NCCL_IB_HCA": ",".join(devices)}
    variables["NCCL_IGNORE_CPU_AFFINITY"] = "1"
    return variables | ({} if joined else _MESH)


def environment_text(variables: Mapping[str, str]) -> str:
    """The file's text, in the form that docker's `--env-file` and systemd's `EnvironmentFile=` both read."""
    return "# By Tinderbox, fabric of the fleet file.\n" + "".join(
        f"{name}={value}\n" for name, value in variables.items()
    )
