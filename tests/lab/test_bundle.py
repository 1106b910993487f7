"""A bundle made on one host brings another to serving, while nothing outside answers; what is wrong with it is told."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from modules.catalog import load_catalog
from modules.fleet.lock import lock_path, read_lock
from tests.lab.builds import await_job, is_at
from tests.lab.bundled import FROM, TO, USB, export_killed, harmed, landed, path_in, weights_import_killed
from tests.lab.lab_driver import Lab, Run
from tests.lab.served import Served

pytestmark = [pytest.mark.lab, pytest.mark.long]
STATE = "sudo python3 /usr/local/lib/tinderbox/bundle_state.py"
# What is neither hub, index, encodings nor registry of images: apt is the distribution's business.
OUTSIDE = ("hub.lab", "pypi.lab", "encodings.lab", "registry.lab")
REFUSED = [{"host": host, "status": 503, "body": "closed"} for host in OUTSIDE]


@dataclass(frozen=True)
class Exported:
    """A whole bundle on `spark-1`, exported by a run that was cut in the middle of the image, and the next."""

    fleet: Path
    cut: Run
    starts: int
    run: Run


MODEL = load_catalog().models["lab-gpt-oss-tiny"]


def only(content: dict[str, Any], host: str) -> None:
    """One host, whose model's revision is a branch, so that there is something to resolve; speed is no part of this."""
    content["hosts"] = {host: content["hosts"][host]}
    for service in content["defaults"]["services"].values():
        service |= {"gate": None, "model": MODEL.model_dump(mode="json") | {"revision": "main"}}


@pytest.fixture(scope="module")
def exported(lab: Lab) -> Iterator[Exported]:
    """The disk is a folder of the host's."""

    def change(content: dict[str, Any]) -> None:
        only(content, FROM)
        content["defaults"]["bundle"] = {"export_to": USB}

    fleet = lab.write_fleet("fleet-export", change)
    converged = lab.converge(fleet=fleet, timeout_s=1800)
    assert converged.rc == 0, converged.text
    lab.ssh(FROM, f"sudo rm -rf {USB} && sudo mkdir -p {Path(USB).parent}")
    cut, starts = export_killed(lab, fleet)
    run = lab.converge("deploys/bundle.py", fleet=fleet)
    yield Exported(fleet, cut, starts, run)
    lab.ssh(TO, "sudo systemctl disable --now tinderbox-gpt-oss", check=False)
    for host in (FROM, TO):
        lab.ssh(host, f"sudo rm -rf {USB}", check=False)


def test_an_export_that_is_killed_fails_its_run_and_never_looks_whole(exported: Exported) -> None:
    assert exported.cut.rc == 1
    assert "bundle to /mnt/usb/tinderbox: failed after" in exported.cut.text
    assert "SIGKILL" in exported.cut.text


def test_the_next_run_finishes_it_and_the_one_after_changes_nothing(lab: Lab, exported: Exported) -> None:
    assert exported.run.rc == 0, exported.run.text
    found = json.loads(lab.ssh(FROM, f"{STATE} {USB} --hash").stdout)
    assert (found["problems"], found["key"] is None) == ([], False)
    left = lab.ssh(FROM, f"sudo find {USB} -name '*.part*' -o -name '*.new'").stdout
    assert left == ""

    again = lab.converge("deploys/bundle.py", fleet=exported.fleet)

    assert again.rc == 0, again.text
    assert "no change on any host" in again.stderr


def test_a_bundle_tells_what_is_in_it(lab: Lab, exported: Exported) -> None:
    manifest = json.loads(lab.read(FROM, f"{USB}/manifest.json"))
    (image,), (model,) = manifest["images"], manifest["models"]
    plan = Served(lab, exported.fleet, FROM).plan

    assert image["name"].startswith("tinderbox/vllm-cpu:")
    assert image["recipe"] == image["name"].rpartition(":")[2]
    assert image["labels"]["org.opencontainers.image.title"] == "vllm-cpu"
    assert (model["repository"], model["commit"]) == (MODEL.repository, MODEL.revision)
    assert "main" in model["revisions"]
    assert {each["name"] for each in manifest["encodings"]} == set(plan.encodings)
    wheels = [file["path"] for file in manifest["files"] if file["path"].startswith("wheels/")]
    assert any("huggingface_hub" in path for path in wheels)
    # No content of the model is there twice.
    blobs = [file for file in manifest["files"] if file["path"].startswith("hub/")]
    assert len(blobs) == len({file["digest"] for file in model["files"]})


@pytest.fixture(scope="module")
def carried(lab: Lab, exported: Exported) -> Path:
    """The bundle on `spark-2`'s disk, and a fleet file without a lock that names it there."""
    assert exported.run.rc == 0, exported.run.text
    send = f"docker exec {lab.layout.container(FROM)} tar -C {USB} -c ."
    take = f"docker exec -i {lab.layout.container(TO)} sh -c 'mkdir -p {USB} && tar -C {USB} -x'"
    subprocess.run(["bash", "-c", f"set -o pipefail; {send} | {take}"], check=True)
    lab.ssh(FROM, f"sudo rm -rf {USB}/images")  # a copy is enough for a small disk
    lab.ssh(TO, f"sudo sh -c {shlex.quote(_EMPTY)}", check=False)

    def change(content: dict[str, Any]) -> None:
        only(content, TO)
        content["defaults"]["network"]["bundle"] = USB

    fleet = lab.write_fleet("fleet-import", change)
    fleet.with_suffix(".lock.yaml").unlink(missing_ok=True)
    for stage in ("cuda", "runtime"):
        run = lab.converge(f"deploys/{stage}.py", fleet=fleet)
        assert run.rc == 0, run.text
    # Else what is said below not to have landed might have been there.
    assert landed(lab, path_in(lab, "wheels/")) == []
    return fleet


# What other tests left on the host.
_EMPTY = """
systemctl disable --now tinderbox-gpt-oss
cd /var/lib/tinderbox && rm -rf tools weights huggingface encodings attestations ledger
docker image rm --force $(docker image ls --quiet --filter label=tinderbox.recipe)
"""


FLIP = "printf x | dd of={file} bs=1 seek=1000 conv=notrunc status=none"


@pytest.mark.parametrize(
    ("stage", "part", "harm", "said"),
    [
        ("encodings", "encodings/o200k_base", FLIP, "o200k_base.tiktoken is published with 446a9538"),
        (
            "encodings",
            "encodings/o200k_base",
            "rm {file}",
            "No such file or directory: '/mnt/usb/tinderbox/encodings/o200k",
        ),
        # The tools come first, and are asked for once.
        ("weights", "wheels/numpy", FLIP, "pip failed: the bundle's /mnt/usb/tinderbox/wheels has not got all"),
        ("weights", "hub/", FLIP, "is altered: copy it again, or export the bundle anew"),
        ("weights", "hub/", "rm {file}", "is missing: copy it again, or export the bundle anew"),
        ("image", "images/", "rm {file}", "is missing: copy it again, or export the bundle anew"),
    ],
)
def test_a_wrong_or_missing_file_is_named_with_what_to_do(
    lab: Lab, carried: Path, stage: str, part: str, harm: str, said: str
) -> None:
    path = path_in(lab, part)
    with harmed(lab, path, harm):
        run = lab.converge(f"deploys/{stage}.py", fleet=carried)

    assert run.rc == 1
    assert said in run.text
    assert USB in run.text
    assert landed(lab, path) == []


def test_weights_whose_import_is_killed_are_nowhere(lab: Lab, carried: Path) -> None:
    path = path_in(lab, "hub/")

    run = weights_import_killed(lab, carried, path)

    assert run.rc == 1
    assert "SIGKILL" in run.text
    assert landed(lab, path) == []


def test_an_image_whose_import_is_killed_is_not_there(lab: Lab, carried: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lab.converge, "deploys/image.py", fleet=carried)
        job = await_job(
            lab, TO, lambda job: is_at("loading image")(job) and job.progress["done"] > 500_000_000, limit_s=400
        )
        lab.ssh(TO, f"sudo systemctl kill --signal=KILL tinderbox-job-{Path(job.directory).name}.service")
        run = running.result()

    assert run.rc == 1
    assert "SIGKILL" in run.text
    assert landed(lab, path_in(lab, "images/")) == []


def test_a_flipped_byte_in_an_image_is_found_before_docker_sees_it(lab: Lab, carried: Path) -> None:
    path = path_in(lab, "images/")
    byte = lab.ssh(TO, f"sudo sh -c 'dd if={USB}/{path} bs=1 skip=1000000000 count=1 status=none | od -An -tu1'").stdout
    write = f"dd of={USB}/{path} bs=1 seek=1000000000 conv=notrunc status=none"
    lab.ssh(TO, f"sudo sh -c \"printf '\\\\$(printf %03o {(int(byte) + 1) % 256})' | {write}\"")

    run = lab.converge("deploys/image.py", fleet=carried)
    lab.ssh(TO, f"sudo sh -c \"printf '\\\\$(printf %03o {int(byte)})' | {write}\"")

    assert run.rc == 1
    assert f"{USB}/{path} is altered: sha256" in run.text
    assert landed(lab, path) == []


def test_the_host_serves_from_the_bundle_and_asks_nothing_outside(lab: Lab, carried: Path) -> None:
    asked = len(lab.requests())
    with lab.faults(*REFUSED):
        run = lab.converge(fleet=carried, timeout_s=1800)
        again = lab.converge(fleet=carried)

    assert run.rc == 0, run.text
    assert [each for each in lab.requests(since=asked, host=TO) if each["host"].partition(":")[0] in OUTSIDE] == []
    assert "no change on any host" in again.stderr
    served = Served(lab, carried, TO)
    served.await_ready()
    assert served.reply()
    manifest = json.loads(lab.read(TO, f"{USB}/manifest.json"))
    found = lab.ssh(TO, f"sudo docker image inspect --format '{{{{.Id}}}}' {manifest['images'][0]['name']}").stdout
    assert found.strip() == manifest["images"][0]["id"]
    # What was nowhere while it was wrong, is there now; and of the imports that were cut nothing is left.
    for part in ("encodings/o200k_base", "wheels/numpy", "hub/"):
        path = path_in(lab, part)
        assert any(Path(path).name.partition("-")[0] in found for found in landed(lab, path)), path
    assert lab.ssh(TO, "sudo find /var/lib/tinderbox/huggingface -name '*.incomplete'").stdout == ""
    # What the branch and the base's tag stood for came along, too.
    lock, base = read_lock(carried), load_catalog().images["vllm-cpu"].base
    assert lock.models == {f"{MODEL.repository}@main": MODEL.revision}
    assert lock.images == manifest["lock"]["images"]
    assert set(lock.images) == {base}


def test_a_bundle_that_holds_something_else_is_told_with_what_it_holds(lab: Lab, carried: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content.update(yaml.safe_load(carried.read_text()))
        for service in content["defaults"]["services"].values():
            service["image"] = {"arguments": {"ANOTHER": "recipe"}}

    run = lab.converge("deploys/image.py", fleet=lab.write_fleet("fleet-import-other", change))

    assert run.rc == 1
    assert "holds no image tinderbox/vllm-cpu:" in run.text
    assert "Export it anew from a host that was converged with these settings" in run.text


def exporting(lab: Lab, exported: Exported, directory: str) -> Path:
    """The fleet that was exported, with its lock, to another directory."""

    def change(content: dict[str, Any]) -> None:
        content.update(yaml.safe_load(exported.fleet.read_text()))
        content["defaults"]["bundle"] = {"export_to": directory}

    fleet = lab.write_fleet("fleet-export-elsewhere", change)
    # The image's name hangs on what its base's tag stood for.
    lock_path(fleet).write_text(lock_path(exported.fleet).read_text())
    return fleet


def test_a_disk_that_is_too_small_is_refused_before_the_first_byte(lab: Lab, exported: Exported) -> None:
    small = "/mnt/small"
    lab.ssh(FROM, f"sudo mkdir -p {small} && sudo mount -t tmpfs -o size=100m tmpfs {small}")
    try:
        run = lab.converge("deploys/bundle.py", fleet=exporting(lab, exported, f"{small}/tinderbox"))
        left = lab.ssh(FROM, f"sudo find {small} -type f").stdout
    finally:
        lab.ssh(FROM, f"sudo umount {small}")

    assert run.rc == 1
    assert f"{small}/tinderbox has 0.1 GiB free, the bundle needs" in run.text
    assert "bundle.export_to to a larger disk" in run.text
    assert left == ""


def test_a_disk_that_is_not_mounted_is_told(lab: Lab, exported: Exported) -> None:
    run = lab.converge("deploys/bundle.py", fleet=exporting(lab, exported, "/mnt/none/tinderbox"))

    assert run.rc == 1
    assert "there is no /mnt/none on this host: is the disk mounted there?" in run.text
