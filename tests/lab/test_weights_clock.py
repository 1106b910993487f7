"""A host whose clock is years off: what needs the outside says so by name, what comes from peers comes all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.lab_driver import Lab
from tests.lab.spread_driver import DEPLOY, Spread, spread_of
from tests.lab.wrong_clock import wrong_clock

pytestmark = [pytest.mark.lab, pytest.mark.long]
ONE, HOST = "spark-1", "spark-2"
TOLD = "its certificate is not valid at the time that this host's clock shows ("
PROGRAMS = "/usr/local/lib/tinderbox"
UPDATE = 'import install_package; install_package.update("/root/clock.list")'
ENCODINGS = "/var/lib/tinderbox/encodings"


@pytest.fixture
def equipped(lab: Lab) -> None:
    """What fetches is there; its own fetching is another stage."""
    for host in (ONE, HOST):
        run = lab.converge(DEPLOY, fleet=lab.fleet_of(host))
        assert run.rc == 0, run.text


@pytest.fixture
def spread(lab: Lab, equipped: None) -> Iterator[Spread]:
    with spread_of(lab, "clock", ONE, HOST) as found:
        yield found


@pytest.mark.parametrize("days", [-3 * 365, 20 * 365])
def test_a_hub_is_asked_in_vain_and_the_clock_is_named(spread: Spread, days: int) -> None:
    with wrong_clock(spread.lab, HOST, days):
        run = spread.run(HOST)
        assert run.rc == 1, run.text
        assert "spark-2: tinderbox-lab/gpt-oss-tiny@" in run.stderr
        assert TOLD in run.stderr
        assert "set the clock (timedatectl)" in run.stderr
        assert "ca_bundle" not in run.stderr
        assert "Traceback" not in run.text
    run = spread.run(HOST)
    assert run.rc == 0, run.text
    spread.whole(HOST)


def test_what_comes_from_a_peer_comes_whole_and_stays_good_when_the_clock_is_set_right(spread: Spread) -> None:
    assert spread.run(ONE).rc == 0
    with wrong_clock(spread.lab, HOST, -3 * 365):
        run = spread.run()
        assert run.rc == 0, run.text
        spread.whole(HOST)
    spread.nobody_listens()
    again = spread.run()
    assert again.rc == 0, again.text
    assert "no change on any host" in again.stderr


def test_encodings_and_packages_name_the_clock_too(lab: Lab, equipped: None) -> None:
    fleet = lab.fleet_of(HOST)
    tools = "/var/lib/tinderbox/tools"
    lab.ssh(HOST, f"sudo rm -rf {ENCODINGS}; sudo mv {tools} {tools}.kept")
    try:
        with wrong_clock(lab, HOST, -3 * 365):
            for stage in ("encodings", "weights"):
                run = lab.converge(f"deploys/{stage}.py", fleet=fleet)
                assert run.rc == 1, run.text
                assert TOLD in run.stderr, run.text
                assert "set the clock (timedatectl" in run.stderr, run.text
            lab.write(HOST, "/root/clock.list", "deb [trusted=yes] https://apt.lab/cuda /\n")
            updated = lab.ssh(
                HOST, f"cd {PROGRAMS} && sudo python3 -c '{UPDATE}' 2>&1; sudo rm /root/clock.list", check=False
            )
            assert "set the clock (timedatectl" in updated.text, updated.text
    finally:
        lab.ssh(HOST, f"sudo rm -rf {tools}; sudo mv {tools}.kept {tools}")
    for stage in ("encodings", "weights"):
        run = lab.converge(f"deploys/{stage}.py", fleet=fleet)
        assert run.rc == 0, run.text
