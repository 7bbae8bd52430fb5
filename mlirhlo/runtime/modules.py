"""Compiled modules kept on disk: what was compiled once is neither lowered nor compiled again.

The key is the module's text without metadata, all of it that changes code, and the state of this
package's own files; the value is what a call has to know, as JSON, then the object code. It lies in the
cache of object code (`cache.py`), which sees to whole files, owners and sizes. Modules that call back into
Python, or hold large constants, are not kept.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.hlo.shapes import (
    ArrayShape,
    Shape,
    TokenShape,
    TupleShape,
    parse_shape,
)
from mlirhlo.formats.hlo_text import PrintOptions, print_module
from mlirhlo.lowering.cpu.in_memory import byte_size
from mlirhlo.lowering.cpu.planner import Plan
from mlirhlo.lowering.cpu.steps import Buffer, Tree
from mlirhlo.runtime.cache import default_cache, object_key
from mlirhlo.runtime.jit import host

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_LARGEST_CONSTANT = 4096
"""Elements that are worth writing into the text."""
_NAME = re.compile(r"^HloModule [^,\s]+")
_TEXT = PrintOptions(large_constants=True, metadata=False)


@dataclass(frozen=True, slots=True)
class Kept:
    """A module out of the cache."""

    plan: Plan
    """What calls need of it: no steps and no kernels."""
    externals: Sequence[str]
    """Names that the code takes from outside."""
    objects: Sequence[bytes]


def module_key(module: ModuleOp, level: int, options: str) -> str | None:
    """Name of a module's code; None for one that is not kept. `options`: all else that changes it."""
    if default_cache() is None:
        return None
    for op in HloModule(module).instructions:
        if isinstance(op, ConstantOp):
            shape = op.shape
            if not isinstance(shape, ArrayShape) or shape.element_count > _LARGEST_CONSTANT:
                return None
    text = _NAME.sub("HloModule", print_module(module, _TEXT), count=1)
    return object_key(text, host(), level, f"module {options} {_sources()}")


def kept_module(key: str) -> Kept | None:
    """What was kept under a key."""
    cache = default_cache()
    data = cache.get(key) if cache is not None else None
    if data is None:
        return None
    head, _, code = data.partition(b"\n")
    about = cast("dict[str, Any]", json.loads(head))
    shapes = [parse_shape(text) for text in about["parameters"]]
    result_shape = parse_shape(about["result"])
    parameters: list[Buffer] = []
    results: list[Buffer] = []
    trees = [_tree(s, parameters, is_result=False) for s in shapes]
    result_tree = _tree(result_shape, results, is_result=True)
    for number, alias in about["aliases"]:
        results[number].alias = parameters[alias]
    size = int(about["constants"])
    constants = [Buffer(ArrayShape(PRIMITIVE_TYPES["u8"], (size,)), size)]
    plan = Plan(
        steps=[],
        kernels={},
        parameters=parameters,
        results=results,
        constants=constants,
        arena_size=int(about["arena"]),
        shapes=shapes,
        result_shape=result_shape,
        parameter_trees=trees,
        result_tree=result_tree,
        is_long=bool(about["long"]),
    )
    objects: list[bytes] = []
    for size in about["objects"]:
        objects.append(code[:size])
        code = code[size:]
    return Kept(plan, about["externals"], objects)


def keep_module(key: str, plan: Plan, externals: Sequence[str], objects: Sequence[bytes]) -> None:
    """Keeps a module, unless Python has a part in running it."""
    cache = default_cache()
    if cache is None or plan.sites:
        return
    about = {
        "parameters": [s.to_string() for s in plan.shapes],
        "result": plan.result_shape.to_string(),
        "constants": sum(b.size for b in plan.constants),
        "arena": plan.arena_size,
        "long": plan.is_long,
        "aliases": [
            (n, plan.parameters.index(r.alias)) for n, r in enumerate(plan.results) if r.alias
        ],
        "externals": list(externals),
        "objects": list(map(len, objects)),
    }
    cache.put(key, json.dumps(about).encode() + b"\n" + b"".join(objects))


def _tree(shape: Shape, found: list[Buffer], *, is_result: bool) -> Tree:
    if isinstance(shape, TupleShape):
        return tuple(_tree(s, found, is_result=is_result) for s in shape.elements)
    if isinstance(shape, TokenShape):
        return ()
    assert isinstance(shape, ArrayShape)
    number = len(found)
    buffer = Buffer(
        shape,
        byte_size(shape),
        parameter=None if is_result else number,
        result=number if is_result else None,
    )
    found.append(buffer)
    return buffer


@functools.cache
def _sources() -> str:
    """The state of this package's files: code that another one wrote is not taken for its own."""
    digest = hashlib.sha256()
    top = Path(__file__).parent.parent
    for folder, folders, files in os.walk(top):
        folders.sort()
        for name in sorted(files):
            if name.endswith(".py"):
                about = os.stat(os.path.join(folder, name))
                digest.update(f"{name} {about.st_size} {about.st_mtime_ns} ".encode())
    return digest.hexdigest()
