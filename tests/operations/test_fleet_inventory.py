"""What pyinfra is told of a fleet, and that it is told nothing when the fleet file is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from inventory.groups import groups_of
from modules.fleet import load_fleet

ROOT = Path(__file__).resolve().parents[2]

FLEET = """\
fleet: office
ssh: {user: ubuntu}
secrets: {api-key: {env: TINDERBOX_TEST_KEY}}
defaults:
  services:
    gpt-oss: {engine: vllm, model: gpt-oss-120b, listen: 0.0.0.0, api_key: api-key}
groups: {big-memory: {}, unused: {}}
hosts:
  spark-1: {address: 10.0.0.11, groups: [big-memory], ssh: {port: 2222, key: key, known_hosts: hosts}}
  spark-2: {groups: [big-memory]}
"""


def pyinfra(fleet: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pyinfra", "inventory.py", *arguments],
        cwd=ROOT,
        env={**os.environ, "TINDERBOX_FLEET": str(fleet), "PYINFRA_PROGRESS": "off", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    (tmp_path / "key").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    (tmp_path / "hosts").touch()
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    return path


def test_hosts_have_their_connection_and_nothing_else(fleet_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINDERBOX_TEST_KEY", "not-to-be-shown")

    groups = groups_of(load_fleet(fleet_file))

    assert groups == {
        "all": [
            (
                "spark-1",
                {
                    "ssh_hostname": "10.0.0.11",
                    "ssh_port": 2222,
                    "ssh_user": "ubuntu",
                    "ssh_key": str(fleet_file.parent / "key"),
                    "ssh_known_hosts_file": str(fleet_file.parent / "hosts"),
                    "ssh_strict_host_key_checking": "yes",
                },
            ),
            (
                "spark-2",
                {
                    "ssh_hostname": "spark-2",
                    "ssh_port": 22,
                    "ssh_user": "ubuntu",
                    "ssh_strict_host_key_checking": "accept-new",
                },
            ),
        ],
        "big-memory": ["spark-1", "spark-2"],
    }


def test_pyinfra_reads_the_fleet_file(fleet_file: Path) -> None:
    done = pyinfra(fleet_file, "debug-inventory", "--json", TINDERBOX_TEST_KEY="not-to-be-shown")

    assert done.returncode == 0, done.stderr
    hosts = {host["name"]: host for host in json.loads(done.stdout)}
    assert list(hosts) == ["spark-1", "spark-2"]
    assert hosts["spark-1"]["data"]["ssh_port"] == 2222
    assert set(hosts["spark-2"]["groups"]) == {"inventory", "big-memory"}
    assert "not-to-be-shown" not in done.stdout + done.stderr


def test_pyinfra_ends_with_our_words_when_the_fleet_file_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    # An address where nothing would answer: a run that tried to connect would take long and say so.
    path.write_text(
        dedent(
            """\
            fleet: office
            defaults: {services: {gpt-oss: {engine: vlm, model: gpt-oss-120b, port: 99999}}}
            hosts: {spark-1: {address: 10.255.255.1}}
            """
        )
    )

    done = pyinfra(path, "exec", "--", "true")

    assert done.returncode == 1
    told = [line for line in done.stderr.splitlines() if line.startswith(str(path))]
    assert len(told) == 2
    assert f"{path}:2: defaults.services.gpt-oss.engine: unknown engine 'vlm'; did you mean vllm?" in told[0]
    assert f"{path}:2: defaults.services.gpt-oss.port: out of range: must be at most 65535; correct" in told[1]
    assert "Traceback" not in done.stderr
    assert "Connecting to hosts" not in done.stderr


def test_pyinfra_ends_when_a_secret_is_missing(fleet_file: Path) -> None:
    done = pyinfra(fleet_file, str(ROOT / "deploys/engine.py"), "-y", TINDERBOX_TEST_KEY="")

    assert done.returncode == 1
    assert "Connecting to hosts" not in done.stderr
    assert f"{fleet_file}:3: secrets.api-key: secret api-key is missing: environment variable" in done.stderr
    assert "Traceback" not in done.stderr


def test_looking_at_a_fleet_file_needs_no_secret(fleet_file: Path) -> None:
    assert pyinfra(fleet_file, "debug-inventory", TINDERBOX_TEST_KEY="").returncode == 0


def test_pyinfra_names_a_host_that_does_not_resolve_and_ends_not_0(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("fleet: office\nhosts: {spark-1: {address: spark-1.invalid}}\n")

    done = pyinfra(path, "-y", "exec", "--", "true")

    assert done.returncode == 1
    assert "[spark-1]" in done.stderr
    assert "Could not resolve hostname" in done.stderr


def test_loading_a_fleet_stays_light() -> None:
    """Every run of pyinfra loads the fleet first, and slow imports slow down every operation after it."""
    program = "import sys, modules.fleet, modules.catalog; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    heavy = {"pyinfra", "docker", "huggingface_hub", "jinja2", "rich", "numpy", "typer", "httpx"}
    assert heavy & set(done.stdout.split()) == set()
