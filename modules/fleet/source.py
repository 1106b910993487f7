"""Read a YAML file into a tree."""

from __future__ import annotations

from pathlib import Path

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from modules.fleet.problem import WHOLE, FleetError, Key, Origin, Problem
from modules.fleet.scalar import read_scalar
from modules.fleet.tree import Tree

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Far above any real fleet, far below what a chain of aliases can blow up to.
_MOST_BYTES = 4 * 1024 * 1024
_MOST_VALUES = 50_000
_DEEPEST = 50


def read_tree(path: Path) -> Tree:
    """Read the file.

    Raises `FleetError`: it is not there, is no YAML, or its keys repeat.
    """
    return _Reader(path).tree(_compose(path, _text(path)))


def refuse(path: Path, line: int, what: str, todo: str) -> FleetError:
    """Give the error of a file that can not be read at all."""
    return FleetError(path, [Problem(Origin(line), what, todo)])


def _text(path: Path) -> str:
    if path.is_dir():
        raise refuse(path, WHOLE, "this is a folder", "name a fleet file in it")
    if path.exists() and not path.is_file():
        # A pipe or a device may have no end, or nothing to read yet.
        raise refuse(path, WHOLE, "this is no ordinary file", "name a fleet file")
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise refuse(path, WHOLE, "no such file", "check the path, or TINDERBOX_FLEET") from None
    except OSError as error:
        raise refuse(path, WHOLE, f"can not be read ({error.strerror})", "check its permissions") from None
    if len(content) > _MOST_BYTES:
        raise refuse(path, WHOLE, f"larger than {_MOST_BYTES // 2**20} MiB", "name a fleet file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise refuse(path, line, f"byte {error.start} is not UTF-8 text", "save the file as UTF-8") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise refuse(path, line, "holds a NUL byte: this is no text file", "name a fleet file") from None
    return text


def _compose(path: Path, text: str) -> Node:
    # Composed only, never constructed: a tag in the file can make nothing happen.
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        # The mark's snippet would show the line, and the line may hold a secret.
        mark = error.problem_mark or error.context_mark
        words = ", ".join(part for part in (error.context, error.problem) if part)
        line = mark.line + 1 if mark else 1
        if mark and text.split("\n")[mark.line][mark.column :].startswith("\t"):
            raise refuse(path, line, "no valid YAML: a tab stands here", "indent with spaces") from None
        if "mapping values are not allowed" in words:
            # As when a space is missing after the colon of the line above, which makes one long word of it.
            what = "no valid YAML: no `key: value` can stand here"
            todo = "put a space after each colon, and check the indentation, here and on the line above"
            raise refuse(path, line, what, todo) from None
        raise refuse(path, line, f"no valid YAML: {words}", "correct the syntax here or on the line above") from None
    except (yaml.YAMLError, RecursionError) as error:
        words = getattr(error, "reason", None) or "nested too deep"
        raise refuse(path, 1, f"no valid YAML: {words}", "correct the syntax") from None
    finally:
        loader.dispose()
    if node is None:
        raise refuse(path, 1, "the file is empty", "start from inventory/example.yaml")
    return node


class _Reader:
    """Turns nodes into trees, and gathers what is wrong on the way."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._problems: list[Problem] = []
        self._inside: list[Node] = []
        self._values = 0

    def tree(self, node: Node) -> Tree:
        origin = Origin(node.start_mark.line + 1)
        if not isinstance(node, MappingNode):
            raise refuse(self._path, origin.line, "not a mapping", "start from inventory/example.yaml")
        tree = self._read(node, origin)
        if self._problems:
            raise FleetError(self._path, self._problems)
        return tree

    def _read(self, node: Node, origin: Origin) -> Tree:
        self._values += 1
        if self._values > _MOST_VALUES:
            raise refuse(self._path, origin.line, f"more than {_MOST_VALUES} values", "use fewer aliases")
        if len(self._inside) > _DEEPEST:
            raise refuse(self._path, origin.line, "nested too deep", "start from inventory/example.yaml")
        if any(node is outer for outer in self._inside):
            self._wrong(origin, "this alias contains itself", "write the values out")
            return Tree(origin)
        if isinstance(node, ScalarNode):
            plain = not node.style and not node.tag.startswith("!")
            return Tree(origin, scalar=read_scalar(node.value) if plain else node.value)
        self._inside.append(node)
        try:
            if isinstance(node, MappingNode):
                return Tree(origin, keys=self._keys(node, origin.key))
            if isinstance(node, SequenceNode):
                return Tree(origin, items=self._items(node, origin.key))
        finally:
            self._inside.pop()
        raise TypeError(type(node))

    def _keys(self, node: MappingNode, key: Key) -> dict[str, Tree]:
        keys: dict[str, Tree] = {}
        for name_node, value_node in node.value:
            line = name_node.start_mark.line + 1
            if not isinstance(name_node, ScalarNode):
                self._wrong(Origin(line, key), "a key must be text", "write `key: value`")
                continue
            name = name_node.value
            origin = Origin(line, (*key, name))
            if name == "<<" and not name_node.style:
                self._wrong(origin, "merge keys are not read", "use groups, which are laid over the defaults")
            elif name in keys:
                kind = "duplicate host" if key == ("hosts",) else "duplicate key"
                self._wrong(origin, f"{kind}: it stands on line {keys[name].origin.line} too", "keep one of them")
            else:
                keys[name] = self._read(value_node, origin)
        return keys

    def _items(self, node: SequenceNode, key: Key) -> tuple[Tree, ...]:
        return tuple(
            self._read(item, Origin(item.start_mark.line + 1, (*key, index))) for index, item in enumerate(node.value)
        )

    def _wrong(self, origin: Origin, what: str, todo: str) -> None:
        self._problems.append(Problem(origin, what, todo))
