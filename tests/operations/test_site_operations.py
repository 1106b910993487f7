"""What the site's operations give a host that lacks something, and that they give a settled host nothing."""

from __future__ import annotations

import base64
import hashlib
import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from modules.facts import hostside as hostside_facts
from modules.facts.files import FileState
from modules.facts.hostside import HostsidePrograms
from modules.facts.site import CERTIFICATE, SiteSettings, SiteState
from modules.operations.connection import keep_alive
from modules.operations.hostside import difference, hostside_installed, programs
from modules.operations.managed_files import ManagedFile
from modules.operations.require import require
from modules.operations.site import site_files, site_settled
from modules.spec.network import Network
from tests.operations.stub_host import StubHost, commands_of

SITE = Network(ca_bundle="ca.pem", hub="https://hub.lab")
HASHES = {name: hashlib.sha256(content).hexdigest() for name, content in programs().items()}


def as_found(file: ManagedFile) -> FileState | None:
    if file.content is None:
        return None
    return FileState(hashlib.sha256(file.content.encode()).hexdigest(), file.mode, "root:root")


def settled(network: Network, ca_bundle: str | None, fresh: bool = True) -> SiteState:
    return SiteState({file.path: as_found(file) for file in site_files(network, ca_bundle)}, trust_is_fresh=fresh)


def test_a_met_requirement_is_no_change_and_an_unmet_one_is_told() -> None:
    host = StubHost({})
    assert commands_of(host, require, ok=True, message="") == []
    assert host.noops
    (command,) = commands_of(host, require, ok=False, message="it's\nwrong $HOME")
    done = subprocess.run(["sh", "-c", command.get_raw_value()], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "it's\nwrong $HOME\n")


def test_up_to_date_programs_are_no_change() -> None:
    host = StubHost({HostsidePrograms: HASHES})
    assert commands_of(host, hostside_installed) == []
    assert host.noops


def test_only_what_differs_is_sent_and_strays_go() -> None:
    found = {**HASHES, "fetch_key.py": "0" * 64, "stray.py": "foreign"}
    removal, sending = commands_of(StubHost({HostsidePrograms: found}), hostside_installed)
    assert removal.get_raw_value().endswith("rm -rf -- stray.py")
    content = base64.b64decode(sending.connector_arguments["_stdin"])
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert [(entry.name, entry.mode, entry.uid) for entry in tar] == [("fetch_key.py", 0o644, 0)]


def test_a_bare_host_gets_every_program() -> None:
    outdated, strays = difference(programs(), {})
    assert set(outdated) == set(programs()) > {"fetch_key.py", "compile_probe.py", "job.py", "tools.lock"}
    assert strays == []


def test_programs_are_read_from_a_real_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> dict[str, str]:
        command = HostsidePrograms().command().get_raw_value().replace("-user root", "")
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
        return HostsidePrograms().parse(done.stdout.splitlines())

    monkeypatch.setattr(hostside_facts, "HOME", str(tmp_path / "programs"))
    assert found() == {}
    home = tmp_path / "programs"
    (home / "__pycache__").mkdir(parents=True)
    (home / "folder").mkdir()
    for name, mode in (("good.py", 0o644), ("loose.py", 0o666)):
        (home / name).write_text("pass\n")
        (home / name).chmod(mode)
    assert found() == {
        "good.py": hashlib.sha256(b"pass\n").hexdigest(),
        "loose.py": "foreign",
        "folder": "foreign",
    }


def test_a_settled_site_is_no_change() -> None:
    host = StubHost({SiteSettings: settled(SITE, "PEM")})
    assert commands_of(host, site_settled, network=SITE, ca_bundle="PEM") == []
    assert host.noops


def test_the_trust_store_is_made_anew_only_for_certificates() -> None:
    given = settled(Network(ca_bundle="ca.pem"), "PEM")
    commands = commands_of(StubHost({SiteSettings: given}), site_settled, network=SITE, ca_bundle="PEM")
    assert len(commands) == 1
    assert "network.env" in commands[0].get_raw_value()


def test_a_certificate_goes_before_the_trust_store_forgets_it() -> None:
    given = settled(SITE, "PEM")
    commands = commands_of(StubHost({SiteSettings: given}), site_settled, network=Network(), ca_bundle=None)
    texts = [command.get_raw_value() for command in commands]
    assert CERTIFICATE in texts[-2]
    assert texts[-1] == "update-ca-certificates --fresh"


def test_a_run_that_was_cut_before_the_trust_store_is_finished() -> None:
    host = StubHost({SiteSettings: settled(SITE, "PEM", fresh=False)})
    (command,) = commands_of(host, site_settled, network=SITE, ca_bundle="PEM")
    assert command.get_raw_value().strip() == "update-ca-certificates"


@pytest.mark.parametrize(
    ("fact", "operation", "arguments"),
    [
        (HostsidePrograms, hostside_installed, {}),
        (SiteSettings, site_settled, {"network": SITE, "ca_bundle": "PEM"}),
    ],
)
def test_a_host_that_gives_no_answer_is_refused(fact: type, operation: object, arguments: dict[str, object]) -> None:
    (command,) = commands_of(StubHost({fact: None}), operation, **arguments)
    assert "spark-1: " in command.get_raw_value()
    assert command.get_raw_value().endswith("exit 1")


class Transport:
    def __init__(self, sock: object) -> None:
        self.sock, self.keepalive = sock, 0

    def set_keepalive(self, seconds: int) -> None:
        self.keepalive = seconds


class Socket:
    def __init__(self) -> None:
        self.options: list[tuple[int, int, int]] = []

    def setsockopt(self, *option: int) -> None:
        self.options.append(option)  # type: ignore[arg-type]


def host_with(connector: object) -> object:
    return type("Host", (), {"connector": connector})()


def test_a_connection_is_kept_alive_and_sends_at_once() -> None:
    transport = Transport(Socket())
    client = type("Client", (), {"get_transport": lambda _: transport})()
    keep_alive(host_with(type("Connector", (), {"client": client})()))  # type: ignore[arg-type]
    assert transport.keepalive == 15
    assert transport.sock.options == [(6, 1, 1)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("connector", [object(), type("Connector", (), {"client": None})()])
def test_other_connections_are_left_alone(connector: object) -> None:
    keep_alive(host_with(connector))  # type: ignore[arg-type]


def test_a_proxy_command_has_no_socket_to_set() -> None:
    transport = Transport(object())
    client = type("Client", (), {"get_transport": lambda _: transport})()
    keep_alive(host_with(type("Connector", (), {"client": client})()))  # type: ignore[arg-type]
    assert transport.keepalive == 15
