"""Functions of the language on arrays, outside of a kernel: written down once and run on the simulator."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from mlirhlo.mosaic.interpreter.bits import from_bits, to_bits
from mlirhlo.mosaic.interpreter.code import Functions
from mlirhlo.mosaic.interpreter.core import Core, Options
from mlirhlo.mosaic.language.trace import Trace, emit, is_tracing, tracing, vector_type
from mlirhlo.mosaic.language.tree import flatten
from mlirhlo.mosaic.language.value import Value, as_value
from mlirhlo.mosaic.language.windows import function


def evaluate(fun: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What `fun`, a function of a kernel's values, gives for arrays, which may stand in trees.

    Raises `HloError` HLO0720 to HLO0728 as `fun` does in a kernel.
    """
    leaves, rebuild = flatten((args, options))
    leaves = [np.asarray(leaf) if _is_array(leaf) else leaf for leaf in leaves]
    held = [at for at, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)]
    arrays = [narrow(leaves[at]) for at in held]
    block = Block(arg_types=[vector_type(array.shape, array.dtype) for array in arrays])
    with tracing(Trace(block)):
        for at, array, ssa in zip(held, arrays, block.args, strict=True):
            leaves[at] = Value(ssa, array.shape, array.dtype)
        given, named = rebuild(leaves)
        found, again = flatten(fun(*given, **named))
        results = [as_value(leaf) for leaf in found]
        emit("func.return", [result.ssa for result in results])
    return again(_run(block, arrays, results))


def _run(block: Block, arrays: list[Any], results: Sequence[Value]) -> list[Any]:
    module = ModuleOp([function("evaluate", block, [one.type for one in results], {})])
    signless = [
        from_bits(to_bits(array), np.dtype(f"i{array.dtype.itemsize}"))
        if array.dtype.kind == "u"
        else array
        for array in arrays
    ]
    found = Functions(module)["evaluate"](Core(Options()), tuple(signless))
    return [
        _typed(np.asarray(array), result.dtype)
        for array, result in zip(found, results, strict=True)
    ]


def _typed(array: Any, dtype: Any) -> Any:
    return array if array.dtype == dtype else array.view(dtype)


def _is_array(leaf: Any) -> bool:
    """Whether a leaf is an array, of numpy or of others that numpy takes."""
    return hasattr(leaf, "__array__") and not isinstance(leaf, type | Value | np.generic)


def narrow(value: Any) -> Any:
    """Without 64 bits, which TPUs have not."""
    kind = getattr(value, "dtype", None)
    if kind is None or kind.itemsize != 8 or kind.kind not in "iuf":
        return value
    return value.astype(f"{kind.kind}4")


def evaluated(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function: as it is in a kernel, evaluated on arrays outside of one."""

    @wraps(fun)
    def either(*args: Any, **options: Any) -> Any:
        return fun(*args, **options) if is_tracing() else evaluate(fun, *args, **options)

    return either


__all__ = ["evaluate", "evaluated", "narrow"]
