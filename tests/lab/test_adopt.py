"""Servers that their owners started: described, taken over by one restart and no byte of weights, given back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.by_hand import HOME, IMAGE, MODEL, NAME, PORT, ByHand, gaps, own_image, prepared
from tests.lab.debian_packages import offered
from tests.lab.lab_driver import Lab, Run

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST = "spark-2"
UNIT = f"tinderbox-{NAME}.service"


@pytest.fixture(scope="module")
def host(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ByHand]:
    by_hand = prepared(lab, HOST)
    with offered(lab, HOST, "docker-compose", tmp_path_factory.mktemp("compose")):
        by_hand.sh("apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get install -y -q docker-compose")
        yield by_hand
    by_hand.clear()


@pytest.fixture
def bare(host: ByHand) -> Iterator[ByHand]:
    host.clear()
    yield host
    host.clear()


def adopt(lab: Lab, fleet: Path, *words: str) -> Run:
    return lab.tinderbox([sys.executable, "-m", "modules.adopt", *words], fleet=fleet)


def beginning(lab: Lab) -> Path:
    """A fleet file that only says how the host is reached."""

    def change(content: dict[str, Any]) -> None:
        content["hosts"] = {HOST: content["hosts"][HOST]}
        del content["defaults"]["services"]

    return lab.write_fleet("adopt-hosts", change)


def described(lab: Lab, change: Callable[[dict[str, Any]], None] | None = None) -> tuple[Path, dict[str, Any]]:
    """The fleet file that came of the host, and the host's settings in it."""
    out = lab.layout.folder / "adopted.yaml"
    out.unlink(missing_ok=True)
    out.with_name("adopted.lock.yaml").unlink(missing_ok=True)
    run = adopt(lab, beginning(lab), "--out", str(out))
    assert run.rc == 0, run.text
    assert "not-to-be-shown" not in run.text + out.read_text()
    content = yaml.safe_load(out.read_text())
    if change is not None:
        change(content["hosts"][HOST]["settings"])
        out.write_text(yaml.safe_dump(content, sort_keys=False))
    return out, content["hosts"][HOST]["settings"]


def weights_asked(lab: Lab, since: int) -> list[str]:
    return [one["path"] for one in lab.requests(since) if one["host"] == "hub.lab" and "/resolve/" in one["path"]]


def taken_over(bare: ByHand, change: Callable[[dict[str, Any]], None] | None = None, name: str = NAME) -> Path:
    """From the description to the service, with all that is promised of it."""
    lab = bare.lab
    bare.await_reply(name)
    since = len(lab.requests())
    fleet, settings = described(lab, change)
    assert settings["weights"]["home"] == HOME
    service = settings["services"][name]
    assert service["model"]["repository"] == MODEL
    assert service["port"] == PORT
    before = bare.sh(f"docker image ls -q {IMAGE}")
    looked = adopt(lab, fleet, "--take")
    assert looked.rc == 2, looked.text
    assert "is stopped, once all that service" in looked.text
    assert bare.sh(f"systemctl is-active {UNIT}", check=False) != "active"
    with bare.asked(name) as replies:
        run = adopt(lab, fleet, "--take", "--consent")
        assert run.rc == 0, run.text
        bare.await_reply(name)
    assert weights_asked(lab, since) == []
    assert gaps(replies) == 1, "".join(replies)
    assert bare.sh(f"systemctl is-active {UNIT}") == "active"
    assert bare.sh(f"docker image ls -q {IMAGE}") == before
    again = adopt(lab, fleet, "--take", "--consent")
    assert again.rc == 0, again.text
    assert "no change on any host" in again.text, again.text
    return fleet


def given_back(bare: ByHand, fleet: Path, name: str = NAME) -> None:
    run = adopt(bare.lab, fleet, "--undo", "--consent")
    assert run.rc == 0, run.text
    assert bare.sh(f"systemctl is-active {UNIT}", check=False) == "inactive"
    assert bare.sh(f"systemctl is-enabled {UNIT}", check=False) == "disabled"
    bare.await_reply(name)


def test_docker_run(bare: ByHand) -> None:
    bare.docker_run()
    identity = bare.sh("docker inspect -f '{{.Id}}' own-llm")
    fleet = taken_over(bare)
    assert bare.sh("docker inspect -f '{{.State.Running}} {{.HostConfig.RestartPolicy.Name}}' own-llm") == "false no"
    given_back(bare, fleet)
    shown = "docker inspect -f '{{.Id}} {{.State.Running}} {{.HostConfig.RestartPolicy.Name}}' own-llm"
    assert bare.sh(shown) == f"{identity} true unless-stopped"


def test_a_server_in_a_container_that_sleeps(bare: ByHand) -> None:
    bare.executed()
    fleet = taken_over(bare)
    given_back(bare, fleet)
    assert bare.sh("docker inspect -f '{{.HostConfig.AutoRemove}} {{.Config.Image}}' own-llm").startswith("true ")


def test_compose(bare: ByHand) -> None:
    bare.compose()
    fleet = taken_over(bare)
    states = bare.sh(
        "docker ps -a --format '{{.Label \"com.docker.compose.service\"}} {{.State}}' | grep -v '^ ' | sort"
    )
    assert states.splitlines() == ["beside running", "llm exited"]
    given_back(bare, fleet)
    assert bare.sh("cd /home/spark/stack && docker-compose up -d 2>&1").count("up-to-date") == 2


def test_a_unit_of_the_owners(bare: ByHand) -> None:
    """With the real vLLM."""
    lab = bare.lab
    fleet = lab.fleet_of(HOST)
    for deploy in ("image", "encodings"):
        run = lab.pyinfra(f"deploys/{deploy}.py", "-y", fleet=fleet, timeout_s=1500)
        assert run.rc == 0, run.text
    own_image(bare, bare.tag("tinderbox/vllm-cpu"), "own/vllm-cpu:1")
    # The vocabulary without which vLLM does not serve this model: elsewhere it is from the internet.
    bare.sh("rm -rf /opt/encodings; mv /var/lib/tinderbox/encodings /opt/encodings")
    serve = (
        f"serve {MODEL} --port 8000 --served-model-name {NAME} --max-model-len 1024 --max-num-seqs 2 --enforce-eager "
        "--distributed-executor-backend vllm.v1.executor.uniproc_executor.UniProcExecutor"
    )
    own = ("VLLM_CPU_KVCACHE_SPACE=1", "OMP_NUM_THREADS=1", "VLLM_CPU_OMP_THREADS_BIND=nobind", "GLOO_SOCKET_IFNAME=lo")
    encodings = ("TIKTOKEN_ENCODINGS_BASE=/encodings", "TIKTOKEN_RS_CACHE_DIR=/encodings", "HF_HUB_OFFLINE=1")
    more = " ".join(f"-e {one}" for one in (*own, *encodings))
    bare.unit_of_docker("own/vllm-cpu:1", serve, f"-v /opt/encodings:/encodings:ro {more}")
    fleet = taken_over(bare)
    assert bare.owners_unit() == ["inactive", "disabled"]
    given_back(bare, fleet)
    assert bare.owners_unit() == ["active", "enabled"]


def test_a_unit_that_runs_the_program_itself(bare: ByHand) -> None:
    bare.unit_of_process()
    identity = bare.sh(f"docker image inspect -f '{{{{.Id}}}}' {IMAGE}")

    def with_image(settings: dict[str, Any]) -> None:
        present = {"reference": IMAGE, "digest": identity, "present": True, "source": "for tests"}
        settings["services"][NAME] |= {"image": {"recipe": present}, "container": {"gpus": False}}

    fleet = taken_over(bare, with_image)
    given_back(bare, fleet)
    assert bare.sh("systemctl show -P ActiveState -P UnitFileState own-llm.service").split() == ["active", "enabled"]


def test_it_is_started_again_where_ours_does_not_get_ready(bare: ByHand) -> None:
    bare.docker_run()
    bare.await_reply()

    def broken(settings: dict[str, Any]) -> None:
        settings["services"][NAME]["environment"]["FAKE_FAULT"] = "exits"

    fleet, _ = described(bare.lab, broken)
    run = adopt(bare.lab, fleet, "--take", "--consent")
    assert run.rc == 1, run.text
    assert "container own-llm" in run.text
    assert "serves again" in run.text
    bare.await_reply()
    shown = "docker inspect -f '{{.State.Running}} {{.HostConfig.RestartPolicy.Name}}' own-llm"
    assert bare.sh(shown) == "true unless-stopped"
    assert bare.sh(f"systemctl is-enabled {UNIT}", check=False) == "disabled"
