"""The gateway's files on its host: tried, published in one step, gone back from, and taken away."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modules.hostside import gateway_host
from modules.hostside.gateway_host import Gateway, digest

# As the program imports them on a host.
if TYPE_CHECKING:
    from modules.hostside import gateway_process
    from modules.hostside.gateway_process import GatewayError, Process
else:
    import gateway_process
    from gateway_process import GatewayError, Process

UNIT = "[Unit]\n"
OLD, NEW = {"haproxy.cfg": "old\n", "keys.map": "a b\n"}, {"haproxy.cfg": "new\n", "keys.map": "a b\n"}


class Host:
    """A systemd and a HAProxy in a folder. `takes`: whether a reload comes to a new process."""

    def __init__(self, folder: Path) -> None:
        self.home, self.unit, self.loaded = folder / "gateway", folder / "unit", folder / "loaded"
        self.program = folder / "haproxy"
        self.program.touch()
        self.active, self.enabled, self.pid, self.takes = False, False, 1, True
        self.asked: list[str] = []

    @property
    def gateway(self) -> Gateway:
        process = Process(self.ask, lambda: str(self.pid) if self.active else None, self.program, lambda _: None)
        return Gateway(process, self.home, self.unit, self.loaded)

    def ask(self, *command: str) -> tuple[int, str]:
        text = " ".join(command)
        self.asked.append(text.replace(str(self.program), "haproxy"))
        if command[0] == str(self.program):
            broken = "broken" in Path(command[-1]).read_text()
            return (1, "[ALERT] it is broken\n[NOTICE] more") if broken else (0, "")
        if command[:2] in {("systemctl", "start"), ("systemctl", "reload")}:
            self.active = True
            if self.takes:
                self.pid += 1
                self.loaded.unlink(missing_ok=True)
                self.loaded.symlink_to((self.home / "current").readlink())
        self.enabled = self.enabled or command[:2] == ("systemctl", "enable")
        if command[:2] == ("systemctl", "disable"):
            self.active = self.enabled = False
        return 0, ""

    def state(self, _: str) -> dict[str, str]:
        return {
            "ActiveState": "active" if self.active else "inactive",
            "UnitFileState": "enabled" if self.enabled else "disabled",
        }

    def differences(self, files: dict[str, str]) -> list[str]:
        return self.gateway.differences(digest(files), hashlib.sha256(UNIT.encode()).hexdigest())


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(tmp_path)
    monkeypatch.setattr(gateway_process, "unit_state", host.state)
    monkeypatch.setattr(gateway_process, "journal", lambda *_, **__: ["[ALERT] cannot bind", "[NOTICE] more"])
    monkeypatch.setattr(gateway_process, "_RELOAD_S", 0.05)

    def no_docker(*_: str) -> None:
        return None

    monkeypatch.setattr("gpus_kept.run", no_docker)
    return host


def test_a_bare_host_gets_it_and_then_differs_in_nothing(host: Host) -> None:
    assert "its configuration is another one" in host.differences(OLD)
    host.gateway.apply(OLD, UNIT)
    assert host.differences(OLD) == []
    assert (host.active, host.enabled) == (True, True)
    modes = {path.stat().st_mode & 0o777 for path in (host.home / "current").iterdir()}
    assert modes == {0o600}
    host.asked.clear()
    host.gateway.apply(OLD, UNIT)
    assert not [text for text in host.asked if "reload " in text or "start" in text]


def test_a_change_is_a_reload_and_leaves_no_former_files(host: Host) -> None:
    host.gateway.apply(OLD, UNIT)
    host.gateway.apply(NEW, UNIT)
    assert (host.home / "current" / "haproxy.cfg").read_text() == "new\n"
    assert sorted(path.name for path in host.home.iterdir()) == sorted(["current", digest(NEW)])
    assert [text for text in host.asked if "tinderbox-gateway" in text and ("start" in text or "reload" in text)] == [
        "systemctl start tinderbox-gateway.service", "systemctl reload tinderbox-gateway.service"
    ]  # fmt: skip


def test_what_haproxy_refuses_is_not_published(host: Host) -> None:
    host.gateway.apply(OLD, UNIT)
    with pytest.raises(GatewayError, match=r"the former one stays in force: \[ALERT\] it is broken$"):
        host.gateway.apply({"haproxy.cfg": "broken\n"}, UNIT)
    assert host.differences(OLD) == []
    assert sorted(path.name for path in host.home.iterdir()) == sorted(["current", digest(OLD)])


def test_what_no_process_takes_over_is_gone_back_from(host: Host) -> None:
    host.gateway.apply(OLD, UNIT)
    host.takes = False
    with pytest.raises(GatewayError, match=r"goes on with the former: .*cannot bind"):
        host.gateway.apply(NEW, UNIT)
    assert host.gateway.found() == digest(OLD)
    assert host.differences(NEW) == ["its configuration is another one"]


def test_a_run_that_was_cut_before_the_reload_is_finished(host: Host) -> None:
    host.gateway.apply(OLD, UNIT)
    host.gateway.publish(NEW)
    assert host.differences(NEW) == ["it has not read its configuration"]
    host.gateway.apply(NEW, UNIT)
    assert host.differences(NEW) == []


def test_an_edit_by_hand_is_found_put_right_and_read_anew(host: Host) -> None:
    host.gateway.apply(OLD, UNIT)
    (host.home / "current" / "haproxy.cfg").write_text("edited\n")
    assert host.differences(OLD) == ["its configuration is another one"]
    before = host.pid
    host.gateway.apply(OLD, UNIT)
    assert host.differences(OLD) == []
    assert host.pid != before
    (host.home / "current" / "keys.map").chmod(0o644)
    assert host.differences(OLD) == ["its configuration is another one"]


def test_without_haproxy_that_is_all_there_is_to_tell(host: Host) -> None:
    host.program.unlink()
    assert host.differences(OLD) == ["haproxy is not installed"]


@pytest.mark.parametrize("ours", [True, False])
def test_it_goes_and_so_does_haproxy_where_it_came_for_this(host: Host, tmp_path: Path, ours: bool) -> None:
    undo = tmp_path / "packages.json"
    undo.write_text(json.dumps({"haproxy": {"added": ["haproxy", "liblua"] if ours else []}, "earlyoom": {}}))
    host.gateway.apply(OLD, UNIT)
    host.asked.clear()
    host.gateway.remove(undo)
    assert not host.gateway.is_there()
    assert any("purge haproxy liblua" in text for text in host.asked) == ours
    assert json.loads(undo.read_text()) == {"earlyoom": {}}
    assert "systemctl disable --quiet --now tinderbox-gateway.service" in host.asked


def test_the_program_says_how_it_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert gateway_host.main(["nonsense"]) == 2
    assert "gateway_host.py check DIGEST UNIT_SHA256" in capsys.readouterr().err


def test_the_agents_program_says_how_it_is_used() -> None:
    program = Path(gateway_host.__file__).with_name("agent_host.py")
    done = subprocess.run(["python3", str(program)], capture_output=True, text=True, check=False)
    assert (done.returncode, "agent_host.py settle|remove" in done.stderr) == (2, True)
