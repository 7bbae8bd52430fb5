"""A kernel on arrays: its arguments, its grid, its results."""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import IntegerType, MemRefType

from mlirhlo.diagnostics import HloError, error
from mlirhlo.mosaic.attributes import (
    attribute_of,
    case_of,
    dictionaries_of,
    integer_of,
    integers_of,
    string_of,
)
from mlirhlo.mosaic.interpreter.bits import from_bits, to_bits
from mlirhlo.mosaic.interpreter.code import Functions
from mlirhlo.mosaic.interpreter.core import Core, Options
from mlirhlo.mosaic.interpreter.memory import (
    MemRef,
    allocate,
    dtype_in,
    memory_space,
    semaphore_kind,
    unwritten,
)
from mlirhlo.mosaic.interpreter.numbers import width_of
from mlirhlo.mosaic.interpreter.problems import place_of
from mlirhlo.mosaic.interpreter.windows import Block, Window, window_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation

    from mlirhlo.mosaic.interpreter.registry import Array

DYNAMIC_BOUND = -(1 << 63)


class Kernel:
    """A kernel's module, prepared; `run` may be called often."""

    def __init__(self, module: ModuleOp, internal_scratch_in_bytes: int = 0) -> None:
        self._functions = Functions(module)
        self._scratch_bytes = internal_scratch_in_bytes
        self.op = self._entry()
        self.name = string_of(self.op, "sym_name") or ""
        bounds = integers_of(self.op, "iteration_bounds") or ()
        self.bounds = bounds
        self.prefetches = integer_of(self.op, "scalar_prefetch")
        self._scratch = integer_of(self.op, "scratch_operands")
        if not self.op.regions or not self.op.regions[0].blocks:
            raise error("HLO0700", f"the kernel @{self.name} has no body", place_of(self.op))
        self._types: list[Attribute] = [a.type for a in self.op.regions[0].blocks[0].args]
        entries = dictionaries_of(self.op, "window_params")
        self._windows: list[Window | None] = [
            window_of(entry, self._functions) for entry in entries or ()
        ]

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

    def run(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[tuple[tuple[int, ...], np.dtype[Any]]],
        *,
        aliases: Mapping[int, int] | None = None,
        options: Options | None = None,
    ) -> list[Array]:
        """The results of the kernel on arrays.

        `inputs` are the operands of the call: dynamic grid bounds, scalars, arrays. `outputs` are
        shapes and element types of the results; `aliases` gives, by the number of a result, the
        number of the operand whose memory it takes. Elements that the kernel does not write are NaN
        or the least integer.

        Raises `HloError` HLO0700 when the arrays do not fit, HLO0701 to HLO0703 as operations do.
        """
        dynamic = sum(bound == DYNAMIC_BOUND for bound in self.bounds)
        given = iter(inputs[:dynamic])
        bounds = tuple(int(next(given)) if b == DYNAMIC_BOUND else b for b in self.bounds)
        core = Core(options or Options(), bounds, internal_scratch_in_bytes=self._scratch_bytes)
        types = self._types[len(bounds) :]
        count = len(inputs) - dynamic + len(outputs)
        if len(types) != count + self._scratch:
            raise self._unfit(
                f"it has {len(types)} arguments behind the grid indices, {count} arrays and "
                f"{self._scratch} scratch operands are given"
            )
        memory = [
            self._held(array, type_) for array, type_ in zip(inputs[dynamic:], types, strict=False)
        ]
        first = len(memory)
        for number, (shape, dtype) in enumerate(outputs):
            shared = (aliases or {}).get(number)
            if shared is not None:
                memory.append(memory[shared - dynamic])
            else:
                type_ = types[first + number]
                memory.append(unwritten(shape, self._element(type_, dtype)))
        refs, blocks = self._references(memory, types, first)
        refs += [allocate(type_) for type_ in types[count:]]
        with np.errstate(all="ignore"):
            self._steps(core, bounds, refs, blocks)
        return [
            _as_type(array, dtype)
            for array, (_, dtype) in zip(memory[first:], outputs, strict=True)
        ]

    def _references(
        self, memory: list[Array], types: Sequence[Attribute], first_output: int
    ) -> tuple[list[Any], list[Block]]:
        """What the body gets for each array, and the blocks that have to be moved for it."""
        refs: list[Any] = []
        blocks: list[Block] = []
        for number, array in enumerate(memory):
            type_ = types[number]
            at = number - self.prefetches
            window = self._windows[at] if 0 <= at < len(self._windows) else None
            if isinstance(type_, IntegerType):
                refs.append(array.reshape(())[()])
                continue
            if window is None:
                refs.append(MemRef(array, memory_space(type_)))
                continue
            if len(window.bounds) != array.ndim:
                raise self._unfit(
                    f"operand {number} has {array.ndim} dimensions, its window {len(window.bounds)}"
                )
            ref = allocate(type_)
            if ref.array.size != int(np.prod(window.bounds, dtype=int)):
                raise self._unfit(
                    f"operand {number} is seen as {list(ref.shape)}, its window is "
                    f"{list(window.bounds)}"
                )
            refs.append(ref)
            blocks.append(Block(window, array, ref, is_output=number >= first_output))
        return refs, blocks

    def _steps(
        self, core: Core, bounds: tuple[int, ...], refs: list[Any], blocks: list[Block]
    ) -> None:
        """Every step of the grid, the last dimension fastest."""
        body = self._functions[self.name]
        scalars = tuple(refs[: self.prefetches])
        for step in _grid(bounds):
            core.step = step
            indices = tuple(np.int32(at) for at in step)
            for block in blocks:
                block.begin(core, (*indices, *scalars))
            body(core, (*indices, *refs))
        for block in blocks:
            block.flush()

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


def _grid(bounds: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return product(*(range(bound) for bound in bounds))
