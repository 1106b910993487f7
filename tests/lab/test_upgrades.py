"""A lab host is upgraded under a good release: the next run does what is needed, the one after it nothing.

apt, docker and its upgrade are real. Driver and container toolkit are simulated, and so is the engine; they say so.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.lab.pieces.upgrades import DRIVER_PACKAGE
from tests.lab.fake_release import SAYS, SERVICE
from tests.lab.lab_driver import Lab, Run
from tests.lab.tiny_recipe import pins
from tests.lab.upgrading import Upgraded, unchanged

pytestmark = [pytest.mark.lab, pytest.mark.long]
OLD_CUDA, NEW_CUDA = "13.0.1-1", "13.0.2-1"
DOCKER = "docker 20.10.24+dfsg1 → 26.1.5+dfsg1"
TOOLKIT = "container toolkit 1.18.0-1 → 1.18.1-1"
CUDA = f"CUDA toolkit {OLD_CUDA} → {NEW_CUDA}"
SERVER, DAEMON = STARTS = (f"{SERVICE} is restarted", "dockerd is restarted")
DRIVER = "driver 580.142 → 580.159.03"


def proved(lab: Lab, host: str) -> tuple[Upgraded, Path]:
    """A host with a good release, on the oldest of everything, and a fleet file that lets the toolkit be newer."""
    upgraded = Upgraded(lab, host)
    run = upgraded.run(upgraded.fleet(OLD_CUDA))
    assert run.rc == 0, run.text
    assert SAYS in lab.ssh(host, f"sudo docker logs tinderbox-{SERVICE}").stdout
    upgraded.offer_upgrades()
    fleet = upgraded.fleet("13.0.*")
    again = upgraded.run(fleet)
    assert unchanged(again), again.text
    return upgraded, fleet


@pytest.fixture(scope="module")
def one_by_one(upgrade_lab: Lab) -> tuple[Upgraded, Path]:
    return proved(upgrade_lab, "spark-1")


@pytest.fixture(scope="module")
def together(upgrade_lab: Lab) -> tuple[Upgraded, Path]:
    return proved(upgrade_lab, "spark-2")


def check_proved_again(host: Upgraded, fleet: Path, *changes: str, restarted: str) -> Run:
    """One run with the changes named and a gate, and no change in the one after it.

    `restarted`: what is said of a start of the server that the run makes; empty: none.
    """
    server = host.served(fleet)
    release, before = server.release(), server.invocation()
    known = len(host.entry(release)["events"])

    run = host.run(fleet)

    assert run.rc == 0, run.text
    told = ", ".join(changes)
    assert f"changed on this host since release {release} was last proved: {told}" in run.text
    assert f"measuring, since the machine has changed since it was measured: {told}" in run.text
    assert [each for each in STARTS if each in run.text] == ([restarted] if restarted else [])
    assert (server.release(), server.state()) == (release, "active")
    assert (server.invocation() != before) is bool(restarted)
    assert server.reply()
    entry = host.entry(release)
    assert (entry["events"][-1]["event"], entry["events"][-1]["changed"]) == ("proved again", told)
    for change in changes:
        before_it, _, version = change.rpartition(" → ")
        assert entry["proved_on"][before_it.rpartition(" ")[0]] == version
    assert len(entry["events"]) > known

    after = server.invocation()
    again = host.run(fleet)
    assert unchanged(again), again.text
    assert (server.invocation(), host.entry(release)) == (after, entry)
    return run


def test_the_cuda_toolkit_alone_restarts_nothing(one_by_one: tuple[Upgraded, Path]) -> None:
    host, fleet = one_by_one
    host.install(f"cuda-toolkit-13-0={NEW_CUDA}")
    check_proved_again(host, fleet, CUDA, restarted="")


def test_the_container_toolkit_restarts_the_server(one_by_one: tuple[Upgraded, Path]) -> None:
    host, fleet = one_by_one
    host.install("nvidia-container-toolkit=1.18.1-1")
    check_proved_again(host, fleet, TOOLKIT, restarted=SERVER)


def test_docker(one_by_one: tuple[Upgraded, Path]) -> None:
    host, fleet = one_by_one
    host.install("docker.io", "docker-cli")
    # Debian's package leaves the daemon as it is. With dockerd systemd restarts what needs it.
    run = check_proved_again(host, fleet, DOCKER, restarted=DAEMON)
    assert "26.1.5+dfsg1 is installed, and 20.10.24+dfsg1 runs" in run.text


def test_a_driver_is_told_to_need_a_reboot_and_proved_after_it(one_by_one: tuple[Upgraded, Path]) -> None:
    host, fleet = one_by_one
    lab, server = host.lab, host.served(fleet)
    lab.ssh(host.host, "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml")
    old, _ = host.caches()
    assert "-580.142-" in old
    lab.write(host.host, host.in_cache("kernel"), "compiled for 580.142\n")
    before = server.invocation()
    host.install(f"{DRIVER_PACKAGE}=580.159.03-1")

    refused = host.run(fleet)

    assert refused.rc == 1, refused.text
    assert "reboot: the loaded driver has another version than its libraries (580.159)" in refused.text
    assert "What to do: restart the host: `sudo reboot`; what serves goes on until then" in refused.text
    assert (server.invocation(), server.state()) == (before, "active")
    assert server.reply()

    lab.restart(host.host)
    server.await_ready()
    new, keys = host.caches()
    assert "-580.159.03-" in new
    # Nothing is thrown away before the release is proved on the new one.
    assert set(keys) == {old, new}

    run = check_proved_again(host, fleet, DRIVER, restarted="")

    assert "/etc/cdi/nvidia.yaml is renewed" in run.text
    assert "libcuda.so.580.159.03" in lab.read(host.host, "/etc/cdi/nvidia.yaml")
    assert f"caches {SERVICE}/keyed/{old}" in run.text
    assert host.caches() == (new, [new])


def test_another_pin_of_our_own_is_another_release_with_a_gate(together: tuple[Upgraded, Path]) -> None:
    # Before docker is upgraded: the newer one builds only with a plugin that the lab has not.
    host, fleet = together
    server = host.served(fleet)
    old, old_image = server.release(), server.image()
    host.fleet("13.0.*", **pins("b" * 40))

    run = host.run(fleet)

    assert run.rc == 0, run.text
    new = server.release()
    assert new != old
    assert server.image() != old_image
    assert "measuring, since this release was never measured" in run.text
    assert [event["event"] for event in host.entry(new)["events"]] == ["activated", "ready", "good"]
    assert host.entry(new)["proved_on"]["image"] == server.image()
    assert unchanged(host.run(fleet))


def test_all_of_them_together(together: tuple[Upgraded, Path]) -> None:
    host, fleet = together
    host.install(
        f"cuda-toolkit-13-0={NEW_CUDA}", "nvidia-container-toolkit=1.18.1-1", "docker.io", "docker-cli",
        f"{DRIVER_PACKAGE}=580.159.03-1",
    )  # fmt: skip
    host.lab.restart(host.host)
    host.served(fleet).await_ready()
    check_proved_again(host, fleet, DRIVER, DOCKER, TOOLKIT, CUDA, restarted="")


def test_a_gate_that_fails_after_an_upgrade_names_what_has_changed(together: tuple[Upgraded, Path]) -> None:
    host, fleet = together
    server = host.served(fleet)
    release = server.release()
    slow = host.in_cache("slow")
    host.lab.write(host.host, slow, "")
    host.install("nvidia-container-toolkit=1.18.0-1")
    back = "container toolkit 1.18.1-1 → 1.18.0-1"

    run = host.run(fleet)

    assert run.rc == 1, run.text
    assert f"Release {release} was good before and is the last good one, so it goes on serving" in run.text
    assert f"Since it was last good: {back}." in run.text
    assert (server.release(), server.state()) == (release, "active")
    assert server.reply()
    failed = host.entry(release)["events"][-1]
    assert (failed["event"], failed["changed"]) == ("gate failed", back)

    host.lab.ssh(host.host, f"sudo rm {slow}")
    before = server.invocation()
    passed = host.run(fleet)
    assert passed.rc == 0, passed.text
    assert server.invocation() == before
    proof = host.entry(release)["events"][-1]
    assert (proof["event"], proof["changed"]) == ("proved again", back)
    assert unchanged(host.run(fleet))
