"""What the runtime stage's operation gives a host: dockerd is restarted only for a change that needs it."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from modules.facts import docker_daemon
from modules.facts.docker_daemon import CONFIG, DaemonState, DockerDaemon
from modules.facts.files import FileState
from modules.operations.docker_config import merged, proxy_files, rendered
from modules.operations.docker_daemon import docker_ready
from modules.spec.network import Network, Proxy
from modules.spec.settings import Runtime
from tests.operations.stub_host import StubHost, commands_of

CERTIFICATE = "/etc/docker/certs.d/registry.lab:5000/tinderbox-site.crt"
READY = DaemonState(
    installed=True, enabled=True, active=True, trusts_site=True, config=rendered(merged({}, Runtime())), files={}
)
OPEN = Network()
REGISTRY = Network(ca_bundle="ca.pem", registry="registry.lab:5000")


def state_of(text: str, mode: str = "644") -> FileState:
    return FileState(hashlib.sha256(text.encode()).hexdigest(), mode, "root:root")


def given(found: DaemonState | list[DaemonState | None] | None, network: Network = OPEN) -> tuple[list[Any], StubHost]:
    host = StubHost({DockerDaemon: found})
    ca_bundle = "PEM" if network.ca_bundle else None
    return commands_of(host, docker_ready, wish=Runtime(), network=network, ca_bundle=ca_bundle), host


def placed(command: Any) -> dict[str, Any]:
    """The files that a restart brings."""
    assert command.get_raw_value().endswith("restart_docker.py")
    files: dict[str, Any] = json.loads(command.connector_arguments["_stdin"])
    return files


def test_a_ready_daemon_is_no_change() -> None:
    commands, host = given(READY)
    assert commands == []
    assert host.noops


def test_the_owners_formatting_is_no_reason_to_restart() -> None:
    compact = json.dumps(json.loads(READY.config or ""))
    assert given(replace(READY, config=compact))[0] == []


def test_a_changed_configuration_comes_with_its_restart() -> None:
    (command,), host = given(replace(READY, config='{"debug": true}'))
    assert json.loads(placed(command)[CONFIG]["text"]) == merged({"debug": True}, Runtime())
    assert host.logged == [f"dockerd is restarted: {CONFIG} changes"]


def test_a_stopped_daemon_is_started_with_what_it_has() -> None:
    (command,), _ = given(replace(READY, active=False))
    assert placed(command) == {}


@pytest.mark.parametrize(("running", "restarted"), [("28.3.3", True), ("29.1.0", False), (None, False)])
def test_a_daemon_whose_package_was_upgraded_under_it_is_restarted(running: str | None, restarted: bool) -> None:
    commands, host = given(replace(READY, version="29.1.0", running=running))
    assert [placed(one) for one in commands] == ([{}] if restarted else [])
    assert host.logged == (["dockerd is restarted: 29.1.0 is installed, and 28.3.3 runs"] if restarted else [])


def test_a_daemon_that_does_not_start_at_boot_is_enabled_and_goes_on() -> None:
    (command,), _ = given(replace(READY, enabled=False))
    assert command.get_raw_value() == "systemctl enable docker.service"


def test_a_registrys_certificate_needs_no_restart() -> None:
    (command,), _ = given(replace(READY, trusts_site=False), REGISTRY)
    assert CERTIFICATE in command.get_raw_value()
    assert given(replace(READY, files={CERTIFICATE: state_of("PEM\n")}), REGISTRY)[0] == []


def test_a_registrys_certificate_goes_with_the_registry() -> None:
    (command,), _ = given(replace(READY, files={CERTIFICATE: state_of("PEM\n")}))
    assert "take-away" in command.get_raw_value()


def test_without_a_registry_the_trust_store_decides() -> None:
    (command,), host = given(replace(READY, trusts_site=False), Network(ca_bundle="ca.pem"))
    assert placed(command) == {}
    assert "certificates changed" in host.logged[0]
    assert given(replace(READY, trusts_site=False))[0] == []


def test_a_proxy_comes_and_goes_with_a_restart() -> None:
    proxy = Proxy(https="http://me:hunter2@proxy:1")
    (command,), host = given(READY, Network(proxy=proxy))
    environment, drop_in = proxy_files(proxy)
    assert placed(command) == {
        environment.path: {"text": environment.content, "mode": "600"},
        drop_in.path: {"text": drop_in.content, "mode": "644"},
    }
    assert "hunter2" not in command.get_raw_value()
    assert "hunter2" not in " ".join(host.logged)
    files: dict[str, FileState | None] = {
        environment.path: state_of(environment.content or "", "600"),
        drop_in.path: state_of(drop_in.content or ""),
    }
    assert given(replace(READY, files=files), Network(proxy=proxy))[0] == []
    (command,), _ = given(replace(READY, files=files))
    assert placed(command) == {environment.path: None, drop_in.path: None}


def test_docker_is_installed_where_there_is_none() -> None:
    absent = replace(READY, installed=False, enabled=False, active=False, config=None)
    commands, _ = given([absent, replace(READY, config=None)])
    assert "--package docker.io" in commands[0].get_raw_value()
    assert placed(commands[-1])[CONFIG]["text"] == READY.config


def test_a_broken_configuration_is_refused_with_its_place() -> None:
    (command,), _ = given(replace(READY, config='{"a": 1,\n}'))
    assert f"spark-1: {CONFIG}: " in command.get_raw_value()
    assert "line 2 column 1" in command.get_raw_value()


def test_a_host_that_gives_no_answer_is_refused() -> None:
    (command,), _ = given(None)
    assert command.get_raw_value().endswith("exit 1")


def test_a_daemon_that_was_switched_off_on_purpose_is_not_forced() -> None:
    (command,), _ = given(replace(READY, enabled=False, active=False, masked=True))
    text = command.get_raw_value()
    assert "docker.service is masked" in text
    assert "systemctl unmask docker.service docker.socket" in text
    assert text.endswith("exit 1")


def lines(started: str, changed: int | None, state: str = "enabled") -> list[str]:
    certificate = [] if changed is None else [f"Certificate={changed}"]
    shown = ["ActiveState=active", f"ActiveEnterTimestamp={started}", f"UnitFileState={state}"]
    text = base64.b64encode(b"{}\n").decode()
    return ["begin", "Installed=yes", *shown, *certificate, f"Config={text}", "files", "absent - - /x"]


@pytest.mark.parametrize(
    ("started", "changed", "trusts"),
    [("@100", 99, True), ("@100", 100, True), ("@100", 101, False), ("@100", None, True), ("", 101, True)],
)
def test_what_systemd_tells_is_read(started: str, changed: int | None, trusts: bool) -> None:
    state = DockerDaemon().parse(lines(started, changed))
    assert state == DaemonState(
        installed=True, enabled=True, active=True, trusts_site=trusts, config="{}\n", files={"/x": None}
    )


@pytest.mark.parametrize(("state", "enabled"), [("static", True), ("disabled", False), ("masked", False), ("", False)])
def test_a_unit_without_an_install_section_needs_no_enabling(state: str, enabled: bool) -> None:
    found = DockerDaemon().parse(lines("@1", None, state))
    assert (found.enabled, found.masked) == (enabled, state == "masked")


def test_an_absent_docker_is_read() -> None:
    state = DockerDaemon().parse(["begin", "ActiveState=inactive", "UnitFileState=", "ActiveEnterTimestamp=", "files"])
    assert (state.installed, state.enabled, state.active, state.config) == (False, False, False, None)


def test_a_device_specification_of_a_former_driver_is_renewed_without_a_restart() -> None:
    gone = "/usr/lib/aarch64-linux-gnu/libcuda.so.580.95.05"
    (command,), host = given(replace(READY, stale_devices=(gone,)))
    assert "nvidia-ctk cdi generate --format=yaml --output=/etc/cdi/nvidia.yaml.new" in command.get_raw_value()
    assert "mv -f /etc/cdi/nvidia.yaml.new /etc/cdi/nvidia.yaml" in command.get_raw_value()
    assert gone in host.logged[0]


SPECIFICATION = """---
cdiVersion: 0.5.0
containerEdits:
  hooks:
  - args:
    - nvidia-cdi-hook
    hookName: createContainer
    path: {folder}/nvidia-cdi-hook
  mounts:
  - containerPath: /usr/lib/aarch64-linux-gnu/libcuda.so.{driver}
    hostPath: {folder}/libcuda.so.{driver}
    options: [ro]
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/null
  name: all
kind: nvidia.com/gpu
"""


@pytest.mark.parametrize("driver", ["580.126.09", "580.95.05"])
def test_the_fact_finds_what_a_specification_names_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str
) -> None:
    specification = tmp_path / "nvidia.yaml"
    monkeypatch.setattr(docker_daemon, "DEVICES", str(specification))
    for name in ("nvidia-cdi-hook", "libcuda.so.580.126.09"):
        (tmp_path / name).touch()
    specification.write_text(SPECIFICATION.format(folder=tmp_path, driver=driver))
    text = DockerDaemon().command(paths=[]).get_raw_value()
    answer = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True).stdout.splitlines()
    found = DockerDaemon().process(answer)
    assert found is not None
    stale = () if driver == "580.126.09" else (f"{tmp_path}/libcuda.so.580.95.05",)
    assert found.stale_devices == stale
    specification.unlink()
    answer = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True).stdout.splitlines()
    assert "Stale" not in "".join(answer)
