"""The tunnel from the controller to a service: the system's own `ssh` against a server that lets one key in."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest

from modules.hostside.forward import ForwardError, forwarded
from modules.operations.gate_job import forward_words
from tests.lab.fake_engine import Behaviour, handler, served
from tests.operations.ssh_server import ssh_host


def test_a_service_on_loopback_is_reached_with_the_fleets_settings(tmp_path: Path) -> None:
    with served(handler(Behaviour())) as (url, _), ssh_host(tmp_path) as host:
        with forwarded(forward_words(host, url)) as here:
            assert here != url
            with urllib.request.urlopen(f"{here}/v1/models", timeout=10) as answer:
                assert b"fake" in answer.read()
        with pytest.raises(OSError, match="refused"):
            urllib.request.urlopen(f"{here}/v1/models", timeout=10)


def test_who_is_not_let_in_is_told_so_and_asked_nothing(tmp_path: Path) -> None:
    with ssh_host(tmp_path) as host:
        (tmp_path / "id").unlink()
        with (
            pytest.raises(ForwardError, match=r"ssh opened no way to the service: .*Permission denied"),
            forwarded(forward_words(host, "http://127.0.0.1:8000")),
        ):
            pass


def test_another_host_key_than_the_known_one_is_refused(tmp_path: Path) -> None:
    with ssh_host(tmp_path) as host:
        known = tmp_path / "known"
        (tmp_path / "other").mkdir()
        with ssh_host(tmp_path / "other"):
            other = (tmp_path / "other" / "known").read_text().split(" ", 1)[1]
        known.write_text(f"{known.read_text().split(' ', 1)[0]} {other}")
        with (
            pytest.raises(ForwardError, match="Host key verification failed"),
            forwarded(forward_words(host, "http://127.0.0.1:8000")),
        ):
            pass


def test_a_host_that_forwards_nothing_is_told_so(tmp_path: Path) -> None:
    with (
        served(handler(Behaviour())) as (url, _),
        ssh_host(tmp_path, forwards=False) as host,
        pytest.raises(ForwardError, match="sshd must allow TCP forwarding"),
        forwarded(forward_words(host, url)),
    ):
        pass
