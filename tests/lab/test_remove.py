"""Leaving a host: when all layers were taken back it is as before the first deploy, but for what the docs list."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from modules.lab.layout import Layout
from tests.lab.debian_packages import offered
from tests.lab.fake_release import FAST, GATE, PORT, SERVICE, fleet_of
from tests.lab.lab_driver import Lab, Run
from tests.lab.left_behind import allowed, differences, not_allowed
from tests.lab.watched_host import debian_packages

pytestmark = [pytest.mark.lab, pytest.mark.long]
_KEEP = os.environ.get("TINDERBOX_LAB_KEEP") == "1"
HOST, HOME = "spark-1", "/home/spark/.cache/huggingface"
_SNAPSHOT = Path(__file__).with_name("host_snapshot.py")
# Written as nobody's program would write it, so that only the very bytes are the same.
_DAEMON = '{ "max-concurrent-downloads" :4,\n   "log-opts": {"max-size":"7m"}, "log-driver": "json-file" }'
_DROP_IN = "[Service]\n# of the owner\nNice=3\n"
_SHADOW = "/home/root-only"
_OWN = f"""set -e
echo secret > {_SHADOW}; chmod 600 {_SHADOW}
printf '%s' '{_DAEMON}' > /etc/docker/daemon.json; chmod 640 /etc/docker/daemon.json
mkdir -p /etc/systemd/system/earlyoom.service.d
printf '%s' '{_DROP_IN}' > /etc/systemd/system/earlyoom.service.d/tinderbox.conf
cp /etc/systemd/system/earlyoom.service.d/tinderbox.conf /etc/systemd/system/earlyoom.service.d/own.conf
systemctl daemon-reload; systemctl restart docker
printf 'FROM scratch\\nCOPY f /\\n' > /tmp/Dockerfile; echo owner > /tmp/f
DOCKER_BUILDKIT=0 docker build -q -t owner/own:1 -f /tmp/Dockerfile /tmp
runuser -u spark -- sh -c 'cd; mkdir -p .cache/huggingface/hub/models--someone--else/blobs && cd .cache/huggingface && \
echo theirs > hub/models--someone--else/blobs/abc && echo hf_x > token && chmod 600 token'
"""


@dataclass
class Leaving:
    """`before`: the host before the first deploy; `after`: after the removal. `runs`: what was run, in order."""

    lab: Lab
    fleet: Path
    before: dict[str, Any]
    after: dict[str, Any] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)


def root(lab: Lab, script: str) -> str:
    done = subprocess.run(["ssh", "-F", str(lab.layout.ssh_config), HOST, "sudo sh"], input=script, text=True,
                          capture_output=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def snapshot(lab: Lab) -> dict[str, Any]:
    words = ["ssh", "-F", str(lab.layout.ssh_config), HOST, "sudo PYTHONDONTWRITEBYTECODE=1 python3 -"]
    done = subprocess.run(words, input=_SNAPSHOT.read_text(), text=True, capture_output=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def full_fleet(lab: Lab) -> Path:
    """Everything that a host can get, for one service of the fake engine, with weights in a user's own cache."""
    path = fleet_of(lab, HOST, "leave", **FAST)
    content = yaml.safe_load(path.read_text())
    same = int(lab.ssh(HOST, "cat /proc/sys/vm/swappiness").stdout)
    content["defaults"] |= {
        "system": {"swappiness": same, "protect_ssh": True, "clock_cap_mhz": 2100, "earlyoom": True},
        "monitoring": {"exporters": {"every_s": 30}, "prometheus": {"scrape_s": 15, "retention": "2d"}},
        "weights": {"home": HOME},
    }
    key = lab.layout.folder / "alice-key"
    key.touch(mode=0o600)
    key.write_text("sk-alice-0123456789abcdef\n")
    content["secrets"] = {**content.get("secrets", {}), "alice-key": {"file": "./alice-key"}}
    content["hosts"][HOST]["settings"] = {
        "network": {"peer_address": lab.address(HOST)},
        "gateway": {"listen": "127.0.0.1", "port": 8080, "clients": {"alice": {"key": "alice-key"}}, "drain_s": 20},
    }
    service = content["defaults"]["services"][SERVICE]
    service |= {"gate": {**GATE, "client": "host"}, "port": PORT}
    path.write_text(yaml.safe_dump(content))
    return path


def layers(lab: Lab, fleet: Path, which: str, *arguments: str) -> Run:
    words = ["env", f"TINDERBOX_LAYERS={which}", "pyinfra", "inventory.py", "deploys/remove.py", *arguments]
    return lab.tinderbox([*words, "--json"], fleet=fleet)


# By its place, and not by its name alone: nothing else on the host lies there.
_KILL = r"""for one in /proc/[0-9]*; do
words=$(tr '\0' ' ' < $one/cmdline 2>/dev/null)
case "$words" in 'python3 /run/tinderbox-at-hand'*) kill -9 ${one#/proc/};; esac; done"""


def cut_run(lab: Lab, fleet: Path) -> Run:
    """A removal whose program on the host is killed once the service is gone, and before the rest is."""
    words = ["env", "TINDERBOX_LAYERS=all", "pyinfra", "inventory.py", "deploys/remove.py", "-y", "--json"]
    with ThreadPoolExecutor() as pool:
        running = pool.submit(lab.tinderbox, words, fleet=fleet)
        while not running.done():
            if lab.ssh(HOST, f"sudo test -d /var/lib/tinderbox/ledger/{SERVICE}", check=False).rc != 0:
                root(lab, _KILL)
                break
        return running.result()


def changed(run: Run) -> int:
    return int(run.json["results"]["totals"]["success"])


@pytest.fixture(scope="module")
def bare() -> Iterator[Lab]:
    """A fresh lab host of our own; one that was kept is as it was before its first deploy, if all went well."""
    lab = Lab(Layout.named(f"{os.environ.get('TINDERBOX_LAB_NAME', 'test')}-leave"))
    if not _KEEP:
        lab.command("down")
    lab.command("up", "--hosts", "1")
    yield lab
    if not _KEEP:
        lab.command("down")


@pytest.fixture(scope="module")
def leaving(bare: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Leaving]:
    with ExitStack() as sources:
        sources.enter_context(debian_packages(bare, HOST))
        for package in ("haproxy", "earlyoom"):
            sources.enter_context(offered(bare, HOST, package, tmp_path_factory.mktemp(package)))
        kept = bare.layout.folder / "before.json"
        if not kept.exists():
            root(bare, _OWN)
            kept.write_text(json.dumps(snapshot(bare)))
        fleet = full_fleet(bare)
        found = Leaving(bare, fleet, json.loads(kept.read_text()))
        found.runs["deployed"] = bare.converge(fleet=fleet)
        assert found.runs["deployed"].rc == 0, found.runs["deployed"].text
        found.runs["shown"] = layers(bare, fleet, "all", "--dry")
        found.runs["cut"] = cut_run(bare, fleet)
        found.runs["all"] = layers(bare, fleet, "all", "-y")
        found.after = snapshot(bare)
        found.runs["again"] = layers(bare, fleet, "all", "-y")
        yield found


def test_what_would_go_is_shown_and_nothing_is_done(leaving: Leaving) -> None:
    run = leaving.runs["shown"]
    assert run.rc == 0, run.text
    for part in ("goes   service fakes", "goes   image tinderbox/fake-engine", "goes   weights ", "goes   package"):
        assert part in run.stderr, run.text


def test_all_layers_go_and_a_second_removal_changes_nothing(leaving: Leaving) -> None:
    assert leaving.runs["all"].rc == 0, leaving.runs["all"].text
    assert leaving.runs["again"].rc == 0, leaving.runs["again"].text
    assert changed(leaving.runs["again"]) == 0, leaving.runs["again"].text


def test_a_removal_that_was_cut_fails_and_the_next_one_finishes(leaving: Leaving) -> None:
    assert leaving.runs["cut"].rc != 0, leaving.runs["cut"].text
    assert changed(leaving.runs["all"]) == 1, leaving.runs["all"].text


def test_the_host_is_as_it_was_but_for_what_the_docs_list(leaving: Leaving) -> None:
    found = not_allowed(differences(leaving.before, leaving.after), allowed())
    assert found == [], "\n".join(found)


def test_files_that_were_there_before_are_there_again_byte_for_byte(leaving: Leaving) -> None:
    for path in (
        "/etc/docker/daemon.json",
        "/etc/systemd/system/earlyoom.service.d/tinderbox.conf",
        f"{HOME}/token",
        f"{HOME}/hub/models--someone--else/blobs/abc",
    ):
        assert leaving.after["files"][path] == leaving.before["files"][path], path


def test_a_new_deploy_works(leaving: Leaving) -> None:
    assert leaving.runs["again"].rc == 0
    run = leaving.lab.converge(fleet=leaving.fleet)
    assert run.rc == 0, run.text


def disk(lab: Lab, fleet: Path, **environment: str) -> tuple[Run, dict[str, Any]]:
    words = ["env", "TINDERBOX_JSON=1", *(f"{name}={value}" for name, value in environment.items())]
    run = lab.tinderbox([*words, "pyinfra", "inventory.py", "deploys/disk.py", "-y"], fleet=fleet)
    assert run.rc == 0, run.text
    told: dict[str, Any] = json.loads(next(line for line in run.stdout.splitlines() if line.startswith("{")))
    return run, told


def test_disks_are_told_and_what_is_roots_in_a_users_cache_is_given_to_the_user(leaving: Leaving) -> None:
    lab, fleet = leaving.lab, leaving.fleet
    root(
        lab, f"mkdir -p {HOME}/hub/models--x--y/blobs; echo x > {HOME}/hub/models--x--y/blobs/z; ln {_SHADOW} {HOME}/h"
    )
    run, told = disk(lab, fleet)
    assert "needed: fakes (current)" in run.stderr
    (image,) = (one for one in told["images"] if one["name"].startswith("tinderbox/"))
    (ours,) = (one for one in told["weights"] if one["whose"] == "ours")
    assert image["needed"]
    assert ours["needed"]
    assert {one["revision"] for one in told["weights"]} > {"someone/else", "x/y"}
    (owned,) = told["owned"]
    assert (owned["home"], owned["owner"], owned["linked"]) == (HOME, "spark", 1)
    _, told = disk(lab, fleet, TINDERBOX_REPAIR="owner")
    assert lab.ssh(HOST, f"stat -c %U {HOME}/hub/models--x--y/blobs/z {_SHADOW}").stdout.split() == ["spark", "root"]
    root(lab, f"rm -r {HOME}/h {HOME}/hub/models--x--y")
    assert disk(lab, fleet)[1]["owned"] == []


def test_a_server_is_left_alone_where_its_layer_was_not_asked_for(leaving: Leaving) -> None:
    lab, fleet = leaving.lab, leaving.fleet
    run = layers(lab, fleet, "images,weights", "-y")
    assert run.rc == 0, run.text
    assert "stays  image tinderbox/fake-engine" in run.stderr
    refused = layers(lab, fleet, "system", "-y")
    assert refused.rc != 0
    assert "ask for layer engine, too" in refused.text
    assert lab.ssh(HOST, f"systemctl is-active tinderbox-{SERVICE}").stdout.strip() == "active"
    assert lab.converge("--dry", fleet=fleet).rc == 0


def test_what_others_use_stays_until_they_are_gone(leaving: Leaving) -> None:
    lab, fleet = leaving.lab, leaving.fleet
    image = root(lab, "docker image ls --format '{{.Repository}}:{{.Tag}}' 'tinderbox/*'").split()[0]
    root(lab, f"docker create --name mine -v {HOME}:/hf {image}")
    run = layers(lab, fleet, "all", "-y")
    assert run.rc == 0, run.text
    assert f"stays  image {image}: container mine uses it" in run.stderr
    assert f"container mine mounts {HOME}" in run.stderr
    assert changed(layers(lab, fleet, "all", "-y")) == 0
    root(lab, "docker rm mine")
    assert changed(layers(lab, fleet, "all", "-y")) == 1
    assert not_allowed(differences(leaving.before, snapshot(lab)), allowed()) == []
