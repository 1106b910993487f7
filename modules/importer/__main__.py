"""`python -m modules.importer RECIPE…`: recipes of spark-vllm-docker, sparkrun or spark-pulse as a fleet file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError
from rich.console import Console

from modules.catalog import load_catalog
from modules.importer.convert import Imported, convert
from modules.importer.forms import read_recipe
from modules.importer.recipe import NoRecipeError
from modules.importer.render import distinct, fleet_text, lines
from modules.spec.base import Address, Name

_REFUSED = 1
console = Console(stderr=True, highlight=False, soft_wrap=True)


def main(
    recipes: Annotated[list[Path], typer.Argument(help="files, or folders of them")],
    *,
    out: Annotated[Path | None, typer.Option(help="the fleet file to write; never over one that is there")] = None,
    fleet: Annotated[str, typer.Option(help="the fleet's name")] = "imported",
    address: Annotated[list[str] | None, typer.Option(help="of a host; may repeat")] = None,
    solo: Annotated[bool, typer.Option(help="on one host wherever a recipe allows it")] = False,
    count: Annotated[bool, typer.Option(help="tell only how many were read, in part, or not")] = False,
) -> None:
    """Read RECIPES into a fleet file, and say of each what was carried over, what was not, and why.

    Nothing of a recipe is run. Exit status: 0 at least one service was made; 1 none, or the file is there.
    """
    if out is not None and out.exists():
        raise _refused(f"{out} is there: name another file, or remove it")
    if not _has_form(Name, fleet):
        raise _refused(f"--fleet {fleet}: write two or more lower-case letters, digits and single dashes, as in office")
    for wrong in (one for one in address or [] if not _has_form(Address, one)):
        raise _refused(f"--address {wrong}: write a host name or an IP address, without user and port")
    found = distinct([_imported(path, solo) for path in _files(recipes)])
    for one in found if not count else ():
        for line in lines(one):
            console.print(line, markup=False)
    tally = Counter(one.status for one in found)
    console.print(f"{tally['read']} read whole, {tally['partly']} in part, {tally['refused']} refused", markup=False)
    if all(one.service is None for one in found):
        raise typer.Exit(_REFUSED)
    text = fleet_text(found, fleet, address or [])
    if out is not None:
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as error:
            raise _refused(f"{out}: {error.strerror}; name a file that you may write") from error
        console.print(f"{out} is written; see and change it, then: make converge FLEET={out}", markup=False)
    elif not count:
        typer.echo(text, nl=False)


def _refused(text: str) -> typer.Exit:
    console.print(text, style="red", markup=False)
    return typer.Exit(_REFUSED)


def _has_form(kind: Any, value: str) -> bool:
    try:
        TypeAdapter(kind).validate_python(value)
    except ValidationError:
        return False
    return True


def _files(given: list[Path]) -> Iterator[Path]:
    for path in given:
        yield from sorted(path.rglob("*.y*ml")) if path.is_dir() else [path]


def _imported(path: Path, solo: bool) -> Imported:
    try:
        recipe = read_recipe(_text(path), path.stem)
    except NoRecipeError as error:
        return Imported(path.stem, str(path), "unknown", "refused", left=(f"no recipe: {error}",))
    return convert(recipe, str(path), load_catalog(), solo=solo)


def _text(path: Path) -> str:
    """Raises `NoRecipeError`: it is no text that can be read, or has no end."""
    if path.exists() and not path.is_file():
        raise NoRecipeError("this is no ordinary file; name a recipe")
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise NoRecipeError(f"it can not be read ({error.strerror}); check the path") from None
    except UnicodeDecodeError as error:
        raise NoRecipeError(f"byte {error.start} is not UTF-8 text") from None


if __name__ == "__main__":
    typer.run(main)
