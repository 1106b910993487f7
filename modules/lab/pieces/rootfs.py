"""Root file systems, by mmdebstrap: the lab hosts' and the base image's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from modules.lab.machine import has, need, run
from modules.lab.pieces.piece import Piece

SUITE = "bookworm"
ARCHIVE = "rootfs.tar"
_DEFAULT_MIRROR = "http://deb.debian.org/debian"
# A fixed time stamp, so that equal packages give equal archives.
_EPOCH = "1750000000"
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/i18n/*")

# What a DGX Spark has before anybody provisions it, as far as a container can have it.
_HOST = (
    "systemd", "systemd-sysv", "dbus", "openssh-server", "sudo", "python3", "python3-venv", "iproute2", "iptables",
    "kmod", "procps", "ca-certificates", "curl", "docker.io", "g++", "rsync",
)  # fmt: skip
# What images are built upon: Python as in the official slim image, the one library of Debian's that vLLM links to, and
# git, by which recipes fetch their sources.
_BASE = ("python3", "python3-venv", "ca-certificates", "libnuma1", "git")


def host_rootfs() -> Piece:
    """The lab hosts' file system, before what makes it look like a Spark."""
    return _rootfs("host-rootfs", _HOST)


def base_rootfs() -> Piece:
    """The file system of the base image in the lab's registry."""
    return _rootfs("base-rootfs", _BASE)


def _rootfs(name: str, packages: Sequence[str]) -> Piece:
    def build(folder: Path) -> None:
        # Without root, mmdebstrap works in a user namespace, for which it wants newuidmap.
        need({"mmdebstrap": "mmdebstrap"} | ({} if os.geteuid() == 0 else {"newuidmap": "uidmap"}))
        options = [f"--dpkgopt=path-exclude={path}" for path in _LEFT_OUT]
        options += [f"--aptopt={line}" for line in _apt_proxies()]
        options += ["--quiet", "--variant=minbase", f"--include={','.join(packages)}"]
        run(
            ["mmdebstrap", *options, SUITE, folder / ARCHIVE, debian_mirror()],
            environment={"SOURCE_DATE_EPOCH": _EPOCH},
        )

    return Piece(name, ["1", SUITE, packages, _LEFT_OUT], build)


def debian_mirror() -> str:
    """The archive that this machine itself uses, where it is a Debian of the same suite."""
    if not has("apt-get"):
        return _DEFAULT_MIRROR
    listed = run(
        [
            "apt-get",
            "indextargets",
            "--format",
            "$(ORIGIN)|$(CODENAME)|$(COMPONENT)|$(REPO_URI)",
            "Created-By: Packages",
        ]
    )
    for line in listed.splitlines():
        origin, codename, component, uri = line.split("|")
        if (origin, codename, component) == ("Debian", SUITE, "main"):
            return uri.rstrip("/")
    return _DEFAULT_MIRROR


def _apt_proxies() -> list[str]:
    lines = run(["apt-config", "dump"]).splitlines() if has("apt-config") else []
    return [line for line in lines if line.startswith(("Acquire::http::Proxy ", "Acquire::https::Proxy "))]
