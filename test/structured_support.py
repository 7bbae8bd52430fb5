"""Structured kernels held against the instructions that they stand for, on the inputs of a run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.structured import (
    ContractOp,
    FoldOp,
    KernelOp,
    LibraryOp,
    ScanOp,
    ScatterOp,
    SelectAndScatterOp,
    sizes_of,
)
from mlirhlo.formats.mlir import parse_module, print_module
from mlirhlo.interp.engine import Interpreter
from mlirhlo.interp.structured import run_kernel
from mlirhlo.lowering.hlo_to_loops.kernels import kernel_key
from mlirhlo.lowering.memory_order import physical_order
from mlirhlo.lowering.structured import to_structured
from mlirhlo.lowering.structured.conversion import parts_of

NO_KERNELS = frozenset(
    {"parameter", "constant", "tuple", "get-tuple-element", "while", "conditional", "call", "rng"}
    | {"after-all", "async-start", "async-update", "async-done", "copy-start", "copy-done", "infeed"}
    | {"outfeed", "send", "send-done", "recv", "recv-done", "partition-id", "replica-id"}
    | {"rng-get-and-update-state", "domain", "add-dependency", "opt-barrier", "all-reduce-start"}
    | {"all-reduce-done", "collective-permute-start", "collective-permute-done", "all-gather-start"}
    | {"all-gather-done", "set-dimension-size", "custom-call"}
)  # fmt: skip
"""What is no kernel: control flow, devices, values handed on."""

LARGEST = 1 << 23
"""Points of the iteration spaces of a kernel that is run."""

_SUMS = (ContractOp, FoldOp, LibraryOp, ScanOp, ScatterOp, SelectAndScatterOp)
_RELATIVE = {"float64": 1e-9, "complex128": 1e-9, "float32": 2e-4, "complex64": 2e-4}
_RELATIVE |= {"float16": 4e-3, "bfloat16": 3e-2}


@dataclass(frozen=True)
class Outcome:
    """What became of one kernel."""

    name: str
    opcode: str
    verdict: str
    """`equal`, `near`, `large`, a code with its message, or what differs."""

    @property
    def is_fine(self) -> bool:
        """Whether nothing is wrong."""
        return self.verdict in ("equal", "near", "large")


def kernels_of(
    module: ModuleOp,
    inputs: Sequence[object],
    seen: set[Hashable] | None = None,
    passes: Callable[[KernelOp], object] = lambda kernel: None,
) -> Iterator[Outcome]:
    """Runs a module, and of each of its kernels the first of a kind."""
    view = HloModule(module)
    computations = view.by_name()
    known: set[Hashable] = set() if seen is None else seen
    fused = {
        name
        for op in view.instructions
        if op.opcode.name not in ("while", "conditional", "call")
        for name in op.called_computations
    }
    records: list[tuple[Instruction, Sequence[Any], Any]] = []

    def hook(op: Instruction, given: Sequence[Any], result: Any) -> None:
        computation = cast(Any, op.parent_op()).computation_name
        if op.opcode.name in NO_KERNELS or op.opcode.collective or computation in fused:
            return
        key = kernel_key(op, computations)
        if key not in known:
            known.add(key)
            records.append((op, tuple(given), result))

    Interpreter(module, hook=hook).run(inputs)
    for op, given, result in records:
        yield outcome_of(op, computations, given, result, passes)


def outcome_of(
    op: Instruction,
    computations: Any,
    given: Sequence[Any],
    result: Any,
    passes: Callable[[KernelOp], object] = lambda kernel: None,
) -> Outcome:
    """One instruction's kernel: converted, verified, printed, read back and run."""
    name = op.instruction_name or op.opcode.name

    def outcome(verdict: str) -> Outcome:
        return Outcome(name, op.opcode.name, verdict)

    try:
        kernel = to_structured(op, computations, "kernel")
    except HloError as problem:
        return outcome(f"{problem.diagnostics[0].code}: {problem.diagnostics[0].message}")
    kernel.verify()
    passes(kernel)
    text = print_module(ModuleOp([kernel]))
    module = parse_module(text)
    again = print_module(module)
    assert again == text, f"{text}\n{again}"
    kernel = cast(KernelOp, module.body.block.first_op)
    if max((points(inner) for inner in kernel.block.ops), default=0) > LARGEST:
        return outcome("large")
    arrays = [
        physical(array, shape)
        for value, operand in zip(given, op.inputs, strict=True)
        for array, shape in zip(leaves(value), parts_of(shape_of(operand.type)), strict=True)
    ]
    results = run_kernel(kernel, arrays)
    wanted = [
        physical(array, shape)
        for array, shape in zip(leaves(result), parts_of(op.shape), strict=True)
    ]
    return outcome(difference(results, wanted, has_sums=has_sums(kernel)))


def points(op: Any) -> int:
    """Points of an op's iteration space."""
    return prod(getattr(op, "space", None) or (sizes_of(op.results[0]) if op.results else ()))


def has_sums(kernel: KernelOp) -> bool:
    """Whether an order of summation is involved."""
    return any(isinstance(op, _SUMS) for op in kernel.block.ops)


def leaves(value: Any) -> list[Any]:
    """The arrays of a value."""
    if isinstance(value, tuple):
        return [leaf for part in cast("tuple[Any, ...]", value) for leaf in leaves(part)]
    return [value]


def physical(array: Any, shape: ArrayShape) -> Any:
    """An array with its dimensions in the order of memory."""
    return np.array(np.asarray(array).transpose(physical_order(shape)), order="C")


def difference(results: Sequence[Any], wanted: Sequence[Any], *, has_sums: bool) -> str:
    """`equal`, `near`, or what is wrong."""
    verdict = "equal"
    for number, (got, want) in enumerate(zip(results, wanted, strict=True)):
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"result {number} is {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
        if got.tobytes() == want.tobytes() or _equal(got, want):
            continue
        relative = _RELATIVE.get(want.dtype.name, 0.2)
        wide = np.complex128 if want.dtype.kind == "c" else np.float64
        one, other = got.astype(wide), want.astype(wide)
        inexact = want.dtype.kind in "fc" or want.dtype.name.startswith(("float", "bfloat"))
        if not has_sums or not inexact:
            return f"result {number} differs: {_first(got, want)}"
        finite = np.abs(other[np.isfinite(other)])
        bound = relative * (finite.max(initial=0.0) + 1e-30)
        with np.errstate(all="ignore"):
            fits = (np.abs(one - other) <= bound) | (one == other)
        if not np.all(fits | (np.isnan(one) & np.isnan(other))):
            return f"result {number} is too far: {_first(got, want)}"
        verdict = "near"
    return verdict


def _equal(got: Any, want: Any) -> bool:
    """Equal but for the bits of NaNs."""
    with np.errstate(all="ignore"):
        nans = (got != got) & (want != want)
        zeros = np.zeros((), got.dtype)
        return bool(np.where(nans, zeros, got).tobytes() == np.where(nans, zeros, want).tobytes())


def _first(got: Any, want: Any) -> str:
    with np.errstate(all="ignore"):
        wrong = np.argwhere(~((got == want) | ((got != got) & (want != want))))
    if not len(wrong):
        return "signs of zeros"
    at = tuple(int(i) for i in wrong[0])
    return f"{got[at]} at {at}, not {want[at]} ({len(wrong)} of {got.size})"
