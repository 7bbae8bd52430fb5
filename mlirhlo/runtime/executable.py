"""A compiled module: numpy arrays in, numpy arrays out, one call of machine code between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.lib.array_utils import byte_bounds

from mlirhlo.diagnostics import HloError, error, wrong_type
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TokenShape, TupleShape
from mlirhlo.importing import LATE
from mlirhlo.interp.registry import TOKEN, Value
from mlirhlo.interp.values import describe, for_user, unflatten, value_from
from mlirhlo.lowering.memory_order import physical_order
from mlirhlo.lowering.plan.steps import (
    Buffer,
    Held,
    Tree,
)
from mlirhlo.lowering.plan.steps import held as held_leaves
from mlirhlo.runtime.calls import Runner, Signature, logical, new_array
from mlirhlo.runtime.jit import Library
from mlirhlo.runtime.launcher import launched

with LATE:
    from mlirhlo.runtime import callbacks as runtime_callbacks
    from mlirhlo.runtime import checked as runtime_checked
    from mlirhlo.runtime import device_threads, mpi


if TYPE_CHECKING:
    from mlirhlo.interp.machine import Machine
    from mlirhlo.lowering.plan.plan import Plan
    from mlirhlo.runtime.callbacks import Callbacks
    from mlirhlo.runtime.checked import CheckedRunner
    from mlirhlo.runtime.device_threads import Worlds
    from mlirhlo.runtime.mpi import RankWorld

Place = TypeVar("Place", Buffer, Held)

Array = np.ndarray[Any, Any]

Watcher: TypeAlias = "Callable[[Sequence[object]], Callable[[object], None]]"
"""Takes the arguments of a run; returns what takes its result."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that one run works on."""

    parameters: int
    results: int
    constants: int
    """Part of the code."""
    temporaries: int
    """The arena: all temporaries of one run, those that never meet in the same place."""
    aliased: int = 0
    """Of results that may lie over parameters."""


_CALL = ("__call__",)
"""A name of its own, since type checkers take the names of slots for plain attributes."""


class Runs(Protocol):
    """Runs a plan on arrays as they lie in memory."""

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """`outputs`, undefined before, gets the leaves of the result."""
        ...


class Executable:
    """Code of a module, callable from any thread."""

    # An instance's own `__call__` in a slot: Python finds the built-in function there without
    # running a line of Python. It does not refer back to the executable.
    __slots__ = ("__weakref__", "_plan", "_slow", "_ranks", "_watcher", "_worlds", *_CALL)

    def __init__(
        self, plan: Plan, library: Library, function: str, checks: Sequence[str] | None = None
    ) -> None:
        """`checks`: the sites of code that was made with checks; every run is checked then."""
        address = library.address(function)
        plain = Runner(library, address, _signature(plan))
        runner = plain if checks is None else _checked(plan, library, address, checks)
        self._start(plan, runner, _callbacks(plan) if plan.sites else None)
        exact = plain.fast(self._slow.call) if _is_plain(plan) and checks is None else None
        if exact is not None:
            converting = _Converting(plan, exact, self._slow.call)
            object.__setattr__(self, "__call__", plain.fast(converting.call))

    def _start(self, plan: Plan, runner: Runs, callbacks: Callbacks | None) -> None:
        """Makes calls run by `runner`."""
        self._plan = plan
        self._slow = _Slow(plan, runner, callbacks)
        self._watcher: Watcher | None = None
        self._worlds: dict[tuple[int, int], Worlds | None] = {}
        self._ranks: dict[tuple[int, int], RankWorld] = {}
        object.__setattr__(self, "__call__", self._slow.call)

    def __repr__(self) -> str:
        parameters = ", ".join(shape.to_string(layout=False) for shape in self._plan.shapes)
        result = self._plan.result_shape.to_string(layout=False)
        return f"<mlirhlo.Executable: ({parameters}) -> {result}>"

    def __copy__(self) -> Executable:
        return self  # as functions are copied

    def __deepcopy__(self, memo: object) -> Executable:
        return self

    def __reduce__(self) -> str:
        raise wrong_type(
            "pickle",
            "a module",
            self,
            "machine code is of this process: pickle the module and compile it again, from the cache",
        )

    @property
    def watcher(self) -> Watcher | None:
        """Who is told of the runs."""
        return self._watcher

    def watch(self, watcher: Watcher) -> None:
        """From now on, `watcher` gets the arguments of each run (of one device) before it starts; what
        it returns gets the result."""
        self._watcher = watcher
        run = self.__call__

        def watched(*arguments: object, out: object = None) -> Any:
            done = watcher(arguments)
            result = run(*arguments) if out is None else run(*arguments, out=out)
            done(result)
            return result

        object.__setattr__(self, "__call__", watched)

    if TYPE_CHECKING:

        def __call__(self, *arguments: object, out: object = None) -> Any:
            """The module's result: arrays in logical order, tuples for tuples.

            `arguments`: one for each parameter, or one for each leaf of tuples. `out`: arrays to
            write the result to, which are returned; the array of an argument may be one of them,
            and is updated in place where the module's `input_output_alias` allows it. Raises
            `HloError` HLO0303 for what does not fit a parameter or the result, MemoryError.
            """
            ...

    def run_on(
        self, machine: Machine, replica: int, partition: int, arguments: Sequence[object]
    ) -> Any:
        """The result on one device of a machine; where devices meet, each runs on a thread of its
        own (`Machine.run_devices`). Arguments and errors as of a call."""
        done = None if self._watcher is None else self._watcher(arguments)
        result = self._slow.run(arguments, None, machine, replica, partition)
        if done is not None:
            done(result)
        return result

    def run_devices(self, machine: Machine, per_device: Sequence[Sequence[object]]) -> list[Any]:
        """Results on all devices of a machine, by device; one list of arguments stands for all. Errors as of a call.

        Ranks of MPI run a device each, and every rank gets the results of all."""
        device_threads, mpi = _several()
        if machine.device_count > 1 and machine.device_count == launched():
            ranks = mpi.ranks()
            number = ranks.rank if len(per_device) > 1 else 0
            return cast("list[Any]", ranks.gather(self.run_rank(machine, per_device[number])))
        descriptor = self.descriptor
        if descriptor is None or not device_threads.are_there():
            return machine.run_devices(
                lambda r, p: self.run_on(
                    machine, r, p, per_device[machine.device(r, p) if len(per_device) > 1 else 0]
                )
            )
        sizes = machine.replicas, machine.partitions
        if sizes not in self._worlds:
            self._worlds[sizes] = self.worlds(*sizes)
        slow = self._slow
        inputs = [as_in_memory(slow.given(arguments)) for arguments in per_device]
        if len(inputs) == 1:
            inputs *= machine.device_count
        outputs = [slow.outputs() for _ in inputs]
        device_threads.run_devices(descriptor, self._worlds[sizes], inputs, outputs)
        return [slow.result(made) for made in outputs]

    def run_rank(self, machine: Machine, arguments: Sequence[object]) -> Any:
        """The result on this rank of MPI, one device of a machine. Errors as of a call, and HLO0878."""
        _, mpi = _several()
        sizes, slow, sites = (machine.replicas, machine.partitions), self._slow, self._plan.sites
        ranks = mpi.ranks()
        inputs, outputs = as_in_memory(slow.given(arguments)), slow.outputs()
        with ranks.lock:
            if not sites:
                slow.runner.run(inputs, outputs)
                return slow.result(outputs)
            world = self._ranks.get(sizes)
            if world is None:
                world = self._ranks[sizes] = mpi.world_of(sites, machine)
            with ranks.watched(world.wait):
                slow.runner.run([*inputs, world.context(ranks.rank)], outputs)
            world.check()
        return slow.result(outputs)

    @property
    def descriptor(self) -> bytes | None:
        """What `call_ir` reads of it; None where a run needs Python. Collectives take a context behind the parameters:
        such code is run by `device_threads_ir`."""
        runner, plan = self._slow.runner, self._plan
        native = all(site.is_native for site in plan.sites) and _takes_arrays(plan)
        plain = isinstance(runner, Runner) and native and self._watcher is None
        return cast(Runner, runner).descriptor if plain else None

    def worlds(self, replicas: int, partitions: int) -> Worlds | None:
        """Where so many devices meet in runs without Python; None where they never do."""
        if not self._plan.sites:
            return None
        device_threads, _ = _several()
        return cast("Worlds", device_threads.Worlds(self._plan.sites, replicas, partitions))

    @property
    def layouts(self) -> tuple[tuple[int, ...], ...]:
        """Dimensions of each leaf of the parameters, then of the results, from minor to major as they lie in memory."""
        buffers = (*self._plan.parameters, *self._plan.results)
        return tuple(physical_order(buffer.shape)[::-1] for buffer in buffers)

    @property
    def has_callbacks(self) -> bool:
        """Whether machine code calls back into Python."""
        return self._slow.callbacks is not None

    @property
    def custom_calls(self) -> frozenset[str]:
        """Targets of the custom calls that a run makes in Python."""
        ops = (site.op for site in self._plan.sites if site.op is not None)
        return frozenset(str(getattr(op, "custom_call_target", "")) for op in ops) - {""}

    def checked(self, arguments: Sequence[object]) -> list[Value]:
        """The arguments as values of the parameters. Raises `HloError` HLO0303."""
        return [value for value, _ in self._slow.given(arguments)]

    @property
    def callbacks(self) -> Mapping[str, int]:
        """How often machine code called back into Python, by what had no code."""
        callbacks = self._slow.callbacks
        return {} if callbacks is None else dict(callbacks.counts)

    @property
    def aliases(self) -> Mapping[int, int]:
        """By leaf of the result, the leaf of the parameters that it may lie over: given as `out`, such
        an argument is updated in place."""
        plan = self._plan
        return {
            number: plan.parameters.index(result.alias)
            for number, result in enumerate(plan.results)
            if result.alias is not None
        }

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
        aliased = sum(result.size for result in plan.results if result.alias is not None)
        return Memory(parameters, results, constants, plan.arena_size, aliased)


# The interpreter, and what checks are made of, are imported by those who need them alone.


def _several() -> tuple[ModuleType, ModuleType]:
    """What runs several devices: threads of this process, ranks of MPI."""
    return device_threads, mpi


def _callbacks(plan: Plan) -> Callbacks:
    return runtime_callbacks.Callbacks(plan)


def _checked(plan: Plan, library: Library, address: int, sites: Sequence[str]) -> CheckedRunner:
    return runtime_checked.CheckedRunner(plan, library, address, sites)


def _is_plain(plan: Plan) -> bool:
    """Whether arrays are all that goes in, and one or a flat tuple of them comes out."""
    return not plan.sites and _takes_arrays(plan)


def _takes_arrays(plan: Plan) -> bool:
    result = plan.result_shape
    parts = result.elements if isinstance(result, TupleShape) else (result,)
    return all(isinstance(part, ArrayShape) for part in parts)


def _signature(plan: Plan) -> Signature:
    return Signature(
        plan.parameters,
        plan.results,
        isinstance(plan.result_shape, TupleShape),
        plan.arena_size,
        plan.is_long,
    )


_PLAIN = frozenset({bool, int, float, complex, list})
"""Types of Python whose values NumPy makes arrays of any type of."""


_IN_F32 = 3e38
"""Numbers below are rounded to f32 without a warning."""


class _Converting:
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


class _Slow:
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
