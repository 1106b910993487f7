"""Units of what watches: the exporter's own, and drop-ins for the distribution's packages.

The packages' own files are left as they are. A drop-in lies there before its package is installed, since Debian starts
a service as soon as that is unpacked, and both would listen on every address.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from modules.monitoring.exporter import SETTINGS_FILE, textfile_directory
from modules.release import layout
from modules.release.unit import word
from modules.spec.base import is_loopback
from modules.spec.monitoring import Exporters, Prometheus

UNITS = "/etc/systemd/system"
EXPORTER, NODE_EXPORTER, PROMETHEUS = "tinderbox-exporter", "prometheus-node-exporter", "prometheus"
PROGRAM = str(layout.PROGRAMS / "export_metrics.py")
CONFIGURATION = layout.SETTINGS / "prometheus"
# What tells of memory, disks, links and waiting. All else that node exporter can is off: each costs at every scrape.
_COLLECTORS = (
    "cpu", "diskstats", "filesystem", "infiniband", "loadavg", "meminfo", "netdev", "pressure", "textfile", "time",
    "uname", "vmstat",
)  # fmt: skip
_HARDENED = """\
NoNewPrivileges=yes
CapabilityBoundingSet={capabilities}
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
"""
ANY = {"0.0.0.0", "::"}  # noqa: S104, compared with
# The kernel drops the packets of all others. Where control groups are of version 1 (the lab), systemd can not do it.
_ADDRESSES = "IPAddressDeny=any\nIPAddressAllow={allowed}\n"


def unit_file(name: str) -> str:
    """Where a unit of ours lies."""
    return f"{UNITS}/{name}.service"


def drop_in_file(name: str) -> str:
    """Where what we change of a package's unit lies."""
    return f"{UNITS}/{name}.service.d/tinderbox.conf"


def place(listen: str, port: int) -> str:
    """`address:port`, as programs take it."""
    return f"[{listen}]:{port}" if ":" in listen else f"{listen}:{port}"


def _allowed(*addresses: str) -> str:
    others = dict.fromkeys(one for one in addresses if one not in ANY and not is_loopback(one))
    return " ".join(["localhost", *others])


def exporter_unit(exporters: Exporters, services: Iterable[str]) -> str:
    """The exporter's unit. `services`: addresses at which the host's services listen."""
    directory = textfile_directory(exporters)
    # The site's directory may belong to another user, as Debian's does.
    hardened = _HARDENED.format(capabilities="" if exporters.node_exporter else "CAP_DAC_OVERRIDE")
    return (
        "# By Tinderbox, monitoring.exporters of the fleet file. The next run replaces what is edited here.\n"
        "[Unit]\nDescription=What Tinderbox knows of this host, for Prometheus\nAfter=network.target\n"
        "# Whatever hinders it, it tries again: nothing hangs on it.\nStartLimitIntervalSec=0\n\n"
        f"[Service]\nType=exec\nExecStart={layout.PYTHON} {PROGRAM} --settings {SETTINGS_FILE}\n"
        "Restart=on-failure\nRestartSec=30\nNice=5\n"
        f"ProtectSystem=strict\nReadWritePaths=-{directory}\nProtectHome=yes\nPrivateTmp=yes\nProtectControlGroups=yes\n"
        "ProtectKernelModules=yes\nProtectKernelLogs=yes\nProtectKernelTunables=yes\nProtectHostname=yes\n"
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\n"
        "# It asks nvidia-smi: so no closed devices.\n"
        f"{hardened}{_ADDRESSES.format(allowed=_allowed(*services))}\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )


def node_exporter_drop_in(exporters: Exporters) -> str:
    """What is changed of node exporter's unit."""
    words = [
        f"--web.listen-address={place(exporters.listen, exporters.port)}",
        "--web.disable-exporter-metrics",
        "--collector.disable-defaults",
        *(f"--collector.{name}" for name in _COLLECTORS),
        f"--collector.textfile.directory={textfile_directory(exporters)}",
        "--collector.filesystem.mount-points-exclude=^/(dev|proc|sys|run|var/lib/docker/.+)($|/)",
        "--collector.netdev.device-exclude=^(lo|veth.*|docker.*|br-.*)$",
    ]
    return _drop_in(
        "monitoring.exporters",
        "",
        [f"/usr/bin/{NODE_EXPORTER}", *words],
        _HARDENED.format(capabilities="")
        + "ProtectControlGroups=yes\nProtectKernelModules=yes\nProtectKernelLogs=yes\n"
        + "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK\n"
        + _ADDRESSES.format(allowed=_allowed(*exporters.scraped_from, exporters.listen)),
    )


def prometheus_drop_in(prometheus: Prometheus, peers: Sequence[str]) -> str:
    """What is changed of Prometheus' unit. `peers`: addresses that it asks and tells, where it is open to others."""
    words = [
        f"--config.file={CONFIGURATION}/prometheus.yml",
        "--storage.tsdb.path=/var/lib/prometheus/metrics2/",
        f"--storage.tsdb.retention.time={prometheus.retention}",
        *([f"--storage.tsdb.retention.size={prometheus.retention_gib}GB"] if prometheus.retention_gib else []),
        f"--web.listen-address={place(prometheus.listen, prometheus.port)}",
    ]
    closed = _ADDRESSES.format(allowed=_allowed(*prometheus.scraped_from, prometheus.listen, *peers))
    return _drop_in(
        "monitoring.prometheus",
        f"[Unit]\nConditionPathExists={CONFIGURATION}/prometheus.yml\n\n",
        ["/usr/bin/prometheus", *words],
        _HARDENED.format(capabilities="")
        + "ProtectKernelModules=yes\nProtectKernelLogs=yes\n"
        + "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK\n"
        + ("" if is_loopback(prometheus.listen) else closed),
    )


def _drop_in(key: str, before: str, command: list[str], after: str) -> str:
    first, *words = map(word, command)
    lines = " \\\n    ".join([first, *words])
    return (
        f"# By Tinderbox, {key} of the fleet file. The next run replaces what is edited here.\n{before}"
        f"[Service]\nExecStart=\nExecStart={lines}\n{after}"
    )
