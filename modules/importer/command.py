"""From a recipe's command to the words of one server's command line. Nothing is run: what a shell would do is told."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from string import Formatter

from modules.importer.recipe import Document, RefusedError, SourceRecipe

_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_CONTINUED = re.compile(r"\\[ \t]*\n")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_OPERATORS = ";&|<>()\n"
_OPERATOR = re.compile(r"[;&|<>()\n]+")
_NESTED = 5


@dataclass(frozen=True)
class Server:
    """One server's start. `program`: `vllm`, `sglang`, `llama-server`. `words`: what stands behind it.

    `environment`: set in the command. `left`: of the shell's, a line each for people.
    """

    program: str
    words: tuple[str, ...]
    environment: Document
    left: tuple[str, ...] = ()


def server_of(recipe: SourceRecipe) -> Server:
    """The server that a recipe starts. Raises `RefusedError`: none of ours, or not one plain command."""
    if recipe.command is None:
        words = [word for part in recipe.arguments for word in _split(filled(part, recipe))]
        program = {"vllm": "vllm", "sglang": "sglang", "llama-cpp": "llama-server"}.get(_family(recipe.engine))
        if program is None:
            raise RefusedError(f"engine {recipe.engine} is none of ours (vllm, sglang, llama-cpp)")
        return Server(program, (recipe.model, *words) if program == "vllm" else tuple(words), {})
    return _from_shell(filled(recipe.command, recipe))


def _family(engine: str | None) -> str:
    for family in ("vllm", "sglang", "llama-cpp"):
        if (engine or "vllm").removeprefix("eugr-").startswith(family):
            return family
    return engine or ""


def filled(template: str, recipe: SourceRecipe) -> str:
    """Put a recipe's parameters in. Raises `RefusedError`: it has none of that name."""
    if recipe.doubled:
        return "".join(_formatted(template, recipe.parameters))
    text = template
    for _ in range(_NESTED):
        found = _PLACE.sub(lambda place: _value(place, recipe.parameters), text)
        if found == text:
            break
        text = found
    return text


def _formatted(template: str, parameters: Document) -> Iterator[str]:
    """As Python's str.format does it, for plain names alone: no attribute or item is ever looked up."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise RefusedError(f"the braces in its command do not pair: {error}") from None
    for text, name, wish, _ in parts:
        yield text
        if name is None:
            continue
        if wish or not name.isidentifier() or name not in parameters:
            raise RefusedError(f"its command has a place {{{name}}}, and it gives no value for it")
        yield str(parameters[name])


def _value(place: re.Match[str], parameters: Document) -> str:
    value = parameters.get(place.group(1))
    return place.group(0) if value is None else str(value)


def _from_shell(text: str) -> Server:
    left: list[str] = []
    environment: dict[str, str] = {}
    servers: list[tuple[str, tuple[str, ...]]] = []
    for found in _commands(text):
        words = list(found)
        while words and (assigned := _ASSIGNMENT.fullmatch(words[0])):
            environment[assigned.group(1)] = assigned.group(2)
            words.pop(0)
        if words[:1] == ["export"]:
            for word in words[1:]:
                if assigned := _ASSIGNMENT.fullmatch(word):
                    environment[assigned.group(1)] = assigned.group(2)
            continue
        while words[:1] in (["exec"], ["nohup"]):
            words.pop(0)
        if words[:2] in (["bash", "-c"], ["bash", "-lc"], ["sh", "-c"]) and len(words) == 3:
            inner = _from_shell(words[2])
            environment |= inner.environment
            left += inner.left
            servers.append((inner.program, inner.words))
            continue
        known = started_by(words)
        if known is not None:
            servers.append(known)
        elif words:
            left.append(f"shell: `{' '.join(words)[:100]}` is not run")
    if len(servers) != 1:
        what = "no server of ours is started" if not servers else "several servers are started"
        raise RefusedError(f"{what} by its command (known: vllm serve, sglang, llama-server): {_first(text)}")
    program, arguments = servers[0]
    for word in arguments:
        if _needs_shell(word):
            raise RefusedError(f"{word[:60]!r} in its command is for a shell to work out")
    return Server(program, tuple(_single_braces(word) for word in arguments), environment, tuple(left))


def _first(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    return f"`{lines[0][:60]}`" if lines else "it is empty"


def _commands(text: str) -> Iterator[list[str]]:
    """The simple commands, without redirections."""
    lines = [line for line in _CONTINUED.sub(" ", text).splitlines() if not line.lstrip().startswith("#")]
    words: list[str] = []
    skip = False
    for word in _words("\n".join(lines)):
        if _OPERATOR.fullmatch(word) is None:
            words += [] if skip else [word]
            skip = False
        elif set(word) & set("<>"):
            # Behind it stands a file's name or `&1`, before it perhaps which output is meant.
            skip = True
            words = words[:-1] if words[-1:] in (["1"], ["2"]) else words
        elif words:
            yield words
            words, skip = [], False
    if words:
        yield words


def _words(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        return list(lexer)
    except ValueError as error:
        raise RefusedError(f"its command can not be split into words: {error}") from None


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise RefusedError(f"its arguments can not be split into words: {error}") from None


def started_by(words: list[str]) -> tuple[str, tuple[str, ...]] | None:
    """The server that a plain command starts, and the words behind it; None: none of ours."""
    name = words[0].rpartition("/")[2] if words else ""
    if name == "vllm" and words[1:2] == ["serve"]:
        return "vllm", tuple(words[2:])
    if name == "sglang" and words[1:2] == ["serve"]:
        return "sglang", tuple(words[2:])
    if name == "llama-server":
        return "llama-server", tuple(words[1:])
    if name.startswith("python") and words[1:2] == ["-m"]:
        module = words[2] if len(words) > 2 else ""
        if module == "vllm.entrypoints.openai.api_server":
            return "vllm", tuple(words[3:])
        if module == "sglang.launch_server":
            return "sglang", tuple(words[3:])
    return None


def _single_braces(word: str) -> str:
    """A JSON object whose braces are doubled as for spark-vllm-docker, in a recipe of sparkrun, which takes both."""
    if not (word.startswith("{{") and word.endswith("}}")):
        return word
    found = word.replace("{{", "{").replace("}}", "}")
    try:
        json.loads(found)
    except ValueError:
        return word
    return found


def _needs_shell(word: str) -> bool:
    # JSON has dollars seldom, and templates never.
    return "`" in word or re.search(r"\$([({A-Za-z_]|$)", word) is not None
