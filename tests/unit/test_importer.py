"""Recipes of other projects → fleet files: what is carried over, what is told, what is refused, and every flag."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from modules.catalog import load_catalog
from modules.fleet import load_fleet
from modules.fleet.plan import host_plan
from modules.importer.__main__ import main
from modules.importer.command import server_of
from modules.importer.convert import Imported, convert
from modules.importer.flags import long_name, parse_flags
from modules.importer.forms import read_recipe
from modules.importer.recipe import NoRecipeError, RefusedError, SourceRecipe
from modules.importer.render import distinct, fleet_text
from modules.release.arguments import engine_command
from modules.release.build import build_release
from tests.unit.release_samples import surroundings

SAMPLES = Path(__file__).resolve().parents[1] / "samples" / "recipes"
CATALOG = load_catalog()
# What the recipe's own program would be started with, worked out by hand: flag → its values.
ONE_HOST = {
    "docker-one": {
        "host": ["0.0.0.0"],
        "port": ["8100"],
        "served-model-name": ["harbour"],
        "tensor-parallel-size": ["1"],
        "gpu-memory-utilization": ["0.7"],
        "max-model-len": ["65536"],
        "enable-auto-tool-choice": [],
        "tool-call-parser": ["hermes"],
        "compilation-config.mode": ["0"],
        "compilation-config.cudagraph_mode": ["FULL_DECODE_ONLY"],
        "cudagraph-capture-sizes": ["1", "2", "4", "8"],
        "default-chat-template-kwargs.thinking": ["true"],
        "optimization-level": ["3"],
        "speculative-config": ['{"method":"mtp","num_speculative_tokens":4}'],
    },
    "sparkrun-draft": {
        "host": ["127.0.0.1"],
        "port": ["8000"],
        "served-model-name": ["harbour-70b"],
        "tensor-parallel-size": ["1"],
        "speculative-config": ['{"method": "dflash", "model": "/weights/draft", "num_speculative_tokens": 7}'],
        "enforce-eager": [],
    },
    "sparkrun-flags": {
        "model-path": ["/weights/model"],
        "host": ["127.0.0.1"],
        "port": ["30001"],
        "served-model-name": ["harbour/Harbour-8B"],
        "tp-size": ["1"],
        "mem-fraction-static": ["0.6"],
        "context-length": ["32768"],
        "trust-remote-code": [],
    },
    "pulse-embedding": {
        "host": ["0.0.0.0"],
        "port": ["8000"],
        "served-model-name": ["harbour/Harbour-Embedding-1B"],
        "gpu-memory-utilization": ["0.12"],
        "max-model-len": ["8192"],
        "runner": ["pooling"],
        "enable-prefix-caching": [],
        "hf-overrides": ['{"is_matryoshka": true}'],
    },
    "pulse-gguf": {
        "model": ["/weights/model"],
        "alias": ["harbour/Harbour-8B-gguf"],
        "host": ["0.0.0.0"],
        "port": ["8000"],
        "ctx-size": ["32768"],
        "parallel": ["1"],
        "n-gpu-layers": ["99"],
        "flash-attn": ["on"],
        "temp": ["1.0"],
        "jinja": [],
    },
}


def imported(name: str, *, solo: bool = False) -> Imported:
    return convert(read_recipe((SAMPLES / f"{name}.yaml").read_text(), name), name, CATALOG, solo=solo)


def of(**fields: object) -> Imported:
    """What becomes of a recipe with a plain command and these fields."""
    whole = {"form": "sparkrun", "name": "it", "model": "acme/model", "command": "vllm serve {model}", **fields}
    whole["parameters"] = {"model": whole["model"], **whole.get("parameters", {})}  # type: ignore[dict-item]
    return convert(SourceRecipe(**whole), "it", CATALOG)  # type: ignore[arg-type]


def started(one: Imported, folder: Path) -> dict[str, list[str]]:
    """The flags of the command that the service renders to, as words; read without the importer's code."""
    path = folder / "imported.yaml"
    path.write_text(fleet_text([one], "imported", []))
    plan = host_plan(load_fleet(path).hosts["spark-1"], CATALOG).services[0]
    places = {"model": "/weights/model", "draft": "/weights/draft", "draft_tokens": "3", "draft_tokens_and_one": "4"}
    places |= {"port": str(plan.service.port), "listen": plan.service.listen, "served_as": plan.model.served_as}
    found: dict[str, list[str]] = {}
    name = None
    for word in engine_command(plan.engine.command, plan.flags, places):
        if word.startswith("--"):
            name = word[2:]
            assert name not in found, f"{name} twice"
            found[name] = []
        elif name is not None:
            found[name].append(word)
    return found


@pytest.mark.parametrize("name", ONE_HOST)
def test_every_flag_of_a_recipe_is_in_the_command_that_serves_and_no_other(name: str, tmp_path: Path) -> None:
    assert started(imported(name), tmp_path) == ONE_HOST[name]


@pytest.mark.parametrize("name", ONE_HOST)
def test_a_release_can_be_built_of_it(name: str, tmp_path: Path) -> None:
    path = tmp_path / "imported.yaml"
    path.write_text(fleet_text([imported(name)], "imported", []))
    plan = host_plan(load_fleet(path).hosts["spark-1"], CATALOG).services[0]
    release = build_release(plan, surroundings(draft_commit="b" * 40))

    assert release.model == plan.model.repository
    assert "{" not in "".join(word for word in release.command if not word.startswith("{"))


def test_what_is_not_carried_over_is_told_with_its_reason() -> None:
    one = imported("sparkrun-draft")

    assert one.status == "partly"
    told = "\n".join(one.left)
    for words in (
        "pre_exec: commands before",
        "pip install harbour-tools",
        "executor_config",
        "env.HF_TOKEN: a secret",
    ):
        assert words in told
    assert "env.HARBOUR_HOME: '$HOME/harbour' is for a shell" in told
    assert "not-a-token" not in fleet_text([one], "imported", [])


def test_a_recipe_without_anything_of_its_own_kind_is_read_whole() -> None:
    one = imported("docker-one")

    assert (one.status, one.left, one.hosts) == ("read", (), 1)


def test_a_draft_model_is_one_that_is_fetched() -> None:
    service = imported("sparkrun-draft").service

    assert service is not None
    assert service["speculative"]["model"]["repository"] == "harbour/Harbour-70B-Draft"
    assert '"model": "{draft}"' in service["flags"]["speculative-config"]
    assert service["model"]["revision"] == "abc123"


def test_images_are_those_that_the_recipes_programs_pull() -> None:
    for name, reference in (
        ("docker-one", "docker.io/eugr/spark-vllm:latest"),
        ("sparkrun-draft", "ghcr.io/example/vllm-spark:nightly"),
        ("pulse-embedding", "ghcr.io/kharkevich-engineering-lab/spark-pulse-engine/vllm:0.1.0"),
    ):
        service = imported(name).service
        assert service is not None
        assert service["image"]["recipe"]["reference"] == reference


def test_a_digest_stays_pinned() -> None:
    digest = "sha256:" + "a" * 64
    service = of(image=f"ghcr.io/acme/vllm@{digest}").service

    assert service is not None
    assert service["image"]["recipe"]["digest"] == digest
    assert service["image"]["recipe"]["reference"] == "ghcr.io/acme/vllm"


def test_native_mxfp4_is_built_by_the_catalogs_recipe() -> None:
    one = of(image="vllm-node-mxfp4", form="spark-vllm-docker", model="openai/gpt-oss-120b")

    assert one.service is not None
    assert (one.service["engine"], "image" in one.service) == ("vllm-mxfp4", False)
    assert one.left == ("image: built here by the catalog's recipe vllm-mxfp4 in place of vllm-node-mxfp4",)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"command": "atlas serve {model}"}, "no server of ours is started"),
        ({"command": "vllm serve {model} & vllm serve other/model"}, "several servers are started"),
        ({"command": "vllm serve {model} --port $(free_port)"}, "is for a shell to work out"),
        ({"command": "vllm serve {model} --name 'open"}, "can not be split into words"),
        ({"command": "vllm serve {model} stray"}, "'stray' in its command belongs to no flag"),
        ({"command": "vllm serve /models/mine"}, "lies on its author's disk"),
        ({"model": "acme/model-GGUF:Q4_K_M"}, "is a quantisation Q4_K_M and not a file"),
        ({"image": "my-own-build"}, "is in no registry: only its author has it"),
        ({"image": "two words"}, "is no image's name"),
        ({"command": None, "engine": "tokenary"}, "engine tokenary is none of ours"),
        ({"command": "vllm serve {model} --port {prot}", "doubled": True}, "has a place {prot}"),
        ({"command": "vllm serve {model.__class__}", "doubled": True}, "has a place {model.__class__}"),
        ({"model": "Qwen/Qwen3.5-122B-A10B-FP8"}, "its model needs 2 Sparks"),
    ],
)
def test_what_nothing_here_could_serve_is_refused_with_the_reason(fields: dict[str, object], reason: str) -> None:
    one = of(**fields)

    assert one.status == "refused"
    assert one.service is None
    assert reason in one.left[0]


def test_shell_around_the_server_is_told_and_not_run() -> None:
    recipe = SourceRecipe(
        form="sparkrun",
        name="it",
        model="acme/model",
        command="export LEVEL=2\npip install x && LOUD=1 exec vllm serve {model} --seed 1 2>&1 | tee /tmp/log",
        parameters={"model": "acme/model"},
    )
    server = server_of(recipe)

    assert server.words == ("acme/model", "--seed", "1")
    assert server.environment == {"LEVEL": "2", "LOUD": "1"}
    assert [line.split("`")[1] for line in server.left] == ["pip install x", "tee /tmp/log"]


def test_commands_inside_a_shells_word_are_read_too() -> None:
    recipe = SourceRecipe(form="sparkrun", name="it", model="a/b", command="bash -c 'vllm serve a/b --seed 1'")

    assert server_of(recipe).words == ("a/b", "--seed", "1")


def test_doubled_braces_of_json_are_read_as_single_ones() -> None:
    word = '{{"method": "mtp", "of": {{"a": 1}}}}'
    recipe = SourceRecipe("sparkrun", "it", "a/b", command=f"vllm serve a/b --speculative-config '{word}'")

    assert server_of(recipe).words[-1] == '{"method": "mtp", "of": {"a": 1}}'


def test_flags_are_known_by_their_long_names() -> None:
    known = CATALOG.flags["vllm"]
    words = shlex.split("-tp 2 --max_model_len=9 --seed -1 -q fp8 --lora-modules a=b c=d --enforce-eager")

    assert long_name("-cc.pass_config.fuse", known) == "compilation-config.pass_config.fuse"
    assert parse_flags(words, known).flags == {
        "tensor-parallel-size": 2,
        "max-model-len": 9,
        "seed": -1,
        "quantization": "fp8",
        "lora-modules": ("a=b", "c=d"),
        "enforce-eager": True,
    }


@pytest.mark.parametrize(
    ("server", "names", "aliases", "left"),
    [
        ("vllm serve", "--served-model-name one two one acme/three", ["two", "acme/three"], []),
        ("vllm serve", "--served-model-name one", None, []),
        (
            "python3 -m sglang.launch_server --model-path",
            "--served-model-name one two",
            None,
            ["served-model-name: two: engine sglang serves a model by one name"],
        ),
    ],
)
def test_names_after_the_first_are_aliases(server: str, names: str, aliases: list[str] | None, left: list[str]) -> None:
    recipe = SourceRecipe("sparkrun", "it", "acme/model", command=f"{server} acme/model {names}", image="acme/it:1")
    found = convert(recipe, "it.yaml", CATALOG)

    assert found.service is not None
    assert found.service.get("aliases") == aliases
    assert [one for one in found.left if one.startswith("served-model-name")] == left


def test_of_a_flag_that_is_given_twice_the_last_counts() -> None:
    found = parse_flags(["--seed", "1", "--seed", "2"], CATALOG.flags["vllm"])

    assert found.flags == {"seed": 2}
    assert found.left == ("--seed: given twice, of which the last counts (not 1)",)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- a list", "no mapping"),
        ("a: [", "no valid YAML"),
        ("name: x", "neither a command with a container"),
        ("{model: [1], container: x, command: y}", "`model` is no text"),
        ("{model: a/b, runtime: vllm, defaults: [1]}", "`defaults` is no mapping"),
        ("{model: a/b, engine: vllm, engines: {vllm: [1]}}", "engines.vllm is no mapping"),
    ],
)
def test_what_is_no_recipe_is_told_so(text: str, reason: str) -> None:
    with pytest.raises(NoRecipeError, match=reason):
        read_recipe(text, "it")


@pytest.mark.parametrize("form", ["template", "arguments"])
def test_on_one_host_everything_is_for_one_gpu(form: str) -> None:
    config = '{"method":"mtp","num_speculative_tokens":1,"draft_tensor_parallel_size":{tensor_parallel}}'
    flags = f"-tp {{tensor_parallel}} --speculative-config '{config}'"
    template = {"command": f"vllm serve {{model}} {flags}"}
    given = template if form == "template" else {"command": None, "arguments": (flags,)}
    recipe = SourceRecipe("sparkrun", "it", "a/b", parameters={"model": "a/b", "tensor_parallel": 2}, nodes=2, **given)
    one = convert(recipe, "it", CATALOG, solo=True)

    assert one.service is not None
    assert one.hosts == 1
    assert one.service["flags"]["tensor-parallel-size"] == 1
    assert '"draft_tensor_parallel_size":1' in one.service["flags"]["speculative-config"]
    assert "tensor_parallel: 1 in place of 2, as their program does it on one host" in one.left


def test_a_recipe_for_several_hosts_is_a_cluster(tmp_path: Path) -> None:
    one = imported("docker-many")
    path = tmp_path / "imported.yaml"
    path.write_text(fleet_text([one], "imported", ["10.0.0.11", "10.0.0.12"]))
    hosts = load_fleet(path).hosts
    plans = [host_plan(host, CATALOG).services[0] for host in hosts.values()]

    assert one.hosts == 2
    assert [plan.service.cluster.hosts for plan in plans if plan.service.cluster] == [("spark-1", "spark-2")] * 2
    # Open to others only with a key of the owner's.
    assert plans[0].service.listen == "127.0.0.1"
    assert plans[0].flags["moe-backend"] == "marlin"
    assert plans[0].flags["tensor-parallel-size"] == 2
    assert plans[0].flags["nnodes"] == "{nodes}"
    told = "\n".join(one.left)
    for words in ("mods: mods are shell", "build_args: ", "--rebuild-vllm", "host: 0.0.0.0", "ray is left out"):
        assert words in told


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ("-tp 4", "it is for 2 hosts, and tensor-parallel-size 4 is not for so many GPUs"),
        ("", "it is for 2 hosts, and no size in its command is not for so many GPUs"),
        ("-dp 2", "it spreads copies of the model over hosts (data parallel)"),
    ],
)
def test_a_spread_that_no_cluster_has_is_refused(flags: str, reason: str) -> None:
    one = of(command=f"vllm serve {{model}} {flags}", nodes=2, solo=False)

    assert one.status == "refused"
    assert reason in one.left[0]


def test_names_are_services_names_and_differ() -> None:
    one = imported("docker-one")
    names = [each.name for each in distinct([one, one, Imported("docker-one", "x", "sparkrun", "refused")])]

    assert names == ["docker-one", "docker-one-2", "docker-one"]
    assert of(name="3.5 Weird_Name!").name == "model-3-5-weird-name"


def test_several_recipes_are_groups_of_one_file(tmp_path: Path) -> None:
    path = tmp_path / "imported.yaml"
    path.write_text(fleet_text([imported("docker-one"), imported("sparkrun-flags")], "imported", ["10.0.0.11"]))
    fleet = load_fleet(path)

    assert fleet.hosts["spark-1"].address == "10.0.0.11"
    assert list(fleet.hosts["spark-1"].settings.services) == ["docker-one"]


def test_nothing_of_a_recipe_is_looked_up_but_plain_names() -> None:
    with pytest.raises(RefusedError):
        server_of(SourceRecipe("spark-vllm-docker", "x", "a/b", command="vllm serve {0}", doubled=True))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fleet", "My Office"], "--fleet My Office: write two or more lower-case letters"),
        (["--address", "nvidia@10.0.0.11"], "--address nvidia@10.0.0.11: write a host name or an IP address"),
        (["--out", "none/fleet.yaml"], "none/fleet.yaml: No such file or directory; name a file that you may write"),
    ],
)
def test_an_option_that_makes_no_fleet_file_is_refused(
    options: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    words = [sys.executable, "-m", "modules.importer", str(next(SAMPLES.glob("*.yaml"))), *options]
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": root}, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"model: acme/x\ndate: 2026-13-45\ndefaults: {}\n", "no valid YAML: month must be in 1..12"),
        (b"model: acme/x\nn: !!int many\n", "no valid YAML: invalid literal for int()"),
        (b"model: acme/x\nengines: {vllm: {args: 5}}\n", "engines.vllm.args is no list"),
        (b"model: \xff\n", "byte 7 is not UTF-8 text"),
        (None, "this is no ordinary file; name a recipe"),
    ],
)
def test_what_is_no_recipe_is_refused_in_a_sentence(
    content: bytes | None, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "recipe.yaml"
    if content is None:
        os.mkfifo(path)
    else:
        path.write_bytes(content)
    with pytest.raises(typer.Exit):
        main([path])
    assert f"{path}: refused\n  no recipe: {told}" in capsys.readouterr().err
