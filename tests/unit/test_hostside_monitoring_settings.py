"""What watches a host: started with what it is told, checked before it is in force, left alone where it is not ours."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from modules.hostside.configuration_digest import digest_of

# As the programs import each other on a host, so that these are the very modules and errors that they know.
if TYPE_CHECKING:
    from modules.hostside import monitoring_settings, monitoring_units, prometheus_files
    from modules.hostside.system_host import System
else:
    import monitoring_settings
    import monitoring_units
    import prometheus_files
    from system_host import System

NOTHING: dict[str, Any] = {
    "exporter": False, "node_exporter": False, "grafana": False, "prometheus": None, "asked_at": None
}  # fmt: skip
FILES = {"prometheus.yml": "global: {}\n", "rules.yml": "groups: []\n"}


class Machine:
    """A host in a folder, with a systemd and an apt that do what they are told."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.said, self.began = folder, list[str](), dict[str, int]()
        self.active, self.installed, self.stays = set[str](), set[str](), True
        for name in ("units", "undo", "etc"):
            (folder / name).mkdir()
        self.promtool(fails=False)
        (folder / "etc/monitoring.json").write_text(json.dumps({"file": str(folder / "metrics/tinderbox.prom")}))
        monkeypatch.setattr(monitoring_units, "_SETTINGS", folder / "etc/monitoring.json")
        monkeypatch.setattr(monitoring_units, "_PATIENCE_S", 0.05)
        monkeypatch.setattr("time.sleep", lambda _: None)
        etc, tool = folder / "etc", str(folder / "promtool")
        monkeypatch.setattr(monitoring_settings, "in_force", lambda: prometheus_files.in_force(etc))
        monkeypatch.setattr(monitoring_settings, "withdraw", lambda: prometheus_files.withdraw(etc))
        monkeypatch.setattr(monitoring_settings, "publish", lambda files: prometheus_files.publish(files, etc, tool))
        self.system = System(folder / "proc", folder / "undo", folder / "units", self.ask)

    def promtool(self, *, fails: bool) -> None:
        path = self.folder / "promtool"
        path.write_text(f'#!/bin/sh\ntest -e "$3" || exit 7\necho "asked for $1 $2"; exit {int(fails)}\n')
        path.chmod(0o755)

    def ask(self, *command: str) -> tuple[int, str]:
        unit = command[-1]
        match command[:2]:
            case ("systemctl", "show"):
                name = command[3]
                active = "active" if unit in self.active else "inactive"
                began = str(self.began.get(unit, 0))
                return 0, {
                    "ActiveState": active, "NeedDaemonReload": "no", "ActiveEnterTimestampMonotonic": began
                }[name]  # fmt: skip
            case ("dpkg-query", _):
                return (0, "installed") if unit in self.installed else (1, "")
        self.said.append(" ".join(command[:1] + command[-1:] if command[0] == "apt-get" else command))
        match command[:2]:
            case ("systemctl", "restart"):
                self.active |= {unit} if self.stays else set()
                self.began[unit] = round(time.monotonic() * 1e6)
            case ("systemctl", "stop"):
                self.active -= {unit}
            case ("apt-get", _):
                self.installed -= {unit}
        return 0, ""

    def apply(self, **wish: Any) -> list[str]:
        self.said.clear()
        return monitoring_settings.apply(self.system, {**NOTHING, **wish})

    def check(self, **wish: Any) -> dict[str, list[str]]:
        return monitoring_settings.check(self.system, {**NOTHING, **wish})

    def unit(self, name: str, text: str = "x") -> None:
        path = self.folder / "units" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def installs(self, package: str) -> None:
        """As install_package.py does."""
        self.installed.add(package)
        (self.folder / "undo/packages.json").write_text(json.dumps({package: {"added": [package], "before": {}}}))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def prometheus(rules: str = "groups: []\n") -> dict[str, Any]:
    files = {**FILES, "rules.yml": rules}
    return {"digest": digest_of(files), "files": files}


def test_a_host_of_which_nothing_is_wished_is_left_alone(machine: Machine) -> None:
    machine.installed |= {"prometheus", "prometheus-node-exporter"}
    assert machine.check() == {"differences": [], "missing": [], "foreign": []}
    assert machine.apply() == []
    assert machine.said == []


def test_the_exporter_is_started_once_and_again_when_what_it_is_told_changes(machine: Machine) -> None:
    machine.unit("tinderbox-exporter.service")
    assert machine.apply(exporter=True) == []
    assert "systemctl restart tinderbox-exporter.service" in machine.said
    assert machine.check(exporter=True)["differences"] == []
    (machine.folder / "etc/monitoring.json").write_text(json.dumps({"file": str(machine.folder / "other/x.prom")}))
    assert len(machine.check(exporter=True)["differences"]) == 1
    machine.apply(exporter=True)
    machine.active.clear()
    assert machine.check(exporter=True)["differences"] == ["tinderbox-exporter.service does not run"]


def test_one_that_was_started_with_an_edited_file_is_started_anew_once_that_is_put_back(machine: Machine) -> None:
    machine.unit("tinderbox-exporter.service")
    machine.apply(exporter=True)
    machine.began["tinderbox-exporter.service"] -= 10_000_000
    # As it was noted, but younger than the start.
    machine.unit("tinderbox-exporter.service")
    assert len(machine.check(exporter=True)["differences"]) == 1
    machine.apply(exporter=True)
    assert machine.check(exporter=True)["differences"] == []


def test_one_that_does_not_stay_is_told_and_tried_again(machine: Machine) -> None:
    machine.unit("tinderbox-exporter.service")
    machine.stays = False
    (failed,) = machine.apply(exporter=True)
    assert failed.startswith("tinderbox-exporter.service does not stay up; its last words:")
    machine.stays = True
    assert machine.check(exporter=True)["differences"]
    assert machine.apply(exporter=True) == []


def test_a_package_is_missing_foreign_or_ours(machine: Machine) -> None:
    wish = {"node_exporter": True, "prometheus": {"digest": "d1"}}
    assert machine.check(**wish)["missing"] == ["prometheus-node-exporter", "prometheus"]
    assert machine.check(**wish)["foreign"] == []
    machine.installed.add("prometheus")
    assert machine.check(**wish)["foreign"] == ["prometheus"]
    machine.installs("prometheus")
    assert machine.check(**wish)["foreign"] == []


def test_prometheus_gets_a_configuration_that_was_checked_and_reloads_the_next(machine: Machine) -> None:
    machine.installs("prometheus")
    assert machine.apply(prometheus=prometheus()) == []
    assert machine.said[-1] == "systemctl restart prometheus.service"
    etc = machine.folder / "etc"
    assert (etc / "prometheus/rules.yml").read_text() == FILES["rules.yml"]
    assert machine.check(prometheus=prometheus())["differences"] == []
    assert machine.apply(prometheus=prometheus("# other\n")) == []
    assert machine.said == ["systemctl reload prometheus.service"]
    assert (etc / "prometheus/rules.yml").read_text() == "# other\n"
    assert len(list(etc.glob("prometheus*"))) == 2
    # What is edited there is found, and put back.
    (etc / "prometheus/rules.yml").write_text("# mine\n")
    assert machine.check(prometheus=prometheus("# other\n"))["differences"] == ["Prometheus has another configuration"]
    assert machine.apply(prometheus=prometheus("# other\n")) == []
    assert (etc / "prometheus/rules.yml").read_text() == "# other\n"


def test_a_configuration_that_promtool_refuses_leaves_the_former_in_force(machine: Machine) -> None:
    machine.installs("prometheus")
    machine.apply(prometheus=prometheus())
    machine.promtool(fails=True)
    (failed,) = machine.apply(prometheus=prometheus("# other\n"))
    assert "the former one stays in force" in failed
    assert "asked for check config" in failed
    assert machine.said == []
    assert prometheus_files.in_force(machine.folder / "etc") == prometheus()["digest"]
    assert len(list((machine.folder / "etc").glob("prometheus*"))) == 2


def test_what_a_cut_run_left_half_made_goes_with_the_next(machine: Machine) -> None:
    machine.installs("prometheus")
    left = machine.folder / "etc/prometheus-new-abc"
    left.mkdir()
    # As after a kill before the link had its name, too.
    (machine.folder / "etc/.prometheus.new").symlink_to(left.name)
    assert machine.apply(prometheus=prometheus()) == []
    assert not left.exists()
    assert prometheus_files.in_force(machine.folder / "etc") == prometheus()["digest"]


def test_undone_it_is_as_before_but_for_what_prometheus_has_stored(machine: Machine) -> None:
    for package in ("prometheus",):
        machine.installs(package)
    machine.unit("tinderbox-exporter.service")
    machine.unit("multi-user.target.wants/tinderbox-exporter.service")
    machine.apply(exporter=True, prometheus=prometheus())
    assert len(machine.check()["differences"]) == 2
    assert machine.apply() == []
    assert "apt-get prometheus" in machine.said
    assert machine.installed == set()
    assert [path.name for path in (machine.folder / "etc").iterdir()] == ["monitoring.json"]
    assert list((machine.folder / "units/multi-user.target.wants").iterdir()) == []
    assert json.loads((machine.folder / "undo/system.json").read_text()) == {}
    assert json.loads((machine.folder / "undo/packages.json").read_text()) == {}
    assert machine.check()["differences"] == []


def test_one_that_fails_keeps_none_of_the_others_back(machine: Machine) -> None:
    machine.installs("prometheus")
    machine.unit("tinderbox-exporter.service")
    machine.promtool(fails=True)
    (failed,) = machine.apply(exporter=True, prometheus=prometheus())
    assert "promtool" in failed
    assert "tinderbox-exporter.service" in machine.active


def test_after_a_start_it_is_asked_whether_it_answers_and_else_not(machine: Machine) -> None:
    machine.unit("tinderbox-exporter.service")
    (failed,) = machine.apply(exporter=True, asked_at="http://127.0.0.1:9/metrics")
    assert failed.startswith("http://127.0.0.1:9/metrics tells ")
    assert machine.apply(exporter=True, asked_at="http://127.0.0.1:9/metrics") == []


def test_wrong_words_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert monitoring_settings.main(["once"]) == 2
    assert "check|apply" in capsys.readouterr().err
