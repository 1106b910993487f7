"""Which processes are engines, and whose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from modules.catalog import load_catalog
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
    process(proc, 60, "VLLM::EngineCore", cgroup=f"0::/system.slice/docker-{THEIRS}.scope")
    # The host may itself be in a container, as a lab's is.
    process(proc, 70, "llama-server", cgroup=f"4:memory:/docker/{'c' * 64}/user.slice")
    assert engine_processes(PATTERNS, proc) == [
        EngineProcess(50, "vllm serve", "gpt-oss", "tinderbox-gpt-oss"),
        EngineProcess(60, "VLLM::", None, "my-vllm"),
        EngineProcess(70, "llama-server"),
    ]
    assert engine_processes(PATTERNS, proc)[1].text() == "VLLM:: (pid 60 in container my-vllm)"
