"""A bundle holds an image that was pulled, as it holds one that was built: by its digest, and as that image."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import Any

import pytest

from modules.fleet.lock import lock_path, read_lock
from tests.lab.lab_driver import Lab, Run

pytestmark = [pytest.mark.lab, pytest.mark.long]
FROM, TO = "spark-1", "spark-2"
USB = "/mnt/usb/pulled"
REFERENCE = "registry.lab:5000/python:3.11-slim-bookworm"
RECIPE = {"reference": REFERENCE, "size_gib": 0.2, "source": "for tests"}
CLOSED = {"host": "registry.lab", "status": 503, "body": "closed"}


def stage(lab: Lab, deploy: str, host: str, **settings: Any) -> tuple[Run, str | None]:
    """Run a deploy over a host whose service has the pulled image; and what the tag stands for in its lock then."""

    def change(content: dict[str, Any]) -> None:
        content["hosts"] = {host: content["hosts"][host]}
        defaults = content["defaults"]
        for name, values in settings.items():
            defaults[name] = {**defaults.get(name, {}), **values}
        for service in defaults["services"].values():
            service |= {"gate": None, "image": {"recipe": RECIPE}}

    fleet = lab.write_fleet(f"fleet-pulled-{host}", change)
    run = lab.converge(f"deploys/{deploy}.py", fleet=fleet)
    return run, read_lock(fleet).digest(REFERENCE)


def image_id(lab: Lab, host: str, name: str) -> str:
    return lab.ssh(host, f"sudo docker image inspect --format '{{{{.Id}}}}' {name}").stdout.strip()


@pytest.mark.usefixtures("first_run")
def test_a_pulled_image_comes_by_the_bundle_as_the_digest_that_the_lock_names(lab: Lab) -> None:
    lab.ssh(FROM, f"sudo mkdir -p {USB}")
    pulled, digest = stage(lab, "image", FROM)
    assert pulled.rc == 0, pulled.text
    assert digest is not None
    name = f"tinderbox/python:{digest.removeprefix('sha256:')[:12]}"
    try:
        exported, _ = stage(lab, "bundle", FROM, bundle={"export_to": USB})
        assert exported.rc == 0, exported.text
        (image,) = json.loads(lab.read(FROM, f"{USB}/manifest.json"))["images"]
        assert image["name"] == name
        carry(lab)

        with lab.faults(CLOSED):
            loaded, known = stage(lab, "image", TO, network={"bundle": USB})
            again, _ = stage(lab, "image", TO, network={"bundle": USB})

        assert loaded.rc == 0, loaded.text
        assert known == digest
        assert image_id(lab, TO, name) == image_id(lab, FROM, name) == image["id"]
        assert "no change on any host" in again.stderr
    finally:
        for host in (FROM, TO):
            lab.ssh(host, f"sudo sh -c {shlex.quote(f'rm -rf {USB}; docker image rm {name}')}", check=False)


def carry(lab: Lab) -> None:
    """Bring the bundle to the other host, which has neither the image nor a lock that tells of it."""
    runtime, _ = stage(lab, "runtime", TO)
    assert runtime.rc == 0, runtime.text
    lock_path(lab.layout.folder / f"fleet-pulled-{TO}.yaml").unlink(missing_ok=True)
    remove = "docker image rm $(docker image ls --quiet 'tinderbox/python') || true"
    lab.ssh(TO, f"sudo sh -c {shlex.quote(remove)}", check=False)
    send = f"docker exec {lab.layout.container(FROM)} tar -C {USB} -c ."
    take = f"docker exec -i {lab.layout.container(TO)} sh -c 'mkdir -p {USB} && tar -C {USB} -x'"
    subprocess.run(["bash", "-c", f"set -o pipefail; {send} | {take}"], check=True)
