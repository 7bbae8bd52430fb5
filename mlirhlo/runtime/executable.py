"""A compiled module: numpy arrays in, numpy arrays out, one call of machine code between."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TokenShape, TupleShape
from mlirhlo.interp.registry import TOKEN
from mlirhlo.interp.values import value_from
from mlirhlo.lowering.hlo_to_loops.elements import physical_order
from mlirhlo.runtime.jit import Library

if TYPE_CHECKING:
    from mlirhlo.lowering.cpu.planner import Plan


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that one run works on."""

    parameters: int
    results: int
    constants: int
    """Part of the code."""
    temporaries: int
    """The arena: all temporaries of one run, those that never meet in the same place."""


class Executable:
    """Machine code of a module, callable from any thread."""

    def __init__(self, plan: Plan, library: Library, function: str) -> None:
        self._plan = plan
        self._library = library
        self._function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
            library.address(function)
        )

    @property
    def temp_bytes(self) -> int:
        """Bytes of the arena: all temporaries of one run."""
        return self._plan.arena_size

    @property
    def memory(self) -> Memory:
        """What one run needs of it."""
        plan = self._plan
        parameters, results, constants = (
            sum(b.size for b in buffers)
            for buffers in (plan.parameters, plan.results, plan.constants)
        )
        return Memory(parameters, results, constants, plan.arena_size)

    def __call__(self, *arguments: object) -> Any:
        """The module's result: arrays in logical order, tuples for tuples.

        `arguments`: one for each parameter, or one for each leaf of tuples. Raises `HloError`
        HLO0303 for what does not fit a parameter.
        """
        plan = self._plan
        given = self._leaves(arguments)
        inputs = [
            np.ascontiguousarray(a.transpose(physical_order(b.shape)))
            for a, b in zip(given, plan.parameters, strict=True)
        ]
        outputs: list[np.ndarray[Any, Any]] = []
        for buffer in plan.results:
            order = physical_order(buffer.shape)
            sizes = [buffer.shape.dimensions[d] for d in order]
            outputs.append(np.empty(sizes, buffer.shape.element_type.dtype))
        arena = np.empty(plan.arena_size + 64, np.uint8)
        start = -arena.ctypes.data % 64
        self._function(_pointers(inputs), _pointers(outputs), arena.ctypes.data + start)
        leaves = iter(
            o.transpose(np.argsort(physical_order(b.shape))) if o.ndim > 1 else o
            for o, b in zip(outputs, plan.results, strict=True)
        )
        return _tree(plan.result_shape, leaves)

    def _leaves(self, arguments: tuple[object, ...]) -> list[np.ndarray[Any, Any]]:
        shapes = self._plan.shapes
        flat = [leaf for s in shapes for leaf in _array_leaves(s)]
        if len(arguments) == len(shapes):
            values = [
                value_from(a, s, f"parameter {n}")
                for n, (a, s) in enumerate(zip(arguments, shapes, strict=True))
            ]
            found: list[np.ndarray[Any, Any]] = []
            for value in values:
                _collect(value, found)
            return found
        if len(arguments) != len(flat):
            raise error("HLO0303", f"expects {len(shapes)} arguments, got {len(arguments)}")
        return [
            np.asarray(value_from(a, s, f"parameter leaf {n}"))
            for n, (a, s) in enumerate(zip(arguments, flat, strict=True))
        ]


def _pointers(arrays: list[np.ndarray[Any, Any]]) -> Any:
    return (ctypes.c_void_p * max(len(arrays), 1))(*[a.ctypes.data for a in arrays])


def _array_leaves(shape: Shape) -> list[ArrayShape]:
    if isinstance(shape, TupleShape):
        return [leaf for s in shape.elements for leaf in _array_leaves(s)]
    return [shape] if isinstance(shape, ArrayShape) else []


def _collect(value: Any, found: list[np.ndarray[Any, Any]]) -> None:
    if isinstance(value, tuple):
        for part in cast("tuple[Any, ...]", value):
            _collect(part, found)
    elif value is not TOKEN:
        found.append(np.asarray(value))


def _tree(shape: Shape, leaves: Any) -> Any:
    if isinstance(shape, TupleShape):
        return tuple(_tree(s, leaves) for s in shape.elements)
    return TOKEN if isinstance(shape, TokenShape) else next(leaves)
