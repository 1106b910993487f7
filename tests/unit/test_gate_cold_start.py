"""A start's log → what it took: by what engines say of themselves, and by the times of their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from modules.hostside.cold_start import _unix, split, stamped

VLLM = """\
1764489600.100000 spark docker[7]: (EngineCore pid=185) INFO [gpu_model_runner.py:2] Starting to load model /m
1764489975.500000 spark docker[7]: (EngineCore pid=185) INFO [default_loader.py:3] Loading weights took 374.90 seconds
1764489976.000000 spark docker[7]: (EngineCore pid=185) INFO [x.py:4] Model loading took 61.8 GiB and 376.1 seconds
1764489979.000000 spark docker[7]: (EngineCore pid=185) INFO [kv.py:5] GPU KV cache size: 513,893 tokens
1764490012.000000 spark docker[7]: (EngineCore pid=185) INFO [x.py:6] Graph capturing finished in 33 secs
"""
SGLANG = """\
1764489600.100000 spark docker[7]: [2025-11-01 08:00:00] Load weight begin. avail mem=110.0 GB
1764489975.100000 spark docker[7]: [2025-11-01 08:06:15] Load weight end. type=GptOssForCausalLM, avail mem=45.1 GB
1764489976.100000 spark docker[7]: [2025-11-01 08:06:16] KV Cache is allocated. #tokens: 513893, K size: 17.64 GB
1764489977.100000 spark docker[7]: [2025-11-01 08:06:17] Capture cuda graph begin. This can take up to several minutes.
1764490009.800000 spark docker[7]: [2025-11-01 08:06:49] Capture cuda graph end. Time elapsed: 32.70 s. mem usage=3.4 GB
"""


@pytest.mark.parametrize(
    ("log", "weights", "kv", "graphs"), [(VLLM, 374.9, 3.0, 33.0), (SGLANG, 375.0, 1.0, 32.7)], ids=["vllm", "sglang"]
)
def test_a_start_is_split(log: str, weights: float, kv: float, graphs: float) -> None:
    found = split(stamped(log), 1764489580.0, 1764490023.0)
    assert found["launch_to_ready"] == 443.0
    assert found["weights_loading"] == pytest.approx(weights)
    assert found["kv_cache"] == pytest.approx(kv)
    assert found["graph_capture"] == pytest.approx(graphs)
    assert found["rest"] == pytest.approx(443.0 - weights - kv - graphs)


def test_what_the_log_does_not_show_is_not_guessed() -> None:
    found = split([], 100.0, 160.0)
    assert found == {
        "launch_to_ready": 60.0, "weights_loading": None, "kv_cache": None, "graph_capture": None, "rest": 60.0
    }  # fmt: skip
    eager = split(stamped("\n".join(VLLM.splitlines()[:4])), 1764489580.0, 1764489990.0)
    assert eager["graph_capture"] is None


def test_systemds_times() -> None:
    assert _unix("@1764489580") == 1764489580.0
    assert _unix("") is None
    assert _unix(None) is None


def test_recorded_starts_are_understood() -> None:
    folder = Path(__file__).parents[1] / "samples"
    lines = (folder / "vllm-start.txt").read_text().splitlines()
    found = split([(100.0 + at, line) for at, line in enumerate(lines)], 90.0, 100.0 + len(lines))
    assert found["weights_loading"] is not None
    assert found["kv_cache"] is not None
