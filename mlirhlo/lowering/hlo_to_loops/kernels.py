"""One function of loops for one instruction or fusion, and what tells two of them apart.

A kernel takes the buffers of its operands' arrays, then of its results' arrays. Opcodes that are no
loop over elements have a builder of their own, under `@builds`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeAlias, cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.hlo.ops import (
    ComputationOp,
    ConstantOp,
    CustomCallOp,
    FusionOp,
    ReduceWindowOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.dialects.hlo.table import ANNOTATIONS, opcodes
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.lowering.builder import FunctionBuilder
from mlirhlo.lowering.hlo_to_loops.canonical import canonical
from mlirhlo.lowering.hlo_to_loops.columns import column_kernel
from mlirhlo.lowering.hlo_to_loops.elements import buffer_type
from mlirhlo.lowering.hlo_to_loops.fold_plan import Declined, fold_plan
from mlirhlo.lowering.hlo_to_loops.kernel_frame import Frame, values_between
from mlirhlo.lowering.hlo_to_loops.loop_kernels import Output, loop_kernel
from mlirhlo.lowering.hlo_to_loops.narrow_pointwise import is_narrow, narrow_kernel
from mlirhlo.lowering.hlo_to_loops.pointwise import pointwise_kernel
from mlirhlo.lowering.hlo_to_loops.rows import are_narrow_columns, row_kernel
from mlirhlo.lowering.hlo_to_loops.short_rows import are_short_rows, short_row_kernel
from mlirhlo.lowering.hlo_to_loops.transposes import transpose_kernel, turned_reads
from mlirhlo.lowering.hlo_to_loops.words import in_words
from mlirhlo.lowering.loops import optimized_loops
from mlirhlo.lowering.structured import structured_between
from mlirhlo.rewrites.legalize.custom_call_expander import is_overwritten

Computations: TypeAlias = "Mapping[str, ComputationOp]"
Builder: TypeAlias = "Callable[[str, Instruction], FuncOp]"
FusionBuilder: TypeAlias = "Callable[[str, ComputationOp, Computations], FuncOp | None]"

_BUILDERS: dict[str, Builder] = {}
_FUSION_BUILDERS: list[FusionBuilder] = []


def builds(*opcodes: str) -> Callable[[Builder], Builder]:
    """Decorator: the function builds kernels of these opcodes."""

    def register(function: Builder) -> Builder:
        for opcode in opcodes:
            _BUILDERS[opcode] = function
        return function

    return register


def builds_fusions(builder: FusionBuilder) -> FusionBuilder:
    """Decorator: the function is asked for a kernel of every fused computation; None declines.

    Builders are asked in the order of registration; what all decline becomes a `loop_kernel`.
    """
    _FUSION_BUILDERS.append(builder)
    return builder


def build_kernel(name: str, op: Instruction, computations: Computations) -> FuncOp:
    """The function `name` that computes `op`. Raises `HloError` HLO0432."""
    if isinstance(op, CustomCallOp) and is_overwritten(op):
        shape = cast(ArrayShape, op.shape)
        return FunctionBuilder(name, [buffer_type(shape)]).finish()  # memory as it is
    op, computations = in_words(op, computations)
    builder = _BUILDERS.get(op.opcode.name)
    if builder is not None:
        return builder(name, op)
    if isinstance(op, FusionOp):
        computation = computations[op.calls]
        for fusion_builder in _FUSION_BUILDERS:
            function = fusion_builder(name, computation, computations)
            if function is not None:
                return function
        operands: list[SSAValue] = [p.output for p in computation.parameters]
        root = computation.root
        parts: Sequence[SSAValue] = root.inputs if isinstance(root, TupleOp) else (root.output,)
        outputs = [o for part in parts for o in outputs_of(part)]
    else:
        operands = list(op.inputs)
        outputs = outputs_of(op.output)
    shapes = [*(shape_of(value.type) for value in operands), *(o.shape for o in outputs)]
    if not all(isinstance(shape, ArrayShape) for shape in shapes):
        raise error("HLO0432", f"`{op.opcode.name}` of tuples has no lowering to a loop")
    return computed(name, outputs, operands)


_ELEMENTWISE = opcodes(
    lambda row: (
        row.elementwise or ((row.moves or row.free) and not row.collective) or row.name == "iota"
    )
)
"""Instructions whose results' elements are each computed on their own."""
NO_FORM = frozenset({"HLO0432", "HLO0790", "HLO0791"})
"""Why a kernel has no structured form, or one that becomes no loops."""


def computed(name: str, outputs: Sequence[Output], operands: Sequence[SSAValue]) -> FuncOp:
    """The function `name` that computes arrays from arrays, by the best loops there are for it: elements by way of
    the stages `structured` and `scheduled`."""
    ends = set(operands)
    values = values_between([o.value for o in outputs], operands)
    if all(v in ends or cast(Instruction, v.owner).opcode.name in _ELEMENTWISE for v in values):
        try:
            kernel = structured_between(name, [(o.value, o.part) for o in outputs], operands)
            return optimized_loops(kernel)
        except HloError as problem:
            if problem.code not in NO_FORM:
                raise
    found = canonical([(o.value, o.part) for o in outputs], operands)
    if found is None:
        return loop_kernel(name, outputs, operands)
    try:
        plan = fold_plan(found.outputs, found.operands)
    except Declined:
        pass
    else:
        frame = Frame(name, found.outputs, found.operands)
        if plan.folded[-1] < len(plan.sizes) - 1:
            by_rows = are_narrow_columns(frame, plan)
            return (row_kernel if by_rows else column_kernel)(frame, plan)
        return (short_row_kernel if are_short_rows(frame, plan) else row_kernel)(frame, plan)
    across = turned_reads(found.outputs, found.operands)
    if across is not None:
        return transpose_kernel(Frame(name, found.outputs, found.operands), *across)
    frame = Frame(name, found.outputs, found.operands)
    return (narrow_kernel if is_narrow(frame.outputs, frame.lanes) else pointwise_kernel)(frame)


def outputs_of(value: SSAValue) -> list[Output]:
    """The arrays of a value: of a tuple its parts."""
    shape = shape_of(value.type)
    if isinstance(shape, TupleShape):
        return [
            Output(value, cast(ArrayShape, part), number)
            for number, part in enumerate(shape.elements)
        ]
    return [Output(value, cast(ArrayShape, shape), None)]


_WITHOUT_MEANING = ANNOTATIONS | {"kind"}
"""Properties that no kernel depends on, but custom calls on their `backend_config`."""


def kernel_key(op: Instruction, computations: Computations) -> Hashable:
    """Equal for instructions that one kernel can compute."""
    # A kernel made for `multiply(x, x)` reads its first operand twice.
    first: dict[SSAValue, int] = {}
    same = tuple(first.setdefault(v, number) for number, v in enumerate(op.inputs))
    starts: list[Hashable] = []
    if isinstance(op, ReduceWindowOp):  # a scan may depend on what it starts from
        starts += [o.literal for v in op.inputs if isinstance(o := v.owner, ConstantOp)]
    return (_key(op, computations, {}), same, tuple(starts))


def computation_key(name: str, computations: Computations, known: dict[str, Hashable]) -> Hashable:
    """Equal for computations of the same instructions in the same order."""
    found = known.get(name)
    if found is None:
        numbers: dict[SSAValue, int] = {}
        rows: list[Hashable] = []
        for op in computations[name].instructions:
            numbers[op.output] = len(numbers)
            operands = tuple(numbers[v] for v in op.inputs)
            rows.append((_key(op, computations, known), operands))
        root = numbers[computations[name].root.output]
        found = known[name] = (tuple(rows), root)
    return found


def _key(op: Instruction, computations: Computations, known: dict[str, Hashable]) -> Hashable:
    callees = set(op.calling_keys)
    properties: list[Hashable] = []
    for key, value in sorted(op.properties.items()):
        if key in callees:
            names = op.called_computations
            properties.append((key, tuple(computation_key(n, computations, known) for n in names)))
        elif key not in _WITHOUT_MEANING or (
            key == "backend_config" and op.opcode.name == "custom-call"
        ):
            properties.append((key, value))
    operands = tuple(v.type for v in op.inputs) if not isinstance(op, ConstantOp) else ()
    return (op.opcode.name, op.output.type, operands, tuple(properties))
