"""Revisions that move, two runs at once, and revisions that nothing needs any more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from modules.fleet.lock import lock_path, read_lock
from tests.lab.hub_models import CONFIG, ONE, TWO, HubModel, content, hub_model
from tests.lab.lab_driver import Lab, Run
from tests.lab.spread_driver import DEPLOY

pytestmark = [pytest.mark.lab, pytest.mark.long]
HOST, OTHER = "spark-2", "spark-1"
HOME = "/var/lib/tinderbox/moves"
LEDGER = "/var/lib/tinderbox/ledger/of-before"


@pytest.fixture
def model(lab: Lab, request: pytest.FixtureRequest) -> Iterator[HubModel]:
    with hub_model(lab, "moves") as found:
        yield found
    for host in (HOST, OTHER):
        forget(lab, host)
        lab.ssh(host, f"sudo rm -rf {LEDGER}")
    for path in lab.layout.folder.glob("moves-*.yaml"):
        path.unlink()


def forget(lab: Lab, host: str) -> None:
    """As if the model had never been there."""
    lab.ssh(host, f"sudo sh -c 'rm -rf {HOME} /var/lib/tinderbox/weights/tinderbox-lab--moves@*'")


def fleet(lab: Lab, model: HubModel, name: str, *hosts: str, revision: str = "main", **weights: Any) -> Path:
    def change(written: dict[str, Any]) -> None:
        written["hosts"] = {host: written["hosts"][host] for host in hosts or (HOST,)}
        written["defaults"]["weights"] = {"home": HOME, **weights}
        model.served(written, revision=revision)

    return lab.write_fleet(f"moves-{name}", change)


def test_a_branch_that_moves_is_followed_only_when_the_lock_is_let_go(lab: Lab, model: HubModel) -> None:
    first = model.publish(content("first"))
    alone, pair = fleet(lab, model, "alone"), fleet(lab, model, "pair", HOST, OTHER)
    assert lab.converge(DEPLOY, fleet=alone).rc == 0
    locked = lock_path(alone).read_text()
    assert first in locked
    lock_path(pair).write_text(locked)
    second = model.publish(content("second"))
    before = len(lab.requests())

    for written in (alone, pair):
        run = lab.converge(DEPLOY, fleet=written)
        assert run.rc == 0, run.text
    # The host that joined has what the lock says, from the other one.
    assert model.fetched(before) == []
    for host in (HOST, OTHER):
        model.whole(host, HOME, first)

    lock_path(pair).unlink()
    run = lab.converge(DEPLOY, fleet=pair)
    assert run.rc == 0, run.text
    assert second in lock_path(pair).read_text()
    for host in (HOST, OTHER):
        model.whole(host, HOME, second)


def test_a_mirror_that_publishes_other_hashes_for_the_same_commit_is_refused(lab: Lab, model: HubModel) -> None:
    files = content("true")
    commit = model.publish(files)
    written = fleet(lab, model, "altered")
    assert lab.converge(DEPLOY, fleet=written).rc == 0
    assert read_lock(written).listing(model.repository, commit).keys() == files.keys()
    forget(lab, HOST)
    model.alter(commit, {**files, TWO: content("evil")[TWO]})
    before = len(lab.requests())

    refused = lab.converge(DEPLOY, fleet=written)

    assert refused.rc == 1, refused.text
    assert f"spark-2: {model.repository}@{commit}, {TWO}: https://hub.lab lists sha256:" in refused.stderr
    assert "so do not trust that hub" in refused.stderr
    assert model.fetched(before) == []
    model.alter(commit, files)
    assert lab.converge(DEPLOY, fleet=written).rc == 0
    model.whole(HOST, HOME, commit)


def test_a_commit_that_is_gone_from_the_hub_is_told_and_what_is_here_stays_good(lab: Lab, model: HubModel) -> None:
    first = model.publish(content("first"))
    written = fleet(lab, model, "gone")
    assert lab.converge(DEPLOY, fleet=written).rc == 0
    model.remove()
    model.publish(content("second"))

    again = lab.converge(DEPLOY, fleet=written)
    assert again.rc == 0, again.text
    assert "no change on any host" in again.stderr
    forget(lab, HOST)
    refused = lab.converge(DEPLOY, fleet=written)

    assert refused.rc == 1, refused.text
    told = f"spark-2: {model.repository}@{first} from https://hub.lab: the hub has no revision {first!r} of it (404)"
    assert told in refused.stderr


def assert_fetched_once(lab: Lab, model: HubModel, written: list[Path], commit: str) -> None:
    """Runs of these fleet files at the same time all succeed, and each file comes once."""
    before = len(lab.requests())

    with lab.shaped(HOST, 40), ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda path: lab.converge(DEPLOY, fleet=path), written))

    for run in runs:
        assert run.rc == 0, run.text
    assert sorted(file for file, _ in model.fetched(before)) == sorted([ONE, TWO, CONFIG])
    model.whole(HOST, HOME, commit)


@pytest.mark.usefixtures("side_by_side")
def test_two_runs_at_once_fetch_it_once(lab: Lab, model: HubModel) -> None:
    commit = model.publish(content("twice", 8 * 1024 * 1024))
    written = [fleet(lab, model, name, revision=commit) for name in ("one", "two")]

    assert_fetched_once(lab, model, written, commit)


@pytest.mark.usefixtures("side_by_side")
def test_two_wishes_at_once_for_one_model_wait_for_each_other(lab: Lab, model: HubModel) -> None:
    """Other filters make it another job; both fill the same folder."""
    commit = model.publish(content("both", 8 * 1024 * 1024))

    def narrow(written: dict[str, Any]) -> None:
        written["hosts"] = {HOST: written["hosts"][HOST]}
        written["defaults"]["weights"] = {"home": HOME}
        model.served(written, revision=commit, exclude=["nothing/*"])

    written = [fleet(lab, model, "wide", revision=commit), lab.write_fleet("moves-narrow", narrow)]

    assert_fetched_once(lab, model, written, commit)


def test_a_revision_that_no_release_needs_goes_when_the_fleet_file_says_so(lab: Lab, model: HubModel) -> None:
    files = content("old")
    old = model.publish(files, revision="v1")
    new = model.publish({**files, TWO: content("new")[TWO], CONFIG: b'{"made_of": "new"}'}, revision="v2")
    for revision in (old, new):
        run = lab.converge(DEPLOY, fleet=fleet(lab, model, revision[:6], revision=revision))
        assert run.rc == 0, run.text
    kept = fleet(lab, model, "kept", revision=new)
    cleaning = fleet(lab, model, "cleaning", revision=new, remove_unneeded=True)
    clean = "deploys/clean_weights.py"
    assert "no change on any host" in lab.converge(clean, fleet=kept).stderr

    # As a release before the one in force, the last good one.
    release = json.dumps({"id": "r", "release": {"model": model.repository, "commit": old}, "events": []})
    lab.ssh(HOST, f"sudo mkdir -p {LEDGER} && sudo ln -sfn r.json {LEDGER}/last-good")
    lab.write(HOST, f"{LEDGER}/r.json", release)
    run = lab.converge(clean, fleet=cleaning)
    assert run.rc == 0, run.text
    assert "no change on any host" in run.stderr
    lab.ssh(HOST, f"sudo rm -r {LEDGER}")

    dry = lab.converge("--dry", clean, fleet=cleaning)
    size = (len(files[TWO]) + len(files[CONFIG])) / 1024**3
    assert f"no release needs {model.repository}@{old}: {size:.2f} GiB" in told(dry)
    model.whole(HOST, HOME, old)
    run = lab.converge(clean, fleet=cleaning)

    assert run.rc == 0, run.text
    assert lab.ssh(HOST, f"ls {model.folder_in(HOME)}/snapshots").stdout.split() == [new]
    assert len(lab.ssh(HOST, f"ls {model.folder_in(HOME)}/blobs").stdout.split()) == 3
    model.whole(HOST, HOME, new)
    assert "no change on any host" in lab.converge(clean, fleet=cleaning).stderr


def told(run: Run) -> str:
    return " ".join(run.text.split())
