"""What the operation gives a host for a service, and that it gives a host that serves it nothing."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyinfra.api import FunctionCommand

from modules.facts.checkpoint import CheckpointFiles, CheckpointState
from modules.facts.obstacles import PortHolder, StrangeEngines
from modules.facts.releases import HostReleases
from modules.facts.service import Barred, ServiceRelease, ServiceState, Underway, UnitState
from modules.fleet import Fleet, HostPlan
from modules.images.reference import image_reference
from modules.memory import describe
from modules.memory.sizes import GIB
from modules.operations import engine, memory, weights
from modules.operations.engine import service_running
from modules.release import layout
from modules.release.build import build_release
from modules.release.files import release_files
from modules.spec.lock import Lock
from modules.spec.secret import SecretReference
from modules.spec.settings import HostSettings
from tests.operations.stub_host import StubHost, commands_of
from tests.unit.release_samples import HOME, service_plan, surroundings

PLAN = service_plan(gate="lab-cpu")
IMAGE = image_reference(PLAN.recipe, Lock())
COMMIT = PLAN.model.revision
RELEASE = build_release(PLAN, surroundings(image=IMAGE, commit=COMMIT))
LISTED = hashlib.sha256(b'{"services": ["gpt-oss"]}\n').hexdigest()
SERVING = ServiceState(
    systemd=255,
    unit=UnitState(active="active", sub="running", enabled=True, stale=False, job=False),
    files={**{file.path: file.sha256 for file in release_files(RELEASE, {})}, layout.services_file(): LISTED},
    current=RELEASE.id,
    last_good=RELEASE.id,
    image="sha256:1",
    container_release=RELEASE.id,
    commit=COMMIT,
    model_is_here=True,
    missing_encodings=(),
)
DOWN = UnitState(active="inactive", sub="dead", enabled=False, stale=False, job=False)
BARE = replace(
    SERVING, unit=DOWN, files={layout.services_file(): LISTED}, current=None, last_good=None, container_release=None
)


@pytest.fixture(autouse=True)
def fleet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A fleet with one secret and no lock."""
    monkeypatch.setenv("SERVE_KEY", "sk-hidden")
    monkeypatch.setenv("LOGNAME", "me")
    office = Fleet(
        name="office", path=tmp_path / "fleet.yaml", hosts={}, secrets={"key": SecretReference(env="SERVE_KEY")}
    )
    monkeypatch.setattr(engine, "load_fleet", lambda: office)
    monkeypatch.setattr(weights, "load_fleet", lambda: office)


CONFIG = {"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8, "hidden_size": 512}
SMALL = CheckpointState(describe({"BF16": GIB}, CONFIG), memory_total=120 * GIB, problems=())
LARGE = replace(SMALL, checkpoint=describe({"BF16": 150 * GIB}, CONFIG))


def given(
    state: ServiceState | list[ServiceState] | None,
    plan: Any = PLAN,
    checkpoint: CheckpointState | None = SMALL,
    holder: str | None = None,
    strangers: tuple[str, ...] = (),
) -> tuple[StubHost, list[Any]]:
    host = StubHost({
        ServiceRelease: state,
        CheckpointFiles: checkpoint,
        PortHolder: holder,
        StrangeEngines: [strangers],
        HostReleases: {"gpt-oss": None, "former-name": None},
    })  # fmt: skip
    memory._told.clear()
    services = HostPlan("spark-1", HostSettings.model_validate({"weights": {"home": HOME}}), (plan,))
    return host, commands_of(host, service_running, plan=plan, services=services)


def gate_file(install: Any) -> dict[str, Any]:
    files = json.loads(install.connector_arguments["_stdin"])["files"]
    (content,) = [file["content"] for file in files if file["path"] == "/etc/tinderbox/gpt-oss.memory.json"]
    found: dict[str, Any] = json.loads(content)
    return found


def test_a_port_that_is_taken_is_named_with_its_holder_and_nothing_is_begun() -> None:
    _, commands = given(FORMER, holder="python3 (pid 812, container other)")
    refusal = commands[0].get_raw_value()
    assert (
        "spark-1: service gpt-oss can not start: its port 8000 is taken by python3 (pid 812, container other)"
        in refusal
    )
    assert refusal.endswith("exit 1")
    # Who serves holds its port itself.
    assert given(SERVING, holder="nobody asks")[1] == []


def test_beside_another_engine_nothing_is_begun_and_what_serves_is_left() -> None:
    stranger = "vllm serve (pid 812 in container other)"
    host, commands = given(FORMER, strangers=(stranger,))
    refusal = commands[0].get_raw_value()
    assert (
        f"service gpt-oss is not started beside another engine, which its memory plan does not count in: {stranger}."
        in (refusal)
    )
    assert refusal.endswith("exit 1")
    (asked,) = [arguments for fact, arguments in host.asked if fact is StrangeEngines]
    assert asked["services"] == ["gpt-oss"]
    # Who asks to be started where it does not fit is not kept from that either.
    careless = replace(PLAN, service=PLAN.service.model_copy(update={"memory_plan": "warn"}))
    assert StrangeEngines not in [fact for fact, _ in given(FORMER, careless, strangers=(stranger,))[0].asked]


def test_the_fact_of_the_port_reads_what_the_program_prints() -> None:
    command = PortHolder().command(service="gpt-oss", listen="127.0.0.1", port=8000).get_raw_value()
    assert command.endswith("port_holder.py gpt-oss 127.0.0.1 8000")
    assert PortHolder().process(['{"holder": "nginx (pid 3)"}']) == "nginx (pid 3)"
    assert PortHolder().process(['{"holder": null}']) is None


def test_the_fact_of_other_engines_reads_what_the_program_prints() -> None:
    command = StrangeEngines().command(patterns=["vllm serve|VLLM::"], services=["gpt-oss"]).get_raw_value()
    assert "engine_processes.py " in command
    # No process that speaks of an engine is to be taken for one.
    assert "vllm" not in command
    assert StrangeEngines().process(['{"strangers": ["llama-server (pid 3)"]}']) == ["llama-server (pid 3)"]


def test_a_host_that_serves_the_release_gets_nothing() -> None:
    host, commands = given(SERVING)
    assert commands == []
    assert host.noops == [f"gpt-oss serves release {RELEASE.id}"]
    # One round trip, which asks for all that decides.
    ((_, asked),) = host.asked
    assert asked["image"] == IMAGE
    assert len(asked["files"]) == 7


def test_one_that_a_cut_run_has_left_drained_is_opened_where_no_gate_does_it() -> None:
    closed = replace(SERVING, closed=True)
    # Its gate looks at it next.
    assert given(closed)[1] == []
    host, (opened,) = given(closed, replace(PLAN, gate=None))
    assert opened.get_raw_value() == "/usr/bin/python3 /usr/local/lib/tinderbox/drain.py open gpt-oss"
    assert host.noops


def test_a_host_is_told_which_services_belong_on_it_without_a_start() -> None:
    host, (placed, told) = given(
        replace(SERVING, files={**SERVING.files, layout.services_file(): "of another fleet file"})
    )
    assert layout.services_file() in placed.get_raw_value()
    assert placed.connector_arguments["_stdin"] == '{"services": ["gpt-oss"]}\n'
    assert told.get_raw_value() == f"/usr/bin/python3 {engine.NEIGHBOURS} settle"
    # Not those that belong there.
    (warning,) = host.logged
    assert warning.startswith("service former-name is on this host, and the fleet file does not have it")


def test_a_bare_host_gets_the_release_and_one_start() -> None:
    _, (install, start, follow) = given(BARE)
    assert install.get_raw_value().endswith("ledger.py stage")
    request = json.loads(install.connector_arguments["_stdin"])
    assert request["id"] == RELEASE.id
    assert next(file["path"] for file in request["files"]) == "/etc/systemd/system/tinderbox-gpt-oss.service"
    assert f"start_service.py gpt-oss {RELEASE.id}" in start.get_raw_value()
    assert "--forced" not in start.get_raw_value()
    assert "--by me@" in start.get_raw_value()
    assert isinstance(follow, FunctionCommand)


FORMER = replace(SERVING, current="former", last_good="former", container_release="former")
BAD = Barred("gate failed", "2026-11-30T04:45:19Z", "tg32: 2.00 below 5")


def test_a_release_that_failed_before_is_refused_at_once_with_the_reason() -> None:
    _, (refusal,) = given(replace(FORMER, barred={RELEASE.id: BAD}))
    told = refusal.get_raw_value()
    assert f"release {RELEASE.id} is not tried again unchanged: gate failed at 2026-11-30T04:45:19Z" in told
    assert "tg32: 2.00 below 5. Release former serves, and was left running." in told
    assert "TINDERBOX_FORCE=1" in told
    assert told.endswith("exit 1")


def test_it_is_tried_again_where_that_is_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINDERBOX_FORCE", "1")
    _, (_, start, _) = given(replace(FORMER, barred={RELEASE.id: BAD}))
    assert "--forced" in start.get_raw_value()


def test_what_an_earlier_run_left_undone_is_ended_before_the_refusal() -> None:
    state = replace(SERVING, last_good="former", barred={RELEASE.id: BAD}, pending=Underway(RELEASE.id, "former"))
    _, (start, follow, refusal) = given(state)
    assert "start_service.py gpt-oss --settle" in start.get_raw_value()
    assert isinstance(follow, FunctionCommand)
    assert "is not tried again unchanged" in refusal.get_raw_value()


def test_a_release_whose_start_nobody_saw_through_is_waited_for() -> None:
    state = replace(SERVING, last_good="former", standings={RELEASE.id: "trying"}, pending=Underway(RELEASE.id))
    _, (start, _) = given(state)
    assert "--attach" in start.get_raw_value()


def test_a_server_that_is_down_is_started() -> None:
    _, (stage, start, _) = given(replace(SERVING, unit=replace(SERVING.unit, active="failed"), container_release=None))
    assert stage.get_raw_value().endswith("ledger.py stage")
    assert "job.py start" in start.get_raw_value()
    assert "--attach" not in start.get_raw_value()


def test_a_start_under_way_is_waited_for() -> None:
    starting = replace(SERVING.unit, active="activating", sub="start-post")
    _, (start, _) = given(replace(SERVING, unit=starting, container_release=None))
    assert "--attach" in start.get_raw_value()


def test_a_service_without_a_gate_is_good_when_ready() -> None:
    plan = service_plan()
    _, (_, start, _) = given(BARE, plan)
    assert "--ungated" in start.get_raw_value()


def test_what_runs_is_left_alone_while_the_host_lacks_something() -> None:
    state = replace(SERVING, current="former", container_release="former", model_is_here=False)
    _, (refusal, *_) = given(state)
    assert "weights of tinderbox-lab/gpt-oss-tiny" in refusal.get_raw_value()
    assert refusal.get_raw_value().endswith("exit 1")


def test_what_the_service_will_take_is_shown_kept_and_asked_for_at_each_start() -> None:
    host, (install, *_) = given(BARE)
    assert any("KV cache" in line for line in host.logged)
    kept = json.loads(install.connector_arguments["_stdin"])["memory_plan"]
    assert kept["weights"]["size"] > GIB
    told = gate_file(install)
    assert (told["needs"], told["reserve"], told["service"]) == (kept["start_needs"], 8 * GIB, "gpt-oss")
    # Of every engine, whichever the service itself is.
    assert "llama-server" in told["engines"]


def test_a_service_that_does_not_fit_is_refused_with_what_would() -> None:
    _, (refusal, *_) = given(replace(SERVING, current="former", container_release="former"), checkpoint=LARGE)
    told = refusal.get_raw_value()
    assert "service gpt-oss does not fit into the memory" in told
    assert "GiB short" in told
    assert "What runs was left running" in told
    assert told.endswith("exit 1")


def test_the_fleet_file_may_have_it_started_all_the_same() -> None:
    host, (install, *_) = given(BARE, service_plan(gate="lab-cpu", memory_plan="warn"), LARGE)
    assert any("started all the same" in line for line in host.logged)
    # The memory gate would only refuse what the owner wants.
    assert gate_file(install) == {"service": "gpt-oss", "needs": 0, "reserve": 8 * GIB, "engines": []}


def test_a_draft_model_is_asked_for_counted_in_and_part_of_what_is_put_in_force() -> None:
    draft = {"model": "gpt-oss-20b", "tokens": 2}
    plan = service_plan(engine="vllm", model="gpt-oss-120b", gate=None, speculative=draft)
    state = replace(BARE, draft_commit="d" * 40, draft_is_here=True)
    host, (install, *_) = given(state, plan)
    (_, asked), *others = host.asked
    assert asked["draft"][0].endswith("hub/models--openai--gpt-oss-20b")
    read = [question["directory"].split("/")[-3] for _, question in others if "directory" in question]
    assert read == ["models--openai--gpt-oss-120b", "models--openai--gpt-oss-20b"]
    request = json.loads(install.connector_arguments["_stdin"])
    assert (request["release"]["draft"], request["release"]["draft_commit"]) == ("openai/gpt-oss-20b", "d" * 40)
    assert request["memory_plan"]["weights"]["size"] >= 2 * GIB


def test_nothing_is_reckoned_without_a_checkpoint() -> None:
    host, (install, *_) = given(BARE, checkpoint=None)
    assert host.logged == []
    assert gate_file(install)["needs"] == 0


def test_a_host_that_can_not_be_read_is_refused() -> None:
    _, (refusal,) = given(None)
    assert "the state of service gpt-oss could not be read" in refusal.get_raw_value()


def test_a_key_goes_by_standard_input_only() -> None:
    plan = service_plan(gate="lab-cpu", api_key="key", listen="0.0.0.0")
    _, commands = given(BARE, plan)
    request = json.loads(commands[0].connector_arguments["_stdin"])
    (secret,) = [file for file in request["files"] if file["secret"]]
    assert secret["content"] == "VLLM_API_KEY=sk-hidden\n"
    assert not any("sk-hidden" in str(command) for command in commands)


OPEN = service_plan(gate="lab-cpu", listen="0.0.0.0")


def test_a_service_that_others_can_reach_has_its_host_make_a_key_once_and_tells_where() -> None:
    keyed = replace(BARE, made_key="0123456789ab")
    host, (make, stage, *_) = given([BARE, keyed], OPEN)
    assert make.get_raw_value() == f"/usr/bin/python3 {engine.API_KEY} gpt-oss VLLM_API_KEY"
    assert json.loads(stage.connector_arguments["_stdin"])["release"]["secrets"] == {"VLLM_API_KEY": "0123456789ab"}
    (told,) = [line for line in host.logged if "API_KEY" in line]
    assert "VLLM_API_KEY in /etc/tinderbox/gpt-oss.key.env on spark-1" in told
    assert host.asked[0][1]["key_variable"] == "VLLM_API_KEY"


def test_a_key_that_is_there_is_left_and_the_server_too() -> None:
    release = build_release(OPEN, surroundings(image=IMAGE, commit=COMMIT, made_key="0123456789ab"))
    serving = replace(
        SERVING,
        files={**SERVING.files, **{file.path: file.sha256 for file in release_files(release, {})}},
        current=release.id,
        last_good=release.id,
        container_release=release.id,
        made_key="0123456789ab",
    )
    assert given(serving, OPEN)[1] == []
    # Somebody has put another one in its place: the engine has to learn it.
    _, (stage, *_) = given(replace(serving, made_key="ba9876543210"), OPEN)
    assert stage.get_raw_value().endswith("ledger.py stage")


def test_nothing_is_opened_where_the_host_could_make_no_key() -> None:
    _, (_, refusal) = given([BARE, BARE], OPEN)
    assert "the API key that the host was to make for service gpt-oss could not be read" in refusal.get_raw_value()


def test_an_engine_that_takes_no_key_is_not_started_without_one() -> None:
    plan = service_plan(engine="sglang", model="gpt-oss-120b", api_key="key")
    host, (refusal,) = given(BARE, plan)
    assert "takes no API key" in refusal.get_raw_value()
    assert host.asked == []


def test_a_key_that_is_no_longer_wanted_goes() -> None:
    left = {**SERVING.files, layout.secret_file("gpt-oss"): "0" * 64}
    _, (removal,) = given(replace(SERVING, files=left))
    assert removal.get_raw_value() == "rm -f /etc/tinderbox/gpt-oss.secret.env"
    # A release that is gone back to may need it.
    assert given(replace(SERVING, files=left, last_good="former"))[1] == []


def test_the_fact_is_silent_on_a_bare_host_and_quotes_what_it_is_given() -> None:
    command = ServiceRelease().command(
        service="a b",
        image="i",
        repository="/r",
        revision="main",
        model_file=None,
        files=["/f;x"],
        encodings=["/e"],
    )
    text = command.get_raw_value()
    assert text.startswith("! test -e /usr/local/lib/tinderbox/service_state.py || ")
    assert "'a b'" in text
    assert "'--file=/f;x'" in text


def test_the_fact_reads_what_the_program_prints() -> None:
    answer = {
        "systemd": 255,
        "unit": {"ActiveState": "active", "SubState": "running", "UnitFileState": "enabled", "Job": ""},
        "files": {"/etc/x": None},
        "current": "r1",
        "last_good": "r0",
        "good_is_restorable": False,
        "image": None,
        "container": {"release": "r1", "running": False},
        "commit": None,
        "model_is_here": False,
        "missing_encodings": ["/e"],
        "releases": {
            "r0": {"standing": "bad", "barred": {"event": "gate failed", "at": "then", "note": "slow", "by": "me"}},
            "r1": {"standing": "ready", "barred": None},
        },
        "pending": {"release": "r1", "back": None, "ungated": True, "by": "me", "instead": None},
    }
    state = ServiceRelease().process([json.dumps(answer)])
    assert state is not None
    assert state.last_good is None
    assert state.container_release is None
    assert (state.unit.enabled, state.unit.job, state.unit.stale) == (True, False, False)
    assert (state.standings, state.barred["r0"].note) == ({"r0": "bad", "r1": "ready"}, "slow")
    assert state.pending == Underway("r1", ungated=True)


def test_a_release_whose_attestation_the_ledger_lacks_gets_it_without_a_start() -> None:
    _, (command,) = given(replace(SERVING, attested=False))

    assert command.get_raw_value() == f"/usr/bin/python3 {engine.LEDGER} attest gpt-oss {RELEASE.id}"


def test_a_release_that_is_put_in_force_is_attested_by_that() -> None:
    _, commands = given(replace(BARE, attested=False))

    assert not any(" attest " in getattr(command, "get_raw_value", str)() for command in commands)


PROVED = {"driver": "580.95.05", "docker": "28.3.3", "CUDA toolkit": "13.0.1-1"}
PROVEN = replace(SERVING, versions=PROVED, proved_on=PROVED, started_on=PROVED)
ON_GPU = service_plan(gate="lab-cpu", container={"gpus": True})


def on(plan: Any, state: ServiceState, **changes: Any) -> tuple[StubHost, list[Any]]:
    """A host that serves the plan's release; `changes`: to its state."""
    built = build_release(plan, surroundings(image=IMAGE, commit=COMMIT))
    services = HostPlan("spark-1", HostSettings.model_validate({"weights": {"home": HOME}}), (plan,))
    listed = hashlib.sha256(str(memory.services_file(services).content).encode()).hexdigest()
    written = {file.path: file.sha256 for file in release_files(built, {})}
    changes |= {"files": {**written, layout.services_file(): listed}}
    changes |= {"current": built.id, "last_good": built.id, "container_release": built.id}
    return given(replace(state, **changes), plan)


def test_nothing_upgraded_is_no_change() -> None:
    host, commands = given(PROVEN)
    assert (commands, host.logged) == ([], [])


def test_after_an_upgrade_of_the_driver_it_is_restarted_once_with_the_change_named() -> None:
    host, (stage, start, follow) = given(replace(PROVEN, versions={**PROVED, "driver": "580.126.09"}))
    assert stage.get_raw_value().endswith("ledger.py stage")
    assert "--attach" not in start.get_raw_value()
    assert "--why 'driver 580.95.05 → 580.126.09'" in start.get_raw_value()
    assert isinstance(follow, FunctionCommand)
    told = "driver 580.95.05 → 580.126.09"
    assert (host.logged[0], host.logged[-1]) == (
        f"gpt-oss: changed on this host since release {RELEASE.id} was last proved: {told}",
        f"gpt-oss is restarted, since it still has what was there before: {told}",
    )


def test_an_upgrade_of_the_toolkit_alone_is_told_and_left_to_the_gate() -> None:
    host, commands = given(replace(PROVEN, versions={**PROVED, "CUDA toolkit": "13.0.2-1"}))
    assert commands == []
    assert "CUDA toolkit 13.0.1-1 → 13.0.2-1" in host.logged[0]


def test_without_a_gate_that_it_serves_is_its_proof() -> None:
    bare = service_plan()
    _, (start, _) = on(bare, PROVEN, versions={**PROVED, "CUDA toolkit": "13.0.2-1"})
    assert "--attach --ungated" in start.get_raw_value()


MISMATCH = "the loaded driver is 580.95.05, and its libraries are 580.126.09"


@pytest.mark.parametrize("state", [PROVEN, replace(PROVEN, unit=DOWN)], ids=["to be restarted", "down"])
def test_no_start_is_tried_that_a_restart_of_the_host_must_come_before(state: ServiceState) -> None:
    now = {**PROVED, "driver library": "580.126.09", "docker": "29.1.0"}
    _, commands = on(ON_GPU, replace(state, versions=now, reboot=MISMATCH))
    refusal = commands[0].get_raw_value()
    assert f"spark-1: service gpt-oss is not started: {MISMATCH}" in refusal
    assert "sudo reboot, and run again. What runs was left running." in refusal
    assert refusal.endswith("exit 1")


def test_an_engine_without_a_gpu_does_not_mind() -> None:
    _, commands = given(replace(PROVEN, unit=DOWN, reboot=MISMATCH))
    assert not any("exit 1" in str(one) for one in commands)


def test_another_pin_of_our_own_is_another_release() -> None:
    packages = {**PLAN.recipe.packages, "vllm": "9.9.9"}
    newer = replace(PLAN, recipe=PLAN.recipe.model_copy(update={"packages": packages}))
    _, (stage, start, _) = given(SERVING, newer)
    request = json.loads(stage.connector_arguments["_stdin"])
    assert request["id"] != RELEASE.id
    assert request["release"]["image"] == image_reference(newer.recipe, Lock()) != IMAGE
    # No part of the machine: a start of another release, and none of the same one.
    assert "--why" not in start.get_raw_value()
