"""Encodings and weights, read whole and hashed."""

from __future__ import annotations

import json

from tests.verify.conftest import Spark


def test_every_encoding_has_the_published_hash(spark: Spark) -> None:
    """Harmony refuses to serve with another one."""
    wanted = {name: entry.sha256 for service in spark.plan.services for name, entry in service.encodings.items()}
    for name, sha256 in wanted.items():
        path = f"/var/lib/tinderbox/encodings/{name}"
        assert spark.host.file(path).exists, f"{spark.name}: {path} is missing; run deploys/encodings.py"
        found = spark.root(f"sha256sum {path}").split()[0]
        assert found == sha256, (
            f"{spark.name}: {path} is truncated or altered (sha256 {found}); run deploys/encodings.py"
        )


def test_every_file_of_every_model_has_the_hash_of_its_hub(spark: Spark) -> None:
    """Reads all weights: minutes on a real Spark."""
    program = "python3 /usr/local/lib/tinderbox/verify_weights.py"
    home = spark.plan.settings.weights.home
    for model in {service.model.repository: service.model for service in spark.plan.services}.values():
        command = f"{program} --repository {model.repository} --revision {model.revision} --home {home} --hash || true"
        answer = json.loads(spark.root(command))
        assert not answer["problems"], (
            f"{spark.name}: {model.repository}: {'; '.join(answer['problems'])}; run deploys/weights.py"
        )
