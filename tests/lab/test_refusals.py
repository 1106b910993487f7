"""What a user reads when a host, its hub or the way there is not as it should be, from pyinfra and from the wrapper.

Every refusal ends with a status other than 0, names the host, says what is wrong and what to do, shows no traceback,
and stops no other host. Faults are made on and around `spark-2`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from modules.fleet.lock import lock_path
from modules.lab.layout import ROOT
from modules.spec.holder import HOLD
from tests.lab.lab_driver import HEEDING_CTRL_C, Lab, Run

pytestmark = pytest.mark.lab
HOST, OTHER = "spark-2", "spark-1"
CLOSED_PORT = 9
SETTINGS = "/etc/tinderbox/network.env"
PYINFRA, WRAPPER = "pyinfra", "converge"

Content = dict[str, Any]
Change = Callable[[Content], None]


@dataclass(frozen=True)
class Both:
    """One and the same refusal, from both commands."""

    pyinfra: Run
    wrapper: Run

    def say(self, *words: str) -> None:
        """Each ends not with 0 and says all of `words`; the wrapper's summary says them too, under the host's name."""
        for run in (self.pyinfra, self.wrapper):
            assert run.rc == 1, run.text
            assert "Traceback" not in run.text, run.text
            assert [word for word in words if word not in run.stderr] == [], run.text
        summary = self.wrapper.stderr.partition("\n--> Disconnecting from hosts...")[2]
        reached = f"[{HOST}] Connected" in self.wrapper.stderr
        state = f"{HOST}: FAILED " if reached else f"{HOST}: unknown, it was not reached"
        # Under the host's name, its name does not stand again.
        told = (state, *(word.removeprefix(f"{HOST}: ") for word in words))
        assert [word for word in told if word not in summary] == [], self.wrapper.text


def run_both(lab: Lab, deploy: str, fleet: Path) -> Both:
    """At the same time, which is fine for what changes nothing on a host."""
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(lab.pyinfra, "-y", f"deploys/{deploy}.py", fleet=fleet, timeout_s=120)
        second = pool.submit(lab.converge, f"deploys/{deploy}.py", fleet=fleet, timeout_s=120)
        return Both(first.result(), second.result())


def host_only(lab: Lab, name: str, change: Change) -> Path:
    """The fleet of the host that is tried on, changed."""

    def changed(content: Content) -> None:
        content["hosts"] = {HOST: content["hosts"][HOST]}
        change(content)

    return lab.write_fleet(f"refused-{name}", changed)


def ssh_keys() -> tuple[str, str]:
    """A private key and its public half."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    return private, key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


# The way to a host.


def test_a_host_that_does_not_resolve(lab: Lab) -> None:
    def change(content: Content) -> None:
        content["hosts"] = {HOST: {"address": "spark-2.invalid"}}
        del content["defaults"]["hardware"]

    fleet = lab.write_fleet("refused-name", change)
    run_both(lab, "site", fleet).say(
        "Could not resolve hostname",
        "spark-2.invalid is no name that this machine knows: correct the address of hosts.spark-2 in "
        f"{fleet.relative_to(ROOT)}, or your DNS",
    )


def test_a_key_that_the_host_does_not_know(lab: Lab) -> None:
    key = lab.layout.folder / "key-of-another"
    key.touch(mode=0o600)
    key.write_text(ssh_keys()[0])
    fleet = host_only(lab, "key", lambda content: content["ssh"].update(key=key.name))
    shown = key.relative_to(ROOT)
    run_both(lab, "site", fleet).say(
        "Authentication error",
        f"spark is not let in with key {shown}: correct ssh.user or ssh.key of hosts.spark-2",
        f"ssh-copy-id -i {shown} -p ",
    )


def test_a_host_key_that_is_another(lab: Lab) -> None:
    file = lab.layout.folder / "known-hosts-of-another"
    names = {line.split()[0] for line in lab.layout.known_hosts.read_text().splitlines()}
    file.write_text("".join(f"{name} {ssh_keys()[1]}\n" for name in names))
    fleet = host_only(lab, "host-key", lambda content: content["ssh"].update(known_hosts=file.name))
    run_both(lab, "site", fleet).say(
        f"the host shows another key than {file.relative_to(ROOT)} holds",
        "ssh-keygen -R '[127.0.0.1]:",
        "another machine answers in its place: do not go on",
    )


def test_a_host_key_that_is_not_known(lab: Lab) -> None:
    file = lab.layout.folder / "known-hosts-empty"
    file.write_text("")
    fleet = host_only(lab, "no-host-key", lambda content: content["ssh"].update(known_hosts=file.name))
    run_both(lab, "site", fleet).say(f"{file.relative_to(ROOT)} has no key of this host", "ssh-keyscan -p ")


def one_is_dead(content: Content) -> None:
    content["hosts"][OTHER]["ssh"]["port"] = CLOSED_PORT


@pytest.mark.parametrize("command", [PYINFRA, WRAPPER])
def test_of_two_hosts_the_one_that_answers_converges(lab: Lab, command: str) -> None:
    fleet = lab.write_fleet("refused-dead", one_is_dead)
    lab.ssh(HOST, f"sudo rm -f {SETTINGS}")
    deploy = "deploys/site.py"
    run = lab.pyinfra("-y", deploy, fleet=fleet) if command == PYINFRA else lab.converge(deploy, fleet=fleet)
    assert run.rc == 1, run.text
    assert f"nothing lets us in at 127.0.0.1 port {CLOSED_PORT}: is the lab up (make lab-up)?" in run.stderr
    assert "Traceback" not in run.text
    assert "HF_ENDPOINT" in lab.read(HOST, SETTINGS)
    if command == WRAPPER:
        summary = run.stderr.partition("\n--> Disconnecting from hosts...")[2]
        assert f"{OTHER}: unknown, it was not reached\n    Could not connect" in summary
        assert f"{HOST}: changed" in summary


def test_a_dry_run_without_a_terminal_goes_on_with_the_host_that_answers(lab: Lab) -> None:
    fleet = lab.write_fleet("refused-dead", one_is_dead)
    with ThreadPoolExecutor(2) as pool:
        plain = pool.submit(lab.pyinfra, "--dry", "deploys/site.py", fleet=fleet)
        wrapped = pool.submit(lab.converge, "--dry", "deploys/site.py", fleet=fleet)
    for run in (plain.result(), wrapped.result()):
        assert run.rc == 1, run.text
        assert f"[{HOST}] Ready" in run.stderr
        assert "Traceback" not in run.text
    assert f"{OTHER}: unknown" in wrapped.result().stderr
    assert "no change on any host" not in wrapped.result().stderr


# The machine.


def test_a_gpu_that_is_no_gb10(lab: Lab) -> None:
    with lab.gpu(HOST, name="NVIDIA H100 PCIe (simulated)"):
        both = run_both(lab, "preflight", lab.fleet_of(HOST))
    both.say(
        "GPU: NVIDIA H100 PCIe (simulated); wanted: NVIDIA GB10", "What to do: take the host out of the fleet file"
    )


def test_a_real_machine_where_a_lab_host_is_meant(lab: Lab) -> None:
    with lab.gpu(HOST, name="NVIDIA GeForce RTX 5090"):
        both = run_both(lab, "preflight", lab.fleet_of(HOST))
    both.say(
        "GPU: NVIDIA GeForce RTX 5090", "settings.hardware.simulated, but this machine is real: take that key away"
    )


def test_a_driver_that_deadlocks(lab: Lab) -> None:
    with lab.gpu(HOST, driver_version="590.44.01"):
        both = run_both(lab, "preflight", lab.fleet_of(HOST))
    both.say(
        "driver: 590.44.01, with which engines deadlock",
        "wanted: 580 (settings.hardware.driver)",
        "sudo apt-get install -y nvidia-driver-580-open",
    )


def test_less_disk_than_the_weights_need(lab: Lab) -> None:
    fleet = host_only(lab, "disk", lambda content: serve(content, model("gpt-oss-tiny", size_gib=90000)))
    run_both(lab, "preflight", fleet).say(
        "disk space on /", "90000.0 for the weights of tinderbox-lab/gpt-oss-tiny", "or put settings.weights.home on"
    )


@pytest.fixture
def guest(lab: Lab) -> Iterator[str]:
    """A user of the host whom sudo asks for a password."""
    lab.ssh(
        HOST,
        "sudo useradd --create-home guest && sudo install -d -o guest -g guest -m 700 ~guest/.ssh && "
        "sudo install -o guest -g guest -m 600 ~/.ssh/authorized_keys ~guest/.ssh/",
    )
    yield "guest"
    lab.ssh(HOST, "sudo userdel --force --remove guest", check=False)


def test_sudo_that_asks_for_a_password(lab: Lab, guest: str) -> None:
    fleet = host_only(lab, "sudo", lambda content: content["ssh"].update(user=guest))
    run_both(lab, "site", fleet).say(
        "sudo: user guest can not use sudo without a password", "sudo tee /etc/sudoers.d/guest"
    )


@pytest.fixture
def no_docker(lab: Lab) -> Iterator[None]:
    """The host's docker daemon is off for a while."""
    lab.ssh(HOST, "sudo systemctl stop docker.socket docker.service")
    yield
    lab.ssh(HOST, "sudo systemctl start docker.socket docker.service")


@pytest.mark.usefixtures("no_docker")
def test_a_docker_daemon_that_does_not_run(lab: Lab) -> None:
    fleet = host_only(lab, "docker", lambda content: None)
    engine = lab.pyinfra("-y", "deploys/engine.py", fleet=fleet)
    image = lab.converge("deploys/image.py", fleet=fleet)
    assert (engine.rc, image.rc) == (1, 1), engine.text + image.text
    assert "spark-2: service gpt-oss can not start" in engine.stderr
    assert "a dockerd that answers (stage: runtime)" in engine.stderr
    summary = image.stderr.partition("\n--> Disconnecting from hosts...")[2]
    assert "spark-2: dockerd does not answer" in image.stderr
    for text in (image.stderr, summary):
        assert "dockerd does not answer" in text
        assert "Start it (systemctl start docker), or run deploys/runtime.py" in text
    assert "Traceback" not in engine.text + image.text


@pytest.mark.usefixtures("first_run")
@pytest.mark.parametrize("arguments", [("--dry",), ()], ids=["dry", "run"])
def test_of_two_hosts_only_the_one_that_is_blocked_is_stopped_in_the_main_job(
    lab: Lab, main_fleet: Path, arguments: tuple[str, ...]
) -> None:
    # What tags stand for is known, as after a fleet's first run: a dry run can not resolve them.
    lock_path(lab.fleet).write_text(lock_path(main_fleet).read_text())
    stray = "/usr/local/lib/tinderbox/stray.py"
    lab.ssh(HOST, f"sudo mkdir -p $(dirname {stray}) && sudo touch {stray}")
    with lab.gpu(HOST, driver_version="590.44.01"):
        plain = lab.pyinfra(*arguments or ("-y",), "deploys/spark.py")
        wrapped = lab.converge(*arguments)
    for run in (plain, wrapped):
        assert run.rc == 1, run.text
        assert f"[{HOST}] preflight blocked: driver: 590.44.01" in run.stderr
        assert f"[{OTHER}] Ready: deploys/spark.py" in run.stderr
        assert "Traceback" not in run.text
    summary = wrapped.stderr.partition("\n--> Disconnecting from hosts...")[2]
    assert f"{HOST}: FAILED before its first operation\n    preflight blocked: driver: 590.44.01" in summary
    assert OTHER not in summary
    # The first stage that changes anything takes strays away.
    assert lab.ssh(HOST, f"test -e {stray}", check=False).rc == 0


# The hub.

HUB_FAULTS: dict[str, Content] = {
    "answers-404": {"status": 404},
    "answers-401": {"status": 401},
    "answers-401-to-nobody": {"status": 401},
    "is-gated": {"status": 403, "headers": {"X-Error-Code": "GatedRepo"}},
    "is-gated-to-nobody": {"status": 401, "headers": {"X-Error-Code": "GatedRepo"}},
    "answers-500": {"status": 500},
    "answers-html": {
        "status": 200,
        "headers": {"Content-Type": "text/html"},
        "body": "<!doctype html><html><body>Please log in</body></html>",
    },
    "answers-nothing": {"drop": True},
}
HUB_WORDS: dict[str, tuple[str, ...]] = {
    "answers-404": ("the hub has no such repository (404)", "check its name, and `network.hub`"),
    "answers-401": ("the hub refused the token (401)", "it is wrong, expired, or may not read this repository"),
    "answers-401-to-nobody": ("the hub wants to know who asks (401)", "and name a secret with a token in its `token`"),
    "is-gated": ("gated (403): accept the model's licence on the hub with the account that the token belongs to",),
    "is-gated-to-nobody": ("gated (401): accept the model's licence on the hub, and name a secret with a token",),
    "answers-500": ("the hub is in trouble itself (500)", "run again later, or set `network.hub` to a mirror"),
    "answers-html": ("the answer is not JSON", "a login page", "try: curl -v https://hub.lab/api/models/"),
    "answers-nothing": ("the connection broke again and again: run again",),
    "unknown-revision": ("the hub has no revision 'v9' of it (404)", "correct the model's `revision`"),
}
TOKEN = "hf_" + "TheTokenThatNobodyMaySee0123456789"
HOMES = "/var/lib/tinderbox/refusals"


def model(name: str, **changes: Any) -> Content:
    """A model that is written out in the fleet file."""
    repository = f"tinderbox-lab/{name}"
    return {"repository": repository, "size_gib": 0.11, "served_as": "tiny", "source": "the lab", **changes}


def serve(content: Content, written_out: Content) -> None:
    content["defaults"]["services"]["gpt-oss"].update(model=written_out)


@pytest.fixture(scope="module")
def equipped(lab: Lab) -> Iterator[None]:
    """The host has what fetches weights."""
    run = lab.converge("deploys/weights.py", fleet=lab.fleet_of(HOST))
    assert run.rc == 0, run.text
    yield
    lab.ssh(HOST, f"sudo rm -rf {HOMES}")


@pytest.fixture(scope="module")
def hub_refusals(lab: Lab, equipped: None) -> dict[str, Both]:
    """Every fault of a hub, met by both commands; all at once, since the hub's client is patient with some."""

    def fleet(name: str, command: str) -> Path:
        def change(content: Content) -> None:
            known = {"unknown-revision": model("gpt-oss-tiny", revision="v9")}
            serve(content, known.get(name, model(name, token=None if name.endswith("-to-nobody") else "hub")))
            content["secrets"] = {"hub": {"env": "TINDERBOX_TEST_TOKEN"}}
            # Homes of their own: two jobs that want the same become one.
            content["defaults"]["weights"] = {"home": f"{HOMES}/{command}"}

        return host_only(lab, f"hub-{name}-{command}", change)

    def refused(name: str, command: str) -> Run:
        file = fleet(name, command)
        if command == PYINFRA:
            return lab.pyinfra("-y", "deploys/weights.py", fleet=file, timeout_s=300)
        return lab.converge("deploys/weights.py", fleet=file, timeout_s=300)

    faults = [{"host": "hub.lab", "path": f"tinderbox-lab/{name}(/|$)", **fault} for name, fault in HUB_FAULTS.items()]
    names = list(HUB_WORDS)
    with pytest.MonkeyPatch.context() as patch, lab.faults(*faults), ThreadPoolExecutor(4) as pool:
        patch.setenv("TINDERBOX_TEST_TOKEN", TOKEN)
        patch.setenv(HOLD, "0")
        runs = {
            (name, command): pool.submit(refused, name, command) for name in names for command in (PYINFRA, WRAPPER)
        }
        return {name: Both(runs[name, PYINFRA].result(), runs[name, WRAPPER].result()) for name in names}


@pytest.mark.parametrize("name", HUB_WORDS)
def test_a_hub_that_gives_no_model(hub_refusals: dict[str, Both], name: str) -> None:
    repository = "gpt-oss-tiny" if name == "unknown-revision" else name
    hub_refusals[name].say(f"spark-2: tinderbox-lab/{repository}@", " from https://hub.lab", *HUB_WORDS[name])


def test_the_token_is_shown_nowhere(lab: Lab, hub_refusals: dict[str, Both]) -> None:
    for both in hub_refusals.values():
        assert TOKEN not in both.pyinfra.text + both.wrapper.text
    # Not as an argument: sudo writes those down.
    lab.write(HOST, "/root/token", TOKEN)
    places = "/etc /var/lib/tinderbox /var/log /tmp /run/systemd"
    found = lab.ssh(HOST, f"sudo grep -rlsFf /root/token {places}; sudo journalctl | sudo grep -cFf /root/token; true")
    assert found.stdout.split() == ["/etc/tinderbox/hub-token.hub", "0"]
    assert lab.ssh(HOST, "sudo stat -c '%a %U' /etc/tinderbox/hub-token.hub").stdout == "600 root\n"
    lab.ssh(HOST, "sudo rm /root/token /etc/tinderbox/hub-token.hub")


# The operator.


@pytest.mark.usefixtures("equipped")
def test_ctrl_c_leaves_the_job_to_itself_and_the_next_run_picks_it_up(lab: Lab) -> None:
    fleet = host_only(lab, "left", lambda content: content["defaults"].update(weights={"home": f"{HOMES}/left"}))
    argv = [*HEEDING_CTRL_C, sys.executable, "-m", "modules.converge", "deploys/weights.py"]
    environment = {**os.environ, **lab.environment(fleet)}
    slow = lab.faults({"host": "hub.lab", "path": "safetensors", "delay_s": 10})
    with (
        slow,
        subprocess.Popen(
            argv, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as child,
    ):
        assert child.stderr is not None
        said = ""
        while "fetching" not in said:
            line = child.stderr.readline()
            assert line, said
            said += line
        child.send_signal(signal.SIGINT)
        said += child.stderr.read()
        assert child.wait(60) == 130, said
    assert (
        "interrupted; these go on unattended, and the next run picks them up: spark-2: tinderbox-job-weights-" in said
    )
    assert "left running on spark-2 as tinderbox-job-weights-" in said
    assert "Traceback" not in said
    # It did not wait for the job.
    jobs = "systemctl list-units --no-legend --plain 'tinderbox-job-weights-*'"
    assert len(lab.ssh(HOST, jobs).stdout.splitlines()) == 1
    before = len(lab.requests())
    run = lab.converge("deploys/weights.py", fleet=fleet)
    assert run.rc == 0, run.text
    lists = [each for each in lab.requests(before) if "/tree/" in each["path"]]
    assert lists == [], json.dumps(lists)
