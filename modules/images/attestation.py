"""Whether an image may serve an engine, by what was seen in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from modules.spec.attestation import Asked, Attestation, LibraryCode
from modules.spec.engine import FlagValue
from modules.spec.image import Recipe

_TARGET = re.compile(r"sm_(\d+)([af]?)")
# GB10 is 12.1. Code without a suffix runs on later ones of its generation, code with f on those of its family.
_NEWEST, _GENERATION = 121, 120
_FAMILY = ("sm_121f", "sm_120f")
_SHOWN = 3


@dataclass(frozen=True)
class Needs:
    """What an engine needs of its image. `flags`: those that it is started with, without those of its command."""

    native_fp4: bool
    flags: Mapping[str, FlagValue]


def asked_of(recipe: Recipe) -> Asked:
    """What is to be looked for in a recipe's image."""
    return Asked(architecture=recipe.architecture, **recipe.attest.model_dump())


def target_of(architecture: str) -> str:
    """`12.1f` → `sm_121f`."""
    return f"sm_{architecture.replace('.', '')}"


def runs_on_gb10(library: LibraryCode) -> bool:
    """Whether a GB10 can run some of a library's code; PTX counts, the driver compiles it."""
    return any(map(_is_for_gb10, library.machine)) or any(map(_compiles_for_gb10, library.ptx))


def refusals(seen: Attestation, recipe: Recipe, needs: Needs) -> tuple[str, ...]:
    """Why the image may not serve the engine, a line each; none: it may.

    `seen` must be the answer to what the recipe asks now (`seen.asked == asked_of(recipe)`).
    """
    return (
        *_modules(seen),
        *_flags(seen, needs),
        *_compiler(seen, recipe, needs),
        *_libraries(seen, recipe),
        *_fp4(seen, recipe, needs),
    )


def _modules(seen: Attestation) -> Iterator[str]:
    if (seen.asked.modules or seen.asked.choices) and "python" in seen.trouble:
        yield f"its Python could not be asked: {seen.trouble['python']}"
        return
    for name in seen.asked.modules:
        module = seen.modules.get(name)
        if module is None or module.error is not None:
            yield f"Python module {name} does not import: {module.error if module else 'it was not tried'}"


def _flags(seen: Attestation, needs: Needs) -> Iterator[str]:
    if not seen.asked.help:
        return
    command = " ".join(seen.asked.help)
    if seen.flags is None:
        yield f"it could not be asked for its flags: {seen.trouble.get('help', f'{command} was not run')}"
        return
    known = set(seen.flags)
    if unknown := [f"--{flag}" for flag in needs.flags if flag.partition(".")[0] not in known]:
        yield (
            f"{command} does not know {', '.join(unknown)}: take them out of the service's flags, or use the image "
            "that the engine's flags are for"
        )
    for flag, value in needs.flags.items():
        values = seen.choices.get(flag)
        if flag in known and values is not None and isinstance(value, str) and value not in values:
            yield f"--{flag} does not take {value!r}, but {', '.join(values)}"


def _compiler(seen: Attestation, recipe: Recipe, needs: Needs) -> Iterator[str]:
    for path, reason in seen.ptxas.items():
        if reason is not None:
            yield f"{path}, which Triton compiles with, does not know {recipe.architecture}: {reason}"
    if "compiler" in seen.trouble:
        yield f"its compiler could not be tried: {seen.trouble['compiler']}"
    # Kernels that are compiled at the first start are compiled by it.
    elif needs.native_fp4 and seen.compiler is not None and seen.compiler.lacking:
        lacking = "; ".join(f"{name}: {reason}" for name, reason in seen.compiler.lacking.items())
        yield f"its own nvcc does not compile native FP4 for {seen.compiler.architecture}: {lacking}"
    elif needs.native_fp4 and seen.compiler is None and recipe.template is not None:
        yield f"it does not tell what its compiler has: its build did not try it for {recipe.architecture}"


def _libraries(seen: Attestation, recipe: Recipe) -> Iterator[str]:
    if "libraries" in seen.trouble:
        yield f"its libraries could not be examined: {seen.trouble['libraries']}"
        return
    for pattern in recipe.attest.libraries:
        if pattern in seen.unmatched:
            yield f"no file fits {pattern}, which must hold its GPU code"
    for library in seen.libraries:
        if library.trouble is None and not runs_on_gb10(library):
            yield f"{library.path} holds {_targets(library)}, which a GB10 does not run"
        elif library.trouble is not None and not runs_on_gb10(library):
            yield f"{library.path} could not be examined: {library.trouble}"


def _fp4(seen: Attestation, recipe: Recipe, needs: Needs) -> Iterator[str]:
    if not needs.native_fp4 or "libraries" in seen.trouble:
        return
    if recipe.architecture is None or not recipe.attest.fp4_libraries:
        yield (
            "the engine computes in FP4, and the recipe does not say which libraries hold that code "
            "(attest.fp4_libraries): use the recipe that the engine names"
        )
        return
    target = target_of(recipe.architecture)
    searched = [library for library in seen.libraries if library.searched]
    if any({target, *_FAMILY} & library.fp4.keys() for library in searched):
        return
    found = [f"no file fits {pattern}" for pattern in recipe.attest.fp4_libraries if pattern in seen.unmatched]
    found += [_without_fp4(library) for library in searched[:_SHOWN]]
    found += [f"{len(searched) - _SHOWN} more libraries without it"] if len(searched) > _SHOWN else []
    yield (
        f"no native FP4 for {recipe.architecture}: no block-scaled multiplication of E2M1 numbers is in machine code "
        f"for {target}, so the engine would fall back to slow kernels. Found: {'; '.join(found)}. "
        f"Build it anew for {recipe.architecture}"
    )


def _without_fp4(library: LibraryCode) -> str:
    if library.trouble is not None:
        return f"{library.path}: {library.trouble}"
    if library.fp4:
        return f"{library.path} has it for {', '.join(library.fp4)} only"
    names = f", listed as {', '.join(library.listed)}" if set(library.listed) - set(library.machine) else ""
    return f"{library.path} holds {_targets(library)}{names}, without it"


def _targets(library: LibraryCode) -> str:
    machine = [f"code for {', '.join(sorted(library.machine))}"] if library.machine else []
    ptx = [f"PTX for {', '.join(sorted(library.ptx))}"] if library.ptx else []
    return " and ".join(machine + ptx) or "no code for GPUs"


def _is_for_gb10(target: str) -> bool:
    number, suffix = _parts(target)
    return _GENERATION <= number <= _NEWEST and (suffix != "a" or number == _NEWEST)


def _compiles_for_gb10(target: str) -> bool:
    number, suffix = _parts(target)
    return number <= _NEWEST if suffix == "" else _is_for_gb10(target)


def _parts(target: str) -> tuple[int, str]:
    found = _TARGET.fullmatch(target)
    return (int(found[1]), found[2]) if found else (0, "a")
