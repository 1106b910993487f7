"""Check on lab hosts: every finding that a lab host can have is made, told, and goes by its remedy as it stands."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from modules.check.document import CheckDocument, FindingPart, HostCheck
from tests.lab.debian_packages import offered
from tests.lab.finding_cases import HOST_CASES, SWEEPS, UNITS, unit
from tests.lab.lab_driver import Lab, Run
from tests.lab.upgrading import Upgraded

pytestmark = pytest.mark.lab
HOST = "spark-2"
_GPU = "/etc/tinderbox-lab/gpu.json"


def checked(lab: Lab, fleet: Path) -> CheckDocument:
    """What `make check JSON=1` writes."""
    run = lab.tinderbox([sys.executable, "-m", "modules.check", "--json"], fleet=fleet)
    assert run.stdout, run.text
    document = CheckDocument.model_validate_json(run.stdout)
    assert document.status == run.rc
    assert "Traceback" not in run.text
    return document


def of_host(document: CheckDocument) -> HostCheck:
    (host,) = [one for one in document.hosts if one.host == HOST]
    return host


def foreseen_in(run: Run) -> list[str]:
    """What a deploy would do, as a run tells it, but for the free space, which moves."""
    told = [line.partition("] check: ")[2] for line in run.stderr.splitlines() if "] check: " in line]
    return [line.partition(" in reserve, ")[0] for line in told]


def root(lab: Lab, command: str, *, check: bool = True) -> Run:
    """As the administrator at its console: whatever sudo asks."""
    argv = ["docker", "exec", lab.layout.container(HOST), "bash", "-c", command]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0 or not check, f"{command}\n{done.stdout}{done.stderr}"
    return Run(done.returncode, done.stdout, done.stderr)


def fleet_with(lab: Lab, name: str, *changes: Mapping[str, object]) -> Path:
    """The fleet file with that host alone, and keys `a.b` of its defaults changed; None takes one away."""

    def change(content: dict[str, Any]) -> None:
        content["hosts"] = {HOST: content["hosts"][HOST]}
        for key, value in (item for each in changes for item in each.items()):
            *folders, last = key.split(".")
            place = content["defaults"]
            for folder in folders:
                place = place.setdefault(folder, {})
            if value is None:
                place.pop(last)
            else:
                place[last] = value

    return lab.write_fleet(f"check-{name.replace(' ', '-')}", change)


def reboot(lab: Lab) -> None:
    """As its owner; who starts a container again is not systemd."""
    lab.ssh(HOST, "sudo reboot", check=False)
    subprocess.run(["docker", "wait", lab.layout.container(HOST)], check=True, capture_output=True, timeout=120)
    lab.command("up")


def apply(lab: Lab, finding: FindingPart, fleet: Path) -> None:
    """The commands of a remedy, each as it stands."""
    for command in finding.commands:
        assert f"`{command}`" in finding.remedy
        if command == "sudo reboot":
            reboot(lab)
        elif command.startswith("pyinfra "):
            run = lab.tinderbox(shlex.split(command), fleet=fleet)
            assert run.rc == 0, run.text
        elif finding.id == "sudo-password":
            root(lab, command)
        else:
            lab.ssh(HOST, command)


@contextmanager
def made(lab: Lab, sweep: str, tmp_path: Path) -> Iterator[None]:
    """While this lasts, what the sweep's findings are about is so, unless it was put right."""
    cases = [case for case in HOST_CASES.values() if case.sweep == sweep]
    before = json.loads(lab.read(HOST, _GPU))
    with ExitStack() as stack:
        if sweep in {"driver", "restart"}:
            Upgraded(lab, HOST).offer_upgrades(install=False)
        for case in cases:
            stack.callback(root, lab, case.undo, check=False)
            root(lab, case.make)
        if sweep == "python":
            # What went along with it comes back at the end, while there is a source for it.
            stack.enter_context(offered(lab, HOST, "python3-venv", tmp_path))
            stack.callback(root, lab, "apt-get -qq install -y python3-venv")
            root(lab, "apt-get -qq update")
        changes = {key: value for case in cases for key, value in case.gpu.items()}
        if changes:
            lab.write(HOST, _GPU, json.dumps({**before, **changes}))
            stack.callback(lab.write, HOST, _GPU, json.dumps(before))
        yield


@pytest.mark.long
@pytest.mark.parametrize("sweep", SWEEPS)
def test_every_finding_is_found_and_goes_by_its_remedy_word_for_word(lab: Lab, sweep: str, tmp_path: Path) -> None:
    cases = {id_: case for id_, case in HOST_CASES.items() if case.sweep == sweep}
    fleet = fleet_with(lab, sweep, *(case.keys for case in cases.values()))
    with made(lab, sweep, tmp_path):
        found = {one.id: one for one in of_host(checked(lab, fleet)).findings}
        assert set(cases) <= set(found), "not all of what was made is found"
        if sweep == "of the lab after":
            assert not found["gpu-simulated"].remedy
            return
        if sweep == "other":
            # The remedy takes the host out of the fleet file.
            assert "take the host out of the fleet file" in found["gpu-other"].remedy
            assert HOST not in [one.host for one in checked(lab, lab.fleet_of("spark-1")).hosts]
            return
        for id_ in cases:
            apply(lab, found[id_], fleet)
        settings = [found[id_].settings for id_, case in cases.items() if not found[id_].commands and not case.cured]
        cured = fleet_with(lab, sweep, *(case.keys for case in cases.values()), *settings,
                           *(case.cured for case in cases.values()))  # fmt: skip
        left = [one.id for one in of_host(checked(lab, cured)).findings]
        assert not set(cases) & set(left), "a remedy does not make its finding go away"
        if "desktop" in cases:
            run = lab.pyinfra("deploys/system.py", "-y", fleet=cured)
            assert run.rc == 0, run.text
            assert lab.ssh(HOST, "systemctl is-active gdm", check=False).stdout.strip() != "active"
            lab.pyinfra("deploys/system.py", "-y", fleet=fleet_with(lab, sweep))


def test_a_fleet_is_told_host_by_host_and_nothing_is_changed(lab: Lab) -> None:
    def with_one_that_is_gone(content: dict[str, Any]) -> None:
        content["hosts"] = {HOST: content["hosts"][HOST], "gone": {**content["hosts"][HOST], "ssh": {"port": 1}}}

    fleet = lab.write_fleet("check-gone", with_one_that_is_gone)
    root(lab, unit("web.service", "/usr/bin/python3 -m http.server --bind 127.0.0.1 8000"))
    try:
        files = "find /etc /usr/local /var/lib/tinderbox /home -type f -printf '%p %s %T@\\n' 2>/dev/null | sort"
        # Of a user's very first sudo there sudo itself leaves a mark in the home.
        lab.ssh(HOST, "sudo true")
        before = root(lab, files, check=False).stdout
        run = lab.tinderbox([sys.executable, "-m", "modules.check", "--json"], fleet=fleet)
        assert run.rc == 2, run.text
        assert root(lab, files, check=False).stdout == before
        document = CheckDocument.model_validate_json(run.stdout)
        gone, host = document.hosts[1], of_host(document)
        assert (gone.verdict, host.verdict) == ("unknown", "blocked")
        assert any("Could not connect" in line for line in gone.why)
        assert any("nothing lets us in" in line for line in gone.why)
        (taken,) = [one for one in host.findings if one.id == "port-taken"]
        assert "web.service" in taken.measured
        assert {move.kind for move in host.moves} == {"weights", "image", "encodings"}
        assert [plan.service for plan in host.memory] == ["gpt-oss"]
        for line in ("check: blocked (1 blocked, 1 note); to move: ", "memory: gpt-oss takes", "gone: unknown"):
            assert line in run.stderr
        # The other way that the remedy names, as it stands.
        assert f"`services.gpt-oss.port: {taken.settings['services.gpt-oss.port']}`" in taken.remedy
        moved = fleet_with(lab, "port", taken.settings)
        assert yaml.safe_load(moved.read_text())["defaults"]["services"]["gpt-oss"]["port"] != 8000
        document = checked(lab, moved)
        assert (document.status, of_host(document).verdict) == (0, "ready")
        # A deploy begins with the same text, and the host is not stopped here for what a later stage refuses.
        deploy = lab.pyinfra("deploys/preflight.py", "--dry", fleet=fleet_with(lab, "plain"))
        assert deploy.rc == 0, deploy.text
        begun = foreseen_in(deploy)
        assert begun
        assert begun == foreseen_in(run)
    finally:
        root(lab, f"systemctl disable --now web; rm -f {UNITS}/web.service; systemctl daemon-reload", check=False)
