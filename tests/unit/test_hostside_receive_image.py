"""What comes from another host gets its name only when it is what is offered there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from modules.hostside import receive_image
from modules.hostside.receive_image import Arrival, Wanted, receive
from modules.operations.transfer_keys import transfer_keys

# The program's own, as on a host.
if TYPE_CHECKING:
    from modules.hostside.docker_cli import DockerError
else:
    from docker_cli import DockerError

NAME = f"tinderbox/vllm:{'1' * 12}"
ID, MANIFEST = "sha256:1", "sha256:d"
DOCKER = """\
#!/bin/sh
echo "$*" >> {log}
case "$1 $2" in
"image inspect") echo '[{{"Id": "{id}"}}]';;
"version --format") echo '{{"Client": {{"Version": "28.5.1"}}, "Server": {{"Version": "28.5.1"}}}}';;
esac
"""


class Quiet:
    def report(self, *_: object) -> None:
        """Nobody looks."""


@pytest.fixture
def wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wanted:
    """An image whose pull goes well, under a docker that has it as `id`."""
    keys = transfer_keys("127.0.0.1")
    (tmp_path / "keys.pem").write_text(keys.client + keys.authority)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(receive_image, "pull", lambda *_: "127.0.0.1:1/x@sha256:d")
    docker_with(tmp_path, ID)
    return Wanted(tmp_path / "keys.pem", "127.0.0.1", 5599, NAME, MANIFEST, ID)


def docker_with(folder: Path, image: str) -> None:
    (folder / "docker").write_text(DOCKER.format(log=folder / "log", id=image))
    (folder / "docker").chmod(0o755)


def asked(wanted: Wanted) -> list[str]:
    return (wanted.keys.parent / "log").read_text().splitlines()


@pytest.mark.parametrize("image", [ID, MANIFEST], ids=["docker's own store", "containerd's"])
def test_what_is_the_same_there_and_here_gets_its_name_and_no_other_stays(wanted: Wanted, image: str) -> None:
    docker_with(wanted.keys.parent, image)

    receive(wanted, Quiet())  # type: ignore[arg-type]

    assert asked(wanted)[-2:] == [f"image tag 127.0.0.1:1/x@sha256:d {NAME}", "image rm 127.0.0.1:1/x@sha256:d"]


def test_what_is_another_image_gets_no_name(wanted: Wanted) -> None:
    docker_with(wanted.keys.parent, "sha256:other")

    with pytest.raises(DockerError, match="is sha256:other and not sha256:1"):
        receive(wanted, Quiet())  # type: ignore[arg-type]

    assert not any(line.startswith("image tag") for line in asked(wanted))
    assert asked(wanted)[-1] == "image rm 127.0.0.1:1/x@sha256:d"


@pytest.mark.parametrize(
    ("said", "count"), [("connection reset by peer", 4), ("filesystem layer verification failed", 1)]
)
def test_a_way_that_breaks_is_tried_again_and_a_damaged_layer_is_not(
    wanted: Wanted, monkeypatch: pytest.MonkeyPatch, said: str, count: int
) -> None:
    tries: list[str] = []

    def failing(*_: Any) -> str:
        tries.append(said)
        raise DockerError(receive_image.reason([said], wanted))

    monkeypatch.setattr(receive_image, "pull", failing)
    with pytest.raises(DockerError):
        receive(wanted, Quiet(), sleep=lambda _: None)  # type: ignore[arg-type]
    assert len(tries) == count


def test_a_key_that_went_with_a_restart_of_the_host_is_told(wanted: Wanted) -> None:
    wanted.keys.unlink()
    with pytest.raises(DockerError, match="as after a restart of this host: run again"):
        receive(wanted, Quiet())  # type: ignore[arg-type]


def test_layers_that_are_here_are_not_counted_among_the_bytes_to_come() -> None:
    arrival = Arrival({"a" * 12: 100, "b" * 12: 20})
    for line in (f"{'a' * 12}: Already exists", f"{'b' * 12}: Pulling fs layer", f"{'b' * 12}: Pull complete"):
        arrival.hear(line)
    assert arrival.lacking == 20
    assert (arrival.layers.done, arrival.layers.total) == (2, 2)
