"""What others have written into netplan's files and not applied is found, and nothing is changed by looking."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from modules.facts import netplan as fact
from modules.hostside.netplan_unapplied import unapplied

# Gives each interface of each file a networkd file with that file's text, as netplan does in its way.
NETPLAN = """#!/bin/sh
[ "$1 $2" = "generate --root-dir" ] || exit 2
grep -q broken "$3"/etc/netplan/*.yaml && exit 1
mkdir -p "$3/run/systemd/network" "$3/run/NetworkManager/system-connections"
for file in "$3"/etc/netplan/*.yaml; do
    name=$(basename "$file" .yaml)
    cp "$file" "$3/run/systemd/network/10-netplan-$name.network"
    echo changes > "$3/run/systemd/network/10-netplan-$name.link"
done
"""


@pytest.fixture
def host(tmp_path: Path) -> Path:
    for folder in ("etc/netplan", "run/systemd/network", "bin"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "bin/netplan").write_text(NETPLAN)
    (tmp_path / "bin/netplan").chmod(0o755)
    write(tmp_path, "eth0", "address: one\n", applied=True)
    # Not netplan's, and so not told of.
    (tmp_path / "run/systemd/network/20-own.network").write_text("own")
    return tmp_path


def write(host: Path, name: str, text: str, *, applied: bool) -> None:
    (host / f"etc/netplan/{name}.yaml").write_text(text)
    if applied:
        (host / f"run/systemd/network/10-netplan-{name}.network").write_text(text)


def found(host: Path) -> dict[str, str]:
    before = sorted((str(path), path.stat().st_mtime_ns) for path in host.rglob("*"))
    told = unapplied(host, str(host / "bin/netplan"))
    assert sorted((str(path), path.stat().st_mtime_ns) for path in host.rglob("*")) == before
    return told


def test_what_was_applied_is_nothing_to_tell_of(host: Path) -> None:
    assert found(host) == {}


def test_an_edit_a_new_file_and_a_file_that_is_gone_are_told(host: Path) -> None:
    write(host, "eth0", "address: two\n", applied=False)
    write(host, "eth1", "new\n", applied=False)
    write(host, "eth2", "gone\n", applied=True)
    (host / "etc/netplan/eth2.yaml").unlink()
    assert found(host) == {f"/run/systemd/network/10-netplan-{name}.network": name for name in ("eth0", "eth1", "eth2")}


def test_where_netplan_refuses_its_files_or_is_not_there_nothing_is_told(host: Path) -> None:
    write(host, "eth1", "broken\n", applied=False)
    assert found(host) == {}
    assert unapplied(host, str(host / "bin/none")) == {}


def test_the_fact_is_the_program_and_prints_what_it_parses() -> None:
    done = subprocess.run([sys.executable, "-c", fact._program()], capture_output=True, text=True, check=True)
    assert isinstance(fact.NetplanUnapplied().parse(done.stdout.splitlines()), dict)
    assert json.loads(done.stdout) == fact.NetplanUnapplied().parse(done.stdout.splitlines())
