"""What a fleet file must not say, and how the refusal reads: file, line, key, what is wrong, what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from modules.fleet import FleetError, load_fleet
from tests.unit.refused_fleets import (
    clusters,
    fabrics,
    gates,
    gateways,
    groups,
    hosts,
    images,
    monitoring,
    placing,
    reaching,
    services,
    settings,
    strategy,
)
from tests.unit.refused_fleets.refusal import Refusal

GOOD = """\
fleet: office
hosts:
  spark-1:
    address: 10.0.0.11
"""


REFUSALS = (
    *clusters.REFUSALS,
    *fabrics.REFUSALS,
    *gates.REFUSALS,
    *gateways.REFUSALS,
    *groups.REFUSALS,
    *hosts.REFUSALS,
    *images.REFUSALS,
    *monitoring.REFUSALS,
    *placing.REFUSALS,
    *reaching.REFUSALS,
    *services.REFUSALS,
    *settings.REFUSALS,
    *strategy.REFUSALS,
)


def problems_of(path: Path) -> list[str]:
    with pytest.raises(FleetError) as caught:
        load_fleet(path)
    return str(caught.value).splitlines()


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.name)
def test_refusal_names_file_line_key_and_remedy(case: Refusal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "fleet.yaml"
    path.write_text(case.text)

    lines = problems_of(path)

    places = [line.split(": ")[:2] for line in lines]
    assert places == [[f"fleet.yaml:{line}", key] for line, key, _ in case.told], "\n".join(lines)
    for line, (_, _, words) in zip(lines, case.told, strict=True):
        assert words in line
        assert "; " in line


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (b"", 1, "the file is empty"),
        (b"# nothing yet\n\n", 1, "the file is empty"),
        (b"- spark-1\n- spark-2\n", 1, "not a mapping"),
        (b"just words\n", 1, "not a mapping"),
        (b"fleet: office\nhosts: {spark-1: {}\n", 3, "no valid YAML"),
        (b"fleet: office\nhosts:\n\tspark-1: {}\n", 3, "a tab stands here; indent with spaces"),
        (b"fleet: office\nhosts: *none\n", 2, "no valid YAML"),
        (b"fleet: office\n---\nfleet: other\n", 2, "no valid YAML"),
        (b"fleet: caf\xe9\n", 1, "not UTF-8"),
        (b"fleet: office\n\x7fELF\x02\x01\x01\x00\x00\n", 2, "NUL byte"),
        (b"\x7fELF\xff\xfe\x00\x00", 1, "not UTF-8"),
        (b"[" * 20_000, 1, "no valid YAML"),
        (b"fleet: {a: " + b"{a: " * 400 + b"1" + b"}" * 401 + b"\n", 1, "nested too deep"),
        (b"fleet: &loop {again: *loop}\nhosts: {spark-1: {}}\n", 1, "contains itself"),
        (b"? [a, b]\n: c\nfleet: office\n", 1, "a key must be text"),
        (b"base: &base {fleet: office}\n<<: *base\nhosts: {spark-1: {}}\n", 2, "merge keys are not read; use groups"),
    ],
    ids=lambda value: repr(value[:40]) if isinstance(value, bytes) else None,
)
def test_file_that_is_no_fleet_file_is_refused_with_a_line(
    content: bytes, line: int, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_bytes(content)

    told = problems_of(path)

    assert any(text.startswith(f"{path}:{line}: ") and words in text for text in told), told


def test_aliases_that_multiply_are_refused(tmp_path: Path) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]")
    path = tmp_path / "fleet.yaml"
    path.write_text("\n".join(lines))

    assert "use fewer aliases" in problems_of(path)[0]


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("FROM {{ base }}\nRUN git fetch {{ pins.vllm.commit }}\n", "has no attribute 'vllm'; correct the template"),
        ("FROM {{ base \n", "mine can not be rendered: "),
        (b"FROM \xff\n", "can't decode byte 0xff"),
    ],
    ids=["wants what is not there", "syntax", "no text"],
)
def test_an_own_template_that_can_not_be_rendered_is_refused(template: str | bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "mine.Dockerfile.j2").write_bytes(template if isinstance(template, bytes) else template.encode())
    path = tmp_path / "fleet.yaml"
    recipe = "{template: ./mine.Dockerfile.j2, base: ubuntu, size_gib: 1, source: ours}"
    service = f"{{engine: vllm, model: gpt-oss-120b, image: {{recipe: {recipe}}}}}"
    path.write_text(f"fleet: office\ndefaults:\n  services:\n    gpt-oss: {service}\nhosts: {{spark-1: {{}}}}\n")

    (told,) = problems_of(path)

    assert told.startswith(f"{path}:4: defaults.services.gpt-oss.image.recipe.template: ")
    assert words in told


def test_file_that_is_not_there_or_a_folder_is_refused(tmp_path: Path) -> None:
    assert "none.yaml: no such file; check the path, or TINDERBOX_FLEET" in problems_of(tmp_path / "none.yaml")[0]
    assert "this is a folder" in problems_of(tmp_path)[0]


def test_what_has_no_end_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe, large = tmp_path / "pipe.yaml", tmp_path / "large.yaml"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(1 << 40)
    for path in (pipe, Path("/dev/zero")):
        assert problems_of(path) == [f"{path}: this is no ordinary file; name a fleet file"]
    assert problems_of(large) == [f"{large}: larger than 4 MiB; name a fleet file"]


def test_good_file_with_one_letter_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(GOOD)
    assert load_fleet(path).hosts["spark-1"].address == "10.0.0.11"

    other = tmp_path / "other.yaml"
    other.write_text(GOOD.replace("address", "addres"))
    assert "did you mean address?" in problems_of(other)[0]
