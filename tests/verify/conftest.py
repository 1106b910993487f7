"""The suite that users run against their own hosts: `pytest tests/verify` (fleet file: $TINDERBOX_FLEET).

`--limit host,group` asks only these.

It asks the hosts themselves over SSH. All that it changes is a note of weights found wrong, so that the next run
repairs them. Every check says which host, what is wrong and what to do.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import testinfra
from testinfra.host import Host

from modules.converge.limits import hosts_within, limit_problem, names_of
from modules.fleet import FleetError, HostPlan, load_fleet, plan_for

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Spark:
    """A host under verification: what it should be, and a connection that asks what it is."""

    name: str
    plan: HostPlan
    host: Host

    def root(self, command: str, *arguments: str) -> str:
        """Run a command as root; its standard output. Fails the test, naming the host, when it does not exit with 0."""
        with self.host.sudo():
            result = self.host.run(command, *arguments)
        assert result.succeeded, f"{self.name}: `{command}` ended with {result.rc}: {result.stderr.strip()}"
        return str(result.stdout)


@cache
def _inventory() -> dict[str, dict[str, object]]:
    pyinfra = Path(sys.executable).with_name("pyinfra")
    command = [str(pyinfra), "inventory.py", "debug-inventory", "--json"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        raise pytest.UsageError(finished.stderr)
    return {entry["name"]: entry["data"] for entry in json.loads(finished.stdout)}


def _ssh_arguments(data: dict[str, object]) -> str:
    options = {
        "StrictHostKeyChecking": data.get("ssh_strict_host_key_checking"),
        "UserKnownHostsFile": data.get("ssh_known_hosts_file"),
        "ConnectTimeout": 10,
        "BatchMode": "yes",
    }
    return " ".join(f"-o {key}={value}" for key, value in options.items() if value is not None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """As `python -m modules.converge` has it."""
    parser.addoption("--limit", action="append", default=[], help="ask only these hosts or groups; may repeat")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Refuse a wrong fleet file or limit in its own words; show what a failed check says, not how it is written."""
    try:
        problem = limit_problem(_limits(config), load_fleet())
    except FleetError as error:
        raise pytest.UsageError(str(error)) from None
    if problem is not None:
        raise pytest.UsageError(problem)
    if config.option.tbstyle == "auto":
        config.option.tbstyle = "line"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test a host of the fleet, within the limit."""
    if "spark" in metafunc.fixturenames:
        hosts = hosts_within(names_of(_limits(metafunc.config)), load_fleet())
        metafunc.parametrize("spark", sorted(hosts), indirect=True, scope="session")


def _limits(config: pytest.Config) -> list[str]:
    found: list[str] = config.getoption("limit", default=[])
    return found


@pytest.fixture(scope="session")
def control_folder() -> Iterator[Path]:
    """Short on purpose: a control socket's path may have 108 bytes."""
    with tempfile.TemporaryDirectory(prefix="tb-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, control_folder: Path) -> Spark:
    """Connect to one host of the fleet, over one SSH connection for the whole suite."""
    name = str(request.param)
    data = _inventory()[name]
    host = testinfra.get_host(
        f"ssh://{data['ssh_user']}@{data['ssh_hostname']}:{data['ssh_port']}",
        ssh_identity_file=data.get("ssh_key"),
        ssh_config=data.get("ssh_config_file"),
        controlpath=str(control_folder / "%%C"),
        ssh_extra_args=_ssh_arguments(data),
    )
    try:
        host.run("true")
    except RuntimeError as error:
        said = re.search(r"_stderr=b['\"](.*?)['\"]\)?", str(error))
        pytest.fail(
            f"{name}: unknown, it does not let us in ({said[1] if said else error}); `make converge` says why",
            pytrace=False,
        )
    return Spark(name, plan_for(name), host)
