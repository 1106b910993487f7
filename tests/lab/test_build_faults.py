"""What goes wrong in a build ends with a clear error and its remedy, and the server that is running does not notice."""

from __future__ import annotations

import shlex
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from tests.lab.builds import (
    add_image,
    await_job,
    check_failed,
    is_at,
    limit_memory,
    shown,
    stage,
    tag_on,
    write_single,
)
from tests.lab.killed_run import find_job
from tests.lab.lab_driver import Lab, Run
from tests.lab.served import Served

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST = "spark-1"
COMMIT = "a" * 40
# As the recipe of the MXFP4 image fetches its sources.
CLONE = """\
FROM tools AS kernels
WORKDIR /src
RUN {{ site.mounts() }} \\
    {{ site.enter() }}; \\
    git clone --filter=blob:none --no-checkout {{ pins["kernels"].repository }} kernels; \\
    git -C kernels checkout --detach {{ pins["kernels"].commit }}
FROM tools
COPY --from=kernels /src /src
"""


def faulty(lab: Lab, name: str, dockerfile: str, **fields: Any) -> Run:
    """The image stage over a recipe that can not be built."""
    fleet, _ = write_single(lab, HOST, name, dockerfile, **fields)
    run = stage(lab, fleet)
    check_failed(run, HOST, name)
    return run


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize(
    ("host", "cause", "words"),
    [
        ("pypi.lab", "git-remote-gone", "fatal: repository 'https://pypi.lab/gone/kernels/' not found"),
        ("gone.lab", "name-not-resolved", "Could not resolve host: gone.lab"),
    ],
)
def test_the_git_remote_is_gone(lab: Lab, host: str, cause: str, words: str) -> None:
    pins = {"kernels": {"repository": f"https://{host}/gone/kernels", "commit": COMMIT}}

    run = faulty(lab, "tiny-git", CLONE, pins=pins)

    assert " in step kernels: RUN git clone --filter=blob:none" in run.text
    assert any(words in line for line in shown(run))
    assert f"known failure ({cause}): " in run.text


@pytest.mark.usefixtures("undisturbed")
def test_the_base_image_is_missing(lab: Lab) -> None:
    run = faulty(lab, "tiny-base", "", base="python:3.99")

    assert "base image registry.lab:5000/python:3.99: failed" in run.text
    assert "known failure (base-image-missing): " in run.text


@pytest.mark.usefixtures("undisturbed")
@pytest.mark.parametrize(("status", "cause"), [(401, "registry-login"), (429, "registry-rate-limit")])
def test_the_registry_refuses(lab: Lab, status: int, cause: str) -> None:
    add_image(lab, "refused", b"content")
    fault = {"host": "registry.lab", "path": "/v2/refused/manifests/", "status": status}
    fault["body"] = {401: '{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}'}.get(
        status, '{"errors":[{"code":"TOOMANYREQUESTS","message":"You have reached your pull rate limit."}]}'
    )
    fault["headers"] = {"Content-Type": "application/json"}

    with lab.faults(fault):
        run = faulty(lab, "tiny-refused", "", base="refused:1")

    assert f"({cause}): " in run.text


@pytest.mark.usefixtures("undisturbed")
def test_a_corrupted_layer_is_not_taken_and_the_next_run_has_the_right_one(lab: Lab) -> None:
    name = f"flipped-{uuid4().hex[:8]}"
    layer = add_image(lab, name, name.encode() * 20_000)
    fleet, recipe = write_single(lab, HOST, "tiny-flipped", "", base=f"{name}:1")

    with lab.faults({"host": "registry.lab", "path": f"/blobs/{layer}", "flip_at": 300}):
        broken = stage(lab, fleet)

    check_failed(broken, HOST, "tiny-flipped")
    assert "known failure (layer-corrupted): " in broken.text
    whole = stage(lab, fleet)
    assert whole.rc == 0, whole.text
    lab.ssh(HOST, f"sudo docker image inspect {tag_on(lab, HOST, recipe)}")


@pytest.mark.usefixtures("undisturbed")
def test_the_disk_is_full_in_the_build(lab: Lab) -> None:
    run = faulty(lab, "tiny-full", "RUN cat /proc/self/status > /dev/full\n")

    assert "in step RUN cat /proc/self/status > /dev/full" in run.text
    assert "known failure (no-space): " in run.text


@pytest.mark.usefixtures("undisturbed")
def test_an_image_that_can_not_fit_is_refused_before_it_is_begun(lab: Lab) -> None:
    run = faulty(lab, "tiny-huge", "RUN true\n", size_gib=1_000_000)

    assert "GiB free, the image takes about 1000000" in run.text


@pytest.mark.usefixtures("undisturbed")
def test_the_kernel_kills_a_compiler_for_memory(lab: Lab) -> None:
    program = "import time; time.sleep(20); x = bytearray(800 << 20); print(len(x))"
    fleet, _ = write_single(lab, HOST, "tiny-oom", f"RUN date +%N > /dev/null && python3 -c {shlex.quote(program)}\n")

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(stage, lab, fleet)
        await_job(lab, HOST, is_at("import time"))
        limit_memory(lab, HOST, "^python3 -c import time", 60 << 20)
        run = running.result()

    check_failed(run, HOST, "tiny-oom")
    assert any("Killed" in line for line in shown(run))
    assert "the kernel killed a step of the build because memory ran out" in run.text
    assert "known failure (build-oom-kill): " in run.text
    assert "(compiler-killed)" not in run.text
    assert "build.stop_engines" in run.text


def test_dockerd_is_restarted_in_the_middle_and_the_next_run_finishes(lab: Lab, served: Served) -> None:
    image = served.image()
    fleet, _ = write_single(lab, HOST, "tiny-restart", "RUN sleep 25\nRUN echo done > /done\n")

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(stage, lab, fleet)
        await_job(lab, HOST, is_at("sleep"))
        lab.ssh(HOST, "sudo systemctl restart docker")
        run = running.result()

    check_failed(run, HOST, "tiny-restart")
    assert "known failure (dockerd-restarted): " in run.text
    again = stage(lab, fleet)
    assert again.rc == 0, again.text
    # A restart of dockerd ends every container; the unit brings the server back, from the same image.
    served.await_ready()
    assert served.image() == image
    assert served.reply()


@pytest.mark.usefixtures("undisturbed")
def test_a_cut_connection_is_made_anew_and_the_job_goes_on(lab: Lab) -> None:
    fleet, recipe = write_single(lab, HOST, "tiny-cut", "RUN sleep 15\n")

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(stage, lab, fleet)
        before = await_job(lab, HOST, is_at("sleep"))
        # Every session, this command's own among them.
        lab.ssh(HOST, "sudo pkill -x -f 'sshd: spark.*'", check=False)
        time.sleep(1)
        run = running.result()

    assert run.rc == 0, run.text
    after = find_job(lab, HOST, "image")
    assert after is not None
    assert (after.directory, after.started, after.state) == (before.directory, before.started, "succeeded")
    lab.ssh(HOST, f"sudo docker image inspect {tag_on(lab, HOST, recipe)}")


@pytest.mark.usefixtures("undisturbed", "side_by_side")
def test_of_two_different_builds_the_second_waits_and_says_for_which(lab: Lab) -> None:
    first_fleet, first = write_single(lab, HOST, "tiny-first", "RUN sleep 20\n")
    second_fleet, _ = write_single(lab, HOST, "tiny-second", "RUN echo second > /second\n")

    with ThreadPoolExecutor(2) as pool:
        first_run = pool.submit(stage, lab, first_fleet)
        await_job(lab, HOST, is_at("sleep"))
        second_run = pool.submit(stage, lab, second_fleet)
        runs = first_run.result(), second_run.result()

    assert [run.rc for run in runs] == [0, 0], runs[1].text
    assert f"waiting for the build of {tag_on(lab, HOST, first)} to end" in runs[1].text
    assert "waiting for" not in runs[0].text
