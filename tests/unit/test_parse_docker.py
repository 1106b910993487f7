"""What docker says."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.facts.parse.docker_build import Failure, parse_docker_build
from modules.facts.parse.docker_images import Image, parse_docker_images
from modules.facts.parse.docker_info import parse_docker_info
from modules.facts.parse.docker_pull import parse_docker_pull
from modules.facts.parse.docker_version import DockerVersion, parse_docker_version
from modules.facts.parse.errors import ParseError

SAMPLES = Path(__file__).parents[1] / "samples"


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def test_the_engines_version_is_not_that_of_containerd() -> None:
    assert parse_docker_version(sample("docker-version.txt")) == DockerVersion("29.1.0", "29.1.3", None)
    assert parse_docker_version("Docker version 27.0.1, build abc\n") == DockerVersion("27.0.1", None, None)


def test_a_daemon_that_does_not_answer_is_told_in_dockers_words() -> None:
    client = sample("docker-version.txt").partition("Server:")[0]
    version = parse_docker_version(client + "permission denied while trying to connect to the Docker daemon socket\n")
    assert version.server is None
    assert version.refusal == "permission denied while trying to connect to the Docker daemon socket"
    with pytest.raises(ParseError, match="cut off"):
        parse_docker_version(client)
    with pytest.raises(ParseError):
        parse_docker_version("bash: docker: command not found\n")


def test_an_installed_toolkit_is_not_a_registered_runtime() -> None:
    info = parse_docker_info(sample("docker-info.txt"))
    assert (info.server, info.root, info.storage_driver) == ("29.1.3", "/data/docker", "overlayfs")
    assert info.runtimes == ("io.containerd.runc.v2", "runc")
    assert not info.has_nvidia
    assert info.warnings == ("bridge-nf-call-iptables is disabled",)
    text = sample("docker-info.txt").replace("v2 runc", "v2 nvidia runc")
    assert parse_docker_info(text).has_nvidia


@pytest.mark.parametrize(
    "text", ["", "Client:\n Version: 29.1.0\n", "Cannot connect to the Docker daemon at unix:///x\n"]
)
def test_info_without_a_server_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_docker_info(text)


def test_images_of_a_registry_with_a_port_and_without_names() -> None:
    text = "registry.lab:5000/base:3.11 aaaaaaaaaaaa\n<none>:<none> bbbbbbbbbbbb\n"
    port, bare = parse_docker_images(text)
    assert port == Image("registry.lab:5000/base", "3.11", "aaaaaaaaaaaa")
    assert (bare.reference, bare.id) == (None, "bbbbbbbbbbbb")
    assert parse_docker_images("") == ()
    with pytest.raises(ParseError):
        parse_docker_images("REPOSITORY TAG IMAGE ID\n")


def test_a_pull_is_finished_by_its_digest_and_nothing_else() -> None:
    whole = parse_docker_pull(sample("docker-pull-ok.txt"))
    assert whole.finished
    assert (whole.layers, whole.not_extracted, whole.digest) == (2, (), "sha256:" + "2" * 64)
    text = sample("docker-pull-ok.txt")
    cut = parse_docker_pull(text.partition("Digest")[0])
    assert (cut.finished, cut.not_extracted) == (False, ())
    assert not parse_docker_pull(text.replace("Digest", "Digits")).finished
    assert not parse_docker_pull(text.replace("Status", "State")).finished


def test_layers_that_never_came() -> None:
    text = "v1: Pulling from a/b\naaaaaaaaaaaa: Waiting\nbbbbbbbbbbbb: Download complete\ncccccccccccc: Pull complete\n"
    pull = parse_docker_pull(text)
    assert (pull.not_downloaded, pull.not_extracted) == (("aaaaaaaaaaaa",), ("aaaaaaaaaaaa", "bbbbbbbbbbbb"))


def test_a_pull_that_was_refused() -> None:
    pull = parse_docker_pull("Error response from daemon: manifest for a/b:c not found: manifest unknown\n")
    assert not pull.finished
    assert pull.error == "Error response from daemon: manifest for a/b:c not found: manifest unknown"
    with pytest.raises(ParseError):
        parse_docker_pull("hello\n")


def test_a_build_that_went_well() -> None:
    build = parse_docker_build(sample("docker-build-ok.txt"))
    assert build.finished
    assert build.image == "sha256:" + "1" * 64
    assert build.names == ("docker.io/tinderbox/vllm:abcdef012345",)
    assert [(step.number, step.state, step.seconds) for step in build.steps] == [
        (1, "done", 0.0),
        (2, "cached", None),
        (3, "done", 12.9),
        (4, "done", 0.3),
    ]
    assert build.steps[2].last == "cc -o a a.o"


def test_a_build_that_failed_names_its_step_and_exit_code() -> None:
    build = parse_docker_build(sample("docker-build-failed.txt"))
    assert not build.finished
    assert build.failure == Failure(
        message='process "/bin/sh -c pip install flashinfer-python" did not complete successfully: exit code: 1',
        canceled=False,
        step=5,
        exit_code=1,
    )


def test_the_words_of_an_older_docker() -> None:
    text = "#1 DONE 0.1s\nfailed to solve with frontend dockerfile.v0: failed to build LLB: exit code: 137\n"
    failure = parse_docker_build(text).failure
    assert failure is not None
    assert (failure.canceled, failure.exit_code) == (False, 137)


def test_a_build_that_was_canceled_did_not_fail_by_its_own_fault() -> None:
    failure = parse_docker_build(
        "#7 12.1 cc -c a.c\n#7 CANCELED\nERROR: failed to solve: Canceled: context canceled\n"
    ).failure
    assert failure is not None
    assert (failure.canceled, failure.step) == (True, 7)


def test_a_build_that_goes_on_has_neither_an_image_nor_a_failure() -> None:
    build = parse_docker_build(sample("docker-build-ok.txt").partition("#4")[0])
    assert (build.finished, build.image, build.failure) == (False, None, None)
    with pytest.raises(ParseError):
        parse_docker_build("Sending build context to Docker daemon  2.048kB\n")
