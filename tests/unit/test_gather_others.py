"""What else runs on a machine, as the gatherer tells it."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modules.hostside.gather_others import Processes, not_of_its_owner, strangers_files
from modules.hostside.gather_stored import checkpoint

CONTAINER = "c0ffee" + "0" * 58
OURS = "0dd" + "1" * 61


def docker_root(folder: Path, **containers: dict[str, Any]) -> Path:
    for id_, config in containers.items():
        place = folder / "containers" / id_.lstrip("_")
        place.mkdir(parents=True)
        running = {"State": {"Running": True}, "Config": {"Image": "some/image:1"}, "ID": id_.lstrip("_")}
        (place / "config.v2.json").write_text(json.dumps(running | config))
    return folder


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_who_listens_at_a_port_is_named_and_nobody_where_nothing_does(tmp_path: Path, listener: int) -> None:
    found = Processes(str(tmp_path)).holder("127.0.0.1", listener)
    assert found is not None
    assert (found["pid"], found["container"]) == (os.getpid(), None)
    assert found["name"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    assert Processes(str(tmp_path)).holder("127.0.0.1", free) is None


def test_a_listener_of_ours_is_in_nobodys_way(tmp_path: Path, listener: int) -> None:
    others = Processes(str(docker_root(tmp_path, **{f"_{OURS}": {"Name": "/tinderbox-gpt-oss"}})))
    others.all[os.getpid()] = f"0::/system.slice/docker-{OURS}.scope\n"
    assert others.is_ours(os.getpid())
    assert others.holder("127.0.0.1", listener) is None
    others.all[os.getpid()] = "0::/system.slice/tinderbox-gateway-agent.service\n"
    assert others.holder("127.0.0.1", listener) is None
    assert os.getpid() not in [one["pid"] for one in others.largest()]


@pytest.mark.parametrize("within", ["app.slice", "system.slice"])
def test_what_a_user_calls_ours_is_theirs(tmp_path: Path, listener: int, within: str) -> None:
    others = Processes(str(tmp_path))
    others.all[os.getpid()] = f"0::/user.slice/user-1000.slice/user@1000.service/{within}/tinderbox-x.service\n"
    assert not others.is_ours(os.getpid())
    found = others.holder("127.0.0.1", listener)
    assert found is not None
    assert found["pid"] == os.getpid()


def test_a_published_port_is_its_containers_and_not_dockers(tmp_path: Path, listener: int) -> None:
    ports = {
        "NetworkSettings": {"Ports": {"8000/tcp": [{"HostIp": "0.0.0.0", "HostPort": str(listener)}], "9/tcp": None}}
    }
    others = Processes(str(docker_root(tmp_path, **{f"_{CONTAINER}": {"Name": "/vllm_node", **ports}})))
    found = others.holder("127.0.0.1", listener)
    assert found is not None
    assert (found["container"], found["image"], found["pid"]) == ("vllm_node", "some/image:1", 0)


def test_a_process_is_told_with_its_container_or_unit(tmp_path: Path) -> None:
    others = Processes(str(docker_root(tmp_path, **{f"_{CONTAINER}": {"Name": "/sparkrun_solo"}})))
    others.all[os.getpid()] = f"0::/docker/{'f' * 64}/docker/{CONTAINER}\n"
    assert others.told(os.getpid())["container"] == "sparkrun_solo"
    others.all[os.getpid()] = "0::/system.slice/ollama.service\n"
    assert others.told(os.getpid())["unit"] == "ollama.service"
    assert others.in_unit(["gdm.service", "ollama.service"]) == ["ollama.service"]
    others.all[os.getpid()] = "0::/user.slice/user-1000.slice/session-3.scope\n"
    assert others.told(os.getpid())["unit"] is None
    assert others.told(os.getpid())["memory"] > 2**20


def test_an_engine_is_known_by_its_words_and_what_speaks_of_it_is_none(tmp_path: Path) -> None:
    word = f"an-engine-of-{os.getpid()}"
    packed = base64.b64encode(json.dumps([f"{word} serve"]).encode()).decode()
    command = ["bash", "-c", f"exec -a {word} sleep 60"]
    with (
        # With a child that is known by the same words, as an engine's own processes are.
        subprocess.Popen(
            ["bash", "-c", f"exec -a '{word} serve' bash -c 'exec -a \"{word} serve\" sleep 60 & wait'"],
            start_new_session=True,
        ) as engine,
        subprocess.Popen(["tail", "-F", f"/nowhere/{word} serve"], stderr=subprocess.DEVNULL) as tail,
        subprocess.Popen(command) as other,
    ):
        try:
            until = time.monotonic() + 20
            while not (found := Processes(str(tmp_path)).engines(packed)) and time.monotonic() < until:
                time.sleep(0.05)
        finally:
            os.killpg(engine.pid, signal.SIGKILL)
            for one in (tail, other):
                one.kill()
    assert [(one["pid"], one["engine"]) for one in found] == [(engine.pid, f"{word} serve")]


def test_only_a_cache_in_somebodys_home_is_looked_through(tmp_path: Path) -> None:
    assert not_of_its_owner(str(tmp_path)) is None
    assert not_of_its_owner("/home/nobody-of-that-name/.cache/huggingface") is None


def test_a_file_that_lies_elsewhere_too_is_no_stranger(tmp_path: Path) -> None:
    """As weights that were taken over by links: to give it away would give it away there as well."""
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "alone").touch()
    (cache / "linked").touch()
    (tmp_path / "elsewhere").hardlink_to(cache / "linked")
    nobody = os.getuid() + 1
    assert strangers_files(str(cache), nobody) == 2  # the folder, and the file that is there alone
    assert strangers_files(str(cache), os.getuid()) == 0


def test_a_checkpoint_is_not_told_before_our_program_is_there(tmp_path: Path) -> None:
    assert checkpoint(tmp_path, None) is None
