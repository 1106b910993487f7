"""Many hosts asked at once, over real SSH to this machine: who answers, who refuses, who says nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from modules.asking.connections import Connections
from modules.asking.program import command
from modules.asking.side_by_side import Answer, Asking, Silent
from modules.fleet import Fleet, HostPlan, load_fleet
from modules.status.wish import status_request
from tests.operations.command_host import CommandHost, closed_place, command_host, dark_place, mute_place

PATIENCE_S = 2.0
PYTHON = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def fleet_of(folder: Path, host: CommandHost, **ports: int) -> Fleet:
    """A fleet file whose hosts are at these ports, and all let in the same key."""
    hosts = "".join(f"  {name}: {{address: 127.0.0.1, ssh: {{port: {port}}}}}\n" for name, port in ports.items())
    path = folder / "fleet.yaml"
    path.write_text(f"fleet: asked\nssh: {{user: spark, key: {host.key}, known_hosts: {host.known}}}\nhosts:\n{hosts}")
    return load_fleet(path)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[CommandHost]:
    with command_host(tmp_path, PYTHON) as up:
        yield up


def asked(fleet: Fleet, line: str, text: str = "", answer_s: float = 20.0) -> dict[str, Answer | Silent]:
    connections = Connections(fleet, fleet.hosts.values(), PATIENCE_S)
    try:
        return dict(Asking(connections, line, dict.fromkeys(fleet.hosts, text)).answers(answer_s))
    finally:
        connections.close_all()


def test_each_host_tells_or_is_told_to_be_silent_and_why(tmp_path: Path, host: CommandHost) -> None:
    with ExitStack() as stack:
        mute, dark = stack.enter_context(mute_place()), stack.enter_context(dark_place())
        fleet = fleet_of(tmp_path, host, up=host.port, off=closed_place(), mute=mute, dark=dark)
        found = asked(fleet, "cat; echo aside >&2; exit 3", "a word\n")

    assert found["up"] == Answer("a word\n", "aside\n", 3)
    why = {name: one.why for name, one in found.items() if isinstance(one, Silent)}
    assert why.keys() == {"off", "mute", "dark"}
    assert "Unable to connect to port" in why["off"]
    assert "it takes connections, and says nothing within 2 s" in why["mute"]
    assert "no answer within 2 s" in why["dark"]
    for name, words in why.items():
        # What to do, as a run says it.
        assert f"correct address and ssh.port of hosts.{name} in " in words


def test_a_host_with_another_key_than_is_known_is_not_asked(tmp_path: Path, host: CommandHost) -> None:
    fleet = fleet_of(tmp_path, host, up=host.port)
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    kind, key, *_ = other.with_suffix(".pub").read_text().split()
    host.known.write_text(f"[127.0.0.1]:{host.port} {kind} {key}\n")

    (answer,) = asked(fleet, "cat").values()

    assert isinstance(answer, Silent)
    assert answer.why.startswith("SSH host key error")
    assert "another machine answers in its place" in answer.why


def test_who_is_not_let_in_is_told(tmp_path: Path, host: CommandHost) -> None:
    fleet = fleet_of(tmp_path, host, up=host.port)
    host.key.unlink()
    host.key.with_suffix(".pub").unlink()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(host.key)], check=True)

    (answer,) = asked(fleet, "cat").values()

    assert isinstance(answer, Silent)
    assert "spark is not let in with key" in answer.why


def test_a_key_with_a_passphrase_is_told_and_nobody_is_asked_for_it(tmp_path: Path, host: CommandHost) -> None:
    fleet = fleet_of(tmp_path, host, up=host.port)
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "secret", "-f", str(host.key)], check=True)

    (answer,) = asked(fleet, "cat").values()

    assert isinstance(answer, Silent)
    assert "encrypted" in answer.why
    assert "ssh-add" in answer.why


def test_a_host_that_talks_and_does_not_answer_is_left_at_the_deadline(tmp_path: Path, host: CommandHost) -> None:
    (answer,) = asked(fleet_of(tmp_path, host, up=host.port), "sleep 60", answer_s=PATIENCE_S + 1).values()

    assert isinstance(answer, Silent)
    assert "it talks, and did not answer within 3 s" in answer.why
    assert "ssh -i" in answer.why


def test_a_connection_is_used_again_and_made_anew_where_it_broke(tmp_path: Path, host: CommandHost) -> None:
    fleet = fleet_of(tmp_path, host, up=host.port)
    connections = Connections(fleet, fleet.hosts.values(), PATIENCE_S)
    for expected in (1, 1, 2):
        if expected == 2:
            host.machine.drop()
            while connections.lasts("up"):
                pass
        (answer,) = Asking(connections, "echo here", {"up": ""}).answers(20.0).values()
        assert answer == Answer("here\n", "", 0)
        assert len(host.machine.transports) == expected
    connections.close_all()


def test_a_program_comes_with_its_question_also_where_sudo_asks_for_a_password(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    sudo = tmp_path / "bin" / "sudo"
    sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    sudo.chmod(0o755)
    with command_host(tmp_path, f"{tmp_path / 'bin'}:{PYTHON}") as host:
        fleet = fleet_of(tmp_path, host, up=host.port)
        (answer,) = asked(fleet, command(), status_request(HostPlan("up", fleet.hosts["up"].settings, ()))).values()

    assert isinstance(answer, Answer)
    assert (answer.status, answer.err) == (0, "sudo: a password is required\n")
    assert answer.out.startswith('{"status": {"form": 1,')
