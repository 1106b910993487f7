"""What a user reads of a fleet file that is wrong, from either command, before any host is contacted.

Each refusal by itself is a unit test; here the commands are run, which is why this is not among those.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from modules.lab.layout import ROOT
from tests.lab.lab_driver import HEEDING_CTRL_C

SECRET = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"
# Nothing answers there: a run that tried to connect would take long and say so.
HOSTS = "hosts: {spark-1: {address: 10.255.255.1}, spark-2: {address: 10.255.255.2}}"


@dataclass(frozen=True)
class Case:
    """A fleet file, and per problem the line and the words that are told of it."""

    name: str
    text: str
    told: tuple[tuple[int, str], ...]


CASES = (
    Case(
        "many at once",
        f"""\
        fleet: office
        defaults:
          hardwear: {{}}
          cuda: {{architecture: "12.1"}}
          services:
            gpt-oss:
              engine: vllm-mxpf4
              model: gpt-oss-120b
              port: 70000
              api_key: {SECRET}
        {HOSTS}
        """,
        (
            (3, "defaults.hardwear: unknown key; did you mean hardware?"),
            (4, "defaults.cuda.architecture: plain 12.1 has none of the native FP4 instructions"),
            (7, "defaults.services.gpt-oss.engine: unknown engine 'vllm-mxpf4'; did you mean vllm-mxfp4?"),
            (9, "defaults.services.gpt-oss.port: out of range: must be at most 65535; correct the number"),
            (10, "defaults.services.gpt-oss.api_key: "),
        ),
    ),
    Case(
        "duplicate host",
        """\
        fleet: office
        hosts:
          spark-1: {address: 10.255.255.1}
          spark-1: {address: 10.255.255.2}
        """,
        ((4, "hosts.spark-1: duplicate host: it stands on line 3 too; keep one of them"),),
    ),
    Case("empty fleet", "fleet: office\nhosts: {}\n", ((2, "hosts: the fleet is empty; add a host"),)),
    Case(
        "missing secret",
        f"""\
        fleet: office
        secrets: {{api-key: {{env: TINDERBOX_TEST_ABSENT}}}}
        defaults:
          services:
            gpt-oss: {{engine: vllm-mxfp4, model: gpt-oss-120b, listen: 0.0.0.0, api_key: api-key}}
        {HOSTS}
        """,
        ((2, "secrets.api-key: secret api-key is missing: environment variable TINDERBOX_TEST_ABSENT"),),
    ),
)


def run(argv: Sequence[str], fleet: Path | None = None) -> subprocess.CompletedProcess[str]:
    chosen = {} if fleet is None else {"TINDERBOX_FLEET": str(fleet)}
    environment = {**os.environ, "PYINFRA_PROGRESS": "off", **chosen}
    return subprocess.run(argv, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120, check=False)  # fmt: skip


def pyinfra(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("pyinfra")), "inventory.py", "deploys/spark.py", *arguments]


def wrapper(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "modules.converge", *arguments]


def write(folder: Path, text: str) -> Path:
    path = folder / "fleet.yaml"
    path.write_text(dedent(text))
    return path


BOTH = pytest.mark.parametrize("command", [pyinfra("-y"), wrapper()], ids=["pyinfra", "converge"])


@BOTH
def test_a_fleet_file_that_is_not_there_is_named(command: list[str], tmp_path: Path) -> None:
    done = run(command, tmp_path / "none.yaml")
    assert done.returncode != 0
    assert f"{tmp_path}/none.yaml: no such file; check the path, or TINDERBOX_FLEET" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@BOTH
def test_file_line_key_and_remedy_are_told_and_no_host_is_contacted(
    command: list[str], case: Case, tmp_path: Path
) -> None:
    path = write(tmp_path, case.text)
    done = run(command, path)
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if line.startswith(f"{path}:")]
    expected = [f"{path}:{number}: {words}" for number, words in case.told]
    assert [line[: len(start)] for line, start in zip(lines, expected, strict=True)] == expected
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    assert "Connecting" not in said
    assert SECRET not in said


@pytest.mark.parametrize("limit", ["spark-9", "spark-1,rack"])
def test_a_limit_that_matches_nothing_fails_where_pyinfra_itself_would_not(limit: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"fleet: office\n{HOSTS}\n")
    done = run(["make", "--silent", "drift", f"LIMIT={limit}", f"FLEET={path}"])
    assert done.returncode != 0
    said = f"{path}: no host or group matches {limit.rsplit(',', maxsplit=1)[-1]}; hosts are: spark-1, spark-2"
    assert said in done.stderr
    assert "Connecting" not in done.stdout + done.stderr


@pytest.mark.parametrize("target", ["check", "converge", "drift"])
def test_make_hands_the_fleet_file_on(target: str, tmp_path: Path) -> None:
    done = run(["make", "--silent", target, f"FLEET={tmp_path}/none.yaml"])
    assert done.returncode != 0
    assert f"{tmp_path}/none.yaml: no such file" in done.stderr


def test_a_deploy_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = run(wrapper("deploys/sparks.py"), write(tmp_path, f"fleet: office\n{HOSTS}\n"))
    assert done.returncode != 0
    assert "no such deploy file: deploys/sparks.py; see deploys/" in done.stderr


@pytest.fixture
def silent_host(tmp_path: Path) -> Iterator[Path]:
    """A fleet whose host takes the connection and then says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        yield write(tmp_path, f"fleet: office\nhosts: {{spark-1: {{address: 127.0.0.1, ssh: {{port: {port}}}}}}}\n")


BEFORE_PYINFRA = "fleet office"


@pytest.mark.parametrize("moment", [BEFORE_PYINFRA, "Loading config", "Loading inventory", "Connecting to hosts"])
@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_ends_with_130_and_takes_pyinfra_along(
    asked: int, moment: str, silent_host: Path
) -> None:
    environment = {**os.environ, "TINDERBOX_FLEET": str(silent_host)}
    argv = [*HEEDING_CTRL_C, *wrapper()]
    with subprocess.Popen(
        argv, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stderr is not None
        said = ""
        while moment not in said:
            line = child.stderr.readline()
            assert line, said
            said += line
        child.send_signal(asked)
        # Ends when pyinfra has, which holds the other end too.
        said += child.stderr.read()
        assert child.wait(60) == 130, said
    if moment != BEFORE_PYINFRA:
        assert "interrupted; nothing that it began goes on on any host" in said
    assert "Traceback" not in said
