"""What came from another host is what engines and the hub's own client take for theirs: the real vLLM serves it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from modules.lab.model.recital import TEXT
from modules.lab.model.repository import COMMIT, REPOSITORY
from tests.lab.lab_driver import Lab
from tests.lab.served import Served
from tests.lab.spread_driver import SIZES, TOTAL, Spread, spread_of

pytestmark = [pytest.mark.lab, pytest.mark.long]
ONE, OTHER = "spark-1", "spark-2"
TOOLS = "/var/lib/tinderbox/tools/current/bin"


@pytest.fixture(scope="module")
def spread(lab: Lab) -> Iterator[Spread]:
    """`spark-1` has fetched the model from the hub, `spark-2` has taken it from there."""
    with spread_of(lab, "served", ONE, OTHER) as found:
        before = len(lab.requests())
        run = found.run()
        assert run.rc == 0, run.text
        assert {host for host, *_ in found.fetched(before)} == {ONE}
        assert TOTAL <= found.taken(OTHER) < TOTAL * 1.02
        yield found


def test_a_host_that_would_load_slowly_is_warned_of_and_measured_once(lab: Lab, spread: Spread) -> None:
    def hurried(content: dict[str, Any]) -> None:
        content["defaults"]["services"]["gpt-oss"]["model"] = {
            "repository": REPOSITORY, "revision": COMMIT, "size_gib": 0.11, "served_as": "tiny", "source": "the lab",
            "load_seconds": 0.0001,
        }  # fmt: skip

    lab.ssh(OTHER, "sudo rm -rf /var/lib/tinderbox/probes/load")
    fleet = spread.fleet(OTHER, change=hurried)
    run = lab.converge("deploys/probe_load.py", fleet=fleet)
    assert run.rc == 0, run.text
    assert "spark-2: service gpt-oss: the weights will take" in run.stderr
    assert "the catalog's limit is 0 s" in run.stderr
    kept = lab.ssh(OTHER, "sudo sh -c 'cat /var/lib/tinderbox/probes/load/*.json'").stdout

    again = lab.converge("deploys/probe_load.py", fleet=fleet)

    assert again.rc == 0, again.text
    assert "no change on any host" in again.stderr
    assert "the weights will take" in again.stderr
    assert lab.ssh(OTHER, "sudo sh -c 'cat /var/lib/tinderbox/probes/load/*.json'").stdout == kept


@pytest.fixture(scope="module")
def fleet(spread: Spread) -> Path:
    """Only the host that took it, with everything but a measurement of its speed."""

    def without_gate(content: dict[str, Any]) -> None:
        content["defaults"]["services"]["gpt-oss"]["gate"] = None

    return spread.fleet(OTHER, change=without_gate)


def test_the_real_vllm_serves_what_came_from_a_peer(lab: Lab, spread: Spread, fleet: Path) -> None:
    before = len(lab.requests())

    run = lab.converge(fleet=fleet, timeout_s=2400)

    assert run.rc == 0, run.text
    # None of it came from the hub after all.
    assert spread.fetched(before) == []
    served = Served(lab, fleet, OTHER)
    served.await_ready()
    shown = lab.ssh(OTHER, f"sudo docker inspect -f '{{{{json .Config.Cmd}}}}' {served.container}").stdout
    assert spread.snapshot in shown
    model = served.plan.model.served_as
    with served.tunnel() as url, OpenAI(base_url=url, api_key="none", max_retries=0, timeout=120) as client:
        chat = client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": "Tell me about sparks."}], max_tokens=64
        )
    text = chat.choices[0].message.content
    assert text is not None
    assert text.startswith("".join(TEXT)), text
    # How fast it is read was measured on the way, and is known now.
    again = lab.converge("deploys/probe_load.py", fleet=fleet)
    assert again.rc == 0, again.text
    assert "no change on any host" in again.stderr


def test_the_clients_snapshot_of_the_pinned_commit_is_whole_without_a_network(lab: Lab, spread: Spread) -> None:
    asked = (
        "from huggingface_hub import snapshot_download; print(snapshot_download("
        f'"{REPOSITORY}", revision="{COMMIT}", cache_dir="{spread.home}/hub", '
        'ignore_patterns=["original/*", "metal/*"]))'
    )
    found = lab.ssh(OTHER, f"sudo unshare --net env HF_HUB_OFFLINE=1 {TOOLS}/python -c '{asked}'")
    assert found.stdout.strip() == spread.snapshot
    there = lab.ssh(OTHER, f"sudo find -L {spread.snapshot} -type f -printf '%P %s\\n'").stdout.splitlines()
    assert sorted(there) == sorted(f"{name} {size}" for name, size in SIZES.items())


def test_the_clients_own_check_finds_every_file_right_and_one_that_is_not(lab: Lab, spread: Spread) -> None:
    words = f"{TOOLS}/hf cache verify {REPOSITORY} --revision {COMMIT} --cache-dir {spread.home}/hub"
    command = f"sudo sh -c 'set -a; . /etc/tinderbox/network.env; {words}'"
    right = lab.ssh(OTHER, command, check=False)
    assert right.rc == 0, right.text
    small = min(SIZES, key=lambda name: SIZES[name])
    blob = lab.ssh(OTHER, f"sudo readlink -f {spread.snapshot}/{small}").stdout.strip()
    lab.ssh(OTHER, f"sudo sh -c 'cp -p {blob} /root/kept; printf X | dd of={blob} bs=1 conv=notrunc status=none'")
    wrong = lab.ssh(OTHER, command, check=False)
    lab.ssh(OTHER, f"sudo sh -c 'cat /root/kept > {blob}; rm /root/kept'")
    assert wrong.rc == 1, wrong.text
    assert small in wrong.text


def test_every_way_of_loading_is_tried_once_in_the_engines_image(lab: Lab, fleet: Path) -> None:
    """After the first test of this file, which brings the image; the lab has no GPU, so it is loaded to the CPU."""
    run = lab.converge("deploys/load_ways.py", fleet=fleet, timeout_s=1200)
    assert run.rc == 0, run.text
    assert "to cpu," in run.stderr
    (line,) = {line.strip() for line in run.stderr.splitlines() if "  safetensors-copy: " in line}
    cold, warm = line.rsplit(": ", 1)[1].split(" / ")
    assert float(cold) > 0
    assert float(warm) > 0
    again = lab.converge("deploys/load_ways.py", fleet=fleet)
    assert again.rc == 0, again.text
    assert "no change on any host" in again.stderr
