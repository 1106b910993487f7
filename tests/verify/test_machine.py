"""The machine itself: what preflight asks, asked again."""

from __future__ import annotations

import json

from modules.facts.machine import Machine
from modules.fleet import load_fleet
from modules.fleet.lock import read_lock
from roles.preflight import asked
from roles.preflight.finding import blocking
from roles.preflight.judge import judge
from tests.verify.conftest import Spark


def test_nothing_blocks_the_machine(spark: Spark) -> None:
    """Driver, kernel, memory, clocks and disk are as the fleet file wants them."""
    fact = Machine()
    command = fact.command(**asked(spark.plan))
    state = fact.process(spark.root(command.get_raw_value()).splitlines())
    assert state is not None, f"{spark.name}: the machine did not tell what it is"
    found = blocking(judge(state, spark.plan, read_lock(load_fleet().path)))
    told = "; ".join(f"{item.what}: {item.measured}, wanted {item.wanted}" for item in found)
    assert not found, f"{spark.name}: {told}"


def test_docker_rotates_logs_and_knows_the_nvidia_runtime(spark: Spark) -> None:
    """An engine's log must not fill the disk, and a GPU engine needs the runtime."""
    settings = json.loads(spark.root("cat /etc/docker/daemon.json"))
    wanted = spark.plan.settings.runtime
    assert settings.get("log-opts") == {"max-size": wanted.log_max_size, "max-file": str(wanted.log_max_files)}, (
        f"{spark.name}: /etc/docker/daemon.json does not rotate logs as the fleet file wants; run deploys/runtime.py"
    )
    runtimes = spark.root("docker info --format '{{json .Runtimes}}'")
    assert "nvidia" in json.loads(runtimes), f"{spark.name}: docker has no nvidia runtime; run deploys/runtime.py"
