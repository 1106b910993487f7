"""The ready CI examples: their form, and that they name only what there is."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CI = ROOT / "docs" / "ci"
# What GitHub's workflow syntax knows, as far as it is used here.
_TOP = {"name", "on", "permissions", "env", "jobs"}
_JOB = {"if", "needs", "runs-on", "timeout-minutes", "concurrency", "steps"}
_STEP = {"name", "if", "uses", "with", "run", "env"}
_EVENTS = {"push", "pull_request", "schedule", "workflow_dispatch"}


@pytest.fixture(scope="module")
def workflow() -> dict[Any, Any]:
    read: dict[Any, Any] = yaml.safe_load((CI / "github-actions.yml").read_text())
    # YAML 1.1 takes `on` for a truth value; GitHub does not.
    read["on"] = read.pop(True)
    return read


def test_the_workflow_has_the_form_of_one(workflow: dict[str, Any]) -> None:
    assert set(workflow) <= _TOP
    assert set(workflow["on"]) <= _EVENTS
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert set(job) <= _JOB, name
        assert {"runs-on", "steps"} <= set(job), name
        assert set([job["needs"]] if "needs" in job else []) <= set(workflow["jobs"])
        for step in job["steps"]:
            assert set(step) <= _STEP, step
            assert ("uses" in step) != ("run" in step), step
            assert "with" not in step or "uses" in step
            if "uses" in step:
                assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"])


def test_it_asks_for_all_four_and_a_failure_hides_none(workflow: dict[str, Any]) -> None:
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    asked = [re.findall(r"docs/ci/ci\.sh \"\$FLEET\" (\w+)", step.get("run", "")) for step in steps]
    assert [name for names in asked for name in names] == ["lint", "verify", "drift", "gate"]
    late = [step for step, names in zip(steps, asked, strict=True) if names and names[0] in {"drift", "gate"}]
    assert [step["if"] for step in late] == ["always()", "always()"]


def test_a_pull_request_gets_no_key(workflow: dict[str, Any]) -> None:
    for job in workflow["jobs"].values():
        if "secrets." in str(job):
            assert job["if"] == "github.event_name != 'pull_request'"
    runs = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    # Not expanded by GitHub into the script, where it could end a word.
    assert not [run for run in runs if "${{" in run]


def test_a_lint_without_the_key_reads_the_fleet_file(workflow: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    ssh = re.search(r"names both: (ssh: {.*})\.", (CI / "github-actions.yml").read_text())
    assert ssh is not None
    path.write_text(f"fleet: office\n{ssh[1]}\nhosts: {{spark-1: {{address: 192.0.2.1}}}}\n")
    runs = [step["run"] for step in workflow["jobs"]["lint"]["steps"] if "run" in step]

    done = subprocess.run(
        ["sh", "-e", "-c", "\n".join(runs)],
        cwd=ROOT,
        env={**os.environ, "HOME": str(tmp_path), "FLEET": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_a_pull_request_does_not_wait_for_a_gate(workflow: dict[str, Any]) -> None:
    assert [name for name, job in workflow["jobs"].items() if "concurrency" in job] == ["fleet"]


def test_the_script_is_plain_shell_and_names_only_what_there_is() -> None:
    script = CI / "ci.sh"
    subprocess.run(["sh", "-n", str(script)], check=True)
    text = script.read_text()
    for path in re.findall(r"(deploys/\w+\.py|tests/verify|inventory\.py|setup\.sh)", text):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize(("words", "said"), [([], "usage:"), (["inventory/example.yaml", "lnt"], "no such step: lnt")])
def test_it_refuses_what_it_does_not_know(words: list[str], said: str) -> None:
    done = subprocess.run(["sh", str(CI / "ci.sh"), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert said in done.stderr


def test_a_refused_fleet_file_ends_it(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text("fleet: office\nhosts: {spark-1: {adress: 10.0.0.1}}\n")
    done = subprocess.run(
        ["sh", str(CI / "ci.sh"), str(path), "lint", "gate"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "adress" in done.stderr
    assert "== gate" not in done.stderr
