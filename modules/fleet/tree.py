"""A YAML file as a tree that knows where each of its values stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from modules.fleet.problem import Key, Origin
from modules.fleet.scalar import Scalar


@dataclass(frozen=True)
class Tree:
    """A value with its place. `keys`: what a mapping holds; `items`: what a list holds; else `scalar`."""

    origin: Origin
    scalar: Scalar = None
    keys: dict[str, Tree] | None = None
    items: tuple[Tree, ...] | None = None

    @property
    def is_null(self) -> bool:
        """Tell whether this is YAML's null."""
        return self.scalar is None and self.keys is None and self.items is None

    @property
    def text(self) -> str | None:
        """The scalar as a text, as the models take it where YAML reads `model: 12` as a number; None: it is none."""
        return None if self.scalar is None or isinstance(self.scalar, bool) else str(self.scalar)

    def child(self, part: str | int) -> Tree | None:
        """Give the value under a key or at an index, if there is one."""
        if isinstance(part, str):
            return None if self.keys is None else self.keys.get(part)
        return self.items[part] if self.items is not None and 0 <= part < len(self.items) else None

    def walk(self) -> Iterator[Tree]:
        """Give this value and all below it."""
        yield self
        for child in (*(self.keys or {}).values(), *(self.items or ())):
            yield from child.walk()

    def plain(self) -> Any:
        """Give the value without its places."""
        if self.keys is not None:
            return {key: child.plain() for key, child in self.keys.items()}
        if self.items is not None:
            return [child.plain() for child in self.items]
        return self.scalar


@dataclass(frozen=True)
class Place:
    """Where a path of keys ends in a tree. `rest`: the part of it that the tree does not have."""

    tree: Tree
    rest: Key = field(default=())

    @property
    def origin(self) -> Origin:
        """The place to name to the user."""
        return self.tree.origin.under(*self.rest)


def find(tree: Tree, key: Key) -> Place:
    """Follow a path of keys as far as it goes."""
    for depth, part in enumerate(key):
        child = tree.child(part)
        if child is None:
            return Place(tree, key[depth:])
        tree = child
    return Place(tree)


def overlay(below: Tree, above: Tree) -> Tree:
    """Lay one tree over another: mappings merge key by key, everything else replaces, null removes."""
    if below.keys is None or above.keys is None:
        return without_nulls(above)
    keys = dict(below.keys)
    for key, child in above.keys.items():
        if child.is_null:
            keys.pop(key, None)
        elif key in keys:
            keys[key] = overlay(keys[key], child)
        else:
            keys[key] = without_nulls(child)
    return replace(above, keys=keys)


def without_nulls(tree: Tree) -> Tree:
    """Leave out the keys whose value is null: they say "not this one"."""
    if tree.keys is None:
        return tree
    return replace(tree, keys={key: without_nulls(child) for key, child in tree.keys.items() if not child.is_null})
