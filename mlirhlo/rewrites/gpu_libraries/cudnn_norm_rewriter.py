"""`cudnn-norm-rewriter`: layer norms as calls of cuDNN."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    ComputationOp,
    ConvertOp,
    CustomCallOp,
    DivideOp,
    Instruction,
    MultiplyOp,
    ReshapeOp,
    RsqrtOp,
    SubtractOp,
)
from mlirhlo.rewrites.algsimp.common import Builder, array, element, is_array, sized, splat_of
from mlirhlo.rewrites.gpu_libraries.cudnn_norm_calls import (
    NORM,
    Rows,
    is_row_major,
    norm_call,
    norm_config,
    part_of,
    workspace,
)
from mlirhlo.rewrites.gpu_libraries.cudnn_norm_gradient import layer_norm_gradient
from mlirhlo.rewrites.gpu_libraries.cudnn_norm_matching import (
    NORM_TYPES,
    Mean,
    Spread,
    both_ways,
    look,
    mean_of,
    operands_of,
    squared,
)
from mlirhlo.rewrites.legalize.expander import Callees, ExpanderPass, out_of_order
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.rules import Rewriter, Rule, Rules, rule


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
    for variance, epsilon in both_ways(found.operand(node.inputs[0]), AddOp):
        value = splat_of(epsilon.value)
        mean = _variance(variance, rewriter) if isinstance(value, float) else None
        if mean is not None:
            return Factor(node, variance.value, value, mean)
    return None


def _variance(found: Spread, rewriter: Rewriter) -> Mean | None:
    """mean(x²) - mean(x)², or mean((x - mean(x))²): the mean of x."""
    if (pair := operands_of(found, SubtractOp)) is not None:
        squares, square = mean_of(pair[0], rewriter), squared(pair[1])
        mean = None if square is None else mean_of(square, rewriter)
        x = None if squares is None else squared(squares.of)
        if squares is None or mean is None or x != mean.of or squares.over != mean.over:
            return None
        return mean
    outer = mean_of(found, rewriter)
    centred = None if outer is None else squared(outer.of)
    pair = None if centred is None else operands_of(centred, SubtractOp)
    mean = None if pair is None else mean_of(pair[1], rewriter)
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
            if mean_of(mean, rewriter) != found.mean or x != found.mean.of:
                continue
            if scale.real == bias.real == over and list(x.real) == sorted(x.real):
                return LayerNorm(found, scale, bias)
    return None


_Centred = tuple[Spread, Spread]


def _sums(root: Spread) -> Iterator[tuple[_Centred, tuple[Spread, Spread], Spread]]:
    """(x - m) * a * b + c, in any order: (x, m), (a, b), c."""
    for product, bias in both_ways(root, AddOp):
        for centred, a, b in _products(product):
            if (pair := operands_of(centred, SubtractOp)) is not None:
                yield pair, (a, b), bias
    for left, right, bias in _differences(root):
        for x, a, b in _products(left):
            for m, c, d in _products(right):
                if (a, b) in ((c, d), (d, c)):
                    yield (x, m), (a, b), bias


def _products(found: Spread) -> Iterator[tuple[Spread, Spread, Spread]]:
    """a * b * c: which of the three comes first, and the other two."""
    for one, rest in both_ways(found, MultiplyOp):
        pair = operands_of(rest, MultiplyOp)
        if pair is not None:
            yield one, *pair
            yield pair[0], one, pair[1]
            yield pair[1], one, pair[0]


def _differences(root: Spread) -> Iterator[tuple[Spread, Spread, Spread]]:
    """p - q + c in any order: p, q, c."""
    for difference, third in both_ways(root, AddOp):
        if (pair := operands_of(difference, SubtractOp)) is not None:
            yield pair[0], pair[1], third
            yield third, pair[1], pair[0]
    if (pair := operands_of(root, SubtractOp)) is not None:
        for one, other in both_ways(pair[0], AddOp):
            yield one, pair[1], other


# ---------------------------------------------------------------- rewriting


def _result(op: Instruction, norm: LayerNorm) -> Instruction | None:
    """The instruction that gives the result in the type of x: the sum, or its conversion; or None."""
    x = element(norm.factor.mean.of.value)
    values = (norm.factor.mean.of.value, norm.scale.value, norm.bias.value, op.output)
    if not all(is_row_major(array(value)) for value in values):
        return None
    if x not in NORM_TYPES or element(norm.scale.value) not in NORM_TYPES:
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
        for variance, epsilon in both_ways(look(user.inputs[1], dims, space), AddOp):
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
    rows = Rows.of(x, inner)
    flat = rows.there(b, source.value)
    small = [
        b.reshape(v, sized(array(v), (1, *rows.sizes[1:])))
        for v in (norm.scale.value, norm.bias.value)
    ]
    training = kind == "LAYER_FWD_TRAIN"
    parts = [array(flat)]
    if training:
        for found in (norm.factor.mean.node, norm.factor.node):
            parts.append(sized(array(found), (array(found).element_count, 1, 1, 1)))
    # XLA leaves the room that it asked for before it knew that this is training.
    room = workspace(rewriter, rows.sizes[0])
    asked = workspace(rewriter, 0) - 32 if training else room
    call = norm_call(b, [flat, *small], parts, room, norm_config(norm.factor.epsilon, kind, asked))
    back = rows.back(b, part_of(b, call, 0))
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
    if any(element(v) not in NORM_TYPES for v in (mean, factor)):
        return
    b = Builder(result, rewriter)
    call = _call(b, result, norm, rewriter, "LAYER_FWD_TRAIN")
    last = b.made[-1]
    for old, index in ((mean, 1), (factor, 2)):
        b.reshape(part_of(b, call, index), sized(array(old), array(old).dimensions))
    new_mean, new_factor = b.made[-3], b.made[-1]
    square = b.on(MultiplyOp, new_factor, new_factor)
    cubed = b.on(MultiplyOp, square, new_factor)
    computation = result.parent_op()
    b.done(last)
    for old, new in ((cube, cubed), (factor, new_factor), (mean, new_mean)):
        if old.parent is not None:
            rewriter.replace_by_value(old, new.output)
    assert isinstance(computation, ComputationOp)
    out_of_order(computation, rewriter)


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
    bias too.

    The gradient of such a call is one more (LAYER_BWD), of x, scale, dy, mean and factor. It gives dx, which is
    found by its terms however they are grouped, with g = dy * scale, centre = x - mean and n numbers in an average,

        factor * g - sum(factor * g) / n - centre * factor³ * sum(centre * g) / n

    (derived step by step there is the sum of the last term too, which is zero), dscale = sum(dy * centre * factor),
    without which everything stays, and dbias = sum(dy). What else is added to dx, as where x is handed on around a
    block, is added to what the call gives. XLA's pass finds the gradient in one grouping only, and alone. dx has the
    type of x, dscale and dbias that of scale, and dy and scale are not wider than x.

    XLA calls the pass norm-rewriter in its dumps, which is understood here too, and runs it only under
    xla_gpu_enable_cudnn_layer_norm, so that no pipeline here has it. Source: the pass of XLA:GPU.
    """

    name = "cudnn-norm-rewriter"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (layer_norm_of_training, layer_norm, layer_norm_gradient)

    major: int = 9
    """Generation of the GPU: 8 for Ampere, 9 for Hopper; it says how much memory kernels work in."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Norms first, then the gradients of those that became calls."""
        forward, backward = self._stages
        changed = bool(forward) and self.apply_outside(module, trace, forward, Callees(self))
        module = module.afresh() if changed else module
        if not backward or not any(
            isinstance(op, CustomCallOp) and op.custom_call_target == NORM
            for op in module.candidates(CustomCallOp)
        ):
            return changed
        return self.apply_outside(module, trace, backward, Callees(self)) or changed

    @cached_property
    def _stages(self) -> tuple[Rules, Rules]:
        last = layer_norm_gradient
        return (
            Rules(r for r in self.selected() if r is not last),
            Rules(r for r in self.selected() if r is last),
        )
