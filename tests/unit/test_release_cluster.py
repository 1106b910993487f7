"""A service that spans hosts → one release for all of them, with another part on each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from modules.catalog import load_catalog
from modules.fleet import ServicePlan, load_fleet
from modules.fleet.gateway import agent_plan, gateway_plan
from modules.fleet.plan import host_plan
from modules.hostside import own_network, start_container
from modules.memory.checkpoint import Checkpoint, share_of
from modules.memory.layers import Layer
from modules.release import layout
from modules.release.build import build_release
from modules.release.files import release_files
from modules.release.unit import render_pair
from tests.unit.release_samples import service_plan, surroundings

HOSTS = ["spark-1", "spark-2"]
CLUSTER = {"hosts": HOSTS, "addresses": {"spark-1": "10.1.0.1", "spark-2": "10.1.0.2"}}
FLEET = """\
fleet: office
secrets: {serve: {env: SERVE_KEY}}
defaults:
  services:
    gpt-oss:
      engine: vllm
      model: gpt-oss-120b
      gate: vllm-marlin-single-stream
      cluster: {hosts: [spark-1, spark-2], addresses: {spark-2: 10.1.0.2}}
hosts:
  spark-1: {address: 10.0.0.11, settings: {network: {peer_address: 10.9.0.1}}}
  spark-2: {address: 10.0.0.12}
"""


def pair(engine: str = "vllm", host: str = "spark-1", model: str = "gpt-oss-120b", **settings: object) -> ServicePlan:
    return replace(service_plan(engine, model, cluster=CLUSTER, **settings), host=host)


def flags(command: tuple[str, ...]) -> dict[str, str]:
    """Flag → the word behind it."""
    return {word: following for word, following in zip(command, (*command[1:], ""), strict=True) if word[:2] == "--"}


def test_all_members_have_one_release() -> None:
    first, second = (build_release(pair(host=host), surroundings()) for host in HOSTS)
    assert first == second
    # Of another version of systemd, too: nothing of it is in the units of parts.
    assert build_release(pair(), surroundings(systemd=252)).id == first.id
    assert [member.host for member in first.members or ()] == HOSTS


@pytest.mark.parametrize(
    "change",
    [
        {"hosts": HOSTS[::-1], "addresses": CLUSTER["addresses"]},
        {**CLUSTER, "port": 29600},
        {**CLUSTER, "addresses": {"spark-1": "10.1.0.1", "spark-2": "10.1.0.3"}},
    ],
)
def test_who_runs_it_where_is_part_of_it(change: dict[str, object]) -> None:
    other = replace(service_plan("vllm", "gpt-oss-120b", cluster=change), host="spark-1")
    assert build_release(other, surroundings()).id != build_release(pair(), surroundings()).id


def test_vllm_has_a_rank_on_each_host_and_an_api_on_the_first() -> None:
    head, worker = (flags(member.command) for member in build_release(pair(), surroundings()).members or ())
    common = {"--nnodes": "2", "--master-addr": "10.1.0.1", "--master-port": "29501", "--tensor-parallel-size": "2"}
    for part in (head, worker):
        assert common.items() <= part.items()
        assert part["--distributed-executor-backend"] == "mp"
    assert (head["--node-rank"], worker["--node-rank"]) == ("0", "1")
    assert ("--headless" in head, "--headless" in worker) == (False, True)


def test_sglang_has_its_own_words_for_it() -> None:
    release = build_release(pair("sglang"), surroundings())
    head, worker = (flags(member.command) for member in release.members or ())
    assert head["--dist-init-addr"] == worker["--dist-init-addr"] == "10.1.0.1:29501"
    assert (head["--tp-size"], head["--node-rank"], worker["--node-rank"]) == ("2", "0", "1")


def test_pipeline_parallel_is_taken_as_written() -> None:
    plan = pair(flags={"pipeline-parallel-size": 2})
    assert {"--pipeline-parallel-size": "2", "--tensor-parallel-size": "1"}.items() <= flags(
        build_release(plan, surroundings()).command
    ).items()


@pytest.mark.parametrize("engine", ["vllm", "vllm-mxfp4", "sglang"])
def test_its_parts_talk_over_the_network_and_not_by_loopback(engine: str) -> None:
    for member, address in zip(
        build_release(pair(engine), surroundings()).members or (), ("10.1.0.1", "10.1.0.2"), strict=True
    ):
        assert not {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"} & set(member.environment)
        assert member.environment.get("VLLM_HOST_IP", address) == address
        words = ("--address", address, "--interface-variable=NCCL_SOCKET_IFNAME", "--hca-variable=NCCL_IB_HCA")
        assert all(word in member.unit for word in words)
        assert "--device /dev/infiniband" in member.unit
        assert "--ulimit memlock=-1" in member.unit
        assert "--network host" in member.unit


def test_what_the_fleet_file_names_is_not_looked_up() -> None:
    release = build_release(pair(environment={"NCCL_SOCKET_IFNAME": "enp1s0f0np0"}), surroundings())
    assert release.environment["NCCL_SOCKET_IFNAME"] == "enp1s0f0np0"
    assert "--interface-variable=NCCL_SOCKET_IFNAME" not in release.unit
    assert "--interface-variable=GLOO_SOCKET_IFNAME" in release.unit


def test_its_units_do_not_restart_by_themselves_and_ask_before_they_start() -> None:
    for member in build_release(pair(), surroundings()).members or ():
        assert "Restart=no" in member.unit
        assert "RestartSec" not in member.unit
        assert "ExecCondition=/usr/bin/python3 /usr/local/lib/tinderbox/pair_condition.py gpt-oss" in member.unit
    alone = build_release(service_plan("vllm", "gpt-oss-120b"), surroundings())
    assert "ExecCondition" not in alone.unit
    assert "members" not in alone.model_dump(exclude_none=True)


def test_a_worker_has_no_key_no_watch_and_waits_for_the_head() -> None:
    plan = pair(api_key="serve")
    release = build_release(plan, surroundings(secrets={"VLLM_API_KEY": "sk-hidden"}))
    head, worker = release.members or ()
    assert head.watch
    assert not worker.watch
    assert "await_pair.py gpt-oss" in worker.unit
    assert "await_ready.py" in head.unit
    assert layout.secret_file("gpt-oss") in head.unit
    assert layout.secret_file("gpt-oss") not in worker.unit
    assert "sk-hidden" not in release.model_dump_json()
    files = {file.path: file.content for file in release_files(release, {}, "spark-2")}
    assert files[layout.unit_file("gpt-oss")] == worker.unit
    assert "VLLM_HOST_IP=10.1.0.2" in files[layout.environment_file("gpt-oss")]


def test_what_keeps_them_together_holds_no_secret_and_always_comes_back() -> None:
    text = render_pair("gpt-oss")
    assert "pair_agent.py gpt-oss" in text
    assert "Restart=always" in text
    assert "StartLimitIntervalSec=0" in text


def test_addresses_are_those_written_else_the_hosts_own(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET.replace("secrets: {serve: {env: SERVE_KEY}}\n", ""))
    head, worker = (host_plan(host, load_catalog()).services[0] for host in load_fleet(path).hosts.values())
    assert head.cluster is not None
    assert head.cluster.addresses == {"spark-1": "10.9.0.1", "spark-2": "10.1.0.2"}
    assert (head.is_worker, worker.is_worker) == (False, True)
    assert (head.gate is None, worker.gate is None) == (False, True)


def test_where_one_fabric_joins_all_members_they_meet_there(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    text = FLEET.replace("secrets: {serve: {env: SERVE_KEY}}\n", "").replace(", addresses: {spark-2: 10.1.0.2}", "")
    path.write_text(
        text.replace("defaults:\n", "defaults:\n  fabric: {topology: direct, members: [spark-1, spark-2]}\n")
    )
    cluster = load_fleet(path).hosts["spark-1"].settings.services["gpt-oss"].cluster
    assert cluster is not None
    assert cluster.addresses == {"spark-1": "192.168.100.1", "spark-2": "192.168.100.2"}


def test_a_gateway_sends_requests_to_the_head_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVE_KEY", "sk-hidden")
    path = tmp_path / "fleet.yaml"
    open_to_others = "      listen: 0.0.0.0\n      api_key: serve\n      cluster:"
    gateway = "  front: {address: 10.0.0.10, settings: {services: {gpt-oss: null}, gateway: {}}}\n"
    path.write_text(FLEET.replace("      cluster:", open_to_others) + gateway)
    hosts = load_fleet(path).hosts
    plan = gateway_plan("front", hosts, load_catalog())
    assert plan is not None
    (route,) = plan.routes
    assert [upstream.host for upstream in route.upstreams] == ["spark-1"]
    assert agent_plan("spark-2", hosts) is None


def test_each_host_holds_its_share() -> None:
    layers = (Layer("full", 1000), Layer("latent", 576))
    share = share_of(Checkpoint(tensors={"BF16": 101}, layers=layers), 2)
    assert share.tensors == {"BF16": 51}
    assert [layer.values for layer in share.layers] == [500, 576]


def network(tmp_path: Path) -> Path:
    """Two RoCE devices, one of which is up."""
    for name, state in (("rocep1s0f0", "1: DOWN"), ("rocep1s0f1", "4: ACTIVE")):
        port = tmp_path / "infiniband" / name / "ports" / "1"
        port.mkdir(parents=True)
        (port / "state").write_text(f"{state}\n")
    (tmp_path / "net" / "lo").mkdir(parents=True)
    return tmp_path


def test_the_host_tells_what_its_network_is_called(tmp_path: Path) -> None:
    sys = network(tmp_path)
    assert own_network.interface_of("127.0.0.1", sys) == "lo"
    assert own_network.interface_of("192.0.2.1", sys) is None
    assert own_network.active_devices(sys) == ["rocep1s0f1"]
    assert own_network.active_devices(tmp_path / "none") == []


def test_a_container_is_told_so_unless_the_fabric_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_container, "interface_of", lambda _address: "enp1s0f1np1")
    monkeypatch.setattr(start_container, "active_devices", lambda: ["rocep1s0f1", "roceP2p1s0f1"])
    words = ["--address", "10.1.0.1", "--interface-variable=GLOO_SOCKET_IFNAME", "--hca-variable=NCCL_IB_HCA"]
    options = start_container.parser().parse_args(words)
    command, fabric = ["docker", "run", "--rm", "image"], tmp_path / "fabric.env"
    assert start_container.with_network(command, options, fabric) == [
        *("docker", "run"),
        *("--env", "GLOO_SOCKET_IFNAME=enp1s0f1np1", "--env", "NCCL_IB_HCA=rocep1s0f1,roceP2p1s0f1"),
        *("--rm", "image"),
    ]
    fabric.write_text("NCCL_IB_HCA=rocep1s0f1\n")
    assert start_container.with_network(command, options, fabric) == [
        *("docker", "run", "--env-file", str(fabric), "--env", "GLOO_SOCKET_IFNAME=enp1s0f1np1"),
        *("--rm", "image"),
    ]
    assert start_container.with_network(command, start_container.parser().parse_args([]), fabric) == command
