"""Rules of `cublas-gemm-rewriter` about products of f8 with scales."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import (
    AbsOp,
    BroadcastOp,
    ClampOp,
    ComputationOp,
    ConvertOp,
    CustomCallOp,
    DivideOp,
    DotOp,
    Instruction,
    MaximumOp,
    MultiplyOp,
    PadOp,
    ReduceOp,
    SliceOp,
)
from mlirhlo.dialects.hlo.ops.base import classes_of
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.dialects.hlo.table import Movement
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    is_all,
    made_by,
    own_properties,
    paddings,
    sized,
    slices,
    splat_of,
    typed,
)
from mlirhlo.rewrites.gpu_libraries.cublas_calls import call_of, config_of_dot, is_product, uses
from mlirhlo.rewrites.gpu_libraries.gpu_calls import (
    F8,
    GEMM_CONFIG,
    config_of,
    config_text,
    with_config,
)
from mlirhlo.rewrites.gpu_libraries.gpu_calls import element as element_of
from mlirhlo.rewrites.legalize.expander import out_of_order
from mlirhlo.rewrites.rules import Rewriter, rule

_F8 = ("f8e4m3fn", "f8e5m2")
_RESULTS = ("bf16", "f16", "f32")
_F32 = PRIMITIVE_TYPES["f32"]


@dataclass(frozen=True, slots=True)
class _Scaled:
    """An f8 operand, what it is multiplied or divided by, and what then moves its elements."""

    value: SSAValue
    scale: SSAValue | None
    is_divided: bool = False
    moves: tuple[Instruction, ...] = ()
    """The first one first."""

    def moved(self, b: Builder) -> SSAValue:
        """The operand as f8, its elements moved."""
        value = self.value
        for op in self.moves:
            rest: list[SSAValue | Instruction] = list(op.inputs[1:])
            if isinstance(op, PadOp):
                rest = [b.scalar(element(value), 0)]
            shape = typed(array(op), element(value))
            value = b(type(op), value, *rest, shape=shape, **own_properties(op)).output
        return value


_MOVES = classes_of(
    lambda row: (
        row.movement in (Movement.COPY, Movement.PERMUTE, Movement.RESHAPE, Movement.SLICE)
        and not (row.about_sizes or row.is_asynchronous)
    )
) | {PadOp}


def _scaled(value: SSAValue) -> _Scaled | None:
    """An operand of a dot that is an f8 with a scale, its elements moved by what nobody else reads."""
    moves: list[Instruction] = []
    while type(op := value.owner) in _MOVES and uses(value) == 1:
        assert isinstance(op, Instruction)
        if isinstance(op, PadOp) and not is_all(op.padding_value, 0):
            return None
        moves.insert(0, op)
        value = op.inputs[0]
    found = _scaled_in_place(value)
    return None if found is None else replace(found, moves=tuple(moves))


def _scaled_in_place(value: SSAValue) -> _Scaled | None:
    if element(value).name in _F8:
        return _Scaled(value, None)
    owner = value.owner
    if isinstance(owner, ConvertOp) and element(owner.operand).name in _F8:
        return _Scaled(owner.operand, None)
    if isinstance(owner, MultiplyOp | DivideOp):
        pairs = (
            (owner.inputs, owner.inputs[::-1]) if isinstance(owner, MultiplyOp) else (owner.inputs,)
        )
        for wide, factor in pairs:
            inner, spread = made_by(wide, ConvertOp), made_by(factor, BroadcastOp)
            if inner is None or spread is None or element(inner.operand).name not in _F8:
                continue
            if not array(spread.operand).dimensions:
                return _Scaled(inner.operand, spread.operand, isinstance(owner, DivideOp))
    return None


def _factor(b: Builder, scale: SSAValue | None, is_divided: bool) -> SSAValue:
    """A scale as an f32 to multiply by."""
    if scale is None:
        return b.scalar(_F32, 1).output
    found: SSAValue = scale
    if is_divided:
        found = b.on(DivideOp, b.scalar(element(scale), 1), scale).output
    if element(found) is not _F32:
        found = b(ConvertOp, found, shape=ArrayShape(_F32, ())).output
    return found


@rule(DotOp, contract="rounding")
def dot_of_scaled_f8(op: DotOp, rewriter: Rewriter) -> None:
    """dot(convert(a) * s, convert(b) * t) => custom-call(a, b, s, t), __cublas$lt$matmul$f8"""
    parts = [_scaled(v) for v in op.inputs[:2]]
    first, second = parts if len(parts) == 2 else (None, None)
    if first is None or second is None or element(op).name not in _RESULTS:
        return
    if not is_product(op, any_type=True) or op.algorithm != "unset":
        return
    if element(first.value).name == element(second.value).name == "f8e5m2":
        return  # the library has no product of two of them
    batch = len(op.lhs_batch_dims)
    if any(array(v).rank != batch + 2 for v in op.inputs):
        return
    b = Builder(op, rewriter)
    operands: list[SSAValue | Instruction] = []
    for part, contracting in zip(
        (first, second), (op.lhs_contracting_dims[0], op.rhs_contracting_dims[0]), strict=True
    ):
        value: SSAValue | Instruction = part.moved(b)
        if contracting == batch:  # the library wants the contracting dimension last on both sides
            value = b.transpose(value, (*range(batch), batch + 1, batch))
        operands.append(_padded(b, value, batch))
    config = config_of_dot(op, operands, batch)
    numbers = config["dot_dimension_numbers"]
    numbers["lhs_contracting_dimensions"] = numbers["rhs_contracting_dimensions"] = [str(batch + 1)]
    sizes = (*array(op).dimensions[:batch], *(array(v).dimensions[batch] for v in operands))
    scales = [_factor(b, part.scale, part.is_divided) for part in (first, second)]
    call = b(
        CustomCallOp,
        *operands,
        *scales,
        shape=sized(array(op), sizes),
        custom_call_target=string(F8),
        backend_config=string(config_text(GEMM_CONFIG, config)),
    )
    if array(call).dimensions != array(op).dimensions:
        limits = [(0, size, 1) for size in array(op).dimensions]
        b.like(SliceOp, call, slice=slices(limits))
    b.done()


def _padded(b: Builder, value: SSAValue | Instruction, batch: int) -> SSAValue | Instruction:
    """Zeros up to multiples of 16 of the last two dimensions."""
    sizes = array(value).dimensions
    wanted = [n if d < batch else -(-n // 16) * 16 for d, n in enumerate(sizes)]
    if tuple(wanted) == sizes:
        return value
    edges = [(0, new - old, 0) for old, new in zip(sizes, wanted, strict=True)]
    zero = b.scalar(array(value).element_type, 0)
    return b(PadOp, value, zero, shape=sized(array(value), wanted), padding=paddings(edges))


@rule(MultiplyOp, DivideOp, contract="rounding")
def scale_of_f8_gemm(op: MultiplyOp | DivideOp, rewriter: Rewriter) -> None:
    """gemm(a, b, s, t) * u => gemm(a, b, s * u, t), u any scalar"""
    pairs = (op.inputs, op.inputs[::-1]) if isinstance(op, MultiplyOp) else (op.inputs,)
    for value, factor in pairs:
        call, spread = call_of(value, F8), made_by(factor, BroadcastOp)
        if call is None or spread is None or array(spread.operand).dimensions:
            continue
        config = config_of(call, GEMM_CONFIG)
        if uses(value) != 1 or config["beta"] or config["epilogue"] != "DEFAULT":
            continue
        b = Builder(op, rewriter)
        own = _factor(b, spread.operand, isinstance(op, DivideOp))
        scale = b.on(MultiplyOp, call.inputs[2], own)
        operands = [*call.inputs[:2], scale.output, *call.inputs[3:]]
        b.made.append(make("custom-call", operands, call.shape, dict(call.properties)))
        b.done()
        return


@rule(ConvertOp, contract="rounding")
def f8_of_f8_gemm(op: ConvertOp, rewriter: Rewriter) -> None:
    """convert(clamp(lowest, gemm(a, b, s, t) * u, greatest)) => gemm(a, b, s, t, u) in f8

    Where max(|gemm(a, b, s, t)|) is read too, the call gives that as well.
    """
    import ml_dtypes

    clamp = made_by(op.operand, ClampOp)
    if clamp is None or element(op).name not in _F8 or uses(op.operand) != 1:
        return
    low, value, high = clamp.inputs
    info = cast(Any, ml_dtypes).finfo(element(op).dtype)
    if splat_of(low) != float(info.min) or splat_of(high) != float(info.max):
        return
    scale: SSAValue | None = None
    owner = value.owner
    is_divided = isinstance(owner, DivideOp)
    if isinstance(owner, MultiplyOp | DivideOp):
        spread = made_by(owner.inputs[1], BroadcastOp)
        if spread is None or array(spread.operand).dimensions or uses(value) != 1:
            return
        scale, value = spread.operand, owner.inputs[0]
    call = call_of(value, F8)
    if call is None or uses(value) > 2 or config_of(call, GEMM_CONFIG)["beta"]:
        return
    greatest = _greatest(value, rewriter)
    if greatest is None and uses(value) == 2:
        return
    config = config_of(call, GEMM_CONFIG)
    if config["epilogue"] not in ("DEFAULT", "RELU"):
        return
    types = {element(v).name for v in call.inputs[:2]}
    if element(op).name == "f8e5m2" and types == {"f8e4m3fn"}:
        return
    b = Builder(op, rewriter)
    own = _factor(b, scale, is_divided)
    shape = typed(array(call), element(op))
    if greatest is None:
        properties = with_config(call, GEMM_CONFIG)
        b.made.append(make("custom-call", [*call.inputs, own], shape, properties))
        b.done()
        return
    number = ArrayShape(_F32, ())
    properties = with_config(call, GEMM_CONFIG, damax_output=True)
    new = make("custom-call", [*call.inputs, own], TupleShape((shape, number)), properties)
    result = element_of(new, 0, shape)
    magnitude: Instruction = element_of(new, 1, number)
    b.made += [new, magnitude]
    if element(greatest) is not _F32:
        magnitude = b(ConvertOp, magnitude, shape=array(greatest))
    b.made.append(result)
    computation, read = op.parent_op(), greatest.inputs[0].owner
    assert isinstance(computation, ComputationOp)
    b.done()
    rewriter.replace_by_value(greatest, magnitude.output)
    rewriter.erase_unread(read)
    out_of_order(computation, rewriter)


def _greatest(value: SSAValue, rewriter: Rewriter) -> ReduceOp | None:
    """max(|value|) over all of it, where nothing else reads |value|."""
    for use in value.uses:
        magnitude = use.operation
        if not isinstance(magnitude, AbsOp) or uses(magnitude.output) != 1:
            continue
        reduce = next(iter(magnitude.output.uses)).operation
        if not isinstance(reduce, ReduceOp) or len(reduce.inputs) != 2 or array(reduce).dimensions:
            continue
        function, init = rewriter.computation(reduce.to_apply), splat_of(reduce.inputs[1])
        if function is None or not isinstance(init, float) or init > 0:
            continue
        is_maximum = isinstance(function.root, MaximumOp) and {*function.root.operands} == {
            p.output for p in function.parameters
        }
        if is_maximum:
            return reduce
    return None
