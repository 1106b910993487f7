"""Labs come up from any state and go without a trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from modules.lab import layout as layout_module
from modules.lab.containers import containers_of
from modules.lab.down import take_over
from modules.lab.errors import LabError
from modules.lab.layout import Layout
from tests.lab.lab_driver import Lab

pytestmark = pytest.mark.lab


@pytest.fixture
def client(lab: Lab) -> docker.DockerClient:
    """A client of the daemon, which runs for as long as the shared lab does."""
    return docker.from_env()


@pytest.fixture
def other() -> Iterator[Lab]:
    """A lab of our own, which goes with the test."""
    other = Lab(Layout.named("test-other"))
    other.command("down")
    yield other
    other.command("down")


def everything(client: docker.DockerClient) -> dict[str, set[str]]:
    """All that docker keeps, by kind."""
    return {
        "containers": {str(each.name) for each in client.containers.list(all=True)},
        "networks": {str(each.name) for each in client.networks.list()},
        "volumes": {str(each.name) for each in client.volumes.list()},
        "images": {str(each.id) for each in client.images.list(all=True)},
    }


def ids(client: docker.DockerClient, lab: Lab) -> dict[str, str]:
    return {str(each.name): str(each.id) for each in containers_of(client, lab.layout)}


def test_a_lab_that_is_taken_down_leaves_nothing_behind(client: docker.DockerClient, other: Lab) -> None:
    before = everything(client)
    other.command("up", "--hosts", "1")
    assert everything(client) != before
    other.ssh("spark-1", "true")
    other.command("down")
    assert everything(client) == before
    assert not other.layout.folder.exists()
    assert other.command("status", check=False).rc == 1


def test_up_again_changes_nothing_and_more_hosts_join(client: docker.DockerClient, other: Lab) -> None:
    other.command("up", "--hosts", "1")
    before = ids(client, other)
    other.command("up", "--hosts", "1")
    assert ids(client, other) == before
    other.command("up", "--hosts", "2")
    after = ids(client, other)
    assert {name: after[name] for name in before} == before
    assert other.ssh("spark-2", "getent hosts spark-1").rc == 0
    assert other.ssh("spark-1", "getent hosts spark-2").rc == 0


def test_up_repairs_what_was_killed_half_made_or_lost(client: docker.DockerClient, other: Lab) -> None:
    other.command("up", "--hosts", "2")
    before = ids(client, other)
    layout = other.layout
    image = client.containers.get(layout.mirror).attrs["Config"]["Image"]
    client.containers.get(layout.mirror).kill()
    client.containers.get(layout.container("spark-1")).kill()
    # What is there of a host when set-up is killed between making and starting it.
    client.containers.get(layout.container("spark-2")).remove(force=True)
    client.containers.create(image, name=layout.container("spark-2"), hostname="spark-2", labels=_labels(layout))
    (layout.folder / "id_ed25519").unlink()
    other.command("up", "--hosts", "2")
    assert ids(client, other)[layout.container("spark-1")] == before[layout.container("spark-1")]
    for host in ("spark-1", "spark-2"):
        assert other.ssh(host, "getent hosts hub.lab").rc == 0


def _labels(layout: Layout) -> dict[str, str]:
    return {**layout.labels, "tinderbox.lab.port": "22999"}


def test_a_running_lab_of_another_checkout_is_left_alone(
    client: docker.DockerClient, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ids(client, lab)
    monkeypatch.setattr(layout_module, "ROOT", tmp_path)
    elsewhere = Layout.named(lab.layout.name)
    with pytest.raises(LabError, match="of another checkout is up"):
        take_over(client, elsewhere)
    monkeypatch.undo()
    assert ids(client, lab) == before


def test_a_host_that_is_not_there_is_named_with_those_that_are(lab: Lab) -> None:
    run = lab.command("restart", "spark-9", check=False)
    assert run.rc == 1
    assert "no host 'spark-9'; it has: spark-1, spark-2" in run.stderr


def test_a_name_that_is_none_is_refused(lab: Lab) -> None:
    run = Lab(Layout("../x")).command("status", check=False)
    assert run.rc == 1
    assert "can not name a lab" in run.stderr
