"""What goes wrong in a build ends with a clear error and its remedy, and the server that is running does not notice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.lab_driver import Lab, Run
from tests.lab.served import Served
from tests.lab.tiny_recipe import fleet_with, tiny

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST = "spark-1"
HEAD = '{% import "_site.j2" as site -%}\nARG BASE={{ base }}\nFROM ${BASE} AS tools\n'
TAIL = "COPY tinderbox-image.json /etc/tinderbox-image.json\n"
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


@pytest.fixture(autouse=True)
def undisturbed(served: Served) -> Iterator[None]:
    """The server and its image, before and after."""
    before = state(served)
    yield
    assert state(served) == before
    assert served.reply()


def state(served: Served) -> tuple[str, str]:
    return served.invocation(), image_of(served)


def image_of(served: Served) -> str:
    return served.lab.ssh(HOST, f"sudo docker inspect -f '{{{{.Image}}}}' {served.container}").stdout.strip()


def stage(lab: Lab, fleet: Path) -> Run:
    return lab.converge("deploys/image.py", fleet=fleet)


def faulty(lab: Lab, name: str, dockerfile: str, **fields: Any) -> Run:
    """The image stage over a recipe that can not be built."""
    recipe = tiny(lab, HEAD + dockerfile + TAIL, name=name, **{"compiler_gib": 0, **fields})
    run = stage(lab, fleet_with(lab, HOST, recipe, name=f"fleet-{name}"))
    assert run.rc == 1, run.text
    assert f"{HOST}: FAILED at Image | Image {name}" in run.text
    assert "the whole log, on the host: /var/lib/tinderbox/jobs/image-" in run.text
    return run


def shown(run: Run) -> list[str]:
    """The lines of the job's log that the operator is shown."""
    lines = run.stderr.splitlines()
    begin = next(number for number, line in enumerate(lines) if "Its log ends:" in line)
    return [line for line in lines[begin + 1 :] if line.partition("] ")[2].startswith("    ")]


def test_the_git_remote_is_gone(lab: Lab) -> None:
    pins = {"kernels": {"repository": "https://pypi.lab/gone/kernels", "commit": "a" * 40}}

    run = faulty(lab, "tiny-git", CLONE, pins=pins)

    assert "failed after" in run.text
    print(run.text)
