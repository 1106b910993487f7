"""What somebody may do by hand to what Tinderbox manages on a host, and to what it does not.

Each edit is one line of `EDITS`. Those of one sweep are made together, and none of them hides another.
"""

# ruff: noqa: E501 (one line each)
from __future__ import annotations

import textwrap
from dataclasses import dataclass

from tests.lab.fake_release import SERVICE

UNIT = f"/etc/systemd/system/tinderbox-{SERVICE}.service"
WATCH = f"/etc/systemd/system/tinderbox-watch@{SERVICE}.service"
PROGRAMS, SETTINGS, STATE = "/usr/local/lib/tinderbox", "/etc/tinderbox", "/var/lib/tinderbox"
ENCODINGS = f"{STATE}/encodings"
TOOLKIT, VERSION = "nvidia-container-toolkit", "1.18.0-1"
SOURCE = "/etc/apt/sources.list.d/tinderbox-container-toolkit.sources"
KEY = "/etc/apt/keyrings/tinderbox-container-toolkit.gpg"
SYSCTL, CLOCKS = "/etc/sysctl.d/99-tinderbox.conf", "/etc/systemd/system/tinderbox-clocks.service"
DROP_IN = "/etc/systemd/system/ssh.service.d/tinderbox.conf"
PROFILE = "/etc/profile.d/tinderbox-cuda.sh"
SECRET = "hf_nobodyShallReadThisInAList0123456789"
IMAGE = "$(docker image ls --format '{{.Repository}}:{{.Tag}}' tinderbox/fake-engine | head -n 1)"
_BLOB = f"$(readlink -f $(find {STATE}/huggingface -path '*snapshots*' -name '*-0000{{}}-of-*.safetensors'))"


@dataclass(frozen=True)
class Edit:
    """`command`: of root's shell. `thing`, `detail`: how the list names it. `repaired`: succeeds when it is undone."""

    sweep: int
    command: str
    thing: str
    detail: str
    repaired: str


def _config(change: str) -> str:
    return f"""python3 -c 'import json; p = "/etc/docker/daemon.json"; d = json.load(open(p)); {change}; \
json.dump(d, open(p, "w"))'"""


_OLDER = (
    f"mkdir -p /tmp/older/DEBIAN && printf 'Package: {TOOLKIT}\\nVersion: 1.0-1\\nArchitecture: all\\nMaintainer: x\\n"
    "Description: x\\n' > /tmp/older/DEBIAN/control && dpkg-deb -b /tmp/older /tmp/older.deb && "
    "dpkg --force-all -i /tmp/older.deb"
)
_HAS_VERSION = f"test \"$(dpkg-query -W -f '${{Version}}' {TOOLKIT})\" = {VERSION}"
EDITS = {
    "unit": Edit(1, f"sed -i 's/^Description=.*/Description=mine/' {UNIT}", UNIT, "-Description=mine", f"! grep -q =mine {UNIT}"),
    "listens on all addresses": Edit(1, f"sed -i 's/--host 127.0.0.1/--host 0.0.0.0/' {UNIT}", UNIT, "0.0.0.0", f"! grep -q 'host 0.0.0.0' {UNIT}"),
    "unit disabled": Edit(1, f"systemctl disable tinderbox-{SERVICE}", f"service {SERVICE}", "the unit is not enabled", f"systemctl is-enabled tinderbox-{SERVICE}"),
    "watch": Edit(1, f"echo '# mine' >> {WATCH}", WATCH, "-# mine", f"! grep -q mine {WATCH}"),
    "environment": Edit(1, f"echo FOO=bar >> {SETTINGS}/{SERVICE}.env", f"{SETTINGS}/{SERVICE}.env", "-FOO=bar", f"! grep -q FOO {SETTINGS}/{SERVICE}.env"),
    "labels": Edit(1, f"echo mine=1 >> {SETTINGS}/{SERVICE}.labels", f"{SETTINGS}/{SERVICE}.labels", "-mine=1", f"! grep -q mine {SETTINGS}/{SERVICE}.labels"),
    "program": Edit(1, f"echo '# mine' >> {PROGRAMS}/atomic.py", f"{PROGRAMS}/atomic.py", "differs", f"! grep -q mine {PROGRAMS}/atomic.py"),
    "stray program": Edit(1, f"touch {PROGRAMS}/mine.py", f"{PROGRAMS}/mine.py", "is not ours", f"! test -e {PROGRAMS}/mine.py"),
    "site's settings": Edit(1, f"echo TOKEN={SECRET} >> {SETTINGS}/network.env", f"{SETTINGS}/network.env", "not shown", f"! grep -q TOKEN {SETTINGS}/network.env"),
    "apt source": Edit(1, f"echo '# mine' >> {SOURCE}", SOURCE, "-# mine", f"! grep -q mine {SOURCE}"),
    "dockerd's log": Edit(1, _config('d["log-opts"]["max-size"] = "1g"'), "/etc/docker/daemon.json", '"1g"', "! grep -q 1g /etc/docker/daemon.json"),
    "vocabulary": Edit(1, f"echo x >> {ENCODINGS}/o200k_base.tiktoken", f"{ENCODINGS}/o200k_base.tiktoken", "holds something else", f"! tail -n 1 {ENCODINGS}/o200k_base.tiktoken | grep -q x"),
    "weights, same size": Edit(1, f"printf X | dd of={_BLOB.format(2)} bs=1 seek=5000 conv=notrunc", "weights ", "-00002-of-00003.safetensors: changed since it was verified", f"test $(sha256sum < {_BLOB.format(2)} | cut -c 1-64) = $(basename {_BLOB.format(2)})"),
    "sysctl file": Edit(1, f"echo '# mine' >> {SYSCTL}", SYSCTL, "-# mine", f"! grep -q mine {SYSCTL}"),
    "drop-in": Edit(1, f"sed -i 's/192M/1M/' {DROP_IN}", DROP_IN, "-MemoryMin=1M", f"grep -q 192M {DROP_IN}"),
    "unit of the clocks": Edit(1, f"sed -i 's/lgc 200/lgc 300/' {CLOCKS}", CLOCKS, "300", f"! grep -q 300 {CLOCKS}"),
    "login shells": Edit(1, f"echo 'export MINE=1' >> {PROFILE}", PROFILE, "-export MINE=1", f"! grep -q MINE {PROFILE}"),
    "image tag moved": Edit(1, f"docker tag $(docker image ls -q --filter reference='registry.lab:5000/*' | head -n 1) {IMAGE}", "image tinderbox/fake-engine:", "was made by another recipe", f"docker image inspect {IMAGE} | grep -q tinderbox.recipe"),
    "another version of a package": Edit(1, _OLDER, f"package {TOOLKIT}", f"is 1.0-1, and should be {VERSION}", _HAS_VERSION),
    "no unit": Edit(2, f"rm {UNIT}", UNIT, "is not there", f"test -e {UNIT}"),
    "no environment": Edit(2, f"rm {SETTINGS}/{SERVICE}.env", f"{SETTINGS}/{SERVICE}.env", "is not there", f"test -e {SETTINGS}/{SERVICE}.env"),
    "no program": Edit(4, f"rm {PROGRAMS}/hashing.py", f"{PROGRAMS}/hashing.py", "is not there", f"test -e {PROGRAMS}/hashing.py"),
    "no site's settings": Edit(2, f"rm {SETTINGS}/network.env", f"{SETTINGS}/network.env", "is not there", f"test -e {SETTINGS}/network.env"),
    "no list of services": Edit(2, f"rm {SETTINGS}/services.json", f"{SETTINGS}/services.json", "does not name", f"test -e {SETTINGS}/services.json"),
    "no key of a source": Edit(2, f"rm {KEY}", KEY, "is not there", f"test -e {KEY}"),
    "no runtime for GPUs": Edit(2, _config('del d["runtimes"]["nvidia"]'), "/etc/docker/daemon.json", "runtimes is", "grep -q nvidia-container-runtime /etc/docker/daemon.json"),
    "no vocabulary": Edit(2, f"rm {ENCODINGS}/cl100k_base.tiktoken", f"{ENCODINGS}/cl100k_base.tiktoken", "is not there", f"test -e {ENCODINGS}/cl100k_base.tiktoken"),
    "no weights": Edit(2, f"rm {_BLOB.format(1)}", "weights ", "-00001-of-00003.safetensors: missing", f"test -e {_BLOB.format(1)}"),
    "no drop-in": Edit(2, f"rm {DROP_IN}", DROP_IN, "is not there", f"test -e {DROP_IN}"),
    "no sysctl file": Edit(2, f"rm {SYSCTL}", SYSCTL, "is not there", f"test -e {SYSCTL}"),
    "clocks uncapped": Edit(2, "systemctl stop tinderbox-clocks", "the operating system", "clock", "systemctl is-active tinderbox-clocks"),
    "no package": Edit(2, f"dpkg --purge --force-all {TOOLKIT}", f"package {TOOLKIT}", "is not installed", _HAS_VERSION),
    "ledger without a release in force": Edit(2, f"rm {STATE}/ledger/{SERVICE}/current", f"service {SERVICE}", "the ledger's current release is none", f"test -e {STATE}/ledger/{SERVICE}/current"),
    "no tools": Edit(2, f"rm -r {STATE}/tools/current", "the tools' environment", "is none, and should be", f"test -e {STATE}/tools/current/bin/python"),
    "no image": Edit(2, f"docker rm -f tinderbox-{SERVICE}; docker image rm -f {IMAGE}", "image tinderbox/fake-engine:", "is not there", f"docker image inspect {IMAGE}"),
    "server stopped": Edit(3, f"systemctl stop tinderbox-{SERVICE}", f"unit tinderbox-{SERVICE}.service", "is inactive (dead), and should be active", f"systemctl is-active tinderbox-{SERVICE}"),
}  # fmt: skip

# What is not ours, beside what is: made once, looked at after all is repaired. Values of one state of the host.
OWN = textwrap.dedent(
    f"""\
    printf '[Service]\\nExecStart=/bin/sleep infinity\\n[Install]\\nWantedBy=multi-user.target\\n' \
> /etc/systemd/system/mine.service
    systemctl enable --now mine.service
    mkdir -p {UNIT}.d /etc/systemd/system/ssh.service.d {STATE}/huggingface/hub/models--me--mine/blobs
    printf '[Service]\\nNice=1\\n' | tee {UNIT}.d/mine.conf > /etc/systemd/system/ssh.service.d/mine.conf
    systemctl daemon-reload
    echo 'net.ipv4.ip_forward = 1' > /etc/sysctl.d/90-mine.conf
    echo '# deb http://mine ./' > /etc/apt/sources.list.d/mine.list
    echo 'export MINE=1' > /etc/profile.d/mine.sh
    echo mine > {STATE}/huggingface/hub/models--me--mine/blobs/mine
    docker tag $(docker image ls -q --filter reference='registry.lab:5000/*' | head -n 1) mine:1
    docker create --name mine mine:1 true
    """
) + _config('d["debug"] = True; d["log-opts"]["labels"] = "mine"; d["runtimes"]["mine"] = {"path": "/bin/true"}')
OWN_STATE = (
    "systemctl show -p InvocationID,ActiveState,UnitFileState mine.service; docker inspect -f '{{.Id}}' mine mine:1; "
    f"cd /; sha256sum etc/systemd/system/mine.service {UNIT}.d/mine.conf etc/systemd/system/ssh.service.d/mine.conf "
    "etc/sysctl.d/90-mine.conf etc/apt/sources.list.d/mine.list etc/profile.d/mine.sh "
    f"{STATE}/huggingface/hub/models--me--mine/blobs/mine; "
    'python3 -c \'import json; d = json.load(open("/etc/docker/daemon.json")); '
    'print(d["debug"], d["log-opts"]["labels"], d["runtimes"]["mine"])\''
)
