"""Compiled modules kept on disk: what was compiled once is neither lowered nor compiled again.

The key is all of the module that may change code (`fingerprint.py`), and the state of this package's own
files; the value is what a call has to know, as JSON, then the code: an image that is ready to be loaded, or
objects where there are no images. It lies in the cache of object code (`cache.py`), which sees to whole files,
owners and sizes. Modules that call back into Python, or hold large constants, are not kept.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.shapes import (
    ArrayShape,
    Shape,
    TokenShape,
    TupleShape,
    parse_shape,
)
from mlirhlo.lowering.memory_order import byte_size
from mlirhlo.lowering.plan.plan import Plan
from mlirhlo.lowering.plan.steps import Buffer, Tree
from mlirhlo.runtime.cache import default_cache, object_key, sources
from mlirhlo.runtime.jit import Code
from mlirhlo.runtime.object_code.fingerprint import fingerprint
from mlirhlo.runtime.object_code.images import Image

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


@dataclass(frozen=True, slots=True)
class Kept:
    """A module out of the cache."""

    plan: Plan
    """What calls need of it: no steps and no kernels."""
    externals: Sequence[str]
    """Names that the code takes from outside."""
    code: Code


def module_key(module: ModuleOp, level: int, options: str) -> str | None:
    """Name of a module's code; None for one that is not kept. `options`: all else that changes it."""
    if default_cache() is None:
        return None
    words = fingerprint(module)
    if words is None:
        return None
    return object_key(words, None, level, f"module {options} {sources()}")


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
    return Kept(plan, about["externals"], _read_code(about["code"], code))


def keep_module(key: str, plan: Plan, externals: Sequence[str], code: Code) -> None:
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
        "code": _about_code(code),
    }
    data = code.data if isinstance(code, Image) else b"".join(code)
    cache.put(key, json.dumps(about).encode() + b"\n" + data)


def _about_code(code: Code) -> Mapping[str, object]:
    if isinstance(code, Image):
        return {
            "fixed": code.fixed_bytes,
            "size": code.size,
            "functions": code.functions,
            "inner": code.inner,
            "outer": code.outer,
        }
    return {"objects": list(map(len, code))}


def _read_code(about: Mapping[str, Any], data: bytes) -> Code:
    sizes: Sequence[int] | None = about.get("objects")
    if sizes is None:
        rest = (about[key] for key in ("fixed", "size", "functions", "inner", "outer"))
        return Image(data, *rest)
    ends = list(itertools.accumulate(sizes, initial=0))
    return [data[start:end] for start, end in itertools.pairwise(ends)]


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
