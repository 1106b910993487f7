"""What a host is, as far as a removal could leave a trace: read there by root, with nothing but Python.

Prints one JSON object: `files` (path → kind, mode, owner, and hash or target), `units`, `loaded`, `users`, `groups`,
`sysctls`, `packages`, `docker`. Left out is what lies in memory, and docker's own store, which is asked for by its
command line in its place.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import subprocess
from pathlib import Path

_LEFT_OUT = {"/proc", "/sys", "/run", "/dev", "/tmp", "/var/tmp", "/var/lib/docker", "/var/lib/containerd"}
# What changes on a host by itself; the lab's share these with the machine that they run on.
_RESTLESS = re.compile(r"^(fs\.(dentry|file|inode|epoll|quota|aio)|kernel\.(random|ns_last|pty|pid|threads|perf|hung)"
                       r"|net\.(ipv[46]\.(conf|neigh|route|tcp_|udp_)|netfilter|nf_)|user\.)")  # fmt: skip


def files() -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for folder, names, others in os.walk("/"):
        names[:] = [name for name in names if str(Path(folder, name)) not in _LEFT_OUT]
        for name in (*names, *others):
            path = Path(folder, name)
            try:
                found[str(path)] = described(path)
            except FileNotFoundError:
                continue
    return found


def described(path: Path) -> list[object]:
    seen = path.lstat()
    owner = [oct(stat.S_IMODE(seen.st_mode)), seen.st_uid, seen.st_gid]
    if stat.S_ISLNK(seen.st_mode):
        return ["link", *owner[1:], str(path.readlink())]
    if stat.S_ISREG(seen.st_mode):
        with path.open("rb") as file:
            return ["file", *owner, hashlib.file_digest(file, "sha256").hexdigest()]
    return ["folder" if stat.S_ISDIR(seen.st_mode) else "other", *owner]


def lines(*command: str) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


def units() -> dict[str, str]:
    return {line.split()[0]: line.split()[1] for line in lines("systemctl", "list-unit-files", "--no-legend") if line}


def loaded() -> list[str]:
    listed = lines("systemctl", "list-units", "--no-legend", "--plain", "--type=service,socket,timer,target,path")
    names = (line.split()[0] for line in listed if line)
    return sorted(name for name in names if not name.startswith(("user@", "user-runtime", "session", "run-")))


def sysctls() -> dict[str, str]:
    found = dict(line.partition(" = ")[::2] for line in lines("sysctl", "-a"))
    return {name: value for name, value in found.items() if not _RESTLESS.match(name)}


def docker() -> dict[str, list[str]]:
    return {
        "images": sorted(lines("docker", "image", "ls", "--all", "--format", "{{.Repository}}:{{.Tag}} {{.ID}}")),
        "containers": sorted(lines("docker", "ps", "--all", "--format", "{{.Names}} {{.Image}} {{.State}}")),
        "volumes": sorted(lines("docker", "volume", "ls", "--quiet")),
        "networks": sorted(lines("docker", "network", "ls", "--format", "{{.Name}}")),
        "cache": sorted(line for line in lines("docker", "system", "df", "--format", "{{.Type}} {{.TotalCount}}")
                        if line.startswith("Build")),
    }  # fmt: skip


if __name__ == "__main__":
    document = {
        "files": files(),
        "units": units(),
        "loaded": loaded(),
        "users": sorted(Path("/etc/passwd").read_text().splitlines()),
        "groups": sorted(Path("/etc/group").read_text().splitlines()),
        "sysctls": sysctls(),
        "packages": lines("dpkg-query", "-W", "-f", "${Package} ${Version} ${db:Status-Abbrev}\\n"),
        "docker": docker(),
    }
    print(json.dumps(document))  # noqa: T201
