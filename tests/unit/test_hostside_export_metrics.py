"""What the exporter writes: read back by a strict parser, and nothing that is not known."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from modules.facts.parse.nvidia_smi_table import parse_table
from modules.facts.parse.telemetry import parse_telemetry
from modules.hostside import engine_sample, export_metrics
from modules.hostside.export_metrics import engine_families, place, serve
from modules.hostside.exposition import Family, parsed, text_of
from modules.hostside.gpu_metrics import gpu_families
from modules.hostside.host_metrics import host_families
from modules.hostside.ledger import point
from modules.hostside.load_stops import note_load_stop
from modules.hostside.service_metrics import Services, state_of

SAMPLES = Path(__file__).parents[1] / "samples"
RECORDED = Path(__file__).resolve().parents[3] / "shared" / "recorded"
HEADER = (
    "name, driver_version, utilization.gpu [%], power.draw [W], temperature.gpu, clocks.current.sm [MHz], "
    "clocks.max.sm [MHz], clocks_event_reasons.active\n"
)
APPS = "pid, process_name, used_gpu_memory [MiB]\n"
Read = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def read(text: str) -> Read:
    """Every sample, by a parser that is not ours; a name or a series that stands twice is an error."""
    found: Read = {}
    families = list(text_string_to_metric_families(text))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    for family in families:
        assert family.documentation
        assert family.type != "unknown"
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found
            found[key] = sample.value
    return found


def by_name(found: Read, name: str) -> dict[tuple[tuple[str, str], ...], float]:
    return {labels: value for (one, labels), value in found.items() if one == name}


def gpu(rows: str, apps: str | None = APPS) -> Read:
    def asked(query: str, _: str) -> str | None:
        return HEADER + rows if query.startswith("--query-gpu") else apps

    return read(text_of(gpu_families(asked)))


def test_a_gb10_is_told_by_what_it_tells() -> None:
    found = gpu("NVIDIA GB10, 580.142, 96 %, 41.15 W, 60, 2489 MHz, 3003 MHz, 0x0000000000000004\n")
    of = (("gpu", "0"),)
    assert by_name(found, "tinderbox_gpu_power_watts") == {of: 41.15}
    assert by_name(found, "tinderbox_gpu_utilization_ratio")[of] == pytest.approx(0.96)
    assert by_name(found, "tinderbox_gpu_sm_clock_hertz") == {of: 2489e6}
    limited = by_name(found, "tinderbox_gpu_clock_limited")
    assert [dict(labels)["reason"] for labels, value in limited.items() if value] == ["software-power-cap"]
    assert ("tinderbox_source_up", (("source", "nvidia-smi"),)) in found


@pytest.mark.parametrize(
    "word", ["[N/A]", "[Not Supported]", "Not Supported", "[Unknown Error]", "[GPU requires reset]"]
)
def test_what_the_gpu_does_not_tell_is_absent_and_no_zero(word: str) -> None:
    found = gpu(f"NVIDIA GB10, 580.142, {word}, {word}, {word}, {word}, {word}, {word}\n")
    assert {name for name, _ in found} == {"tinderbox_source_up", "tinderbox_gpu_info", "tinderbox_gpu_processes"}


@pytest.mark.parametrize(
    "said", [None, "", "NVIDIA-SMI has failed\n", "Failed to initialize NVML\n", "No devices were found\n"]
)
def test_no_answer_is_told_as_such(said: str | None) -> None:
    found = read(text_of(gpu_families(lambda *_: said)))
    assert found == {("tinderbox_source_up", (("source", "nvidia-smi"),)): 0.0}


def test_memory_is_that_of_the_processes_whose_names_may_hold_commas() -> None:
    apps = APPS + "7, /opt/a, b/llama-server, 100 MiB\n8, /opt/a, b/llama-server, 50 MiB\n9, VLLM::EngineCor, [N/A]\n"
    found = gpu("NVIDIA GB10, 580.142, 0 %, 10 W, 41, 208 MHz, 3003 MHz, 0x0\n", apps)
    memory = by_name(found, "tinderbox_gpu_process_memory_bytes")
    assert memory == {(("process", "/opt/a, b/llama-server"),): 150 * 1024**2}
    assert found["tinderbox_gpu_processes", ()] == 3


def test_a_containers_banner_before_the_answer_is_passed_over() -> None:
    banner = (SAMPLES / "ngc-banner.txt").read_text()
    row = "NVIDIA GB10, 580.142, 1 %, 10 W, 41, 208 MHz, 3003 MHz, 0x0\n"
    found = read(text_of(gpu_families(lambda query, _: banner + HEADER + row if "gpu=" in query else APPS)))
    assert by_name(found, "tinderbox_gpu_power_watts") == {(("gpu", "0"),): 10.0}


@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recordings do not lie beside the repository")
def test_recorded_figures_of_real_sparks_come_out_as_they_went_in() -> None:
    for sample in parse_telemetry((RECORDED / "telemetry-csv-gpt-oss-20b.csv").read_text()):
        row = f"{sample.utilization_pct:g} %, {sample.power_w} W, {sample.temperature_c:g}, {sample.sm_mhz:g} MHz"
        found = gpu(f"NVIDIA GB10, 580.142, {row}, [N/A], 0x0\n")
        of = (("gpu", "0"),)
        assert found["tinderbox_gpu_power_watts", of] == sample.power_w
        assert found["tinderbox_gpu_sm_clock_hertz", of] == sample.sm_mhz * 1e6
        assert found["tinderbox_gpu_utilization_ratio", of] == pytest.approx(sample.utilization_pct / 100)
    apps = (RECORDED / "nvidia-smi-query-06-compute-apps.csv").read_text()
    found = gpu("NVIDIA GB10, 580.142, 0 %, 10 W, 41, 208 MHz, 3003 MHz, 0x0\n", apps)
    assert list(by_name(found, "tinderbox_gpu_process_memory_bytes").values()) == [(24420 + 19871 + 9279) * 1024**2]
    for path in sorted(RECORDED.glob("nvidia-smi-table-*.txt")):
        table = parse_table(path.read_text())
        lines = [f"{one.pid}, {one.name}, {one.memory_mib} MiB" for one in table.processes]
        found = gpu("NVIDIA GB10, 580.159.03, 0 %, 10 W, 41, [N/A], [N/A], [N/A]\n", APPS + "\n".join(lines) + "\n")
        assert sum(by_name(found, "tinderbox_gpu_process_memory_bytes").values()) == sum(
            (one.memory_mib or 0) * 1024**2 for one in table.processes
        )


@pytest.mark.parametrize(
    ("sample", "prefix", "count"),
    [
        ("vllm-metrics.txt", "vllm:", 9),
        ("sglang-metrics.txt", "sglang:", 7),
        ("llama-server-metrics.txt", "llamacpp:", 4),
    ],
)
def test_an_engines_figures_are_copied_whole_with_its_service(sample: str, prefix: str, count: int) -> None:
    text = (SAMPLES / sample).read_text()
    families = parsed(text, (prefix,), {"service": "gpt-oss"})
    copied = read(text_of(families))
    ours = {key: value for key, value in _samples(text).items() if key[0].startswith(prefix)}
    assert len(families) >= count
    assert {
        (name, tuple(sorted({**dict(labels), "service": "gpt-oss"}.items()))): value
        for (name, labels), value in ours.items()
    } == copied
    assert not [name for name, _ in copied if not name.startswith(prefix)]


def _samples(text: str) -> Read:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def test_what_an_engine_says_can_not_pass_for_another_service_or_break_the_file() -> None:
    text = (
        '# TYPE vllm:x gauge\nvllm:x{service="other",a="q\\"\\\\\\n"} 1\nvllm:y{broken 2\nvllm:z NaNo\nup 1\n'
        "# TYPE vllm:c counter\nvllm:c_created 17\n# HELP tinderbox_gate_verdict mine\n"
        'vllm:d 1_0\nvllm:e \u0661\nvllm:f{\u00e9="x"} 1\nvllm:\u00e9 1\n'
    )
    found = read("# HELP a b\n# TYPE a gauge\n" + text_of([Family("a_b", "c").add(1.0), *_with_help(text)]))
    assert found == {("a_b", ()): 1.0, ("vllm:x", (("a", 'q"\\\n'), ("service", "gpt-oss"))): 1.0}


def _with_help(text: str) -> list[Family]:
    return parsed("# HELP vllm:x what\n" + text, ("vllm:",), {"service": "gpt-oss"})


def test_two_services_of_one_engine_share_their_families() -> None:
    text = (SAMPLES / "vllm-metrics.txt").read_text()
    both = [family for name in ("one", "two") for family in parsed(text, ("vllm:",), {"service": name})]
    found = read(text_of(both))
    services = {dict(labels)["service"] for labels in by_name(found, "vllm:num_requests_running")}
    assert services == {"one", "two"}


@pytest.fixture
def engine() -> Iterator[tuple[str, list[str | None]]]:
    """An engine's /metrics, and the keys with which it was asked."""
    keys: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            keys.append(self.headers.get("authorization"))
            self.send_response(200)
            self.end_headers()
            self.wfile.write((SAMPLES / "llama-server-metrics.txt").read_bytes())

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", keys
    server.shutdown()


def test_a_key_is_read_where_the_engine_reads_it_and_told_to_nobody(
    engine: tuple[str, list[str | None]], tmp_path: Path
) -> None:
    url, keys = engine
    (tmp_path / "key.env").write_text("LLAMA_API_KEY=hush\n")
    wish = {"url": url, "engine": "llama-cpp", "prefix": "llamacpp:", "key_file": str(tmp_path / "key.env")}
    text = text_of(engine_families("gpt-oss", {**wish, "key_variable": "LLAMA_API_KEY"}))
    assert keys == ["Bearer hush"]
    assert "hush" not in text
    assert by_name(read(text), "tinderbox_engine_up") == {(("service", "gpt-oss"),): 1.0}


def test_an_engine_that_does_not_answer_is_told_and_nothing_else_of_it() -> None:
    wish = {"url": "http://127.0.0.1:9", "engine": "vllm", "prefix": "vllm:"}
    assert read(text_of(engine_families("gpt-oss", wish))) == {("tinderbox_engine_up", (("service", "gpt-oss"),)): 0.0}


@pytest.mark.parametrize(
    "said",
    [
        b"no HTTP\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\nvllm:",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\nvllm:",
    ],
)
def test_an_engine_that_ends_in_the_middle_of_its_answer_is_one_that_does_not_answer(said: bytes) -> None:
    """Neither the exporter nor a drain, which asks up to the engine's last moment, may end by it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"

        def answers() -> None:
            for _ in range(2):
                connection, _ = server.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(said)

        thread = threading.Thread(target=answers)
        thread.start()
        engine_families("gpt-oss", {"url": url, "engine": "vllm", "prefix": "vllm:"})
        assert engine_sample.sample(url) == dict.fromkeys(engine_sample.FIELDS)
        thread.join(timeout=10)


def test_memory_pressure_and_reserve(tmp_path: Path) -> None:
    (tmp_path / "pressure").mkdir()
    (tmp_path / "meminfo").write_text((SAMPLES / "meminfo").read_text())
    (tmp_path / "pressure/memory").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n")
    for name, reserve in (("a", 8 << 30), ("b", 1 << 30)):
        (tmp_path / f"{name}.memory.json").write_text(json.dumps({"reserve": reserve}))
    found = read(text_of(host_families(tmp_path, tmp_path)))
    assert found["tinderbox_memory_reserve_bytes", ()] == 8 << 30
    assert found["tinderbox_pressure_seconds_total", (("kind", "some"), ("resource", "memory"))] == 1.5
    assert found["tinderbox_memory_available_bytes", ()] > 0
    nothing = read(text_of(host_families(tmp_path / "no", tmp_path / "no")))
    assert set(nothing.values()) == {0.0}
    assert {name for name, _ in nothing} == {"tinderbox_source_up"}


def shown(active: str, sub: str, restarts: int = 0) -> str:
    return (
        f"Id=tinderbox-gpt-oss.service\nLoadState=loaded\nActiveState={active}\nSubState={sub}\nNRestarts={restarts}\n"
        "ActiveEnterTimestamp=@1796060266\n"
    )


def entry(root: Path, release: str, events: list[dict[str, Any]]) -> None:
    path = root / "ledger" / "gpt-oss" / f"{release}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"id": release, "events": [{"at": "2026-01-01T00:00:00Z", **one} for one in events]}))


@pytest.mark.parametrize(
    ("active", "sub", "state", "ready"),
    [
        ("active", "running", "running", 1.0),
        ("activating", "start-post", "stopped", 0.0),
        ("activating", "auto-restart", "failed", 0.0),
        ("failed", "failed", "failed", 0.0),
        ("inactive", "dead", "stopped", 0.0),
    ],
)
def test_a_services_state(active: str, sub: str, state: str, ready: float, tmp_path: Path) -> None:
    services = Services(tmp_path, lambda *_: shown(active, sub, 2))
    found = read(text_of(services.families({"gpt-oss": {"gate": False}})))
    states = by_name(found, "tinderbox_service_state")
    assert [dict(labels)["state"] for labels, value in states.items() if value] == [state]
    assert by_name(found, "tinderbox_service_ready") == {(("service", "gpt-oss"),): ready}
    assert by_name(found, "tinderbox_service_restarts_total") == {(("service", "gpt-oss"),): 2.0}


@pytest.mark.parametrize("said", [None, "", "Id=other.service\nActiveState=active\n"])
def test_a_state_that_nobody_tells_is_unknown_and_neither_ready_nor_not(said: str | None, tmp_path: Path) -> None:
    found = read(text_of(Services(tmp_path, lambda *_: said).families({"gpt-oss": {"gate": True}})))
    states = by_name(found, "tinderbox_service_state")
    assert [dict(labels)["state"] for labels, value in states.items() if value] == ["unknown"]
    assert by_name(found, "tinderbox_service_ready") == {}
    verdicts = by_name(found, "tinderbox_gate_verdict")
    assert [dict(labels)["verdict"] for labels, value in verdicts.items() if value] == ["MISSING"]


def test_states_are_those_of_the_report() -> None:
    assert state_of({}) == "unknown"


def test_releases_and_what_became_of_them_are_counted_and_read_only_when_they_change(tmp_path: Path) -> None:
    entry(tmp_path, "aaa", [
        {"event": "activated"}, {"event": "good"}, {"event": "restarted", "by": "watchdog"}, {"event": "restarted"},
        {"event": "restored", "at": "2026-02-01T00:00:00Z"},
    ])  # fmt: skip
    entry(tmp_path, "bbb", [
        {"event": "activated"},
        {"event": "failed to start", "note": "nothing answered"},
        {"event": "rolled back"},
    ])  # fmt: skip
    point(tmp_path / "ledger/gpt-oss/current", "aaa.json")
    # Of a release that is good: its events tell nothing of later starts.
    note_load_stop("gpt-oss", tmp_path)
    services = Services(tmp_path, lambda *_: shown("active", "running"))
    found = read(text_of(services.families({"gpt-oss": {"gate": False}})))
    of = (("service", "gpt-oss"),)
    counts = {
        name: by_name(found, f"tinderbox_{name}_total")[of]
        for name in ("watchdog_restarts", "load_guard_stops", "rollbacks", "releases_failed")
    }
    assert counts == {"watchdog_restarts": 1, "load_guard_stops": 1, "rollbacks": 1, "releases_failed": 1}
    assert by_name(found, "tinderbox_release_timestamp_seconds")[of] == 1769904000
    assert [dict(labels)["release"] for labels in by_name(found, "tinderbox_release_info")] == ["aaa"]
    entry(tmp_path, "bbb", [{"event": "activated"}, {"event": "rolled back"}, {"event": "rolled back"}])
    again = read(text_of(services.families({"gpt-oss": {"gate": False}})))
    assert by_name(again, "tinderbox_rollbacks_total")[of] == 2


def test_a_gate_by_its_verdict_age_figures_and_bounds(tmp_path: Path) -> None:
    entry(tmp_path, "aaa", [{"event": "activated"}])
    point(tmp_path / "ledger/gpt-oss/current", "aaa.json")
    (tmp_path / "gates/gpt-oss").mkdir(parents=True)
    stored = {
        "finished": "2026-01-01T00:00:00Z",
        "judgement": {"verdict": "WARN", "figures": {"tg128@pp2048 c1": 52.5}},
    }
    (tmp_path / "gates/gpt-oss/aaa.json").write_text(json.dumps(stored))
    wish = {
        "gate": True,
        "bounds": {"tg128@pp2048 c1": {"min": 50.0, "warn_min": 56.0}},
        "units": {"tg128@pp2048 c1": "tok/s"},
    }
    found = read(text_of(Services(tmp_path, lambda *_: shown("active", "running")).families({"gpt-oss": wish})))
    verdicts = by_name(found, "tinderbox_gate_verdict")
    assert [dict(labels)["verdict"] for labels, value in verdicts.items() if value] == ["WARN"]
    assert list(by_name(found, "tinderbox_gate_figure").values()) == [52.5]
    bounds = by_name(found, "tinderbox_gate_bound")
    assert {dict(labels)["bound"]: value for labels, value in bounds.items()} == {"min": 50.0, "warn_min": 56.0}
    assert list(by_name(found, "tinderbox_gate_measured_timestamp_seconds").values()) == [1767225600]


def test_the_textfile_goes_with_the_exporter_and_comes_by_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, seen = tmp_path / "tinderbox.prom", list[str]()
    file.write_text("# of a start that was killed\n")
    monkeypatch.setattr(export_metrics, "collected", lambda *_: iter([Family("a", "b").add(1.0)]))

    class End(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            seen.append(file.read_text())
            self.set()
            return True

    serve({"file": str(file), "every_s": 5}, End())
    assert seen == ["# HELP a b\n# TYPE a gauge\na 1\n"]
    assert list(tmp_path.iterdir()) == []
    place(file, "x")
    assert file.stat().st_mode & 0o777 == 0o644


def test_a_link_that_somebody_has_put_beside_the_textfile_is_not_written_through(tmp_path: Path) -> None:
    theirs = tmp_path / "shadow"
    theirs.write_text("precious")
    theirs.chmod(0o600)
    (tmp_path / ".tinderbox.prom.new").symlink_to(theirs)
    place(tmp_path / "tinderbox.prom", "a 1\n")
    assert (theirs.read_text(), theirs.stat().st_mode & 0o777) == ("precious", 0o600)
    assert (tmp_path / "tinderbox.prom").read_text() == "a 1\n"
    assert not (tmp_path / "tinderbox.prom").is_symlink()
