"""Arguments and results as trees: dicts, lists, tuples, named tuples, dataclasses, None; arrays are leaves."""

# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Structure:
    """The form of a tree without its leaves; equal forms are equal and hash alike."""

    kind: Any
    """The class of a node; None for a leaf."""
    keys: tuple[Any, ...] = ()
    """Keys of a dict, fields of a dataclass."""
    parts: tuple[Structure, ...] = ()

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        names = [f"{key}: " for key in self.keys] or [""] * len(self.parts)
        inner = ", ".join(f"{name}{part!r}" for name, part in zip(names, self.parts, strict=True))
        return f"{self.kind.__name__}({inner})"


LEAF = Structure(None)
NOTHING = Structure(type(None))


def _is_dataclass(tree: Any) -> bool:
    return dataclasses.is_dataclass(tree) and not isinstance(tree, type)


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """The leaves in order, and the form."""
    leaves: list[Any] = []
    return leaves, _walk(tree, leaves)


def _walk(tree: Any, leaves: list[Any]) -> Structure:
    if tree is None:
        return NOTHING
    if isinstance(tree, dict):
        given = cast("dict[Any, Any]", tree)
        try:
            keys = tuple(sorted(given))
        except TypeError:
            keys = tuple(given)  # keys of several types keep their order
        parts = tuple(_walk(given[key], leaves) for key in keys)
        return Structure(type(given), keys, parts)
    if isinstance(tree, (list, tuple)):
        items = cast("list[Any] | tuple[Any, ...]", tree)
        return Structure(type(items), (), tuple(_walk(item, leaves) for item in items))
    if _is_dataclass(tree):
        names = tuple(field.name for field in dataclasses.fields(tree))
        parts = tuple(_walk(getattr(tree, name), leaves) for name in names)
        return Structure(cast(Any, type(tree)), names, parts)
    leaves.append(tree)
    return LEAF


def unflatten(structure: Structure, leaves: Iterator[Any]) -> Any:
    """The tree of a form with leaves taken in order."""
    kind = structure.kind
    if kind is None:
        return next(leaves)
    if kind is type(None):
        return None
    parts = [unflatten(part, leaves) for part in structure.parts]
    if issubclass(kind, dict):
        pairs = dict(zip(structure.keys, parts, strict=True))
        return pairs if kind is dict else kind(pairs)
    if issubclass(kind, tuple):
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
    if issubclass(kind, list):
        return kind(parts)
    # A dataclass is rebuilt without its own __init__, which may want other things than fields.
    found = object.__new__(kind)
    for name, part in zip(structure.keys, parts, strict=True):
        object.__setattr__(found, name, part)
    return found


def paths(structure: Structure, prefix: str) -> Iterator[str]:
    """The name of each leaf, as Python would write it: `x`, `params['w']`, `state.step`, `xs[0]`."""
    if structure.kind is None:
        yield prefix
        return
    for index, part in enumerate(structure.parts):
        if not structure.keys:
            name = f"{prefix}[{index}]"
        elif issubclass(structure.kind, dict):
            name = f"{prefix}[{structure.keys[index]!r}]"
        else:
            name = f"{prefix}.{structure.keys[index]}"
        yield from paths(part, name)
