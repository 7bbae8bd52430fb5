"""A compiled module: numpy arrays in, numpy arrays out, one call of machine code between."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mlirhlo.diagnostics import wrong_type
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.importing import LATE
from mlirhlo.interp.registry import Value
from mlirhlo.lowering.memory_order import physical_order
from mlirhlo.runtime.arguments import Converting, GeneralCall, Runs, as_in_memory
from mlirhlo.runtime.calls import Runner, Signature
from mlirhlo.runtime.jit import Library
from mlirhlo.runtime.launcher import own_rank, owners_of

with LATE:
    from mlirhlo.runtime import callbacks as runtime_callbacks
    from mlirhlo.runtime import checked as runtime_checked
    from mlirhlo.runtime import device_threads, mpi, rank_worlds


if TYPE_CHECKING:
    from mlirhlo.interp.machine import Machine
    from mlirhlo.lowering.plan.plan import Plan
    from mlirhlo.runtime.callbacks import Callbacks
    from mlirhlo.runtime.checked import CheckedRunner
    from mlirhlo.runtime.device_threads import Worlds
    from mlirhlo.runtime.rank_worlds import RankWorld

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
            converting = Converting(plan, exact, self._slow.call)
            object.__setattr__(self, "__call__", plain.fast(converting.call))

    def _start(self, plan: Plan, runner: Runs, callbacks: Callbacks | None) -> None:
        """Makes calls run by `runner`."""
        self._plan = plan
        self._slow = GeneralCall(plan, runner, callbacks)
        self._watcher: Watcher | None = None
        self._worlds: dict[tuple[int, int], Worlds | None] = {}
        self._ranks: dict[tuple[int, ...], RankWorld] = {}
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

        Ranks of MPI run as many devices each, where their number divides that of devices, and every rank gets the
        results of all."""
        owners = owners_of(machine.device_count)
        if owners:
            own = [d for d, rank in enumerate(owners) if rank == own_rank()]
            tiles = [per_device[d if len(per_device) > 1 else 0] for d in own]
            return self._gathered(self.run_ranks(machine, tiles, owners))
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

    def run_ranks(
        self, machine: Machine, own: Sequence[Sequence[object]], owners: Sequence[int]
    ) -> list[Any]:
        """Results on the devices of a machine that this rank of MPI runs, of the arguments of each.

        `owners`: by device, the rank that runs it. Errors as of a call, and HLO0878."""
        slow, runner = self._slow, self._slow.runner
        inputs = [as_in_memory(slow.given(arguments)) for arguments in own]
        outputs = [slow.outputs() for _ in own]
        key, sites = (machine.replicas, machine.partitions, *owners), self._plan.sites
        ranks = mpi.ranks()
        ranks.expect(owners)
        with ranks.lock:
            if not sites:
                for arguments, results in zip(inputs, outputs, strict=True):
                    runner.run(arguments, results)
            else:
                if key not in self._ranks:
                    self._ranks[key] = rank_worlds.world_of(sites, machine, owners)
                assert slow.callbacks is not None
                self._ranks[key].run(runner, inputs, outputs, slow.callbacks, machine)
        return [slow.result(made) for made in outputs]

    @staticmethod
    def _gathered(own: list[Any]) -> list[Any]:
        """The results of all devices, by device, of those of each rank's."""
        return [result for results in mpi.ranks().gather(own) for result in results]

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
        return device_threads.Worlds(self._plan.sites, replicas, partitions)

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
