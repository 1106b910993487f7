"""What is sampled beside the GPU: memory, other loads, and the engine's own metrics."""

from __future__ import annotations

import http.server
import threading
from pathlib import Path

import pytest

from modules.hostside import engine_sample, gpu_sample, host_sample
from modules.hostside.host_sample import HostSampler
from modules.spec.explanation import SeriesSign

OURS = "c0ffee" * 10
VLLM = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="gpt-oss-120b"} 3.0
vllm:num_requests_running{engine="1",model_name="gpt-oss-120b"} 2.0
vllm:num_requests_waiting{engine="0",model_name="gpt-oss-120b"} 1.0
vllm:kv_cache_usage_perc{engine="0",model_name="a{b} c"} 0.125
vllm:kv_cache_usage_perc{engine="1",model_name="a{b} c"} 0.5
vllm:num_preemptions_total{engine="0"} 4.0
vllm:num_preemptions_created{engine="0"} 1.7e+09
"""
SGLANG = (
    'sglang:num_running_reqs{name="m"} 2.0\nsglang:num_queue_reqs{name="m"} 0.0\nsglang:token_usage{name="m"} 0.25\n'
)
LLAMA = "llamacpp:requests_processing 1\nllamacpp:requests_deferred 0\nllamacpp:kv_cache_usage_ratio nan\n"


def test_vllm_processes_are_added_up_and_the_fullest_cache_counts() -> None:
    assert engine_sample.parsed(VLLM) == {
        "requests_running": 5.0,
        "requests_waiting": 1.0,
        "kv_usage_percent": 50.0,
        "preemptions": 4.0,
    }


def test_other_engines_tell_what_they_have() -> None:
    assert engine_sample.parsed(SGLANG) == {
        "requests_running": 2.0,
        "requests_waiting": 0.0,
        "kv_usage_percent": 25.0,
        "preemptions": None,
    }
    assert engine_sample.parsed(LLAMA)["requests_running"] == 1.0
    assert engine_sample.parsed(LLAMA)["kv_usage_percent"] is None


def test_an_engine_is_asked_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    class Metrics(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.headers["authorization"] in {None, "Bearer door"}
            self.send_response(200 if self.path == "/metrics" and known else 404)
            self.end_headers()
            self.wfile.write(VLLM.encode())

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metrics)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    assert engine_sample.sample(f"http://127.0.0.1:{server.server_port}")["requests_running"] == 5.0
    for key, running in (("door", 5.0), ("wrong", None)):
        assert engine_sample.sample(f"http://127.0.0.1:{server.server_port}", key)["requests_running"] == running
    server.shutdown()
    server.server_close()
    assert engine_sample.sample(f"http://127.0.0.1:{server.server_port}") == dict.fromkeys(engine_sample.FIELDS)


class Proc:
    """A made-up /proc."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write(
            "meminfo",
            "MemTotal: 125829120 kB\nMemAvailable: 12582912 kB\nSwapTotal: 2097152 kB\nSwapFree: 1048576 kB\n",
        )
        self.process(1, "/init.scope", 0)
        self.write("self/cgroup", "0::/system.slice/gate.service\n")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def cpu(self, busy: int, idle: int) -> None:
        self.write("stat", f"cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 1 1 1\n")

    def process(self, pid: int, cgroup: str, ticks: int) -> None:
        self.write(f"{pid}/cgroup", f"0::{cgroup}\n")
        self.write(f"{pid}/stat", f"{pid} (odd ) name) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 5\n")


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Proc:
    monkeypatch.setattr(host_sample, "gpu_processes", lambda: None)
    return Proc(tmp_path)


def test_memory_and_swap_are_in_gib(proc: Proc) -> None:
    proc.cpu(0, 0)
    found = HostSampler([OURS], proc.folder).sample()
    assert (found["memory_available_gib"], found["swap_used_gib"]) == (12.0, 1.0)


def test_time_of_others_is_what_neither_the_service_nor_the_gate_used(proc: Proc) -> None:
    proc.cpu(busy=1000, idle=1000)
    proc.process(50, f"/system.slice/docker-{OURS}.scope", 100)
    proc.process(60, "/system.slice/gate.service", 10)
    proc.process(70, "/user.slice/build", 500)
    sampler = HostSampler([OURS], proc.folder)
    proc.cpu(busy=1080, idle=1020)
    proc.process(50, f"/system.slice/docker-{OURS}.scope", 130)
    proc.process(60, "/system.slice/gate.service", 20)
    proc.process(70, "/user.slice/build", 540)
    assert sampler.sample()["other_cpu_percent"] == pytest.approx(40.0)
    # And of the next second anew.
    proc.cpu(busy=1080, idle=1120)
    assert sampler.sample()["other_cpu_percent"] == pytest.approx(0.0)


def test_without_time_between_samples_there_is_no_share(proc: Proc) -> None:
    proc.cpu(10, 10)
    assert HostSampler([], proc.folder).sample()["other_cpu_percent"] is None


def test_processes_on_the_gpu_that_are_no_containers_of_ours_are_others(
    proc: Proc, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.cpu(0, 0)
    proc.process(50, f"/system.slice/docker-{OURS}.scope", 0)
    proc.process(70, "/user.slice/game", 0)
    monkeypatch.setattr(host_sample, "gpu_processes", lambda: [50, 70])
    assert HostSampler([OURS], proc.folder).sample()["other_gpu_processes"] == 1.0


def test_an_unreadable_proc_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_sample, "gpu_processes", lambda: None)
    assert HostSampler([], tmp_path / "none").sample() == dict.fromkeys(host_sample.FIELDS)


def test_this_machine_can_be_sampled() -> None:
    found = HostSampler(()).sample()
    assert found["memory_available_gib"] is not None
    assert found["memory_available_gib"] > 0


def test_explanations_know_every_series_that_is_sampled() -> None:
    for field in (*gpu_sample.FIELDS, *host_sample.FIELDS, *engine_sample.FIELDS):
        assert SeriesSign.model_validate({"series": field, "below": 1}).series == field
