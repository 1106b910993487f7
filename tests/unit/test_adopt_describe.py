"""Servers that run on a host → services of a fleet file: what is carried over, what is told, and no secret."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from modules.adopt.match import Wish, obstacle, paired, what_happens
from modules.adopt.observed import seen_of
from modules.adopt.piece import Piece, pieces_of
from modules.adopt.render import Found, lines, settings_of, with_found
from modules.catalog import load_catalog
from modules.fleet import load_fleet
from modules.fleet.plan import host_plan
from modules.hostside.gather_servers import hidden_words, is_server
from modules.release.build import build_release
from tests.unit.release_samples import surroundings
from tests.unit.server_samples import (
    COMMIT,
    COMPOSE,
    CONTAINER,
    DIGEST,
    HUB,
    IMAGE_ID,
    container,
    image,
    process,
    seen,
)

CATALOG = load_catalog()
SERVE = ("openai/gpt-oss-20b", "--max-model-len", "32768", "--gpu-memory-utilization", "0.7")
RUNS = ("/usr/bin/python3", "/usr/local/bin/vllm", "serve", *SERVE)


def piece(*arguments: Any, **keywords: Any) -> Piece:
    (found,) = pieces_of(seen(*arguments, **keywords).servers, CATALOG)
    return found


def service(found: Piece) -> dict[str, Any]:
    assert found.service is not None, found.told
    return dict(found.service)


def told(found: Piece) -> str:
    return "\n".join(found.told)


def test_a_container_by_docker_run() -> None:
    found = piece(process(RUNS), container(("vllm", "serve", *SERVE), Entrypoint=["vllm", "serve"]), image())
    one = service(found)
    assert (found.name, found.server.kind, found.server.named) == ("gpt-oss-20b", "container", "container llm")
    assert one["engine"] == "vllm"
    assert one["profile"] == "own"
    assert one["flags"] == {"gpu-memory-utilization": 0.7, "max-model-len": 32768}
    assert one["model"]["repository"] == "openai/gpt-oss-20b"
    assert one["model"]["revision"] == COMMIT
    assert one["model"]["include"] == ["config.json", "model-*-of-00002.safetensors"]
    assert one["image"]["recipe"]["reference"] == "docker.io/vllm/vllm-openai:v0.11.0"
    assert one["image"]["recipe"]["digest"] == DIGEST
    assert one["container"]["entrypoint"] == "/usr/local/bin/vllm"
    assert (one["port"], one["listen"]) == (8000, "0.0.0.0")
    assert "without a key" in told(found)
    assert found.home == "/home/nvidia/.cache/huggingface"


def test_an_image_that_no_registry_has_is_used_by_its_id() -> None:
    own = image(RepoTags=["vllm-node:latest"], RepoDigests=[], Config={"Entrypoint": None})
    found = piece(process(RUNS), container(RUNS, Image="vllm-node"), own)
    recipe = service(found)["image"]["recipe"]
    assert (recipe["reference"], recipe["digest"], recipe["present"]) == ("vllm-node:latest", IMAGE_ID, True)
    assert "container" not in service(found)
    assert "in no registry" in told(found)


def test_what_docker_publishes_is_where_it_listens() -> None:
    published = {"8000/tcp": [{"HostIp": "127.0.0.1", "HostPort": "18055"}]}
    one = service(piece(process(RUNS), container(RUNS, NetworkMode="bridge", PortBindings=published), image()))
    assert (one["port"], one["listen"]) == (18055, "127.0.0.1")
    hidden = piece(process(RUNS), container(RUNS, NetworkMode="bridge"), image())
    assert service(hidden)["listen"] == "127.0.0.1"
    assert "not published" in told(hidden)


def test_secrets_are_named_and_never_shown() -> None:
    given = ("HF_TOKEN=hf_abcdefghijklmnopqrstuv", "OWN_SECRET_TOKEN=deeply-hidden", "VLLM_LOGGING_LEVEL=DEBUG")
    words = (*RUNS, "--api-key", "sesame-one", "sesame-two")
    found = piece(process(words, given), container(words, Env=list(given)), image())
    assert found.secrets == {"gpt-oss-20b-key": {"env": "GPT_OSS_20B_KEY"}, "hf-token": {"env": "HF_TOKEN"}}
    one = service(found)
    assert (one["api_key"], one["model"]["token"]) == ("gpt-oss-20b-key", "hf-token")
    assert one["environment"] == {"VLLM_LOGGING_LEVEL": "DEBUG"}
    assert "api-key" not in one["flags"]
    shown = json.dumps(one) + told(found) + repr(found)
    assert not any(secret in shown for secret in ("sesame", "hf_abc", "deeply"))
    assert "OWN_SECRET_TOKEN" in told(found)


def test_a_service_of_compose_and_a_unit_that_starts_it() -> None:
    made = container(RUNS, Labels=COMPOSE)
    found = piece(process(RUNS), made, image())
    assert found.server.kind == "compose"
    assert found.server.named == "service llm of the compose project stack (container llm)"
    start = "{ path=/usr/bin/docker ; argv[]=/usr/bin/docker compose up -d ; ignore_errors=no ; pid=0 }"
    unit = {"Id": "stack.service", "Type": "oneshot", "WorkingDirectory": "/home/spark/stack", "ExecStart": start}
    assert piece(process(RUNS), made, image(), [unit]).server.units == ("stack.service",)
    other = {**unit, "WorkingDirectory": "/home/spark/other"}
    assert piece(process(RUNS), made, image(), [other]).server.units == ()


@pytest.mark.parametrize("name", ["--name llm ", ""])
def test_a_unit_that_runs_docker(name: str) -> None:
    line = f"/usr/bin/docker run --rm {name}--gpus all vllm/vllm-openai:v0.11.0 {' '.join(RUNS[2:])}"
    start = f"{{ path=/usr/bin/docker ; argv[]={line} ; ignore_errors=no ; start_time=[n/a] ; pid=12 }}"
    unit = {"Id": "llm.service", "Type": "simple", "WorkingDirectory": "", "ExecStart": start}
    made = container(("vllm", *RUNS[2:]))
    found = piece(process(RUNS), made, image(), [unit])
    assert (found.server.kind, found.server.units) == ("unit", ("llm.service",))
    stranger = {**unit, "ExecStart": start.replace("llm", "web").replace("gpt-oss-20b", "other")}
    assert piece(process(RUNS), made, image(), [stranger]).server.units == ()


def test_a_server_that_was_executed_in_a_container_that_sleeps() -> None:
    """As spark-vllm-docker and sparkrun do it."""
    environment = ["HOME=/root", "PWD=/workspace", "SHLVL=1", "VLLM_USE_V1=1"]
    found = piece(
        process(RUNS, environment), container(("sleep", "infinity"), AutoRemove=True, Privileged=True), image()
    )
    assert found.server.executed
    assert service(found)["environment"] == {"VLLM_USE_V1": "1"}
    assert "privileged" in told(found)
    assert "what it was made of is kept" in what_happens("x", found, "/elsewhere")
    assert not piece(process(RUNS), container(("bash", "-c", f"vllm serve {SERVE[0]} $FLAGS")), image()).server.executed


def test_variables_that_name_folders_which_ours_has_not_are_told() -> None:
    given = ["TIKTOKEN_ENCODINGS_BASE=/own/encodings", "VLLM_CONFIG_ROOT=/own/config", "VLLM_CACHE_ROOT=/elsewhere"]
    bound = [*container(RUNS)["Mounts"], {"Type": "bind", "Source": "/srv/own", "Destination": "/own"}]
    found = piece(process(RUNS), container(RUNS, Env=given, Mounts=bound), image())
    assert service(found)["environment"] == {"VLLM_CACHE_ROOT": "/elsewhere"}
    assert "/own/config lies in /srv/own of the host" in told(found)
    assert "vocabularies" in told(found)


def test_sglang() -> None:
    words = ("python3", "-m", "sglang.launch_server", "--model-path", "openai/gpt-oss-20b", "--host", "0.0.0.0")
    own = image(RepoTags=[], RepoDigests=[f"lmsysorg/sglang@{DIGEST}"], Config={"Entrypoint": None})
    found = piece(process(words), container(words, Image="lmsysorg/sglang:spark"), own)
    one = service(found)
    assert (one["engine"], one["port"], one["listen"]) == ("sglang", 30000, "127.0.0.1")
    assert one["image"]["recipe"]["reference"] == "docker.io/lmsysorg/sglang:latest"
    assert "moved on" in told(found)
    assert "open to others" in told(found)


def test_llama_server_from_the_hub_and_from_a_path_in_a_cache() -> None:
    repository, file = "ggml-org/gpt-oss-120b-GGUF", "gpt-oss-120b-mxfp4-00001-of-00003.gguf"
    lies = {"path": HUB, "models": {repository: {"refs": {"main": COMMIT}, "snapshots": {COMMIT: {file: 5}}}}}
    own = image(RepoDigests=[], RepoTags=["llama:1"], Config={"Entrypoint": ["/app/llama-server"], "Env": []})
    given = ["LLAMA_ARG_HOST=0.0.0.0"]
    by_path = ("/app/llama-server", "--model", f"{HUB}/models--ggml-org--gpt-oss-120b-GGUF/snapshots/{COMMIT}/{file}")
    for words in (by_path, ("/app/llama-server", "--hf-repo", repository, "--hf-file", file)):
        made = container((*words, "-ngl", "99"), Env=given, Entrypoint=["/app/llama-server"])
        one = service(piece(process((*words, "-ngl", "99"), caches=[lies]), made, own))
        assert (one["engine"], one["port"], one["listen"]) == ("llama-cpp", 8080, "0.0.0.0")
        assert (one["model"]["file"], one["model"]["revision"]) == (file, COMMIT)
        assert one["container"]["entrypoint"] == "/app/llama-server"
        assert one["flags"] == {"n-gpu-layers": 99}


def test_a_path_into_a_cache_is_the_hubs_name_and_clients_keep_theirs() -> None:
    path = f"{HUB}/models--openai--gpt-oss-20b/snapshots/{COMMIT}"
    model = service(piece(process(("vllm", "serve", path)), container(("vllm", "serve", path)), image()))["model"]
    assert (model["repository"], model["revision"], model["served_as"]) == ("openai/gpt-oss-20b", COMMIT, path)


def test_what_can_not_be_a_service_is_refused_with_its_reason() -> None:
    folder = ("vllm", "serve", "/models/mine")
    assert "author's disk" in told(piece(process(folder), container(folder), image()))
    wide = (*RUNS, "-tp", "2")
    found = piece(process(wide), container(wide), image())
    assert found.service is None
    assert "spread over several" in told(found)
    assert paired([Wish("x", 8000, CATALOG.models["gpt-oss-20b"])], [found]) == {}


def test_weights_elsewhere_are_told_and_brought() -> None:
    volume = [
        {"Type": "volume", "Source": "/var/lib/docker/volumes/hf/_data", "Destination": "/root/.cache/huggingface"}
    ]
    found = piece(process(RUNS), container(RUNS, Mounts=volume), image())
    assert found.home is None
    assert found.weights is not None
    assert found.weights.cache.on_host == "/var/lib/docker/volumes/hf/_data/hub"
    inside = piece(process(RUNS), container(RUNS, Mounts=[]), image())
    assert inside.weights is not None
    assert inside.weights.cache.on_host == f"/proc/4711/root{HUB}"
    lost = piece(process(RUNS), container(RUNS, Mounts=[], AutoRemove=True), image())
    assert "docker removes when it stops" in str(obstacle(lost))
    assert obstacle(inside) is None
    away = piece(process(RUNS, caches=[]), container(RUNS), image())
    assert "would be fetched" in told(away)
    assert "would be fetched" in str(obstacle(away))
    assert obstacle(found) is None


def test_a_process_of_a_unit_of_a_user_and_of_nobody() -> None:
    """One that nothing would start again is described, and left to its owner."""
    environment = ["HF_HOME=/data/hf", "HOME=/home/me", "VLLM_LOGGING_LEVEL=INFO"]
    lies = [{"path": "/data/hf/hub", "models": process(RUNS)["caches"][0]["models"]}]
    kinds = {"llm.service": None, "user@1000.service/llm.service": "systemctl --user", None: "started by hand"}
    for unit, why in kinds.items():
        found = piece(process(RUNS, environment, container=None, unit=unit, caches=lies))
        assert found.home == "/data/hf"
        assert service(found)["environment"] == {"VLLM_LOGGING_LEVEL": "INFO"}
        assert "no container" in told(found)
        assert (obstacle(found) is None) if why is None else why in str(obstacle(found))


def test_what_is_ours_is_left_out_and_strangers_are_unknown() -> None:
    ours = seen(process(RUNS), container(RUNS, Labels={"tinderbox.service": "chat"}), image())
    assert ours.servers == ()
    strange = seen_of(
        json.dumps({"processes": [], "containers": {}, "units": [], "gpu": [{"pid": 9, "name": "ollama"}]})
    )
    assert list(lines(Found("spark", (), strange.unknown))) == [
        "spark: unknown, and not touched: ollama (pid 9) has memory of the GPU"
    ]
    assert "no server of models" in next(lines(Found("spark", ())))


def test_two_servers_are_two_services() -> None:
    one = seen(process(RUNS), container(RUNS), image()).servers[0]
    assert [each.name for each in pieces_of([one, one], CATALOG)] == ["gpt-oss-20b", "gpt-oss-20b-2"]


def test_a_server_is_known_by_its_own_words() -> None:
    module = "python3 -m vllm.entrypoints.openai.api_server"
    for line in (
        " ".join(RUNS),
        "vllm serve x",
        module,
        "/b/llama-server",
        "/v/bin/sglang serve",
        "python3.12 -m sglang.launch_server",
    ):
        assert is_server(line.split(" ")), line
    for line in ("bash -c vllm", "docker run vllm serve", "vllm bench", "tail vllm", "", "python3 -m vllm.benchmarks"):
        assert not is_server(line.split(" ")), line
    hidden = hidden_words(["--api-key=a", "--hf-token", "b", "--port", "1", "--api-key", "c", "d"])
    assert " ".join(hidden) == "--api-key=*** --hf-token *** --port 1 --api-key *** ***"


def test_what_is_written_is_a_fleet_file_that_renders_to_the_same_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (*RUNS, "--api-key", "sesame", "--host", "0.0.0.0")
    found = Found("spark", tuple(pieces_of(seen(process(words), container(words), image()).servers, CATALOG)))
    told_of = {"spark": {"settings": settings_of(found), "secrets": dict(found.pieces[0].secrets)}}
    written = {"fleet": "office", "hosts": {"spark": {"address": "10.0.0.1"}}}
    path = tmp_path / "adopted.yaml"
    path.write_text(with_found(written, told_of, lines(found)))
    assert "sesame" not in path.read_text()
    monkeypatch.setenv("GPT_OSS_20B_KEY", "sesame")
    (plan,) = host_plan(load_fleet(path).hosts["spark"], CATALOG).services
    release = build_release(plan, replace(surroundings(commit=COMMIT), home="/home/nvidia/.cache/huggingface"))
    line = " ".join(release.command)
    assert "--max-model-len 32768" in line
    assert "--entrypoint /usr/local/bin/vllm" in release.unit
    assert f" serve /home/nvidia/.cache/huggingface/hub/models--openai--gpt-oss-20b/snapshots/{COMMIT}" in release.unit
    again = yaml.safe_load(with_found(yaml.safe_load(path.read_text()), told_of, ()))
    assert again["hosts"] == yaml.safe_load(path.read_text())["hosts"]


def test_the_server_at_the_port_makes_way_and_else_the_only_one_with_the_model() -> None:
    found = piece(process(RUNS), container(RUNS), image())
    model = CATALOG.models["gpt-oss-20b"]
    other = CATALOG.models["gpt-oss-120b"]
    assert paired([Wish("x", 8000, other)], [found]) == {"x": found}
    assert paired([Wish("x", 9000, model)], [found]) == {"x": found}
    assert paired([Wish("x", 9000, other)], [found]) == {}
    assert paired([Wish("x", 9000, model)], [found, replace(found)]) == {}
    assert CONTAINER not in what_happens("x", found, "/home/nvidia/.cache/huggingface")


def test_no_server_makes_way_for_two_services() -> None:
    found = piece(process(RUNS), container(RUNS), image())
    assert found.service is not None
    beside = replace(found, service={**found.service, "port": 8001})
    model = CATALOG.models["gpt-oss-20b"]
    one, two = Wish("one", 9000, model), Wish("two", 8000, model)
    assert paired([one, two], [found]) == {"two": found}
    assert paired([one, replace(two, port=9001)], [found]) == {"one": found}
    assert paired([one, two], [found, beside]) == {"two": found, "one": beside}
