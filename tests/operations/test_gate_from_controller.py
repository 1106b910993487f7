"""A gate whose client runs on the controller: what is asked of the host, and the real programs of both ends.

The host's program and a fake engine run on this machine, with a plain TCP forward between engine and client.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api import FunctionCommand, StringCommand

from modules.facts.gate import Evidence, GateEvidence, GateState, ServiceGate
from modules.facts.job import JobProgress, JobStatus
from modules.fleet import Fleet
from modules.gating.identity import workload_id, workloads
from modules.hostside import gate_delivery
from modules.hostside.gate_delivery import Delivery
from modules.hostside.progress import Progress
from modules.operations import controller_tools, engine, gate, gate_client, gate_memory
from modules.operations.controller_tools import ControllerError, tokenizer_here, tools_are_here, tools_here
from modules.operations.gate_client import measured_here
from modules.operations.gate_job import Client, forward_words
from modules.operations.job import Job
from modules.operations.tools import lock_identity
from modules.spec.fleet import ResolvedHost, Ssh
from modules.spec.gate import BenchyWorkload, Gate, Threshold
from modules.spec.settings import HostSettings
from tests.lab.fake_engine import Behaviour, handler, served
from tests.lab.gated_fake import ANSWERS, FakeHost
from tests.operations.stub_host import StubHost, commands_of
from tests.operations.test_gate_operations import PASSED, RESULT
from tests.unit.release_samples import HOME, lab_gate, service_plan

SECRET = "tb-0123456789abcdef"
FORWARD = Path(__file__).parents[1] / "lab" / "tcp_forward.py"
CONTROLLER = lab_gate(client="controller", answers="lab-recital", cold_start=True)
GATE = Gate(
    client="controller",
    workload=BenchyWorkload(pp=(256,), tg=(32,), runs=3, coherence=False),
    answers="gpt-oss",
    thresholds={"pp256 c1": Threshold(min=1)},
)
SPARK = ResolvedHost(
    name="spark-1", address="10.0.0.7", ssh=Ssh(key="/keys/id", port=2222), groups=(), settings=HostSettings()
)


@pytest.fixture(autouse=True)
def fleet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = Fleet(name="office", path=tmp_path / "f", hosts={"spark-1": SPARK})
    for module in (gate, gate_memory):
        monkeypatch.setattr(module, "load_fleet", lambda: known)
    monkeypatch.setattr(gate_memory, "remember", lambda *_: None)
    monkeypatch.setattr(gate_memory, "note_gate", lambda *_, **__: None)
    monkeypatch.setattr(engine, "load_fleet", lambda: SimpleNamespace(secret=lambda _: SECRET))


def given(*states: GateState, wanted: Gate = CONTROLLER, **settings: Any) -> tuple[Job, Client]:
    """The job and the client that the operation wants first."""
    host = StubHost({ServiceGate: list(states), GateEvidence: Evidence()})
    plan = service_plan(**settings)
    command = commands_of(host, gate.gate_passed, plan=plan, gate=wanted, home=HOME, asked=False)[0]
    assert isinstance(command, FunctionCommand)
    assert command.function is measured_here
    job, client = command.args
    assert SECRET not in repr(command)
    return job, client


def test_the_host_samples_and_the_controller_measures() -> None:
    new = replace(PASSED, result=None)
    job, client = given(new, new)
    words = list(job.command)
    assert words[words.index("--client") + 1] == client.token
    assert job.title == "measure gpt-oss (release r1) from the controller"
    # The host takes the start's times out of its own log; the rest is the client's.
    assert json.loads(words[words.index("--measure") + 1]) == {"cold_start": 1, "answers": 1, "benchy": 3}
    asked = dict(zip(client.arguments[::2], client.arguments[1::2], strict=True))
    assert json.loads(asked["--measure"]) == {"answers": 1, "benchy": 3}
    forward = json.loads(asked["--forward"])
    assert forward == forward_words(SPARK, "http://127.0.0.1:8000")
    assert (client.secret, "--key-variable" in asked) == ("", False)
    again, _ = given(new, new)
    # One whose controller is gone has nobody to wait for.
    assert again.key != job.key


def test_an_api_key_is_in_no_command_line() -> None:
    new = replace(PASSED, result=None)
    job, client = given(new, new, engine="vllm", model="gpt-oss-120b", api_key="door")
    assert client.secret.endswith(f"={SECRET}")
    assert SECRET not in " ".join([*job.command, *client.arguments])
    assert SECRET not in repr(client)


def test_a_key_of_the_hosts_own_making_is_asked_of_it_only_when_it_is_needed() -> None:
    new = replace(PASSED, result=None)
    job, client = given(new, new, listen="0.0.0.0")
    assert (client.secret, client.made_key) == ("", ("VLLM_API_KEY", "/etc/tinderbox/gpt-oss.key.env"))
    words = list(job.command)
    assert words[words.index("--secret-file") + 1] == "/etc/tinderbox/gpt-oss.key.env"
    assert client.arguments[client.arguments.index("--key-variable") + 1] == "VLLM_API_KEY"


def test_the_tunnel_is_made_as_pyinfra_connects_and_asks_nobody() -> None:
    words = " ".join(forward_words(SPARK, "http://127.0.0.1:8000"))
    assert words.startswith("ssh -N -o BatchMode=yes")
    assert "StrictHostKeyChecking=accept-new -i /keys/id -p 2222 -l nvidia" in words
    assert words.endswith("-L 127.0.0.1:{port}:127.0.0.1:8000 10.0.0.7")
    strict = SPARK.model_copy(update={"ssh": Ssh(known_hosts="/keys/known", config="/keys/config")})
    words = " ".join(forward_words(strict, "http://[::1]:8000"))
    assert "-F /keys/config -o StrictHostKeyChecking=yes -o UserKnownHostsFile=/keys/known" in words
    assert "{port}:[::1]:8000" in words


def test_results_of_the_two_are_never_taken_for_each_other() -> None:
    here = CONTROLLER.model_copy(update={"client": "host"})
    assert workload_id(here) != workload_id(CONTROLLER)
    # Measured on the host, with a gate that now wants it from the controller: measured anew.
    there = replace(PASSED, result=replace(RESULT, workload_id=workload_id(here)))
    job, _ = given(there, there)
    assert "--append" not in job.command


class FakeJobs:
    """The jobs of a host that is this machine: `job` is a real process, and the figures are given to it directly."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, host: FakeHost, url: str) -> None:
        self.said: list[str] = []
        self._folder, self._host, self._url = folder / "job", host, url
        self._folder.mkdir()
        self.process: subprocess.Popen[bytes] | None = None
        monkeypatch.setattr(gate_client, "ask", self._ask)
        monkeypatch.setattr(gate_client, "status_of", self._status)
        monkeypatch.setattr(gate_client, "until_ended", self._until_ended)
        monkeypatch.setattr(gate_client, "pause", _short_pause)
        monkeypatch.setattr(gate_client, "show", lambda *_: None)
        monkeypatch.setattr(gate_client, "followed", _nothing)
        monkeypatch.setattr(gate_client, "tell", lambda _, lines: self.said.extend(lines))

    def _status(self, _host: Any, command: StringCommand) -> JobStatus:
        if self.process is None:
            assert " start " in str(command)
            words, around = self._host.program(self._url, {"cold_start": 1, "answers": 1}, "--client", "c0ffee")
            around["TINDERBOX_JOB_DIR"] = str(self._folder)
            self.process = subprocess.Popen(words, env=around, stdout=subprocess.DEVNULL)
        ended = self.process.poll()
        told = self._folder / "progress.json"
        progress = JobProgress.model_validate_json(told.read_text()) if told.exists() else None
        return JobStatus(job="gate", state="running" if ended is None else "failed", progress=progress)

    def _ask(self, _host: Any, command: StringCommand, _pause: Any, stdin: str | None = None) -> tuple[bool, Any]:
        if str(command).startswith("grep '^THE_KEY=' /etc/tinderbox/svc.key.env"):
            return True, SimpleNamespace(stdout_lines=[f"THE_KEY={SECRET}"])
        if "systemctl stop" in str(command):
            assert self.process is not None
            self.process.kill()
            return True, None
        assert "gate_delivery.py svc c0ffee" in str(command)
        assert stdin is not None
        Delivery("svc", "c0ffee", self._host.state).deliver(stdin)
        return True, None

    def _until_ended(self, *_: Any) -> bool:
        assert self.process is not None
        return self.process.wait(30) == 0


def _short_pause(_seconds: float) -> bool:
    time.sleep(0.05)
    return True


@contextmanager
def _nothing(_host: Any) -> Iterator[None]:
    yield


def client_of(port: int, **changes: Any) -> Client:
    """A client that goes to that port by the plain forward."""
    words = [
        *("--model", "fake/fake", "--served-as", "fake", "--budget", "60"),
        *("--forward", json.dumps([sys.executable, str(FORWARD), "{port}", str(port)])),
        *("--gate", json.dumps(workloads(GATE, ANSWERS)), "--measure", json.dumps({"answers": 1})),
        *("--key-variable", "THE_KEY"),
    ]
    made = Client("svc", "c0ffee", tuple(words), 60, benchy=False, snapshot="", secret=f"THE_KEY={SECRET}")
    return replace(made, **changes)


JOB = Job("gate", "svc-r1-w-c0ffee", "measure svc", ("true",), 60)


def measured_from_here(client: Client) -> bool:
    return measured_here(None, StubHost({}), JOB, client)  # type: ignore[arg-type]


def seen_in_command_lines(text: str) -> bool:
    """Whether any process shows it."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text in path.read_text(errors="replace"):
                return True
        except OSError:
            continue
    return False


OF_THE_HOST = {"secret": "", "made_key": ("THE_KEY", "/etc/tinderbox/svc.key.env")}


@pytest.mark.parametrize(
    ("fault", "kinds", "key"), [("", set(), {}), ("cached", {"cached-answers"}, {}), ("", set(), OF_THE_HOST)]
)
def test_what_the_controller_measured_lands_on_the_host_as_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str, kinds: set[str], key: dict[str, Any]
) -> None:
    keys: set[str | None] = set()
    shown: list[bool] = []

    class Keyed(handler(Behaviour(fault=fault))):  # type: ignore[misc]
        def do_POST(self) -> None:  # noqa: N802, http.server calls it so
            keys.add(self.headers["authorization"])
            shown.append(seen_in_command_lines(SECRET))
            super().do_POST()

    host = FakeHost(tmp_path, GATE)
    with served(Keyed) as (url, server):
        jobs = FakeJobs(monkeypatch, tmp_path, host, url)
        assert measured_from_here(client_of(server.server_port, **key)), jobs.said
    stored = host.stored
    assert (stored["client"], stored["workload_id"]) == ("controller", workload_id(GATE, ANSWERS))
    assert {one["kind"] for one in stored["faults"]} == kinds
    assert set(stored["parts"]) == {"cold_start", "answers"}
    (part,) = stored["parts"]["answers"]
    assert part["requests"] == len(part["replies"]) == 5
    # Sampled on the host meanwhile.
    assert stored["samples"]["clock_mhz"][0] == 2418.0
    assert (keys, any(shown)) == ({f"Bearer {SECRET}"}, False)
    assert list((host.state / "gates" / "svc").glob("*.client")) == []


def test_no_way_to_the_service_is_told_and_ends_the_job_on_the_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    host = FakeHost(tmp_path, GATE)
    with served(handler(Behaviour())) as (url, server):
        port = server.server_port
        jobs = FakeJobs(monkeypatch, tmp_path, host, url)
        closed = client_of(port)
        words = [word.replace(f'"{port}"', '"1"') for word in closed.arguments]
        assert not measured_from_here(replace(closed, arguments=tuple(words)))
    assert any("the host's sshd must allow TCP forwarding" in line for line in jobs.said), jobs.said
    assert jobs.process is not None
    assert jobs.process.wait(10) != 0
    assert not (host.state / "gates" / "svc" / "r1.json").exists()


def test_a_program_that_is_not_there_or_gives_up_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    host = FakeHost(tmp_path, GATE)
    with served(handler(Behaviour())) as (url, server):
        jobs = FakeJobs(monkeypatch, tmp_path, host, url)
        for forward, told in (
            (["no-such-program"], "no-such-program could not be started on the controller"),
            (["sh", "-c", "echo Permission denied >&2; exit 255"], "opened no way to the service: Permission denied"),
        ):
            client = client_of(server.server_port)
            words = list(client.arguments)
            words[words.index("--forward") + 1] = json.dumps(forward)
            jobs.process = None
            for left in (host.state / "gates" / "svc").glob("*.client"):
                left.unlink()
            assert not measured_from_here(replace(client, arguments=tuple(words)))
            assert any(told in line for line in jobs.said), jobs.said


def group_lives(number: int) -> bool:
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


class Snapshot(StubHost):
    """A host that has a model's small files, and gives them."""

    def __init__(self, *names: str) -> None:
        super().__init__({})
        self.names, self.given = names, 0
        self.current_op_global_arguments: dict[str, Any] = {"_sudo": True}

    def answer(self, _host: Any, _command: Any, _pause: Any) -> tuple[bool, Any]:
        return True, SimpleNamespace(stdout_lines=list(self.names))

    def get_file(self, remote: str, local: str, **arguments: Any) -> bool:
        assert arguments["_sudo"] is True
        self.given += 1
        Path(local).write_text(remote)
        return "broken" not in remote


def test_a_tokenizer_is_fetched_once_for_each_commit_and_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    snapshot = "/hf/hub/models--openai--gpt-oss-120b/snapshots/c1"
    host = Snapshot("tokenizer.json", "broken.json")
    monkeypatch.setattr(controller_tools, "ask", host.answer)
    with pytest.raises(ControllerError, match=r"broken\.json could not be fetched"):
        tokenizer_here(host, snapshot, _short_pause, tmp_path)  # type: ignore[arg-type]
    assert list(tmp_path.rglob("*.json")) == []
    host.names, host.given = ("tokenizer.json", "chat_template.jinja"), 0
    for _ in range(2):
        there = tokenizer_here(host, snapshot, _short_pause, tmp_path)  # type: ignore[arg-type]
    assert there == tmp_path / ".tokenizers" / "models--openai--gpt-oss-120b" / "c1"
    assert sorted(path.name for path in there.iterdir()) == ["chat_template.jinja", "tokenizer.json"]
    assert host.given == 2
    host.names = ()
    with pytest.raises(ControllerError, match="holds no tokenizer"):
        tokenizer_here(host, f"{snapshot}2", _short_pause, tmp_path)  # type: ignore[arg-type]


def test_tools_that_are_whole_are_put_in_use_and_a_failure_is_told(tmp_path: Path) -> None:
    lock = Path(gate_client.__file__).parents[1] / "hostside" / "tools.lock"
    home = tmp_path / ".tools" / lock_identity(lock.read_bytes())
    (home / "bin").mkdir(parents=True)
    (home / ".whole").touch()
    assert not tools_are_here(tmp_path)
    assert tools_here(tmp_path).resolve() == home / "bin"
    assert tools_are_here(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ControllerError, match="could not be installed on the controller"):
        tools_here(tmp_path / "file")


def test_a_client_ends_with_who_started_it(tmp_path: Path) -> None:
    program = Path(gate_client.__file__).parents[1] / "hostside" / "run_client.py"
    with served(handler(Behaviour(token_s=1.0))) as (_, server):
        more = ["--tools", str(tmp_path), "--tokenizer", str(tmp_path), "--into", str(tmp_path / "figures")]
        words = [sys.executable, str(program), *client_of(server.server_port).arguments, *more]
        around = {**os.environ, "TINDERBOX_JOB_DIR": str(tmp_path)}
        process = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True, env=around)
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        while not (tmp_path / "progress.json").exists():
            time.sleep(0.05)
        process.stdin.close()
        assert process.wait(10) == -9
        # The forward was in its group.
        deadline = time.monotonic() + 10
        while group_lives(process.pid):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_both_ends_have_one_word_for_it() -> None:
    assert gate_client.AWAITED == gate_delivery.AWAITED


def test_a_job_whose_controller_is_gone_ends_when_another_measurement_begins(tmp_path: Path) -> None:
    with Delivery("svc", "a", tmp_path) as first, Delivery("svc", "b", tmp_path) as second:
        with pytest.raises(SystemExit, match="another measurement from the controller has begun"):
            first.awaited(time.monotonic() + 5, Progress(tmp_path))
        with pytest.raises(SystemExit, match="has ended"):
            first.deliver("{}")
        with pytest.raises(SystemExit, match="no figures came"):
            second.awaited(time.monotonic() - 1, Progress(tmp_path))
        second.deliver('{"answers": {"faults": []}}')
        assert second.awaited(time.monotonic() + 5, Progress(tmp_path)) == {"answers": {"faults": []}}
        # systemd, or the controller, starts the job of a host that went down once more.
        with pytest.raises(SystemExit, match="the host went down"), Delivery("svc", "b", tmp_path):
            pass
    assert list(tmp_path.rglob("*.client")) == []


@pytest.mark.parametrize("drained", [True, False])
def test_a_host_behind_a_gateway_is_told_while_it_waits_and_while_it_is_measured(
    monkeypatch: pytest.MonkeyPatch, drained: bool
) -> None:
    told: list[str] = []
    monkeypatch.setattr(gate_client, "ask", lambda host, command, pause: told.append(command.get_raw_value()))
    monkeypatch.setattr(gate_client, "_STAYS_S", 0.0)
    monkeypatch.setattr(gate_client, "_LOOK_S", 0.01)
    new = replace(PASSED, result=None)
    _, client = given(new, new)
    stays = gate_client._Stays(SimpleNamespace(name="spark-1"), replace(client, drained=drained))  # type: ignore[arg-type]
    assert gate_client._turn.acquire()
    waiting = gate_client._turn_after(stays)
    thread = threading.Thread(target=waiting.__enter__)
    thread.start()
    deadline = time.monotonic() + (20 if drained else 0.2)
    while not told and time.monotonic() < deadline:
        time.sleep(0.01)
    gate_client._turn.release()
    thread.join()
    waiting.__exit__(None, None, None)
    assert set(told) == ({"/usr/bin/python3 /usr/local/lib/tinderbox/drain.py stay gpt-oss"} if drained else set())
    assert not gate_client._turn.locked()


def test_the_client_of_a_host_behind_a_gateway_knows_that_it_is_drained() -> None:
    behind = replace(PASSED, result=None, has_gateway=True)
    host = StubHost({ServiceGate: [behind, behind], GateEvidence: Evidence()})
    commands = commands_of(host, gate.gate_passed, plan=service_plan(), gate=CONTROLLER, home=HOME, asked=False)
    measured = next(one for one in commands if isinstance(one, FunctionCommand))
    assert measured.args[1][1].drained
