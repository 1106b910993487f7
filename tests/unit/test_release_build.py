"""A service → its release: what is in it, what is not, and when its id changes."""

from __future__ import annotations

import json

import pytest

from modules.release.build import build_release
from modules.release.files import environment_text, release_files
from tests.unit.release_samples import COMMIT, HOME, IMAGE, release, service_plan, surroundings

SECRET = "sk-not-to-be-seen"


def test_equal_wishes_have_equal_ids() -> None:
    assert release().id == release().id


@pytest.mark.parametrize(
    "change",
    [{"flags": {"max-num-seqs": 3}}, {"port": 8001}, {"profile": "balanced"}, {"environment": {"A": "1"}}],
)
def test_every_wish_changes_the_id(change: dict[str, object]) -> None:
    assert release(**change).id != release().id


def test_so_do_image_commit_and_secret() -> None:
    plan = service_plan(api_key="key")
    base = build_release(plan, surroundings(secrets={"VLLM_API_KEY": SECRET})).id
    others = [
        surroundings(image="tinderbox/engine:other", secrets={"VLLM_API_KEY": SECRET}),
        surroundings(commit="b" * 40, secrets={"VLLM_API_KEY": SECRET}),
        surroundings(secrets={"VLLM_API_KEY": "another"}),
    ]
    assert base not in {build_release(plan, other).id for other in others}


def test_the_model_is_served_from_its_snapshot_under_its_own_name() -> None:
    command = release().command
    assert f"{HOME}/hub/models--tinderbox-lab--gpt-oss-tiny/snapshots/{COMMIT}" in command
    assert command[command.index("--served-model-name") + 1] == "gpt-oss-tiny"


def test_nothing_is_privileged_nothing_restarts_itself_nothing_is_pulled() -> None:
    text = release(engine="vllm-mxfp4", model="gpt-oss-120b").unit
    assert "--privileged" not in text
    assert "--restart" not in text
    assert "--pull never" in text
    assert "--gpus all" in text
    assert "--ulimit memlock=-1" in text


def test_without_a_gpu_none_is_asked_for() -> None:
    assert "--gpus" not in release().unit


def test_devices_are_left_to_the_host() -> None:
    text = release(engine="vllm-mxfp4", model="gpt-oss-120b").unit
    assert "start_container.py \\\n    --device /dev/infiniband" in text
    assert "start_container.py" not in release().unit


def test_weights_and_encodings_are_mounted_to_be_read() -> None:
    text = release().unit
    assert f"type=bind,source={HOME}/hub,target={HOME}/hub,readonly" in text
    assert "target=/var/lib/tinderbox/encodings,readonly" in text
    for name in ("TIKTOKEN_ENCODINGS_BASE", "TIKTOKEN_CACHE_DIR", "TIKTOKEN_RS_CACHE_DIR"):
        assert release().environment[name] == "/var/lib/tinderbox/encodings"


def test_the_engine_is_kept_from_the_network() -> None:
    environment = release().environment
    assert (environment["HF_HUB_OFFLINE"], environment["TRANSFORMERS_OFFLINE"]) == ("1", "1")


def test_a_secret_is_in_its_own_file_and_nowhere_else() -> None:
    secrets = {"VLLM_API_KEY": SECRET}
    made = build_release(service_plan(api_key="key", listen="0.0.0.0"), surroundings(secrets=secrets))
    assert SECRET not in made.model_dump_json()
    held = [file for file in release_files(made, secrets) if SECRET in file.content]
    assert [(file.path, file.secret) for file in held] == [("/etc/tinderbox/gpt-oss.secret.env", True)]
    assert "--secret-file /etc/tinderbox/gpt-oss.secret.env" in made.unit
    assert "--key-variable VLLM_API_KEY" in made.unit


def test_a_service_that_others_can_reach_takes_the_key_that_the_host_has_made() -> None:
    plan = service_plan(listen="0.0.0.0")
    made = build_release(plan, surroundings(made_key="0123456789ab"))
    assert made.secrets == {"VLLM_API_KEY": "0123456789ab"}
    assert "    --env-file /etc/tinderbox/gpt-oss.key.env" in made.unit
    assert "--secret-file /etc/tinderbox/gpt-oss.key.env --key-variable VLLM_API_KEY" in " ".join(
        made.unit.replace("\\\n", " ").split()
    )
    # The host keeps it over all releases, so no release brings it along.
    assert not any(file.secret for file in release_files(made, {}))
    assert build_release(plan, surroundings(made_key="another")).id != made.id


def test_one_on_loopback_asks_for_no_key() -> None:
    assert "API_KEY" not in release().unit
    assert release().secrets == {}


def test_the_fleet_files_own_key_goes_before_one_of_the_hosts() -> None:
    plan = service_plan(listen="0.0.0.0", api_key="key")
    unit = build_release(plan, surroundings(secrets={"VLLM_API_KEY": SECRET})).unit
    assert "gpt-oss.key.env" not in unit


def test_the_container_carries_the_release() -> None:
    made = release()
    labels = {file.path: file.content for file in release_files(made, {})}["/etc/tinderbox/gpt-oss.labels"]
    assert f"tinderbox.release={made.id}" in labels


def test_the_image_is_the_given_one() -> None:
    assert f"    {IMAGE} vllm serve" in release().unit


def test_the_watchs_unit_is_a_file_of_the_release_where_there_is_one() -> None:
    def paths(**settings: object) -> list[str]:
        return [file.path for file in release_files(release(**settings), {})]

    watch = "/etc/systemd/system/tinderbox-watch@gpt-oss.service"
    assert watch in paths()
    assert watch not in paths(watchdog={"enabled": False})


def test_a_line_break_in_a_variable_is_refused() -> None:
    with pytest.raises(ValueError, match="A holds a line break"):
        environment_text({"A": "1\nB=2"})


def test_a_release_survives_json() -> None:
    made = release()
    assert type(made).model_validate(json.loads(made.model_dump_json())).id == made.id
