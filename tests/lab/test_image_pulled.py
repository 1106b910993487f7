"""Images that are pulled: by digest, once for all hosts, whatever becomes of the tag; and which images are removed."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from modules.fleet.lock import lock_path
from tests.lab.lab_driver import Lab, Run
from tests.lab.layered_image import forget_images

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOSTS = ("spark-1", "spark-2")
REGISTRY, IMAGE, TAG = "registry.lab:5000", "python", "3.11-slim-bookworm"
REFERENCE = f"{REGISTRY}/{IMAGE}:{TAG}"


@dataclass(frozen=True)
class Pulled:
    """Two hosts whose service has an image from the lab's registry."""

    lab: Lab

    def run(self, deploy: str = "deploys/image.py", *arguments: str, **image: Any) -> Run:
        """A stage. `image`: changes to the service's image."""

        def change(content: dict[str, Any]) -> None:
            content["hosts"] = {host: content["hosts"][host] for host in HOSTS}
            recipe = {"reference": REFERENCE, "size_gib": 0.2, "source": "for tests"}
            for service in content["defaults"]["services"].values():
                service["image"] = {"recipe": recipe, **image}

        return self.lab.converge(deploy, *arguments, fleet=self.lab.write_fleet("fleet-pulled", change))

    @property
    def locked(self) -> str:
        """The digest that the lock holds."""
        lock = lock_path(self.lab.layout.folder / "fleet-pulled.yaml")
        return str(yaml.safe_load(lock.read_text())["images"][REFERENCE])

    def unlock(self) -> None:
        """Take the entry out, to have it resolved anew."""
        lock_path(self.lab.layout.folder / "fleet-pulled.yaml").unlink(missing_ok=True)

    def names(self, host: str) -> list[str]:
        """What docker calls the images of a host, without the base images of the lab."""
        listed = self.lab.ssh(host, "sudo docker image ls --format '{{.Repository}}:{{.Tag}}'").stdout.split()
        return sorted(listed)

    def image_id(self, host: str, name: str) -> str:
        return self.lab.ssh(host, f"sudo docker image inspect -f '{{{{.Id}}}}' {name}").stdout.strip()

    def asked_of_registry(self, since: int) -> list[dict[str, Any]]:
        return [each for each in self.lab.requests(since) if each["host"] == "registry.lab"]

    def fetched(self, path: str) -> bytes:
        """What the registry serves."""
        accept = "Accept: application/vnd.docker.distribution.manifest.v2+json"
        command = f"curl -fsS -H {shlex.quote(accept)} https://{REGISTRY}/v2/{IMAGE}/{path}"
        return self.lab.ssh(HOSTS[0], command).stdout.encode()


def own_name(digest: str) -> str:
    return f"tinderbox/{IMAGE}:{digest.removeprefix('sha256:')[:12]}"


@pytest.fixture(scope="module")
def pulled(wide_lab: Lab) -> Pulled:
    pulled = Pulled(wide_lab)
    pulled.unlock()
    run = pulled.run("deploys/runtime.py")
    assert run.rc == 0, run.text
    forget_images(wide_lab, HOSTS)
    return pulled


@pytest.fixture(scope="module")
def first(pulled: Pulled) -> tuple[str, int]:
    """The digest after the run that resolves the tag, and how often the registry was asked for a layer."""
    since = len(pulled.lab.requests())
    run = pulled.run()
    assert run.rc == 0, run.text
    layers = [each for each in pulled.asked_of_registry(since) if "/blobs/" in each["path"] and each["bytes"] > 1 << 20]
    return pulled.locked, len(layers)


def test_the_tag_is_resolved_once_and_the_image_comes_from_outside_once(pulled: Pulled, first: tuple[str, int]) -> None:
    digest, layers = first
    tags = json.loads(pulled.fetched("tags/list"))
    assert TAG in tags["tags"]
    assert digest == f"sha256:{hashlib.sha256(pulled.fetched(f'manifests/{TAG}')).hexdigest()}"
    assert layers == 1
    assert [pulled.names(host) for host in HOSTS] == [[own_name(digest)]] * 2
    assert len({pulled.image_id(host, own_name(digest)) for host in HOSTS}) == 1


def test_the_second_run_asks_nobody_and_changes_nothing(pulled: Pulled, first: tuple[str, int]) -> None:
    since = len(pulled.lab.requests())
    run = pulled.run()
    assert run.rc == 0, run.text
    assert "no change on any host" in run.stderr
    assert pulled.asked_of_registry(since) == []


def test_a_digest_that_the_registry_has_not_is_refused_and_what_is_there_stays(
    pulled: Pulled, first: tuple[str, int]
) -> None:
    run = pulled.run(digest="sha256:" + "a" * 64)
    assert run.rc == 1
    assert f"{REGISTRY}/{IMAGE}@sha256:aaaa" in run.stderr
    assert "could not be pulled" in run.stderr
    assert "spark-2: the image" in run.stderr
    assert [pulled.names(host) for host in HOSTS] == [[own_name(first[0])]] * 2


def moved(pulled: Pulled) -> tuple[str, list[dict[str, Any]]]:
    """Another image under the same tag, as answers of the registry; and its digest."""
    manifest = json.loads(pulled.fetched(f"manifests/{TAG}"))
    config = json.loads(pulled.fetched(f"blobs/{manifest['config']['digest']}"))
    config["config"]["Labels"] = {"another": "build"}
    body = json.dumps(config)
    digest = f"sha256:{hashlib.sha256(body.encode()).hexdigest()}"
    manifest["config"] |= {"digest": digest, "size": len(body)}
    text = json.dumps(manifest)
    name = f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    headers = {"Content-Type": manifest["mediaType"], "Docker-Content-Digest": name}
    faults = [
        {"path": f"/manifests/({TAG}|{name})$", "status": 200, "headers": headers, "body": text},
        {"path": f"/blobs/{digest}$", "status": 200, "headers": {"Docker-Content-Digest": digest}, "body": body},
    ]
    return name, [{"host": "registry.lab", **fault} for fault in faults]


def test_a_tag_that_moves_changes_nothing_until_its_entry_is_taken_out(pulled: Pulled, first: tuple[str, int]) -> None:
    name, faults = moved(pulled)
    with pulled.lab.faults(*faults):
        kept = pulled.run()
        assert kept.rc == 0, kept.text
        assert "no change on any host" in kept.stderr
        assert pulled.locked == first[0]

        pulled.unlock()
        renewed = pulled.run()
        assert renewed.rc == 0, renewed.text
    assert pulled.locked == name
    assert name != first[0]
    for host in HOSTS:
        assert own_name(name) in pulled.names(host)


RELEASE = """
import sys
sys.path.insert(0, "/usr/local/lib/tinderbox")
from ledger import Ledger, point
ledger = Ledger(sys.argv[1])
for link, image in zip(("current", "last-good", "earlier"), sys.argv[2:]):
    ledger.record(link, {"image": image}, [])
    if link != "earlier":
        point(ledger.directory / link, f"{link}.json")
"""


def put_in_ledger(lab: Lab, host: str, service: str, images: Sequence[str]) -> None:
    """Give a service releases with these images: the current one, the last good one, and an earlier one."""
    lab.write(host, "/tmp/release.py", RELEASE)
    lab.ssh(host, f"sudo python3 /tmp/release.py {service} {' '.join(images)}")


def test_images_that_nothing_needs_go_and_never_the_current_or_last_good_or_a_foreign_one(
    pulled: Pulled, first: tuple[str, int]
) -> None:
    lab, host = pulled.lab, HOSTS[0]
    (wanted,) = {own_name(pulled.locked)}
    current, good, earlier, contained = (f"tinderbox/old:{digit * 12}" for digit in "1234")
    foreign = "someone/else:0123456789ab"
    for number, name in enumerate((current, good, earlier, contained, foreign)):
        build = f"printf 'FROM {wanted}\\nLABEL number={number}\\n' | sudo docker build -q -t {name} -"
        lab.ssh(host, build)
    lab.ssh(host, f"sudo docker create --name stopped {contained} true")
    put_in_ledger(lab, host, "chat", (current, good, earlier))
    try:
        dry = pulled.run("deploys/prune.py", "--dry")
        assert dry.rc == 2, dry.text
        assert f"not needed any more: {earlier}" in dry.text
        assert earlier in pulled.names(host)

        run = pulled.run("deploys/prune.py")
        assert run.rc == 0, run.text
        left = pulled.names(host)
        assert {wanted, current, good, contained, foreign} <= set(left)
        assert earlier not in left

        again = pulled.run("deploys/prune.py")
        assert again.rc == 0, again.text
        assert "no change on any host" in again.stderr
    finally:
        lab.ssh(host, "sudo docker rm stopped; sudo rm -rf /var/lib/tinderbox/ledger/chat", check=False)
