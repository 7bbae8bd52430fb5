"""A kernel on arrays: its arguments, its grid, its results."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, IntegerType, MemRefType

from mlirhlo.diagnostics import HloError, error
from mlirhlo.mosaic.attributes import (
    attribute_of,
    case_of,
    dictionaries_of,
    integer_of,
    integers_of,
    string_of,
)
from mlirhlo.mosaic.interpreter.ahead import told
from mlirhlo.mosaic.interpreter.bits import from_bits, to_bits
from mlirhlo.mosaic.interpreter.budget import check_budget
from mlirhlo.mosaic.interpreter.checks import Checks
from mlirhlo.mosaic.interpreter.code import Function, Functions
from mlirhlo.mosaic.interpreter.core import Core, Options
from mlirhlo.mosaic.interpreter.memory import (
    MemRef,
    dtype_in,
    memory_space,
    semaphore_kind,
    unwritten,
)
from mlirhlo.mosaic.interpreter.numbers import width_of
from mlirhlo.mosaic.interpreter.problems import place_of
from mlirhlo.mosaic.interpreter.steps import Launch, cores_of
from mlirhlo.mosaic.interpreter.windows import Block, Window, window_of
from mlirhlo.mosaic.interpreter.world import World

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation

    from mlirhlo.mosaic.interpreter.registry import Array
    from mlirhlo.mosaic.timeline.clock import CoreTime
    from mlirhlo.mosaic.timeline.figures import Chip

LOG = logging.getLogger(__name__)
DYNAMIC_BOUND = -(1 << 63)


class Kernel:
    """A kernel's module, prepared; `run` may be called often."""

    def __init__(self, module: ModuleOp, internal_scratch_in_bytes: int = 0) -> None:
        self._module = module
        self._functions = Functions(module)
        self._timed: dict[str, Function] = {}
        self._scratch_bytes = internal_scratch_in_bytes
        self._is_told = False
        self.op = self._entry()
        self.name = string_of(self.op, "sym_name") or ""
        bounds = integers_of(self.op, "iteration_bounds") or ()
        self.bounds = bounds
        self.prefetches = integer_of(self.op, "scalar_prefetch")
        self._scratch = integer_of(self.op, "scratch_operands")
        self.semantics = tuple(
            case_of(item) for item in _items(attribute_of(self.op, "dimension_semantics"))
        )
        if not self.op.regions or not self.op.regions[0].blocks:
            raise error("HLO0700", f"the kernel @{self.name} has no body", place_of(self.op))
        self._types: list[Attribute] = [a.type for a in self.op.regions[0].blocks[0].args]
        entries = dictionaries_of(self.op, "window_params")
        self._windows: list[Window | None] = [
            window_of(entry, self._functions) for entry in entries or ()
        ]

    def check_blocks(self, number: int, shape: Sequence[int]) -> None:
        """Raises `HloError` HLO0732 where blocks of the array with that number lie outside of it, as far as the
        kernel alone says where they are."""
        window = self._window(number)
        if window is not None:
            argument = self.op.regions[0].blocks[0].args[len(self.bounds) + number]
            name = argument.name_hint or f"operand {number}"
            window.check_all(Core(Options(), self.bounds), shape, name)

    def _window(self, number: int) -> Window | None:
        at = number - self.prefetches
        return self._windows[at] if 0 <= at < len(self._windows) else None

    def _entry(self) -> Operation:
        """The function marked as main, else with a core type, else `main`, else the only one."""
        functions = self._functions.ops
        with_core = {
            name: case_of(found)
            for name, op in functions.items()
            if (found := attribute_of(op, "tpu.core_type")) is not None
        }
        for name, core in with_core.items():
            if core != "tc":
                raise error(
                    "HLO0701",
                    f"the kernel runs on a SparseCore ({core}), which has no meaning here",
                    place_of(functions[name]),
                    help="run a kernel of the TensorCore",
                )
        # The compiler gives every function a core type, and one of them `tpu.main`.
        names = [name for name, op in functions.items() if attribute_of(op, "tpu.main") is not None]
        names = names or list(with_core) or [name for name in functions if name == "main"]
        if not names and len(functions) == 1:
            names = list(functions)
        if len(names) != 1:
            raise error(
                "HLO0700",
                "the kernel's module has no function to start with",
                help="give one function tpu.core_type = #tpu.core_type<tc>, or the name main",
            )
        return functions[names[0]]

    def _unfit(self, problem: str) -> HloError:
        return error(
            "HLO0700",
            f"the call does not fit its kernel @{self.name}: {problem}",
            help="the body and the call have to come from one lowering",
        )

    def tell_ahead(self) -> None:
        """Warns once of blocks that are chosen before the body has changed what chooses them (HLO0755)."""
        if not self._is_told:
            self._is_told = True
            count = len(self.bounds)
            for warning in told(self.op, self._functions.ops, count, self.prefetches):
                LOG.warning("%s", warning)

    def run(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[tuple[tuple[int, ...], np.dtype[Any]]],
        *,
        aliases: Mapping[int, int] | None = None,
        options: Options | None = None,
    ) -> list[Array]:
        """The results of the kernel on one device's arrays.

        `inputs` are the operands of the call: dynamic grid bounds, scalars, arrays. `outputs` are
        shapes and element types of the results; `aliases` gives, by the number of a result, the
        number of the operand whose memory it takes. Elements that the kernel does not write are NaN
        or the least integer.

        Raises `HloError` HLO0700 when the arrays do not fit, HLO0701 to HLO0703 as operations do,
        HLO0730 to HLO0735 as the checks of `options` do.
        """
        return self.run_on([inputs], outputs, aliases=aliases, options=options)[0]

    def run_on(
        self,
        devices: Sequence[Sequence[Array]],
        outputs: Sequence[tuple[tuple[int, ...], np.dtype[Any]]],
        *,
        aliases: Mapping[int, int] | None = None,
        options: Options | None = None,
    ) -> list[list[Array]]:
        """As `run`, of several devices at once: the operands of each, and the results of each."""
        stated = options or Options()
        self.tell_ahead()
        if stated.checks:
            check_budget(self.op, stated)
        dynamic = sum(bound == DYNAMIC_BOUND for bound in self.bounds)
        grids = [self._bounds(inputs) for inputs in devices]
        cores = max(
            (cores_of(bounds, self.semantics, stated.num_cores_or_threads) for bounds in grids),
            default=1,
        )
        world = World(stated, len(devices), cores)
        times: Sequence[CoreTime | None] = [None] * world.count
        if stated.timeline is not None:
            times = stated.timeline.begin(self.name, len(devices), cores)
        launches: list[Launch] = []
        results: list[list[Array]] = []
        with np.errstate(all="ignore"):
            for device, (inputs, bounds) in enumerate(zip(devices, grids, strict=True)):
                memory = self._arrays(inputs[dynamic:], outputs, aliases or {}, dynamic)
                results.append(memory[len(inputs) - dynamic :])
                fresh = {
                    len(inputs) - dynamic + number
                    for number in range(len(outputs))
                    if number not in (aliases or {})
                }
                for agent in range(device * cores, (device + 1) * cores):
                    launches.append(
                        self._launch(
                            world, agent, bounds, memory, fresh, len(outputs), times[agent]
                        )
                    )
            world.run([launch.steps for launch in launches])
        return [
            [_as_type(array, dtype) for array, (_, dtype) in zip(found, outputs, strict=True)]
            for found in results
        ]

    def _bounds(self, inputs: Sequence[Array]) -> tuple[int, ...]:
        """Sizes of the grid; dynamic ones are the first operands. Raises `HloError` HLO0700 without them."""
        count = sum(bound == DYNAMIC_BOUND for bound in self.bounds)
        sizes = [np.asarray(one) for one in inputs[:count]]
        if len(sizes) < count or any(one.ndim or one.dtype.kind not in "iu" for one in sizes):
            raise self._unfit(
                f"{count} bounds of its grid are operands, whole numbers in front of the arrays"
            )
        given = iter(sizes)
        return tuple(int(next(given)) if b == DYNAMIC_BOUND else b for b in self.bounds)

    def _arrays(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[tuple[tuple[int, ...], np.dtype[Any]]],
        aliases: Mapping[int, int],
        dynamic: int,
    ) -> list[Array]:
        """The memory of a device's operands and results."""
        types = self._types[len(self.bounds) :]
        count = len(inputs) + len(outputs)
        if len(types) != count + self._scratch:
            raise self._unfit(
                f"it has {len(types)} arguments behind the grid indices, {count} arrays and "
                f"{self._scratch} scratch operands are given"
            )
        memory = [self._held(array, type_) for array, type_ in zip(inputs, types, strict=False)]
        first = len(memory)
        for number, (shape, dtype) in enumerate(outputs):
            shared = aliases.get(number)
            if shared is not None:
                memory.append(memory[shared - dynamic])
            else:
                memory.append(unwritten(shape, self._element(types[first + number], dtype)))
        return memory

    def _launch(
        self,
        world: World,
        agent: int,
        bounds: tuple[int, ...],
        memory: list[Array],
        fresh: set[int],
        outputs: int,
        time: CoreTime | None,
    ) -> Launch:
        """The kernel on one core."""
        core = Core(
            world.options,
            bounds,
            internal_scratch_in_bytes=self._scratch_bytes,
            agent=agent,
            world=world,
            time=time,
            clock={agent: 1},
        )
        if world.options.checks:
            core.checks = Checks(core)
        if core.has_peers:
            # Others may signal it before this core is there.
            _ = core.barrier
        types = self._types[len(bounds) :]
        count = len(memory)
        refs, blocks = self._references(core, memory, types, count - outputs, fresh)
        arguments = self.op.regions[0].blocks[0].args[len(bounds) :]
        for number, type_ in enumerate(types[count:], count):
            name = arguments[number].name_hint or f"scratch {number - count}"
            refs.append(core.allocated(type_, None, name, ("argument", number)))
        return Launch(
            core,
            self._functions[self.name] if time is None else self._timed_body(time.chip),
            refs,
            blocks,
            self.prefetches,
            self.semantics,
            refs[count:],
        )

    def _timed_body(self, chip: Chip) -> Function:
        """The kernel's function, counting a generation's cycles."""
        found = self._timed.get(chip.name)
        if found is None:
            found = self._timed[chip.name] = Functions(self._module, chip)[self.name]
        return found

    def _references(
        self,
        core: Core,
        memory: list[Array],
        types: Sequence[Attribute],
        first_output: int,
        fresh: set[int],
    ) -> tuple[list[Any], list[Block]]:
        """What the body gets for each array, and the blocks that have to be moved for it."""
        refs: list[Any] = []
        blocks: list[Block] = []
        arguments = self.op.regions[0].blocks[0].args[len(self.bounds) :]
        for number, array in enumerate(memory):
            type_ = types[number]
            window = self._window(number)
            name, key = arguments[number].name_hint or f"operand {number}", ("argument", number)
            # Aliased operands and results are one array.
            whole = ("array", next(at for at, other in enumerate(memory) if other is array))
            if isinstance(type_, IntegerType):
                refs.append(array.reshape(())[()])
                continue
            if number < self.prefetches and core.world is not None and core.world.cores > 1:
                # Every core has a copy of its own of prefetched scalars.
                ref = core.tracked(MemRef(array.copy(), memory_space(type_)), None, name, key)
                if ref.memory is not None:
                    ref.memory.written = None
                refs.append(ref)
                continue
            if window is None:
                ref = core.shared(MemRef(array, memory_space(type_)), name, whole)
                if ref.memory is not None and number not in fresh:
                    ref.memory.written = None
                refs.append(ref)
                continue
            if len(window.bounds) != array.ndim:
                raise self._unfit(
                    f"operand {number} has {array.ndim} dimensions, its window {len(window.bounds)}"
                )
            ref = core.allocated(type_, None, name, key)
            if ref.array.size != int(np.prod(window.bounds, dtype=int)):
                raise self._unfit(
                    f"operand {number} is seen as {list(ref.shape)}, its window is "
                    f"{list(window.bounds)}"
                )
            refs.append(ref)
            returns = window.may_return or number not in fresh
            block = Block(window, array, ref, name, number >= first_output, may_return=returns)
            if core.checks is not None and core.world is not None and core.world.cores > 1:
                block.home = core.shared(MemRef(array, "hbm"), name, whole).memory
            blocks.append(block)
        for block in blocks:
            if not block.is_output:
                same = (one for one in blocks if one.is_output and one.array is block.array)
                block.rivals = tuple(same)
        return refs, blocks

    def _element(self, type_: Attribute, dtype: np.dtype[Any]) -> np.dtype[Any]:
        if isinstance(type_, MemRefType) and not semaphore_kind(type_.element_type):
            return dtype_in(type_)
        return dtype

    def _held(self, array: Array, type_: Attribute) -> Array:
        """A copy of an operand in the element type that the kernel sees."""
        dtype = self._element(type_, array.dtype)
        if array.dtype != dtype and (width_of(array.dtype) != width_of(dtype) or dtype.kind == "b"):
            raise self._unfit(f"an operand has elements of {array.dtype}, the kernel of {dtype}")
        return np.array(_as_type(array, dtype))


def _as_type(array: Array, dtype: np.dtype[Any]) -> Array:
    """The same bits under another element type of the same width: kernels have no unsigned types."""
    if array.dtype == dtype:
        return array
    return from_bits(to_bits(array), dtype)


def _items(attribute: Attribute | None) -> Sequence[Attribute]:
    return cast("ArrayAttr[Attribute]", attribute).data if isinstance(attribute, ArrayAttr) else ()
