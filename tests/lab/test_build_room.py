"""A build that lacks memory: whose is taken for it, and that a server which made room is back afterwards."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.builds import await_job, check_failed, is_at, stage, write_single
from tests.lab.lab_driver import Lab
from tests.lab.served import Served

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST = "spark-1"


def short_of_memory(lab: Lab, name: str, dockerfile: str, *, may_stop: bool) -> Path:
    """A fleet file whose build lacks memory for its compiler, unless the server's comes to what is there."""
    meminfo = lab.ssh(HOST, "cat /proc/meminfo").stdout
    available = next(int(line.split()[1]) for line in meminfo.splitlines() if line.startswith("MemAvailable:")) / 2**20
    fleet, _ = write_single(lab, HOST, name, dockerfile, compiler_gib=1.0)

    def limits(content: dict[str, Any]) -> None:
        content["defaults"]["build"] = {"keep_gib": round(available + 0.3, 2), "stop_engines": may_stop}

    content = yaml.safe_load(fleet.read_text())
    limits(content)
    fleet.write_text(yaml.safe_dump(content, sort_keys=False))
    return fleet


@pytest.mark.usefixtures("undisturbed")
def test_no_server_is_stopped_for_its_memory_without_leave(lab: Lab, served: Served) -> None:
    run = stage(lab, short_of_memory(lab, "tiny-short", "RUN true\n", may_stop=False))

    check_failed(run, HOST, "tiny-short")
    assert "memory is short: one compiler of this recipe takes 1 GiB" in run.text
    assert f"{served.unit} can make room: set build.stop_engines: true in the fleet file" in run.text


def test_with_leave_the_server_is_stopped_for_the_build_and_ready_again_after_it(lab: Lab, served: Served) -> None:
    invocation, image = served.invocation(), served.image()
    fleet = short_of_memory(lab, "tiny-room", "RUN sleep 5\n", may_stop=True)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(stage, lab, fleet)
        await_job(lab, HOST, is_at("sleep"))
        assert served.state() == "inactive"
        run = running.result()

    assert run.rc == 0, run.text
    assert served.state() == "active"
    assert served.reply()
    assert served.image() == image
    assert served.invocation() != invocation


def test_a_job_that_is_killed_does_not_leave_the_server_down(lab: Lab, served: Served) -> None:
    fleet = short_of_memory(lab, "tiny-killed", "RUN sleep 60\n", may_stop=True)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(stage, lab, fleet)
        job = await_job(lab, HOST, is_at("sleep"))
        lab.ssh(HOST, f"sudo systemctl kill --signal=KILL tinderbox-job-{Path(job.directory).name}.service")
        run = running.result()

    check_failed(run, HOST, "tiny-killed")
    assert "killed by SIGKILL" in run.text
    served.await_ready()
    assert served.reply()


@pytest.mark.parametrize("cut", ["power", "reboot"])
def test_a_host_that_is_restarted_meanwhile_has_the_server_back(lab: Lab, served: Served, cut: str) -> None:
    """By its boot, and by the next run, which also ends what the build has begun."""
    image = served.image()
    fleet = short_of_memory(lab, f"tiny-{cut}", "RUN sleep 20\n", may_stop=True)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(stage, lab, fleet)
        await_job(lab, HOST, is_at("sleep"))
        assert served.state() == "inactive"
        if cut == "power":
            lab.crash(HOST)
        else:
            lab.restart(HOST)
        running.result()
    again = stage(lab, fleet)

    assert again.rc == 0, again.text
    served.await_ready()
    assert served.image() == image
    assert served.reply()
    assert "no change on any host" in stage(lab, fleet).stderr
