"""Every service: its image, its unit, its answers, its gate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from shlex import quote

from modules.fleet import ServicePlan
from modules.release import layout
from tests.verify.conftest import Spark


def _services(spark: Spark) -> Iterator[tuple[ServicePlan, dict[str, object]]]:
    for service in spark.plan.services:
        link = f"/var/lib/tinderbox/ledger/{service.name}/current"
        text = spark.root(f"cat {link}.json 2>/dev/null || cat {link} 2>/dev/null || echo null")
        entry = json.loads(text)
        assert entry is not None, f"{spark.name}: {service.name} has no release in force; run deploys/engine.py"
        yield service, entry


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


def test_it_answers_with_text(spark: Spark) -> None:
    """Through the real endpoint, as a client would ask."""
    for service in spark.plan.services:
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
    header = (
        f"sed -n 's/^{service.engine.api_key_variable}=/header = \"Authorization: Bearer /p' "
        f"{layout.secret_file(service.name)} | sed 's/$/\"/' | "
        if service.service.api_key is not None
        else ""
    )
    config = "--config -" if header else ""
    curl = f"curl --silent --show-error --max-time 120 {config} --json {quote(json.dumps(body))} {url}"
    return spark.root(f"{header}{curl}")


def test_the_image_in_force_is_the_one_that_was_built(spark: Spark) -> None:
    """Its tag is a hash of the recipe; the provenance inside it must say the same, or somebody moved the tag."""
    for service, entry in _services(spark):
        release = entry["release"]
        assert isinstance(release, dict)
        image = str(release["image"])
        label = spark.root(
            f"docker image inspect --format '{{{{index .Config.Labels \"org.tinderbox.tag\"}}}}' {image} 2>/dev/null || true"
        ).strip()
        assert label, f"{spark.name}: image {image} of {service.name} is not there; run deploys/image.py"
        assert label == image, f"{spark.name}: {image} was retagged: it was built as {label}; run deploys/image.py"


def test_the_gate_of_the_release_in_force_has_passed(spark: Spark) -> None:
    """Measured on this host, for exactly what serves now."""
    for service, entry in _services(spark):
        if service.gate is None:
            continue
        path = layout.gate_result_file(service.name, str(entry["id"]))
        assert spark.host.file(path).exists, f"{spark.name}: {service.name} was not measured; run deploys/gate.py"
