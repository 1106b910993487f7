"""Logs of engines: milestones, readiness, failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.facts.parse.errors import ParseError
from modules.facts.parse.llama_server_log import Device, parse_llama_server_log
from modules.facts.parse.sglang_log import parse_sglang_log
from modules.facts.parse.vllm_log import parse_vllm_log

SAMPLES = Path(__file__).parents[1] / "samples"
COMPLETE = "(APIServer pid=1) INFO:     Application startup complete.\n"
ANSWER = '(APIServer pid=1) INFO:     127.0.0.1:5000 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def test_the_milestones_of_a_start() -> None:
    log = parse_vllm_log(sample("vllm-start.txt"))
    assert (log.version, log.model) == ("0.27.0", "openai/gpt-oss-120b")
    assert (log.attention_backends, log.moe_backends) == (("FLASHINFER",), ("CUTLASS",))
    assert (log.download_seconds, log.weights_seconds, log.model_gib, log.model_seconds) == (
        1220.5,
        (60.25,),
        61.5,
        1290.125,
    )
    assert (log.kv_gib, log.kv_tokens, log.max_concurrency) == (35.25, {"EngineCore pid=77": 513893}, 3.92)
    assert (log.graph_seconds, log.init_seconds, log.listening) == (28, 48.9, "http://127.0.0.1:8000")


def test_a_server_that_only_listens_is_not_ready_yet() -> None:
    assert parse_vllm_log(sample("vllm-start.txt")).state == "loading"


@pytest.mark.parametrize("sign", [COMPLETE, ANSWER])
def test_it_is_ready_by_its_own_word_or_by_an_answer(sign: str) -> None:
    assert parse_vllm_log(sample("vllm-start.txt") + sign).state == "ready"


def test_a_refused_request_is_no_answer() -> None:
    text = sample("vllm-start.txt") + ANSWER.replace("200 OK", "503 Service Unavailable")
    assert parse_vllm_log(text).state == "loading"


def test_the_warning_about_fp4_does_not_make_a_start_fail() -> None:
    log = parse_vllm_log(sample("vllm-start.txt") + COMPLETE)
    assert log.fp4_fallback
    assert log.failure is None


def test_an_engine_that_ended_without_a_word_was_killed() -> None:
    log = parse_vllm_log(sample("vllm-oom-killed.txt"))
    assert (log.state, log.killed, log.failure) == ("failed", True, None)


def test_the_cause_is_found_among_the_lines_of_other_processes() -> None:
    log = parse_vllm_log(sample("vllm-interleaved-failure.txt"))
    assert log.state == "failed"
    assert not log.killed
    assert log.failure is not None
    assert log.failure.kind == "torch.AcceleratorError"
    assert log.failure.process == "EngineCore_DP1 pid=71"
    assert log.failure.message == "CUDA error: no kernel image is available for execution on the device"
    assert log.failure.line == 7
    assert log.kv_tokens == {"EngineCore_DP0 pid=70": 100000}


def test_a_request_that_raised_is_not_the_end_of_a_server() -> None:
    text = sample("vllm-start.txt") + COMPLETE + "(APIServer pid=1) ValueError: prompt is too long\n"
    assert parse_vllm_log(text).state == "ready"


def test_an_engine_that_died_while_serving_has_failed() -> None:
    text = (
        sample("vllm-start.txt")
        + ANSWER
        + "(EngineCore pid=77) ERROR 11-03 10:00:00 [core.py:900] EngineCore encountered a fatal error.\n"
        + "(EngineCore pid=77) ERROR 11-03 10:00:00 [core.py:900] RuntimeError: CUDA error: an illegal memory access\n"
    )
    log = parse_vllm_log(text)
    assert log.state == "failed"
    assert log.failure is not None
    assert log.failure.message == "CUDA error: an illegal memory access"


def test_of_several_starts_the_last_counts_and_it_is_told() -> None:
    log = parse_vllm_log(sample("vllm-oom-killed.txt") + sample("vllm-start.txt") + COMPLETE)
    assert (log.starts, log.state, log.killed) == (2, "ready", False)
    log = parse_vllm_log(sample("vllm-start.txt") + COMPLETE + sample("vllm-oom-killed.txt"))
    assert (log.starts, log.state, log.kv_tokens) == (2, "failed", {})


@pytest.mark.parametrize("text", ["", "docker: Error response from daemon: no such image\n"])
def test_what_is_no_log_of_vllm_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_vllm_log(text)


def test_the_milestones_of_sglang() -> None:
    log = parse_sglang_log(sample("sglang-start.txt"))
    assert (log.version, log.model, log.model_class) == ("0.5.12", "openai/gpt-oss-120b", "GptOssForCausalLM")
    assert (log.attention_backend, log.weights_seconds, log.weights_gb) == ("triton", 375.2, 66.4)
    assert (log.kv_dtype, log.kv_tokens, log.kv_gb) == ("auto", 513893, 35.28)
    assert (log.graph_seconds, log.max_running_requests, log.context_length) == ((32.7,), 4014, 65536)
    assert (log.listening, log.state) == ("http://127.0.0.1:30000", "ready")


def test_uvicorns_words_do_not_make_sglang_ready() -> None:
    text = sample("sglang-start.txt").replace("The server is fired up and ready to roll!", "")
    assert parse_sglang_log(text).state == "loading"


def test_sglangs_failure_is_the_exception_and_not_the_signal_after_it() -> None:
    log = parse_sglang_log(sample("sglang-failed.txt"))
    assert log.state == "failed"
    assert log.failure is not None
    assert (log.failure.kind, log.failure.message) == ("ValueError", "mem_fraction_static is too small")
    assert log.failure.detail == ()
    with pytest.raises(ParseError):
        parse_sglang_log("Segmentation fault\n")


def test_a_llama_server_whose_stamps_look_like_addresses() -> None:
    log = parse_llama_server_log(sample("llama-server-start.txt"))
    assert log.devices == (Device("NVIDIA GB10", 122501, 110000),)
    assert (log.native_fp4, log.model, log.slots) == (True, "/models/gpt-oss-120b-mxfp4.gguf", (131072,))
    assert (log.listening, log.ready_seconds, log.state) == ("http://127.0.0.1:8080", 72.245875, "ready")


def test_a_llama_server_that_can_not_load_its_model() -> None:
    text = sample("llama-server-start.txt").partition("1.12")[0]
    assert parse_llama_server_log(text).state == "loading"
    log = parse_llama_server_log(text + "0.00.300.000 E srv    load_model: failed to load model, '/models/x.gguf'\n")
    assert (log.state, log.failure) == ("failed", "failed to load model, '/models/x.gguf'")
    with pytest.raises(ParseError):
        parse_llama_server_log("192.168.1.1 GET /\n")
