"""What the controller keeps of measurements, and shows."""

from __future__ import annotations

import io
import shlex
import socket
import subprocess
from pathlib import Path

import pytest
import typer
from rich.console import Console

from modules.fleet import Fleet, load_fleet
from modules.gating import Verdict, thresholds_id
from modules.reporting import table
from modules.reporting.measured import Figure, Measured, MeasuredService, forget, load_measured, measured_file, remember
from modules.reporting.trial import trial_line

FLEET = """\
fleet: office
ssh: {user: nvidia, key: keys/id_ed25519}
secrets: {key: {env: SERVE_KEY}}
defaults:
  services:
    gpt-oss: {engine: vllm-mxfp4, model: gpt-oss-120b, gate: vllm-mxfp4-single-stream}
hosts:
  spark-1: {address: 10.0.0.11}
  spark-2:
    address: 10.0.0.12
    ssh: {port: 2222}
    settings:
      services:
        gpt-oss: {listen: 0.0.0.0, api_key: key}
"""
DECODE, PROMPT = "tg128@pp2048 c1", "pp2048 c1"


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setenv("SERVE_KEY", "sk-hidden")
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/id_ed25519").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    return load_fleet(path)


def measured(host: str, verdict: Verdict = Verdict.PASS, **changes: object) -> MeasuredService:
    figures = {
        DECODE: Figure(mean=59.2, std=0.1, values=(59.2,)),
        PROMPT: Figure(mean=4716.0, std=61.5, values=(4716.0,)),
    }
    base = MeasuredService(
        host=host,
        service="gpt-oss",
        engine="vllm-mxfp4",
        profile="latency",
        model="gpt-oss-120b",
        port=8000,
        gpu="NVIDIA GB10 (simulated)",
        release="0123456789ab",
        verdict=verdict,
        measured="2026-11-30T04:45:19Z",
        metrics=figures,
        reasons=[],
    )
    return base.model_copy(update=changes)


def test_results_are_kept_by_host_and_service(tmp_path: Path) -> None:
    assert load_measured("office", tmp_path) == Measured()
    remember("office", measured("spark-1"), tmp_path)
    remember("office", measured("spark-2"), tmp_path)
    remember("office", measured("spark-1", Verdict.FAIL), tmp_path)
    kept = load_measured("office", tmp_path).services
    assert {name: service.verdict for name, service in kept.items()} == {
        "spark-1/gpt-oss": Verdict.FAIL,
        "spark-2/gpt-oss": Verdict.PASS,
    }
    assert load_measured("home", tmp_path) == Measured()


def test_a_service_that_is_gone_is_forgotten_and_the_others_are_not(tmp_path: Path) -> None:
    remember("office", measured("spark-1"), tmp_path)
    remember("office", measured("spark-2"), tmp_path)

    forget("office", "spark-1", "gpt-oss", tmp_path)
    forget("office", "spark-1", "gpt-oss", tmp_path)

    assert list(load_measured("office", tmp_path).services) == ["spark-2/gpt-oss"]


def test_what_is_known_already_is_not_written_again(tmp_path: Path) -> None:
    remember("office", measured("spark-1"), tmp_path)
    before = measured_file("office", tmp_path).stat().st_mtime_ns
    remember("office", measured("spark-1"), tmp_path)
    assert measured_file("office", tmp_path).stat().st_mtime_ns == before


def test_a_file_that_was_cut_is_as_none(tmp_path: Path) -> None:
    remember("office", measured("spark-1"), tmp_path)
    path = measured_file("office", tmp_path)
    path.write_text(path.read_text()[:50])
    assert load_measured("office", tmp_path) == Measured()
    remember("office", measured("spark-2"), tmp_path)
    assert set(load_measured("office", tmp_path).services) == {"spark-2/gpt-oss"}


def shown(fleet: Fleet, results: Measured, width: int = 160) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(table.table_of(fleet, table.rows_of(fleet, results)))
    stream = console.file
    assert isinstance(stream, io.StringIO)
    return stream.getvalue()


def results(*services: MeasuredService) -> Measured:
    return Measured(services={f"{service.host}/{service.service}": service for service in services})


@pytest.mark.parametrize("width", [80, 100, 160])
def test_the_table_shows_figures_and_that_a_gpu_is_simulated(fleet: Fleet, width: int) -> None:
    text = shown(fleet, results(measured("spark-1")), width)
    for cell in (
        "spark-1",
        "gpt-oss-120b",
        "vllm-mxfp4",
        "4716.0 ± 61.5",
        "59.2 ± 0.1",
        PROMPT,
        DECODE,
        "(simulated)",
        "PASS",
        "0123456789ab",
        "2026-11-30",
    ):
        assert cell in text
    assert "not measured" in text  # spark-2


def test_a_figure_that_is_not_there_is_no_number(fleet: Fleet) -> None:
    assert "not measured" in shown(fleet, results(measured("spark-1", Verdict.FAIL, metrics={}), measured("spark-2")))


@pytest.mark.parametrize(
    ("services", "code"),
    [
        ([measured("spark-1"), measured("spark-2")], 0),
        ([measured("spark-1")], 1),
        ([measured("spark-1"), measured("spark-2", Verdict.WARN)], 1),
        ([measured("spark-1"), measured("spark-2", Verdict.FAIL, reasons=["FAIL  tg128@pp2048 c1"])], 1),
        ([], 1),
    ],
)
def test_only_a_fleet_that_passed_exits_with_0(
    fleet: Fleet,
    services: list[MeasuredService],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(table, "load_fleet", lambda: fleet)
    monkeypatch.setattr(table, "load_measured", lambda _: results(*services))
    with pytest.raises(typer.Exit) as left:
        table.main()
    assert left.value.exit_code == code
    told = capsys.readouterr().out
    assert ("curl -s" in told) == bool(services)
    for service in services:
        for reason in service.reasons:
            assert f"{service.host}/gpt-oss: {reason}" in told


def line(fleet: Fleet, host: str) -> str:
    row = next(row for row in table.rows_of(fleet, Measured()) if row.host.name == host)
    return trial_line(row.host, row.plan)


def test_the_line_to_try_is_one_that_a_shell_understands(fleet: Fleet) -> None:
    text = line(fleet, "spark-1")
    assert subprocess.run(["bash", "-n", "-c", text], check=False).returncode == 0
    words = shlex.split(text)
    assert words[:1] == ["echo"]
    assert "nvidia@10.0.0.11" in words
    assert "http://127.0.0.1:8000/v1/chat/completions" in words


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ('{"id":"x","choices":[{"message":{"role":"assistant","content":"Sparks fly."}}]}', '"content":"Sparks fly."'),
        ('{"choices": [{"message": {"content": null, "reasoning": "Sparks?"}}]}', '"reasoning": "Sparks?"'),
        ('{"choices":[{"message":{"content":"","reasoning_content":"Hm"}}]}', '"reasoning_content":"Hm"'),
        ('{"error": {"message": "no such model"}}', '"message": "no such model"'),
        ("", ""),
    ],
)
def test_of_a_reply_the_words_are_shown_and_of_an_error_its_message(fleet: Fleet, reply: str, told: str) -> None:
    last = shlex.split(line(fleet, "spark-1"))[-3:]
    assert last[0] == "grep"
    done = subprocess.run(last, input=reply, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == told


def test_a_server_that_is_down_is_no_silence(fleet: Fleet, tmp_path: Path) -> None:
    # As on the host: what ssh is given, without ssh.
    words = shlex.split(line(fleet, "spark-1"))
    request = words[words.index("curl") : words.index("|", words.index("curl"))]
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        free = closed.getsockname()[1]
    asked = [word.replace(":8000/", f":{free}/") for word in request]
    done = subprocess.run(asked, input="{}", capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "curl: (7)" in done.stderr


def test_a_verdict_by_the_bounds_of_before_says_so(fleet: Fleet) -> None:
    row = next(row for row in table.rows_of(fleet, Measured()) if row.host.name == "spark-1")
    now = thresholds_id(row.gate)
    assert "by the gate of before" not in shown(fleet, results(measured("spark-1", judged_by=now)))
    assert "by the gate of before" in shown(fleet, results(measured("spark-1", judged_by="other")))


def test_a_service_with_a_key_is_asked_with_it(fleet: Fleet) -> None:
    text = line(fleet, "spark-2")
    assert subprocess.run(["bash", "-n", "-c", text], check=False).returncode == 0
    assert "-p 2222 nvidia@10.0.0.12" in text
    assert "/etc/tinderbox/gpt-oss.secret.env" in text
    assert "Authorization: Bearer /p" in text


def test_a_lab_is_reached_by_its_own_ssh_config(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "keys/ssh_config").touch()
    assert f"ssh -F {tmp_path}/keys/ssh_config spark-1 curl" in line(fleet, "spark-1")
