"""What the bundle's operations give a host, and that they give one that has it nothing."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from modules.catalog import load_catalog
from modules.facts.bundle import BundleOnHost, BundleState
from modules.facts.image import ImageOnHost, ImageState
from modules.facts.weights import WeightsOnHost, WeightsState
from modules.fleet.plan import HostPlan
from modules.images import build_of, pinned
from modules.operations import bundle_export, bundle_import, weights
from modules.operations.bundle_export import bundle_exported, export_request
from modules.operations.bundle_import import image_loaded, lock_filled, weights_loaded
from modules.operations.encodings import encodings_mirror
from modules.operations.follow import follow
from modules.operations.site import network_environment
from modules.operations.weights import record_commit
from modules.spec.image import Recipe
from modules.spec.lock import Lock
from modules.spec.model import Model
from modules.spec.network import Network
from modules.spec.settings import HostSettings, Weights
from tests.operations.stub_host import StubHost, commands_of
from tests.unit.release_samples import service_plan

USB = "/mnt/it's/tinderbox"
BUILT = load_catalog().images["vllm-cpu"]
BUILD = build_of(BUILT)
PULLED = load_catalog().images["vllm-upstream"]
ID, DIGEST = "sha256:" + "b" * 64, "sha256:" + "a" * 64
PLAN = HostPlan(
    name="spark-1",
    settings=HostSettings.model_validate({"bundle": {"export_to": USB}}),
    services=(service_plan(),),
)
MODELS = [PLAN.services[0].model]


@pytest.fixture(autouse=True)
def lock(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the lock holds of images; empty at first."""
    images: dict[str, str] = {}
    for module in (bundle_export, bundle_import, weights):
        monkeypatch.setattr(module, "load_fleet", lambda: SimpleNamespace(path=Path("fleet.yaml")))
        monkeypatch.setattr(module, "read_lock", lambda _: Lock(images=images))
    return images


def words(command: Any) -> list[str]:
    """The job's own program and its words."""
    found = shlex.split(command.get_raw_value())
    return found[found.index("--", found.index("--timeout")) + 2 :]


def loading(state: ImageState | None, recipe: Recipe) -> tuple[StubHost, list[Any]]:
    host = StubHost({ImageOnHost: state})
    return host, commands_of(host, image_loaded, recipe=recipe, bundle=USB)


def test_an_image_that_is_there_is_no_change(lock: dict[str, str]) -> None:
    host, commands = loading(ImageState(ID, BUILD.digest), BUILT)
    assert (commands, len(host.noops)) == ([], 1)

    assert PULLED.reference is not None
    lock[PULLED.reference] = DIGEST
    host, commands = loading(ImageState(ID, None), PULLED)
    assert (commands, len(host.noops)) == ([], 1)


@pytest.mark.parametrize("state", [ImageState(None, None), ImageState(ID, "0" * 12)], ids=["none", "another"])
def test_an_image_that_is_not_is_loaded_and_neither_built_nor_pulled(state: ImageState) -> None:
    _, (start, following) = loading(state, BUILT)

    assert words(start) == ["/usr/local/lib/tinderbox/load_image.py", USB, BUILD.tag]
    assert following.function is follow


def filling(known: dict[str, str], recipes: list[Recipe]) -> tuple[StubHost, list[Any]]:
    host = StubHost({BundleOnHost: BundleState(key="x", lock=Lock(images=known))})
    return host, commands_of(host, lock_filled, recipes=recipes, bundle=USB)


def test_what_tags_stood_for_comes_with_the_bundle_and_goes_into_the_lock(
    lock: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert BUILT.base is not None
    assert PULLED.reference is not None
    known = {BUILT.base: DIGEST, PULLED.reference: DIGEST, "another:1": DIGEST}

    _, (recording,) = filling(known, [BUILT, PULLED])

    monkeypatch.setattr(bundle_import, "record", lambda _, images: lock.update(images))
    assert recording.function(None, None, *recording.args)
    assert lock == {BUILT.base: DIGEST, PULLED.reference: DIGEST}
    host, commands = filling(known, [BUILT, PULLED])
    assert (commands, host.asked) == ([], [])


def test_a_tag_that_the_bundle_does_not_know_is_no_change_either() -> None:
    host, commands = filling({}, [BUILT])

    assert (commands, len(host.noops)) == ([], 1)


def test_the_name_of_a_built_image_hangs_on_what_its_base_stood_for(lock: dict[str, str]) -> None:
    assert BUILT.base is not None
    lock[BUILT.base] = DIGEST
    build = build_of(pinned(BUILT, Lock(images=lock)))
    assert build.tag != BUILD.tag

    _, (start, _) = loading(ImageState(None, None), BUILT)
    assert words(start)[2] == build.tag
    _, commands = loading(ImageState(ID, build.digest), BUILT)
    assert commands == []


def test_a_bundle_carries_what_the_tags_of_its_images_stood_for() -> None:
    assert BUILT.base is not None
    lock = Lock(images={BUILT.base: DIGEST, "another:1": DIGEST})

    assert export_request(PLAN, MODELS, lock)["lock"] == {"images": {BUILT.base: DIGEST}}


def test_weights_come_from_the_bundle_and_no_token_is_needed() -> None:
    model = Model(repository="owner/big", revision="main", size_gib=1, served_as="big", source="test", token="hub")
    host = StubHost({WeightsOnHost: WeightsState()})

    start, _, recording = commands_of(host, weights_loaded, model=model, weights=Weights(), reserve_gib=2.0, bundle=USB)

    assert words(start)[:2] == ["/usr/local/lib/tinderbox/import_weights.py", USB]
    assert "--token-file" not in start.get_raw_value()
    assert recording.function is record_commit


def test_encodings_and_tools_come_from_the_bundle_and_pip_asks_no_index() -> None:
    network = Network.model_validate({"bundle": USB, "encodings": "https://encodings.lab"})

    assert encodings_mirror(network) == f"file://{network.bundle}/encodings"
    environment = network_environment(network)
    assert environment["PIP_NO_INDEX"] == environment["HF_HUB_OFFLINE"] == "1"
    assert environment["PIP_FIND_LINKS"] == f"{network.bundle}/wheels"
    assert network_environment(Network()) == {}


def exporting(state: BundleState | None, plan: HostPlan = PLAN) -> tuple[StubHost, list[Any]]:
    host = StubHost({BundleOnHost: state})
    return host, commands_of(host, bundle_exported, plan=plan, models=MODELS)


def test_a_whole_bundle_of_the_same_is_no_change() -> None:
    key = export_request(PLAN, MODELS, Lock())["key"]
    host, commands = exporting(BundleState(key=key, files=9))

    assert (commands, host.noops) == ([], [f"{USB} is whole: 9 files"])
    assert host.asked == [(BundleOnHost, {"directory": USB})]


@pytest.mark.parametrize(
    "state",
    [BundleState(), BundleState(key="another"), None],
    ids=["none", "of something else", "whole by its manifest, but a file is missing"],
)
def test_anything_else_is_exported_as_a_job(state: BundleState | None) -> None:
    key = export_request(PLAN, MODELS, Lock())["key"]
    _, (start, following) = exporting(state or BundleState(key=key, problems=("x is missing",)))

    program, request = words(start)
    assert program == "/usr/local/lib/tinderbox/export_bundle.py"
    told = json.loads(request)
    assert told["to"] == USB
    assert [image["name"] for image in told["images"]] == [BUILD.tag]
    assert told["models"][0]["commit"] == MODELS[0].revision
    assert {encoding["name"] for encoding in told["encodings"]} == set(MODELS[0].encodings)
    assert following.function is follow


def test_a_host_whose_settings_name_no_directory_is_refused() -> None:
    plan = HostPlan(name="spark-1", settings=HostSettings(), services=PLAN.services)
    _, (refusal,) = exporting(BundleState(), plan)

    assert "set bundle.export_to" in refusal.get_raw_value()


@pytest.mark.parametrize("operation", ["image", "bundle"])
def test_a_host_without_an_answer_is_refused_alone(operation: str) -> None:
    _, (refusal,) = loading(None, BUILT) if operation == "image" else exporting(None)

    assert "could not be read" in refusal.get_raw_value()
