"""`cudnn-norm-rewriter`: layer norms as calls of cuDNN."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import BF16, F16, F32, PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    BitcastOp,
    BroadcastOp,
    ComputationOp,
    ConvertOp,
    DivideOp,
    Instruction,
    MultiplyOp,
    ReduceOp,
    ReshapeOp,
    RsqrtOp,
    SubtractOp,
)
from mlirhlo.dialects.hlo.order import instruction_list, post_order
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape, default_layout
from mlirhlo.rewrites.algsimp.common import (
    Builder,
    array,
    element,
    is_all,
    is_array,
    sized,
    splat_of,
)
from mlirhlo.rewrites.expander import Callees, ExpanderPass
from mlirhlo.rewrites.gpu_calls import NORM_CONFIG, make_call, number
from mlirhlo.rewrites.gpu_calls import element as element_of
from mlirhlo.rewrites.rules import Rewriter, Rule, rule

NORM = "__cudnn$norm"
_TYPES = (BF16, F16, F32)


@dataclass(frozen=True, slots=True)
class Spread:
    """A value as it is read in a larger array: which of the array's dimensions each of its own is.

    None for dimensions of size 1. Broadcasts, conversions among the types of the library and reshapes that add
    or drop dimensions of size 1 are looked through.
    """

    value: SSAValue
    dims: tuple[int | None, ...]
    space: tuple[int, ...]
    """Sizes of the larger array."""

    def made_by(self, *classes: type[Instruction]) -> Instruction | None:
        """The instruction that makes the value, if it is of one of the classes and an array's."""
        owner = self.value.owner
        return owner if isinstance(owner, classes) and is_array(owner) else None

    def operand(self, value: SSAValue) -> Spread:
        """An operand of the instruction that makes the value, which is as large."""
        return look(value, self.dims, self.space)

    @property
    def real(self) -> tuple[int, ...]:
        """Dimensions of the array, those of size 1 left out."""
        return tuple(d for d in self.dims if d is not None)


def look(value: SSAValue, dims: Sequence[int | None], space: tuple[int, ...]) -> Spread:
    """What a value of the dimensions is, seen through what only moves it."""
    while True:
        owner = value.owner
        if isinstance(owner, BroadcastOp):
            sizes = array(owner.operand).dimensions
            dims = [
                None if n == 1 else dims[d] for n, d in zip(sizes, owner.dimensions, strict=True)
            ]
        elif isinstance(owner, ConvertOp):
            if element(owner) not in _TYPES or element(owner.operand) not in _TYPES:
                break
        elif isinstance(owner, (ReshapeOp, BitcastOp)):
            given, wanted = array(owner.operand).dimensions, array(owner).dimensions
            if [n for n in given if n != 1] != [n for n in wanted if n != 1]:
                break
            rest = iter([d for n, d in zip(wanted, dims, strict=True) if n != 1])
            dims = [None if n == 1 else next(rest) for n in given]
        else:
            break
        value = owner.inputs[0]
    sizes = array(value).dimensions
    real = tuple(None if n == 1 else d for n, d in zip(sizes, dims, strict=True))
    return Spread(value, real, space)


@dataclass(frozen=True, slots=True)
class Mean:
    """An average of `of`; `node` multiplies or divides the sum."""

    node: Instruction
    of: Spread
    over: tuple[int, ...]
    """Dimensions that are summed, those of size 1 left out."""


def _operands(found: Spread, *classes: type[Instruction]) -> tuple[Spread, Spread] | None:
    op = found.made_by(*classes)
    return None if op is None else (found.operand(op.inputs[0]), found.operand(op.inputs[1]))


def _both_ways(found: Spread, cls: type[Instruction]) -> Iterator[tuple[Spread, Spread]]:
    """Operands of a commutative instruction in both orders."""
    pair = _operands(found, cls)
    if pair is not None:
        yield pair
        yield pair[1], pair[0]


def _mean(found: Spread, rewriter: Rewriter) -> Mean | None:
    """sum(of) * (1 / n), or sum(of) / n."""
    node = found.made_by(MultiplyOp, DivideOp)
    if node is None:
        return None
    for total, factor in _both_ways(found, type(node)):
        reduce, scale = total.made_by(ReduceOp), splat_of(factor.value)
        if isinstance(reduce, ReduceOp) and isinstance(scale, float) and scale:
            break
        if isinstance(node, DivideOp):
            return None
    else:
        return None
    source, init = reduce.inputs
    sizes = array(source).dimensions
    if not is_all(init, 0) or not _is_sum(reduce, rewriter):
        return None
    summed = [d for d in sorted(reduce.dimensions) if sizes[d] != 1]
    free = [d for d, n in enumerate(found.space) if n != 1 and d not in total.real]
    if [sizes[d] for d in summed] != [found.space[d] for d in free]:
        return None
    kept, own = iter(total.dims), iter(free)
    dims = [
        (next(own) if d in summed else None) if d in reduce.dimensions else next(kept)
        for d in range(len(sizes))
    ]
    count = math.prod(sizes[d] for d in reduce.dimensions)
    inverse = 1 / scale if isinstance(node, DivideOp) else scale
    if not abs(inverse - 1 / count) < (inverse + 1 / count) * 2**-7:
        return None
    return Mean(node, look(source, dims, found.space), tuple(free))


def _is_sum(op: ReduceOp, rewriter: Rewriter) -> bool:
    function = rewriter.computation(op.to_apply)
    if function is None or not isinstance(function.root, AddOp) or len(op.inputs) != 2:
        return False
    return {*function.root.operands} == {p.output for p in function.parameters}


def _squared(found: Spread) -> Spread | None:
    """x of x * x."""
    pair = _operands(found, MultiplyOp)
    return pair[0] if pair is not None and pair[0] == pair[1] else None


@dataclass(frozen=True, slots=True)
class Factor:
    """1 / sqrt(variance + epsilon), and what it is made of."""

    node: Instruction
    variance: SSAValue
    epsilon: float
    mean: Mean


def _factor(found: Spread, rewriter: Rewriter) -> Factor | None:
    node = found.made_by(RsqrtOp)
    if node is None:
        return None
    for variance, epsilon in _both_ways(found.operand(node.inputs[0]), AddOp):
        value = splat_of(epsilon.value)
        mean = _variance(variance, rewriter) if isinstance(value, float) else None
        if mean is not None:
            return Factor(node, variance.value, value, mean)
    return None


def _variance(found: Spread, rewriter: Rewriter) -> Mean | None:
    """mean(x²) - mean(x)², or mean((x - mean(x))²): the mean of x."""
    if (pair := _operands(found, SubtractOp)) is not None:
        squares, square = _mean(pair[0], rewriter), _squared(pair[1])
        mean = None if square is None else _mean(square, rewriter)
        x = None if squares is None else _squared(squares.of)
        if squares is None or mean is None or x != mean.of or squares.over != mean.over:
            return None
        return mean
    outer = _mean(found, rewriter)
    centred = None if outer is None else _squared(outer.of)
    pair = None if centred is None else _operands(centred, SubtractOp)
    mean = None if pair is None else _mean(pair[1], rewriter)
    if outer is None or pair is None or mean is None:
        return None
    return mean if pair[0] == mean.of and outer.over == mean.over else None


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """(x - mean) * factor * scale + bias."""

    factor: Factor
    scale: Spread
    bias: Spread


def _layer_norm(op: Instruction, rewriter: Rewriter) -> LayerNorm | None:
    """The layer norm whose last instruction is `op`."""
    space = array(op).dimensions
    dims = tuple(None if n == 1 else d for d, n in enumerate(space))
    root = Spread(op.output, dims, space)
    for centred, others, bias in _sums(root):
        for factor, scale in (others, others[::-1]):
            found = _factor(factor, rewriter)
            if found is None:
                continue
            x, mean = centred
            over = found.mean.over
            if _mean(mean, rewriter) != found.mean or x != found.mean.of:
                continue
            if scale.real == bias.real == over and list(x.real) == sorted(x.real):
                return LayerNorm(found, scale, bias)
    return None


_Centred = tuple[Spread, Spread]


def _sums(root: Spread) -> Iterator[tuple[_Centred, tuple[Spread, Spread], Spread]]:
    """(x - m) * a * b + c, in any order: (x, m), (a, b), c."""
    for product, bias in _both_ways(root, AddOp):
        for centred, a, b in _products(product):
            if (pair := _operands(centred, SubtractOp)) is not None:
                yield pair, (a, b), bias
    for left, right, bias in _differences(root):
        for x, a, b in _products(left):
            for m, c, d in _products(right):
                if (a, b) in ((c, d), (d, c)):
                    yield (x, m), (a, b), bias


def _products(found: Spread) -> Iterator[tuple[Spread, Spread, Spread]]:
    """a * b * c: which of the three comes first, and the other two."""
    for one, rest in _both_ways(found, MultiplyOp):
        pair = _operands(rest, MultiplyOp)
        if pair is not None:
            yield one, *pair
            yield pair[0], one, pair[1]
            yield pair[1], one, pair[0]


def _differences(root: Spread) -> Iterator[tuple[Spread, Spread, Spread]]:
    """p - q + c in any order: p, q, c."""
    for difference, third in _both_ways(root, AddOp):
        if (pair := _operands(difference, SubtractOp)) is not None:
            yield pair[0], pair[1], third
            yield third, pair[1], pair[0]
    if (pair := _operands(root, SubtractOp)) is not None:
        for one, other in _both_ways(pair[0], AddOp):
            yield one, pair[1], other


# ---------------------------------------------------------------- rewriting


def _c_constant(rewriter: Rewriter) -> int:
    """What the memory that a kernel works in depends on, by architecture."""
    options = rewriter.options
    pass_ = options.expander if isinstance(options, Callees) else None
    major = pass_.major if isinstance(pass_, CudnnNormRewriterPass) else 9
    return 32 * (128 if major == 8 else 144)


def _config(epsilon: float, kind: str, workspace: int) -> dict[str, Any]:
    return {
        "epsilon": number(epsilon),
        "algorithm": {
            "algo_id": "0",
            "math_type": "TENSOR_OP_MATH",
            "tuning_knobs": {},
            "is_cudnn_frontend": True,
            "workspace_size": str(workspace),
        },
        "kind": kind,
    }


def _is_row_major(shape: ArrayShape) -> bool:
    return not shape.is_dynamic and shape.layout in (None, default_layout(shape.rank))


def _result(op: Instruction, norm: LayerNorm) -> Instruction | None:
    """The instruction that gives the result in the type of x: the sum, or its conversion; or None."""
    x = element(norm.factor.mean.of.value)
    values = (norm.factor.mean.of.value, norm.scale.value, norm.bias.value, op.output)
    if not all(_is_row_major(array(value)) for value in values):
        return None
    if x not in _TYPES or element(norm.scale.value) not in _TYPES:
        return None
    if element(norm.scale.value) is not element(norm.bias.value):
        return None
    users = [use.operation for use in op.output.uses]
    if len(users) == 1 and isinstance(user := users[0], ConvertOp) and element(user) is x:
        return user
    return op if element(op) is x else None


def _cube(norm: LayerNorm) -> DivideOp | None:
    """factor / (variance + epsilon), which is the factor's cube: what a training step computes."""
    factor = norm.factor
    space = array(factor.node).dimensions
    dims = tuple(range(len(space)))
    for use in factor.node.output.uses:
        user = use.operation
        if not isinstance(user, DivideOp) or user.inputs[0] is not factor.node.output:
            continue
        for variance, epsilon in _both_ways(look(user.inputs[1], dims, space), AddOp):
            if variance.value is factor.variance and splat_of(epsilon.value) == factor.epsilon:
                return user
    return None


def _call(
    b: Builder, op: Instruction, norm: LayerNorm, rewriter: Rewriter, kind: str
) -> Instruction:
    """Writes the call for `op`, and behind it its result as x was; the call."""
    source, over = norm.factor.mean.of, norm.factor.mean.over
    x = array(source.value)
    inner = [k for k, d in enumerate(source.dims) if d in over]
    outer = [k for k in range(x.rank) if k not in inner]
    order = (*outer, *inner)
    turned: SSAValue | Instruction = source.value
    if order != tuple(range(x.rank)):
        turned = b.transpose(turned, order)
    rows = math.prod(x.dimensions[k] for k in outer)
    sizes = [rows, *(x.dimensions[k] for k in inner)]
    sizes += [1] * (4 - len(sizes))
    flat = b.reshape(turned, sized(x, sizes))
    small = [
        b.reshape(v, sized(array(v), (1, *sizes[1:]))) for v in (norm.scale.value, norm.bias.value)
    ]
    training = kind == "LAYER_FWD_TRAIN"
    workspace = 2 * _c_constant(rewriter) * 260 + (32 if training else 2 * rows * 4 + 64)
    parts = [flat.shape]
    if training:
        for found in (norm.factor.mean.node, norm.factor.node):
            parts.append(sized(array(found), (array(found).element_count, 1, 1, 1)))
    # XLA leaves the room that it asked for before it knew that this is training.
    scratch = 2 * _c_constant(rewriter) * 260 + 2 * rows * 4 + 64
    parts.append(sized(ArrayShape(PRIMITIVE_TYPES["u8"], ()), (scratch,)))
    call = make_call(
        NORM,
        [flat, *small],
        TupleShape(tuple(parts)),
        NORM_CONFIG,
        _config(norm.factor.epsilon, kind, workspace),
    )
    b.made.append(call)
    found = element_of(call, 0, flat.shape)
    b.made.append(found)
    back: Instruction = b.reshape(found, sized(x, [x.dimensions[k] for k in order]))
    if order != tuple(range(x.rank)):
        back = b.transpose(back, [order.index(k) for k in range(x.rank)])
    if array(back).dimensions != array(op).dimensions:
        b.like(ReshapeOp, back)
    return call


@rule(AddOp, SubtractOp, contract="rounding")
def layer_norm_of_training(op: AddOp | SubtractOp, rewriter: Rewriter) -> None:
    """(x - mean) * factor * scale + bias, and factor / (variance + epsilon) => custom-call, __cudnn$norm"""
    norm = _layer_norm(op, rewriter) if is_array(op) else None
    cube, result = (
        None if norm is None else _cube(norm),
        None if norm is None else _result(op, norm),
    )
    if norm is None or cube is None or result is None:
        return
    mean, factor = norm.factor.mean.node, norm.factor.node
    if any(element(v) not in _TYPES for v in (mean, factor)):
        return
    b = Builder(result, rewriter)
    call = _call(b, result, norm, rewriter, "LAYER_FWD_TRAIN")
    last = b.made[-1]
    assert isinstance(call.shape, TupleShape)
    for old, index in ((mean, 1), (factor, 2)):
        part = element_of(call, index, call.shape.elements[index])
        b.made.append(part)
        b.reshape(part, sized(array(old), array(old).dimensions))
    new_mean, new_factor = b.made[-3], b.made[-1]
    square = b.on(MultiplyOp, new_factor, new_factor)
    cubed = b.on(MultiplyOp, square, new_factor)
    computation = result.parent_op()
    b.done(last)
    for old, new in ((cube, cubed), (factor, new_factor), (mean, new_mean)):
        if old.parent is not None:
            rewriter.replace_by_value(old, new.output)
    assert isinstance(computation, ComputationOp)
    _put_in_order(computation)


def _put_in_order(computation: ComputationOp) -> None:
    """Operands before users again, as others read the mean and the factor before the call stands there."""
    block = computation.block
    for op in post_order(instruction_list(computation)):
        block.detach_op(op)
        block.insert_op_before(op, computation.terminator)


@rule(AddOp, SubtractOp, contract="rounding")
def layer_norm(op: AddOp | SubtractOp, rewriter: Rewriter) -> None:
    """(x - mean) * factor * scale + bias => custom-call, __cudnn$norm"""
    norm = _layer_norm(op, rewriter) if is_array(op) else None
    result = None if norm is None else _result(op, norm)
    if norm is None or result is None:
        return
    b = Builder(result, rewriter)
    _call(b, result, norm, rewriter, "LAYER_FWD_INFER")
    b.done()


@dataclass(frozen=True)
class CudnnNormRewriterPass(ExpanderPass):
    """Lets cuDNN compute layer norms, whose averages are taken over the dimensions of scale and bias.

    Before and after, with factor = rsqrt(mean((x - mean(x))²) + 0.001):

        (%x - mean(%x)) * factor * broadcast(%scale) + broadcast(%bias)
          =>   %c = custom-call(reshape(%x), reshape(%scale), reshape(%bias)), custom_call_target="__cudnn$norm",
               backend_config={"cudnn_norm_backend_config":{"epsilon":0.001,"kind":"LAYER_FWD_INFER", …}}
               reshape(get-tuple-element(%c), index=0)

    The variance may also be mean(x²) - mean(x)², products and sums may stand in any order, averages may divide or
    multiply; conversions between f32, f16 and bf16 and dimensions of size 1 may stand in between. x is transposed so
    that the dimensions that are averaged come last. Where factor / (variance + epsilon) is computed too, as training
    does, mean and factor are results of the call (LAYER_FWD_TRAIN). x and the result have one type, scale and
    bias too. XLA calls the pass norm-rewriter in its dumps, which is understood here too, and runs it only under
    xla_gpu_enable_cudnn_layer_norm, so that no pipeline here has it. Gradients stay as they are. Source: the pass of
    XLA:GPU.
    """

    name = "cudnn-norm-rewriter"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (layer_norm_of_training, layer_norm)

    major: int = 9
    """Generation of the GPU: 8 for Ampere, 9 for Hopper; it says how much memory kernels work in."""
