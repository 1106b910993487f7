"""Hosts of the lab are found on its network: one that announces itself by avahi, one that says nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from modules.fleet import load_fleet
from tests.lab.bare_host import ADMIN, BareHost, password
from tests.lab.debian_packages import offered
from tests.lab.lab_driver import Lab, Run

pytestmark = [pytest.mark.lab, pytest.mark.long]
QUIET, ANNOUNCED = "spark-1", "spark-2"
# As Debian's and Ubuntu's avahi has it in its examples, and a Spark in its services.
_SSH = """<?xml version="1.0" standalone='no'?>
<!DOCTYPE service-group SYSTEM "avahi-service.dtd">
<service-group><name replace-wildcards="yes">%h</name>
<service><type>_ssh._tcp</type><port>22</port></service></service-group>
"""


@pytest.fixture(scope="module")
def announcing(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The lab, where one host runs Debian's avahi, and has a second address."""
    host, second = ANNOUNCED, lab.address(ANNOUNCED).rpartition(".")[0] + ".201"
    with offered(lab, host, "avahi-daemon", tmp_path_factory.mktemp("avahi")):
        lab.ssh(
            host,
            "sudo sh -c 'apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q"
            " --no-install-recommends avahi-daemon'",
        )
    lab.write(host, "/etc/avahi/services/ssh.service", _SSH)
    interface = "$(ip -o -4 addr show scope global | grep -v docker | cut -d ' ' -f 2 | head -n 1)"
    # Link-local addresses, which docker keeps its containers from having, and which count once nobody else has them.
    settled = f"ip -6 addr show dev {interface} scope link -tentative | grep -q fe80"
    for each in (QUIET, ANNOUNCED):
        lab.ssh(each, "sudo sysctl -qw net.ipv6.conf.all.disable_ipv6=0")
        lab.ssh(each, f"for n in $(seq 60); do if {settled}; then exit 0; fi; sleep 0.5; done; exit 1")
    lab.ssh(host, f"sudo ip addr replace {second}/16 dev {interface} && sudo systemctl restart avahi-daemon")
    yield lab
    lab.ssh(host, f"sudo ip addr del {second}/16 dev {interface}; sudo systemctl disable --now avahi-daemon")
    for each in (QUIET, ANNOUNCED):
        lab.ssh(each, "sudo sysctl -qw net.ipv6.conf.all.disable_ipv6=1")


def discover(lab: Lab, *words: str, home: Path) -> Run:
    """`make discover`, on the lab's network alone, by somebody who has no keys at home."""
    network = subprocess.run(
        ["docker", "network", "inspect", "-f", "{{.Id}}", lab.layout.network],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    argv = [sys.executable, "-m", "modules.discover", "--interface", f"br-{network[:12]}", *words]
    return lab.tinderbox(["env", f"HOME={home}", "COLUMNS=300", *argv])


def test_a_machine_is_one_under_all_its_names_and_tells_what_it_is(announcing: Lab, tmp_path: Path) -> None:
    out = tmp_path / "mine.yaml"
    run = discover(announcing, "--user", "spark", "--key", str(announcing.layout.key), "--out", str(out), home=tmp_path)
    assert run.rc == 0, run.text
    fleet = load_fleet(out)
    assert sorted(fleet.hosts) == [QUIET, ANNOUNCED], run.text
    assert {host.ssh.user for host in fleet.hosts.values()} == {"spark"}
    text = out.read_text()
    assert "(simulated), DGX OS 7." in text
    assert "driver 580." in text
    assert f"  # also: {ANNOUNCED}.local, " in text
    for host in (QUIET, ANNOUNCED):
        shown = announcing.ssh(host, "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub").stdout.split()[1]
        assert text.count(shown) == 1
    # The second address of one, and the link-local one of each, made no other host.
    assert text.count(".201") == 1
    assert text.count("fe80::") >= 2

    again = discover(
        announcing, "--user", "spark", "--key", str(announcing.layout.key), "--out", str(out), home=tmp_path
    )
    assert again.rc == 1
    assert f"{out} is there, and is left as it is; every Spark that was found is in it" in again.text
    assert out.read_text() == text


def test_what_lets_nobody_in_is_unknown_and_the_file_leads_on_to_bootstrap(announcing: Lab, tmp_path: Path) -> None:
    bare = BareHost(announcing, ANNOUNCED)
    bare.make()
    out = tmp_path / "found.yaml"
    run = discover(announcing, "--user", ADMIN, "--out", str(out), home=tmp_path)
    assert run.rc == 0, run.text
    assert f"{ANNOUNCED}: unknown, since user {ADMIN} is not let in by a key" in run.text
    assert f"With a user and a password of theirs:   make bootstrap FLEET={out}" in out.read_text()
    # Nothing but its name tells of a Spark that does not let us in; the quiet one has not said it.
    assert list(load_fleet(out).hosts) == [ANNOUNCED]
    begun = bare.bootstrap(out, [("Trust this key?", "y"), ("Password of", password(ADMIN))], HOME=str(tmp_path))
    assert begun.rc == 0, begun.text
    assert (tmp_path / ".ssh" / "id_ed25519").stat().st_mode & 0o777 == 0o600
    seen = discover(announcing, "--user", ADMIN, home=tmp_path)
    assert "(simulated)" in seen.text, seen.text
