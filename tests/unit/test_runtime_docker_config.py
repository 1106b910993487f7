"""What becomes of a host's daemon.json, and dockerd's other files."""

from __future__ import annotations

import json

import pytest

from modules.operations.docker_config import (
    PROXY_DROP_IN,
    PROXY_ENVIRONMENT,
    ConfigError,
    merged,
    parsed,
    proxy_files,
    registry_certificates,
    rendered,
)
from modules.spec.network import Network, Proxy
from modules.spec.settings import Runtime

NVIDIA = {"args": [], "path": "nvidia-container-runtime"}


def test_without_a_file_there_are_only_our_settings() -> None:
    assert merged(parsed(None), Runtime(log_max_size="10m", log_max_files=2)) == {
        "runtimes": {"nvidia": NVIDIA},
        "features": {"buildkit": True},
        "log-driver": "json-file",
        "log-opts": {"max-size": "10m", "max-file": "2"},
    }


def test_the_owners_keys_stay() -> None:
    theirs = {
        "data-root": "/data/docker",
        "default-runtime": "nvidia",
        "runtimes": {"nvidia": {"path": "/opt/nvidia-container-runtime"}, "kata": {"path": "kata"}},
        "features": {"containerd-snapshotter": True, "buildkit": False},
        "log-opts": {"compress": "true", "max-size": "1g"},
    }
    result = merged(theirs, Runtime())
    assert {key: result[key] for key in ("data-root", "default-runtime", "runtimes", "features")} == {
        key: theirs[key] for key in ("data-root", "default-runtime", "runtimes", "features")
    }
    assert result["log-opts"] == {"compress": "true", "max-size": "100m", "max-file": "3"}


def test_another_log_driver_is_the_owners_choice() -> None:
    theirs = {"log-driver": "journald", "log-opts": {"tag": "x"}}
    result = merged(theirs, Runtime())
    assert (result["log-driver"], result["log-opts"]) == ("journald", {"tag": "x"})


def test_nothing_changes_the_second_time() -> None:
    once = merged(parsed('{"debug": true}'), Runtime())
    assert merged(parsed(rendered(once)), Runtime()) == once


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1,\n}', "line 2 column 1"),
        ("[]", "not a JSON object"),
        ('{"runtimes": null}', "runtimes"),
        ('{"log-opts": []}', "log-opts"),
    ],
)
def test_what_is_no_configuration_is_told(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parsed(text)


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_an_empty_file_is_an_empty_configuration(text: str | None) -> None:
    assert parsed(text) == {}


def test_json_stays_json() -> None:
    assert json.loads(rendered({"a": "ü"})) == {"a": "ü"}


def test_the_proxy_stands_in_a_file_of_roots_and_in_no_unit() -> None:
    environment, drop_in = proxy_files(Proxy(https="http://me:hunter2@proxy:1", no_proxy=("mirror",)))
    assert (environment.path, environment.mode) == (PROXY_ENVIRONMENT, "600")
    assert 'HTTPS_PROXY="http://me:hunter2@proxy:1"\nNO_PROXY="mirror"\n' in (environment.content or "")
    assert drop_in.path == PROXY_DROP_IN
    assert drop_in.content == f"[Service]\nEnvironmentFile={PROXY_ENVIRONMENT}\n"


def test_without_a_proxy_there_is_no_drop_in() -> None:
    assert [file.content for file in proxy_files(Proxy(no_proxy=("mirror",)))] == [None, None]


def test_a_registrys_certificate_comes_and_goes_with_it() -> None:
    former = ["/etc/docker/certs.d/old:5000/tinderbox-site.crt"]
    named = registry_certificates(Network(registry="registry.lab:5000"), "PEM", former)
    assert {file.path: file.content for file in named} == {
        former[0]: None,
        "/etc/docker/certs.d/registry.lab:5000/tinderbox-site.crt": "PEM\n",
    }
    assert [file.content for file in registry_certificates(Network(), "PEM", former)] == [None]
    assert registry_certificates(Network(registry="registry.lab"), None, ()) == []
