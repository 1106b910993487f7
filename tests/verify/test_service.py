"""Every service: its image, its unit, its answers, its gate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote

from modules.fleet import ServicePlan, load_fleet
from modules.fleet.lock import read_lock
from modules.images.reference import image_reference
from modules.operations.engine import service_secrets
from modules.release import layout
from modules.release.build import Surroundings, build_release, fingerprint, key_file, key_variable, makes_key
from tests.verify.conftest import Spark

_ID_AND_RECIPE = "'{{ .Id }} {{ with .Config.Labels }}{{ index . \"tinderbox.recipe\" }}{{ end }}'"


@dataclass(frozen=True)
class InForce:
    """A service and what the host's ledger says is in force."""

    plan: ServicePlan
    release: str
    image: str
    commit: str
    draft_commit: str | None


def _in_force(spark: Spark) -> Iterator[InForce]:
    for plan in spark.plan.services:
        current = f"/var/lib/tinderbox/ledger/{plan.name}/current"
        entry = json.loads(spark.root(f"cat {current} 2>/dev/null || echo null"))
        assert entry is not None, f"{spark.name}: {plan.name} has no release in force; run deploys/engine.py"
        release = entry["release"]
        yield InForce(plan, entry["id"], release["image"], release["commit"], release.get("draft_commit"))


def test_the_unit_is_valid_enabled_and_active(spark: Spark) -> None:
    """Active means that it has generated text since it was started."""
    for service in spark.plan.services:
        unit = layout.unit_name(service.name)
        show = spark.root(f"systemctl show {unit} --property ActiveState,SubState,Result,UnitFileState")
        state = dict(line.split("=", 1) for line in show.splitlines())
        assert state["UnitFileState"] == "enabled", f"{spark.name}: {unit} is not enabled; run deploys/engine.py"
        assert state["ActiveState"] == "active", (
            f"{spark.name}: {unit} is {state['ActiveState']} ({state['SubState']}, result {state['Result']}); "
            f"see `journalctl -u {unit}`, then run deploys/engine.py"
        )
        spark.root(f"systemd-analyze verify {layout.unit_file(service.name)}")


def test_it_is_watched(spark: Spark) -> None:
    """A server that listens and generates no more is noticed."""
    for service in spark.plan.services:
        if service.service.watchdog.enabled and not service.is_worker:
            unit = layout.watch_unit_name(service.name)
            state = spark.root(f"systemctl is-active {unit} || true").strip()
            assert state == "active", f"{spark.name}: {unit} is {state}; see `journalctl -u {unit}`"


def test_it_answers_with_text(spark: Spark) -> None:
    """Through the real endpoint, as a client would ask; of a service that spans hosts, on its head."""
    for service in spark.plan.services:
        if service.is_worker:
            continue
        body = {
            "model": service.model.served_as,
            "messages": [{"role": "user", "content": "Say hello."}],
            "max_tokens": 64,
        }
        url = f"{layout.endpoint(service.service.listen, service.service.port)}/v1/chat/completions"
        answer = json.loads(_post(spark, service, url, body))
        assert "choices" in answer, f"{spark.name}: {service.name} answered {answer}"
        message = answer["choices"][0]["message"]
        text = message.get("content") or message.get("reasoning") or message.get("reasoning_content")
        assert text, f"{spark.name}: {service.name} counts tokens but its reply is empty: {message}"


def _post(spark: Spark, service: ServicePlan, url: str, body: dict[str, object]) -> str:
    # The key goes from the 0600 file to curl by standard input, so that it stands in no process list.
    variable = key_variable(service)
    header = (
        f"sed -n 's/^{variable}=/header = \"Authorization: Bearer /p' {key_file(service)} | sed 's/$/\"/' | "
        if variable is not None
        else ""
    )
    config = "--config -" if header else ""
    curl = f"curl --silent --show-error --max-time 120 {config} --json {quote(json.dumps(body))} {url}"
    return spark.root(f"{header}{curl}")


def _made_key(spark: Spark, plan: ServicePlan) -> str | None:
    if not makes_key(plan):
        return None
    held = dict(line.partition("=")[::2] for line in spark.root(f"cat {key_file(plan)}").splitlines())
    return fingerprint(held.get(str(key_variable(plan)), ""))


def test_it_is_opened_to_others_only_with_a_key(spark: Spark) -> None:
    """Asked without the key, the API refuses; the key lies where only root can read it."""
    for service in spark.plan.services:
        if key_variable(service) is None or service.is_worker:
            continue
        lies = spark.root(f"stat --format '%a %U' {key_file(service)}").strip()
        assert lies == "600 root", f"{spark.name}: {key_file(service)} is {lies}; run deploys/engine.py"
        url = f"{layout.endpoint(service.service.listen, service.service.port)}/v1/chat/completions"
        code = spark.root(
            f"curl --silent --max-time 60 --output /dev/null --write-out '%{{http_code}}' --json {{}} {url}"
        )
        assert code == "401", f"{spark.name}: {service.name} answers HTTP {code} to who has no API key"


def test_the_release_in_force_is_the_one_that_the_fleet_file_wants(spark: Spark) -> None:
    """An earlier one serves where the wish has failed, or where nobody has deployed it yet."""
    lock = read_lock(load_fleet().path)
    systemd = int(spark.root("systemctl --version").split()[1])
    for service in _in_force(spark):
        plan = service.plan
        around = Surroundings(
            image=image_reference(plan.recipe, lock),
            commit=service.commit,
            home=spark.plan.settings.weights.home,
            systemd=systemd,
            secrets=service_secrets(plan),
            made_key=_made_key(spark, plan),
            draft_commit=service.draft_commit,
        )
        wanted = build_release(plan, around).id
        assert service.release == wanted, (
            f"{spark.name}: release {service.release} of {plan.name} is in force, and the fleet file wants {wanted}; "
            "run deploys/spark.py. What became of each: deploys/history.py"
        )


def test_the_image_in_force_is_the_one_that_was_built(spark: Spark) -> None:
    """Its tag is a hash of the recipe; the label put on at the build must say the same, or somebody moved the tag."""
    for service in _in_force(spark):
        look = f"docker image inspect --format {_ID_AND_RECIPE} {service.image} 2>/dev/null || true"
        found = spark.root(look).split()
        assert found, f"{spark.name}: image {service.image} of {service.plan.name} is not there; run deploys/image.py"
        identity, label = found[0], found[1] if len(found) > 1 else "something else"
        built = service.plan.recipe.template is None or service.image.endswith(f":{label}")
        assert built, (
            f"{spark.name}: {service.image} was retagged, {identity[:19]} was built as {label}; run deploys/image.py"
        )


def test_the_ledger_keeps_what_was_seen_in_the_image_in_force(spark: Spark) -> None:
    """Beside the release, so that it is known what served also when the image is gone."""
    for service in _in_force(spark):
        if not service.plan.recipe.attest.wanted:
            continue
        name, ledger = service.plan.name, f"/var/lib/tinderbox/ledger/{service.plan.name}"
        entry = json.loads(spark.root(f"cat {ledger}/{service.release}.json"))
        kept = entry.get("attestation")
        assert kept is not None, (
            f"{spark.name}: the ledger has nothing of what was seen in {service.image} of {name}; run "
            "deploys/image.py, then deploys/engine.py"
        )
        found = spark.root(f"sha256sum {ledger}/{service.release}.attestation.json 2>/dev/null || true").split()
        assert found[:1] == [kept["sha256"]], (
            f"{spark.name}: what was seen in {service.image} of {name} is missing or altered in {ledger}; "
            "run deploys/engine.py"
        )


def test_the_container_runs_the_image_in_force(spark: Spark) -> None:
    """A tag that was moved under a running server shows at its next start; here it shows now."""
    for service in _in_force(spark):
        name = layout.container_name(service.plan.name)
        running = spark.root(f"docker container inspect --format '{{{{.Image}}}}' {name} 2>/dev/null || true").strip()
        assert running, f"{spark.name}: {service.plan.name} has no container; run deploys/engine.py"
        wanted = spark.root(f"docker image inspect --format '{{{{.Id}}}}' {service.image} 2>/dev/null || true").strip()
        assert running == wanted, f"{spark.name}: {name} runs {running[:19]}, but {service.image} is {wanted[:19]}"


def test_the_gate_of_the_release_in_force_has_passed(spark: Spark) -> None:
    """Measured on this host, for exactly what serves now."""
    for service in _in_force(spark):
        if service.plan.gate is None:
            continue
        result = layout.gate_result_file(service.plan.name, service.release)
        stored = json.loads(spark.root(f"cat {result} 2>/dev/null || echo null"))
        assert stored is not None, f"{spark.name}: {service.plan.name} was never measured; run deploys/gate.py"
        verdict = stored.get("judgement", {}).get("verdict")
        assert verdict in {"PASS", "WARN"}, f"{spark.name}: gate of {service.plan.name}: {verdict}; see {result}"
