"""From a host that lets only a password in to one that needs none; each failure of it has a clear word."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from modules.lab.layout import ROOT
from modules.operations.bootstrap import DOCKER_GROUP, MARK
from tests.lab.bare_host import ADMIN, ASKING, COMMAND, LOCKED, PLAIN, ROOT_PASSWORD, ROOTPW, BareHost, password
from tests.lab.lab_driver import Lab, Run
from tests.lab.terminal import at_terminal
from tests.lab.test_refusals import CLOSED_PORT, ssh_keys

pytestmark = pytest.mark.lab
HOST, OTHER = "spark-2", "spark-1"
TRUST, PASSWORD, SUDO = "Trust this key? [y/N]", "Password of", "Password for sudo"


@pytest.fixture
def bare(lab: Lab) -> BareHost:
    host = BareHost(lab, HOST)
    host.make()
    return host


def unattended(bare: BareHost, fleet: Path, **environment: str) -> Run:
    """`make bootstrap` where nobody sits at a terminal."""
    return bare.lab.tinderbox(["env", *(f"{k}={v}" for k, v in environment.items()), *COMMAND], fleet=fleet)


def says(run: Run, *words: str) -> None:
    """It ends with 1 and these words, without a traceback and without any password."""
    assert run.rc == 1, run.text
    assert [word for word in words if word not in run.text] == [], run.text
    assert "Traceback" not in run.text, run.text
    for secret in ("x7k2", "h4q8"):
        assert secret not in run.text, run.text


def no_password_is_left(bare: BareHost, user: str) -> None:
    """Neither in a file, nor in the journal, nor in what runs. What is looked for goes into no command, either."""
    searched = "/etc /tmp /run/tinderbox /var/lib/tinderbox /var/log /home /root"
    bare.lab.write(bare.host, "/dev/shm/secret", password(user))
    found = bare.lab.ssh(
        bare.host,
        f"sudo sh -c 'grep -rlaF -f /dev/shm/secret {searched} 2>/dev/null; journalctl --no-pager | grep -F -f"
        " /dev/shm/secret; ps -eo args | grep -F -f /dev/shm/secret; rm /dev/shm/secret'",
    )
    assert found.stdout == ""


def test_a_confirmation_and_a_password_open_a_host_for_good(bare: BareHost, lab: Lab) -> None:
    fleet = bare.fleet(ADMIN, "main")
    run = bare.bootstrap(fleet, [(TRUST, "y"), (PASSWORD, password(ADMIN))])
    assert run.rc == 0, run.text
    shown = lab.ssh(HOST, "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub").stdout.split()[1]
    assert shown in run.text
    assert f"{HOST}: open; no password is used again" in run.text
    assert f"next: make converge FLEET={fleet.relative_to(Path.cwd())}" in run.text
    assert password(ADMIN) not in run.text
    line = lab.read(HOST, f"/home/{ADMIN}/.ssh/authorized_keys")
    assert line.count(MARK) == 1
    mode = lab.ssh(
        HOST, f"sudo stat -c '%a %U' /etc/sudoers.d/tinderbox-{ADMIN} /home/{ADMIN}/.ssh/authorized_keys"
    ).stdout
    assert mode.splitlines() == ["440 root", f"600 {ADMIN}"]
    assert "docker" in lab.ssh(HOST, f"id -nG {ADMIN}").stdout.split()
    assert lab.read(HOST, DOCKER_GROUP).split() == [ADMIN]
    lab.ssh(HOST, "sudo visudo -c")
    # From here on sshd may refuse every password; there is nobody to ask, and nothing to change.
    lab.ssh(HOST, "sudo sh -c 'rm /etc/ssh/sshd_config.d/00-bare.conf; systemctl reload ssh'")
    again = unattended(bare, fleet)
    assert again.rc == 0, again.text
    assert "no change on any host" in again.text
    site = lab.converge("deploys/site.py", fleet=fleet)
    assert site.rc == 0, site.text
    no_password_is_left(bare, ADMIN)


@pytest.mark.long
def test_pyinfra_alone_makes_the_first_login_too(bare: BareHost, lab: Lab) -> None:
    fleet = bare.fleet(ADMIN, "pyinfra")
    argv = [str(Path(sys.executable).with_name("pyinfra")), "inventory.py", "deploys/bootstrap.py", "-y"]
    answers = [(TRUST, "y"), (PASSWORD, password(ADMIN))]
    run = at_terminal(argv, answers, environment=lab.environment(fleet))
    assert run.rc == 0, run.text
    assert "docker" in lab.ssh(HOST, f"id -nG {ADMIN}").stdout.split()
    wrong = bare.fleet(PLAIN, "pyinfra-plain")
    run = at_terminal(argv, [(TRUST, "y"), (PASSWORD, password(PLAIN))], environment=lab.environment(wrong))
    says(run, f"{HOST}: user {PLAIN} may not use sudo")


def by_key(fleet: Path) -> list[str]:
    """How the owner comes in by hand afterwards."""
    key, known = fleet.with_suffix(".key"), fleet.with_suffix(".known_hosts")
    port = yaml.safe_load(fleet.read_text())["hosts"][HOST]["ssh"]["port"]
    options = ["-i", str(key), "-o", f"UserKnownHostsFile={known}", "-o", "BatchMode=yes", "-p", str(port)]
    return ["ssh", *options, f"{ADMIN}@127.0.0.1"]


@pytest.mark.long
def test_of_sudo_only_what_is_listed_asks_nothing(bare: BareHost, lab: Lab) -> None:
    fleet = bare.fleet(ADMIN, "listed")
    assert bare.bootstrap(fleet, [(TRUST, "y"), (PASSWORD, password(ADMIN))]).rc == 0

    def sudo(command: str) -> int:
        return subprocess.run([*by_key(fleet), f"sudo -n {command}"], capture_output=True, check=False).returncode

    assert [sudo("true"), sudo("sh -c id"), sudo("apt-get --version") != 0] == [0, 0, True]
    settings = yaml.safe_load(fleet.read_text())
    settings["ssh"]["sudo"] = "all"
    fleet.write_text(yaml.safe_dump(settings))
    run = unattended(bare, fleet)
    assert run.rc == 0, run.text
    assert sudo("apt-get --version") == 0


@pytest.mark.long
def test_a_python3_of_the_owner_takes_no_right_away(bare: BareHost, lab: Lab) -> None:
    fleet = bare.fleet(ADMIN, "own-python")
    assert bare.bootstrap(fleet, [(TRUST, "y"), (PASSWORD, password(ADMIN))]).rc == 0
    own = "/usr/local/bin/python3"  # where sudo looks first
    try:
        lab.write(HOST, own, '#!/bin/sh\nexec /usr/bin/python3 "$@"\n')
        lab.ssh(HOST, f"sudo chmod 755 {own}")
        looked = lab.tinderbox([sys.executable, "-m", "modules.check"], fleet=fleet)
        asked = lab.tinderbox([sys.executable, "-m", "modules.status"], fleet=fleet)
    finally:
        lab.ssh(HOST, f"sudo rm -f {own}")
    assert f"{HOST}: ready" in looked.text, looked.text
    assert f"{HOST}/gpt-oss: not deployed yet" in asked.text, asked.text
    assert "sudo asks" not in asked.text, asked.text


@pytest.mark.long
def test_the_undo_of_the_docs_closes_the_host_again(bare: BareHost, lab: Lab) -> None:
    before = lab.ssh(HOST, f"id -nG {ADMIN}").stdout
    fleet = bare.fleet(ADMIN, "undone")
    assert bare.bootstrap(fleet, [(TRUST, "y"), (PASSWORD, password(ADMIN))]).rc == 0
    section = (ROOT / "docs" / "stages.md").read_text().partition("\n## bootstrap\n")[2].partition("\n## ")[0]
    undo = section.partition("```sh\n")[2].partition("```")[0]
    done = subprocess.run([*by_key(fleet), "sh -es"], input=undo, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert bare.left(ADMIN).split() == [f"/home/{ADMIN}/.ssh/authorized_keys"]
    assert lab.read(HOST, f"/home/{ADMIN}/.ssh/authorized_keys") == ""
    assert lab.ssh(HOST, f"id -nG {ADMIN}").stdout == before
    again = subprocess.run([*by_key(fleet), "true"], capture_output=True, check=False)
    assert again.returncode != 0


@pytest.mark.long
def test_a_wrong_password(bare: BareHost) -> None:
    fleet = bare.fleet(ADMIN, "wrong")
    run = bare.bootstrap(fleet, [(TRUST, "y"), (PASSWORD, "1"), ("Not taken.", "2"), ("Not taken.", "3")])
    says(run, f"{HOST}: wrong password for user {ADMIN} at 127.0.0.1 port", f"{HOST}: NOT OPEN: wrong password")
    assert bare.left(ADMIN) == ""
    # The key of the host is known by now; and the right password does it.
    assert bare.bootstrap(fleet, [(PASSWORD, "1"), ("Not taken.", password(ADMIN))]).rc == 0


@pytest.mark.long
def test_a_host_key_that_has_changed_gets_no_password(bare: BareHost, lab: Lab) -> None:
    fleet = bare.fleet(ADMIN, "changed")
    known = lab.layout.folder / "begin-changed.known_hosts"
    names = {line.split()[0] for line in lab.layout.known_hosts.read_text().splitlines()}
    before = "".join(f"{name} {ssh_keys()[1]}\n" for name in names)
    known.write_text(before)
    run = bare.bootstrap(fleet, [])
    says(
        run, f"{HOST}: CHANGED HOST KEY: it shows ED25519 SHA256:", "no password was given to it", "ssh-keygen -R '[127"
    )
    assert PASSWORD not in run.text
    assert known.read_text() == before
    assert bare.left(ADMIN) == ""
    named = bare.fleet(ADMIN, "named", {"host_key": f"SHA256:{'A' * 43}"})
    says(unattended(bare, named), f"{HOST}: CHANGED HOST KEY", "host_key in the fleet file has another one")


@pytest.mark.long
def test_who_does_not_confirm_a_key_is_asked_nothing_more(bare: BareHost, lab: Lab) -> None:
    fleet = bare.fleet(ADMIN, "denied")
    run = bare.bootstrap(fleet, [(TRUST, "n")])
    says(run, f"{HOST}: its host key is not known here (ED25519 SHA256:", "and was not confirmed")
    assert (lab.layout.folder / "begin-denied.known_hosts").read_text() == ""
    assert bare.left(ADMIN) == ""
    says(unattended(bare, fleet), "and was not confirmed", "host_key: 'SHA256:")


@pytest.mark.long
def test_a_user_without_sudo(bare: BareHost) -> None:
    run = bare.bootstrap(bare.fleet(PLAIN, "plain"), [(TRUST, "y"), (PASSWORD, password(PLAIN))])
    says(run, f"{HOST}: user {PLAIN} may not use sudo", f"sudo usermod -aG sudo {PLAIN}")
    assert bare.left(PLAIN) == ""


@pytest.mark.long
def test_sudo_with_a_password_of_its_own_is_asked_for(bare: BareHost) -> None:
    fleet = bare.fleet(ROOTPW, "rootpw")
    wrong = [(SUDO, "1"), ("Not taken.", "2")]
    run = bare.bootstrap(fleet, [(TRUST, "y"), (PASSWORD, password(ROOTPW)), *wrong])
    says(run, f"{HOST}: wrong password for sudo of user {ROOTPW}")
    assert bare.left(ROOTPW) == ""
    run = bare.bootstrap(fleet, [(PASSWORD, password(ROOTPW)), (f"{SUDO}, which is not the login's", ROOT_PASSWORD)])
    assert run.rc == 0, run.text
    assert unattended(bare, fleet).rc == 0
    no_password_is_left(bare, ROOTPW)


@pytest.mark.long
def test_sshd_that_asks_by_questions_of_its_own(bare: BareHost) -> None:
    fleet = bare.fleet(ASKING, "asking")
    run = bare.bootstrap(fleet, [(TRUST, "y"), (PASSWORD, password(ASKING))])
    assert run.rc == 0, run.text


@pytest.mark.long
@pytest.mark.parametrize("user", [LOCKED, "root"])
def test_sshd_that_takes_no_password(bare: BareHost, user: str) -> None:
    answers = [(TRUST, "y")]
    run = bare.bootstrap(bare.fleet(user, f"locked-{user}"), answers)
    says(run, f"{HOST}: sshd lets user {user} in by publickey alone", "authorized_keys", "PasswordAuthentication yes")


@pytest.mark.long
def test_root_whom_sshd_refuses_whatever_the_password(bare: BareHost, lab: Lab) -> None:
    lab.write(HOST, "/etc/ssh/sshd_config.d/00-bare.conf", "PasswordAuthentication yes\n")
    lab.ssh(HOST, "sudo systemctl reload ssh")
    tries = [(PASSWORD, ROOT_PASSWORD), ("Not taken.", ROOT_PASSWORD), ("Not taken.", ROOT_PASSWORD)]
    run = bare.bootstrap(bare.fleet("root", "root"), [(TRUST, "y"), *tries])
    says(run, "wrong password for user root", "(PermitRootLogin): name another user")


@pytest.mark.long
def test_no_python_on_the_host(bare: BareHost, lab: Lab) -> None:
    lab.ssh(HOST, "sudo mv /usr/bin/python3 /usr/bin/python3.away")
    try:
        run = bare.bootstrap(bare.fleet(ADMIN, "python"), [(TRUST, "y"), (PASSWORD, password(ADMIN))])
    finally:
        lab.ssh(HOST, "sudo mv /usr/bin/python3.away /usr/bin/python3")
    says(run, f"{HOST}: there is no python3 on the host", "sudo apt-get install -y python3")
    assert bare.left(ADMIN) == ""


@contextmanager
def visudo(lab: Lab, script: str) -> Iterator[None]:
    """While this lasts, the host's visudo is this script."""
    lab.ssh(HOST, "sudo mv /usr/sbin/visudo /usr/sbin/visudo.away")
    try:
        lab.write(HOST, "/usr/sbin/visudo", f"#!/bin/sh\n{script}\n")
        lab.ssh(HOST, "sudo chmod 755 /usr/sbin/visudo")
        yield
    finally:
        lab.ssh(HOST, "sudo mv /usr/sbin/visudo.away /usr/sbin/visudo")


@pytest.mark.long
def test_visudo_that_refuses_leaves_nothing(bare: BareHost, lab: Lab) -> None:
    fleet = bare.fleet(ADMIN, "visudo")
    with visudo(lab, "echo 'parse error near line 2' >&2; exit 1"):
        run = bare.bootstrap(fleet, [(TRUST, "y"), (PASSWORD, password(ADMIN))])
    says(run, "visudo refuses it, or it could not be written (parse error near line 2)", "nothing was changed by it")
    assert bare.left(ADMIN) == ""
    lab.ssh(HOST, "sudo visudo -c")


@pytest.mark.long
def test_a_killed_run_leaves_nothing_half_and_the_next_one_finishes(bare: BareHost, lab: Lab) -> None:
    fleet = bare.fleet(ADMIN, "killed", {"password": "login"}, secrets={"login": {"env": "LOGIN"}})
    assert "was not confirmed" in unattended(bare, fleet, LOGIN=password(ADMIN)).text
    lines = lab.layout.known_hosts.read_text()
    (lab.layout.folder / "begin-killed.known_hosts").write_text(lines)
    with visudo(lab, "touch /run/asked; sleep 8"):
        environment = {**lab.environment(fleet), "LOGIN": password(ADMIN)}
        words = ["env", *(f"{name}={value}" for name, value in environment.items()), *COMMAND]
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while lab.ssh(HOST, "test -e /run/asked", check=False).rc != 0:
            assert child.poll() is None
            time.sleep(0.2)
        child.send_signal(signal.SIGKILL)
        child.wait()
        lab.ssh(HOST, "sudo rm /run/asked")
        lab.ssh(
            HOST, "sudo visudo -c; for n in $(seq 60); do ls /etc/sudoers.d/tinderbox-*.* || exit 0; sleep 0.5; done"
        )
    # It was put in place whole, or not at all.
    assert lab.ssh(HOST, "ls /etc/sudoers.d").stdout.count(".") == 0
    lab.ssh(HOST, "sudo visudo -c")
    run = unattended(bare, fleet, LOGIN=password(ADMIN))
    assert run.rc == 0, run.text
    no_password_is_left(bare, ADMIN)


@pytest.mark.long
def test_a_secret_and_a_fingerprint_in_the_fleet_file_need_nobody(bare: BareHost, lab: Lab) -> None:
    shown = lab.ssh(HOST, "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub").stdout.split()[1]
    secrets = {"login": {"env": "LOGIN"}}
    fleet = bare.fleet(ADMIN, "secret", {"password": "login", "host_key": shown}, secrets=secrets)
    says(unattended(bare, fleet), "secret login is missing: environment variable LOGIN: empty or not set")
    says(unattended(bare, fleet, LOGIN="wrong"), f"wrong password for user {ADMIN}")
    run = unattended(bare, fleet, LOGIN=password(ADMIN))
    assert run.rc == 0, run.text
    # No other run wants the password, or the variable.
    assert lab.converge("deploys/site.py", fleet=fleet).rc == 0


def begun(name: str) -> dict[str, str]:
    return {"user": ADMIN, "key": f"begin-{name}.key", "known_hosts": f"begin-{name}.known_hosts"}


@pytest.mark.long
def test_a_host_that_is_not_there_stops_no_other(bare: BareHost, lab: Lab) -> None:
    def one_is_dead(content: dict[str, Any]) -> None:
        content["ssh"] = begun("dead")
        content["hosts"][OTHER]["ssh"]["port"] = CLOSED_PORT

    fleet = lab.write_fleet("begin-dead", one_is_dead)
    run = bare.bootstrap(fleet, [(TRUST, "y"), (PASSWORD, password(ADMIN))])
    says(run, f"{OTHER}: nothing lets us in at 127.0.0.1 port {CLOSED_PORT}", f"{OTHER}: NOT OPEN", f"{HOST}: open")


@pytest.mark.long
def test_two_hosts_by_one_confirmation_and_one_password(bare: BareHost, lab: Lab) -> None:
    BareHost(lab, OTHER).make()
    fleet = lab.write_fleet("begin-two", lambda content: content.update(ssh=begun("two")))
    answers = [
        ("Trust these 2 keys?", "y"),
        (f"{PASSWORD} {ADMIN} on {OTHER}", password(ADMIN)),
        ("as for the host", ""),
    ]
    run = bare.bootstrap(fleet, answers)
    assert run.rc == 0, run.text
    assert f"{OTHER}: open" in run.text
    assert f"{HOST}: open" in run.text


@pytest.mark.long
def test_two_commands_and_a_confirmation_lead_from_a_password_to_a_gated_model(lab: Lab) -> None:
    host = BareHost(lab, OTHER)
    host.make()
    fleet = host.fleet(ADMIN, "whole")
    begun = host.bootstrap(fleet, [(TRUST, "y"), (PASSWORD, password(ADMIN))])
    assert begun.rc == 0, begun.text
    lab.ssh(OTHER, "sudo sh -c 'rm /etc/ssh/sshd_config.d/00-bare.conf; systemctl reload ssh'")
    done = lab.converge(fleet=fleet, timeout_s=1500)
    assert done.rc == 0, done.text
    table = lab.tinderbox([sys.executable, "-m", "modules.reporting.table"], fleet=fleet)
    (row,) = [line for line in table.stdout.splitlines() if line.split()[:1] == [OTHER]]
    assert "PASS" in row, table.text
    assert lab.pyinfra("deploys/spark.py", "-y", "--json", fleet=fleet).json["results"]["totals"]["success"] == 0
