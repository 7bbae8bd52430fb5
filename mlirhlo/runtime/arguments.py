"""Calls of compiled modules with arguments of any kind: conversions, checks, and where results go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np
from numpy.lib.array_utils import byte_bounds

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TokenShape, TupleShape
from mlirhlo.interp.registry import TOKEN, Value
from mlirhlo.interp.values import describe, for_user, unflatten, value_from
from mlirhlo.lowering.memory_order import physical_order
from mlirhlo.lowering.plan.steps import Buffer, Held, Tree
from mlirhlo.lowering.plan.steps import held as held_leaves
from mlirhlo.runtime.calls import logical, new_array

if TYPE_CHECKING:
    from mlirhlo.interp.machine import Machine
    from mlirhlo.lowering.plan.plan import Plan
    from mlirhlo.runtime.callbacks import Callbacks

Place = TypeVar("Place", Buffer, Held)

Array = np.ndarray[Any, Any]


class Runs(Protocol):
    """Runs a plan on arrays as they lie in memory."""

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """`outputs`, undefined before, gets the leaves of the result."""
        ...


_PLAIN = frozenset({bool, int, float, complex, list})
"""Types of Python whose values NumPy makes arrays of any type of."""


_IN_F32 = 3e38
"""Numbers below are rounded to f32 without a warning."""


class Converting:
    """The call that makes arrays of numbers and lists, and leaves all that are arrays as they are."""

    __slots__ = ("exact", "parameters", "slow")

    def __init__(self, plan: Plan, exact: Callable[..., Any], slow: Callable[..., Any]) -> None:
        """`exact` runs on arrays that fit; `slow` takes anything, and explains."""
        self.exact, self.slow = exact, slow
        self.parameters = [(np.dtype(b.shape.element_type.dtype), b.shape) for b in plan.parameters]

    def call(self, *arguments: object, out: object = None) -> Any:
        """As a call of `Executable`."""
        if len(arguments) != len(self.parameters):
            return self.slow(*arguments, out=out)
        arrays = list(arguments)
        is_converted = False
        for number, argument in enumerate(arguments):
            kind = type(argument)
            if kind is np.ndarray:
                continue
            dtype, shape = self.parameters[number]
            array: Any
            if kind in _PLAIN:
                try:
                    array = np.asarray(cast(Any, argument), dtype)
                except (TypeError, ValueError, OverflowError):
                    return self.slow(*arguments, out=out)
            elif isinstance(argument, np.float64) and dtype.char == "f" and abs(argument) < _IN_F32:
                array = np.asarray(
                    float(argument), dtype
                )  # rounded as `astype` does, which is slower
            elif isinstance(argument, np.generic):
                array = np.asarray(cast(Any, argument))
                if array.dtype != dtype:
                    array = value_from(cast(Any, argument), shape, f"parameter {number}")
            else:
                return self.slow(*arguments, out=out)
            arrays[number] = array
            is_converted = True
        if not is_converted:
            return self.slow(*arguments, out=out)
        return self.exact(*arrays) if out is None else self.exact(*arrays, out=out)


class GeneralCall:
    """The call that converts, checks and explains."""

    __slots__ = ("callbacks", "plan", "runner")

    def __init__(self, plan: Plan, runner: Runs, callbacks: Callbacks | None) -> None:
        self.plan = plan
        self.runner = runner
        self.callbacks = callbacks

    def call(self, *arguments: object, out: object = None) -> Any:
        """As a call of `Executable`."""
        if self.callbacks is None:
            return self.run(arguments, out)
        machine = self.callbacks.machine()
        if machine.must_run_all(self.callbacks.module):
            # Others would be missed where devices meet: all run, on the same arguments.
            results = machine.run_devices(lambda r, p: self.run(arguments, None, machine, r, p))
            first = results[0]
            return first if out is None else self._written(list(_parts(first)), out)
        return self.run(arguments, out, machine)

    def run(
        self,
        arguments: Sequence[object],
        out: object,
        machine: Machine | None = None,
        replica: int = 0,
        partition: int = 0,
    ) -> Any:
        """A run on one device; `machine` is needed where there are callbacks."""
        given = self.given(arguments)
        inputs = as_in_memory(given)
        if out is not None:
            self._targets(out)
        outputs = self.outputs()
        held: list[Value] = []
        if self.callbacks is None:
            self.runner.run(inputs, outputs)
        else:
            machine = machine or self.callbacks.machine()
            with self.callbacks.start(machine, replica, partition) as running:
                held = running.held
                for value, place in _pairs(given, Held):
                    held[place.slot] = value
                self.runner.run([*inputs, *running.contexts], outputs)
        if out is not None:
            return self._written(self._logical(outputs), out)
        return self.result(outputs, held)

    def given(self, arguments: Sequence[object]) -> list[tuple[Value, Tree]]:
        """Values of the parameters, and where they go. Raises `HloError` HLO0303."""
        return list(zip(self._values(arguments), self.plan.parameter_trees, strict=True))

    def outputs(self) -> list[Array]:
        """Arrays for the leaves of the result, undefined, as they lie in memory."""
        arrays: list[Array] = []
        for buffer in self.plan.results:
            sizes = [buffer.shape.dimensions[d] for d in physical_order(buffer.shape)]
            arrays.append(new_array(sizes, np.dtype(buffer.shape.element_type.dtype)))
        return arrays

    def result(self, outputs: Sequence[Array], held: Sequence[Value] = ()) -> Any:
        """The value of the result, of what a run has written."""
        plan = self.plan
        return _result(plan.result_tree, plan.result_shape, iter(self._logical(outputs)), held)

    def _logical(self, outputs: Sequence[Array]) -> list[Array]:
        return [logical(o, b.shape) for o, b in zip(outputs, self.plan.results, strict=True)]

    def _written(self, results: Sequence[Any], out: object) -> Any:
        for target, result in zip(self._targets(out), results, strict=True):
            target[...] = result
        return out

    def _values(self, arguments: Sequence[object]) -> list[Value]:
        """Values of the parameters. Raises `HloError` HLO0303."""
        shapes = self.plan.shapes
        flat = [leaf for s in shapes for leaf in _array_leaves(s)]
        if len(arguments) == len(shapes):
            return [
                value_from(a, s, f"parameter {n}")
                for n, (a, s) in enumerate(zip(arguments, shapes, strict=True))
            ]
        if len(arguments) == len(flat):
            values = [
                value_from(a, s, f"parameter leaf {n}")
                for n, (a, s) in enumerate(zip(arguments, flat, strict=True))
            ]
            leaves = iter(values)
            return [unflatten(leaves, shape) for shape in shapes]
        raise error("HLO0303", f"expects {len(shapes)} arguments, got {len(arguments)}")

    def _targets(self, out: object) -> list[Array]:
        """Arrays that results go to. Raises `HloError` HLO0303."""
        found = list(_parts(out))
        results = self.plan.results
        if any(True for _ in held_leaves(self.plan.result_tree)):
            raise error("HLO0303", "out: a result of dynamic size is not written to an array")
        if len(found) != len(results):
            raise error("HLO0303", f"out: expects {len(results)} arrays, got {len(found)}")
        for number, (given, buffer) in enumerate(zip(found, results, strict=True)):
            if problem := _misfit(given, buffer.shape):
                raise _unfit(number, buffer.shape, problem)
        arrays = cast("list[Array]", found)
        if (pair := _overlapping(arrays)) is not None:
            raise error("HLO0303", f"out {pair[1]}: its memory is also that of out {pair[0]}")
        return arrays


def as_in_memory(given: Sequence[tuple[Value, Tree]]) -> list[Array]:
    """The arrays of parameters in the order of memory."""
    return [
        np.ascontiguousarray(array.transpose(physical_order(buffer.shape)))
        for array, buffer in _pairs(given, Buffer)
    ]


def _misfit(given: object, shape: ArrayShape) -> str | None:
    """What is wrong with an array to write to."""
    if not isinstance(given, np.ndarray):
        return f"a {type(given).__name__}"
    array = cast(Array, given)
    if array.dtype != shape.element_type.dtype or array.shape != shape.dimensions:
        return describe(array)
    if not array.flags.writeable:
        return "an array that must not be written"
    if any(step == 0 and size > 1 for step, size in zip(array.strides, array.shape, strict=True)):
        return "an array whose elements are in one place"
    return None


def _overlapping(arrays: Sequence[Array]) -> tuple[int, int] | None:
    """Numbers of two arrays that have elements in common."""
    reached: list[tuple[int, int]] = []
    bounds = [byte_bounds(array) for array in arrays]
    for number in sorted(range(len(arrays)), key=bounds.__getitem__):
        start, end = bounds[number]
        reached = [(limit, other) for limit, other in reached if limit > start]
        for _, other in reached:
            if np.shares_memory(arrays[number], arrays[other]):
                return min(number, other), max(number, other)
        reached.append((end, number))
    return None


def _unfit(number: int, shape: ArrayShape, problem: str) -> HloError:
    wanted = shape.to_string(layout=False)
    return error("HLO0303", f"out {number}: expects an array for {wanted}, got {problem}")


def _pairs(given: Iterable[tuple[Value, Tree]], kind: type[Place]) -> Iterator[tuple[Any, Place]]:
    """Values beside where they go, as far as that is a buffer, or held in Python."""
    for value, tree in given:
        if isinstance(tree, kind):
            yield value, tree
        elif isinstance(tree, tuple) and tree:
            parts = cast("tuple[Value, ...]", value)
            yield from _pairs(zip(parts, tree, strict=True), kind)


def _result(tree: Tree, shape: Shape, arrays: Iterator[Array], held: Sequence[Value]) -> Any:
    """The value of a result: arrays, and what Python holds."""
    if isinstance(tree, Buffer):
        return next(arrays)
    if isinstance(tree, Held):
        return for_user(held[tree.slot])
    if not isinstance(shape, TupleShape):
        return TOKEN
    parts = zip(tree, shape.elements, strict=True)
    return tuple(_result(part, s, arrays, held) for part, s in parts)


def _parts(out: object) -> Iterator[object]:
    if isinstance(out, (tuple, list)):
        for part in cast("Sequence[object]", out):
            yield from _parts(part)
    elif out is not TOKEN:
        yield out


def _array_leaves(shape: Shape) -> list[Shape]:
    if isinstance(shape, TupleShape):
        return [leaf for s in shape.elements for leaf in _array_leaves(s)]
    return [] if isinstance(shape, TokenShape) else [shape]
