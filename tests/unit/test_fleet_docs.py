"""What the docs show of fleet files is taken by the loader, and every setting is in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from modules.fleet import load_fleet
from modules.spec.fleet import FleetFile
from modules.spec.settings import HostSettings, Service

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ("fleet-file", "catalog", "models", "airgap", "monitoring", "rolling", "pairs", "gateway", "fabric", "begin")
EXAMPLES = [
    (name, number, block)
    for name in (f"{page}.md" for page in PAGES)
    for number, block in enumerate(re.findall(r"^```yaml\n(.*?)^```", (DOCS / name).read_text(), re.M | re.S))
]


@pytest.mark.parametrize(("name", "number", "block"), EXAMPLES)
def test_example_in_the_docs_loads(
    name: str, number: int, block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUB_TOKEN", "not-a-token")
    monkeypatch.setenv("HOME", str(tmp_path))
    for key in re.findall(r"{file: ~/(.+?)}", block):
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_text("not-a-key\n")
    path = tmp_path / f"{name}-{number}.yaml"
    path.write_text(block)

    assert load_fleet(path).hosts


def test_docs_have_examples_of_layers_recipes_secrets_models_and_gates() -> None:
    assert [(name, number) for name, number, _ in EXAMPLES] == [
        ("fleet-file.md", 0),
        ("fleet-file.md", 1),
        ("fleet-file.md", 2),
        ("catalog.md", 0),
        ("catalog.md", 1),
        ("models.md", 0),
        ("airgap.md", 0),
        ("airgap.md", 1),
        ("monitoring.md", 0),
        ("monitoring.md", 1),
        ("rolling.md", 0),
        ("pairs.md", 0),
        ("gateway.md", 0),
        ("fabric.md", 0),
        ("begin.md", 0),
    ]


@pytest.mark.parametrize("model", [FleetFile, Service])
def test_every_key_is_in_the_docs(model: type[BaseModel]) -> None:
    text = (DOCS / "fleet-file.md").read_text()

    assert [name for name in model.model_fields if f"`{name}`" not in text] == []


def test_every_setting_is_in_the_docs_under_its_section() -> None:
    text = (DOCS / "fleet-file.md").read_text()

    for section, field in HostSettings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            for key in field.annotation.model_fields:
                assert f"`{section}.{key}`" in text
