"""Which processes are engines, and whose."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from modules.catalog import load_catalog
from modules.facts.obstacles import StrangeEngines
from modules.hostside import engine_processes as program
from modules.hostside.engine_processes import EngineProcess, engine_processes

PATTERNS = sorted({engine.process for engine in load_catalog().engines.values()})
MINE, THEIRS = "a" * 64, "b" * 64
CONTAINERS = {
    MINE: {"name": "/tinderbox-gpt-oss", "service": "gpt-oss"},
    THEIRS: {"name": "/my-vllm", "service": None},
}


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def inspect(*words: str) -> str | None:
        return json.dumps(CONTAINERS[words[-1]]) if words[-1] in CONTAINERS else None

    monkeypatch.setattr(program, "run", inspect)
    return tmp_path


def process(proc: Path, pid: int, *words: str, cgroup: str = "0::/user.slice") -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "cmdline").write_bytes("\0".join(words).encode() + b"\0")
    (proc / str(pid) / "cgroup").write_text(cgroup + "\n")


@pytest.mark.parametrize(
    "words",
    [
        ("/usr/bin/python3", "/usr/local/bin/vllm", "serve", "/models/x", "--api-key", "sk-secret"),
        ("VLLM::EngineCore",),
        ("python3", "-m", "vllm.entrypoints.openai.api_server"),
        ("python3", "-m", "sglang.launch_server", "--model-path", "x"),
        ("sglang::scheduler",),
        ("/opt/llama.cpp/build/bin/llama-server", "-m", "x.gguf"),
    ],
)
def test_engines_of_the_catalog_are_found_and_no_key_is_told(proc: Path, words: tuple[str, ...]) -> None:
    process(proc, 41, *words)
    (found,) = engine_processes(PATTERNS, proc)
    assert found.pid == 41
    assert "secret" not in found.text()


@pytest.mark.parametrize(
    "words",
    [
        ("/usr/bin/docker", "run", "--name", "tinderbox-gpt-oss", "image", "vllm", "serve"),
        ("/usr/bin/earlyoom", "-m", "2,1", "--prefer", "(vllm|VLLM|sglang|llama-server|python)"),
        ("bash", "-c", "vllm serve x"),
        ("vim", "llama-server.md"),
        ("grep", "-r", "vllm serve"),
        ("/usr/bin/python3", "/usr/local/lib/tinderbox/await_ready.py", "--service", "gpt-oss"),
        ("sshd: spark [priv]",),
        (),
    ],
)
def test_what_only_speaks_of_an_engine_is_none(proc: Path, words: tuple[str, ...]) -> None:
    process(proc, 41, *words)
    assert engine_processes(PATTERNS, proc) == []


def test_one_of_each_container_with_whose_it_is(proc: Path) -> None:
    process(proc, 1, "systemd")
    process(proc, 50, "python3", "/bin/vllm", "serve", "x", cgroup=f"4:memory:/docker/{MINE}")
    process(proc, 51, "VLLM::EngineCore", cgroup=f"4:memory:/docker/{MINE}")
    process(proc, 52, "VLLM::Worker", cgroup=f"0::/\n4:memory:/docker/{'c' * 64}/engines/{MINE}")
    process(proc, 60, "VLLM::EngineCore", cgroup=f"0::/system.slice/docker-{THEIRS}.scope")
    # The host may itself be in a container, as a lab's is.
    process(proc, 70, "llama-server", cgroup=f"4:memory:/docker/{'c' * 64}/user.slice")
    assert engine_processes(PATTERNS, proc) == [
        EngineProcess(50, "vllm serve", "gpt-oss", "tinderbox-gpt-oss"),
        EngineProcess(60, "VLLM::", None, "my-vllm"),
        EngineProcess(70, "llama-server"),
    ]
    assert engine_processes(PATTERNS, proc)[1].text() == "VLLM:: (pid 60 in container my-vllm)"


def test_a_run_is_told_of_strangers_and_not_of_what_belongs_here_or_makes_way(
    proc: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    process(proc, 41, "vllm", "serve", "x", cgroup=f"0::/system.slice/docker-{MINE}.scope")
    process(proc, 42, "vllm", "serve", "y", cgroup=f"0::/system.slice/docker-{THEIRS}.scope")
    # As the fact asks: by words of which this program itself is not to be found.
    command = StrangeEngines().command(patterns=PATTERNS, services=["other"]).get_raw_value()
    process(proc, 43, *shlex.split(command.partition("|| ")[2]))
    monkeypatch.setattr(program, "engine_processes", lambda patterns: engine_processes(patterns, proc))

    def told(left_over: list[str]) -> list[str]:
        monkeypatch.setattr(program, "left_over", lambda: left_over)
        program.main(*shlex.split(command)[-2:])
        found: list[str] = json.loads(capsys.readouterr().out)["strangers"]
        return found

    mine = "vllm serve (pid 41 in container tinderbox-gpt-oss, service gpt-oss of Tinderbox)"
    theirs = "vllm serve (pid 42 in container my-vllm)"
    assert told([]) == [mine, theirs]
    assert told(["gpt-oss"]) == [theirs]
