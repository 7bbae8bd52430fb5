"""Structures of arguments and results as PyTorch writes them down: its pytrees in JSON.

Source: `torch.utils._pytree.treespec_dumps`, protocol 1: `[1, spec]`, where a spec has `type`
(null for a leaf), `context` (JSON in a string) and `children_spec`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from mlirhlo.diagnostics import error

_SEQUENCES = ("tuple", "list", "deque", "namedtuple")
_MAPPINGS = ("dict", "OrderedDict", "defaultdict")


@dataclass(frozen=True, slots=True)
class Tree:
    """A leaf (no `kind`), or a structure of trees."""

    kind: str | None = None
    children: tuple[Tree, ...] = ()
    keys: tuple[str, ...] = ()
    """Of mappings, one for each child."""

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return 1 if self.kind is None else sum(child.leaves for child in self.children)

    def flatten(self, value: Any, what: str) -> Iterator[Any]:
        """The leaves of a value of this structure. Raises `HloError` HLO0603 for another one."""
        if self.kind is None:
            yield value
            return
        parts = self._parts(value)
        if parts is None:
            raise error("HLO0603", f"{what} is {_words(value)}, the program takes {self}")
        for number, (child, part) in enumerate(zip(self.children, parts, strict=True)):
            place = f"[{self.keys[number]!r}]" if self.keys else f"[{number}]"
            yield from child.flatten(part, what + place)

    def _parts(self, value: Any) -> list[Any] | None:
        if self.kind in _MAPPINGS:
            if not isinstance(value, Mapping):
                return None
            given = cast("Mapping[str, Any]", value)
            return [given[k] for k in self.keys] if set(given) == set(self.keys) else None
        if not isinstance(value, Sequence) or isinstance(value, str):
            return None
        items = list(cast("Sequence[Any]", value))
        return items if len(items) == len(self.children) else None

    def unflatten(self, leaves: Iterator[Any]) -> Any:
        """A value of this structure; named tuples and the like become tuples and dicts."""
        if self.kind is None:
            return next(leaves)
        parts = [child.unflatten(leaves) for child in self.children]
        if self.kind in _MAPPINGS:
            return dict(zip(self.keys, parts, strict=True))
        return parts if self.kind == "list" else tuple(parts)

    def __str__(self) -> str:
        if self.kind is None:
            return "*"
        if self.keys:
            pairs = zip(self.keys, self.children, strict=True)
            return "{" + ", ".join(f"{k!r}: {child}" for k, child in pairs) + "}"
        return f"{self.kind}({', '.join(map(str, self.children))})"


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"a mapping of {sorted(map(str, cast('Mapping[Any, Any]', value)))}"
    if isinstance(value, tuple | list):
        items = cast("Sequence[Any]", value)
        return f"a {type(items).__name__} of {len(items)}"
    return f"of type {type(value).__name__}"


def read_tree(text: str | None) -> Tree | None:
    """The structure that a JSON text spells; None for none. Raises `HloError` HLO0608."""
    if text is None:
        return None
    try:
        version, spec = json.loads(text)
        if version != 1:
            raise error("HLO0608", f"structures of protocol {version} are not known; 1 is")
        return _tree(spec)
    except (ValueError, TypeError, KeyError) as problem:
        raise error("HLO0608", f"the structure {text[:80]!r} cannot be read: {problem}") from None


def _tree(spec: Any) -> Tree:
    if spec["type"] is None:
        return Tree()
    kind = str(spec["type"]).rpartition(".")[2]
    children = tuple(map(_tree, spec["children_spec"]))
    if kind in _MAPPINGS:
        keys: Any = json.loads(spec["context"])
        if kind == "defaultdict":
            keys = keys["dict_context"]
        return Tree(kind, children, tuple(map(str, keys)))
    if kind in _SEQUENCES:
        return Tree(kind, children)
    raise error(
        "HLO0608",
        f"a structure of type {spec['type']} is not known",
        help="export a model whose arguments and results are tuples, lists and dicts",
    )
