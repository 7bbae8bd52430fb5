"""`rng-expander`: random numbers of a distribution from the bits of Philox-4x32-10."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, prod
from typing import ClassVar, cast

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, Kind, PrimitiveType
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops import Instruction, RngGetAndUpdateStateOp, RngOp
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.rewrites.algsimp.common import Builder, array, is_array
from mlirhlo.rewrites.computations import add_computation
from mlirhlo.rewrites.legalize.expander import Callees, ExpanderPass
from mlirhlo.rewrites.legalize.indexed_loops import Writer, plain
from mlirhlo.rewrites.legalize.rng_bit_generator_expander import philox
from mlirhlo.rewrites.linear_algebra.client import Graph, Value
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.rules import Rewriter, Rule, rule

_U64 = PRIMITIVE_TYPES["u64"]
_STRIDE = 0x9E3779B97F4A7C15
"""What spreads small numbers over 64 bits."""
_MANTISSA = {"f32": 23, "f64": 52}
_LEAST = 1e-7
"""Uniform numbers below it are taken for it where their logarithm is asked for."""


@dataclass
class _Numbered(Callees):
    """Callees, and how many instructions have got a key."""

    count: int = 0
    replicas: int = 1
    partitions: int = 1


def _drawn(type_: PrimitiveType) -> PrimitiveType | None:
    """The type of 32 or 64 bits that numbers of a type are drawn in; None where none is."""
    if type_.is_complex or type_.bits > 64:
        return None
    if type_.kind is Kind.PRED or (type_.is_float and type_.bits < 32):
        return PRIMITIVE_TYPES["f32"]
    if type_.bits >= 32:
        return type_
    return PRIMITIVE_TYPES["s32" if type_.is_signed else "u32"]


@rule(RngOp, contract="rounding")
def rng_of_philox(op: RngOp, rewriter: Rewriter) -> None:
    """rng(a, b) => call(key, rng-get-and-update-state(), a, b), of Philox bits"""
    if not is_array(op) or array(op).is_dynamic or any(array(v).rank for v in op.inputs):
        return
    shape, options = array(op), rewriter.options
    size, wide = prod(shape.dimensions), _drawn(shape.element_type)
    is_normal = op.distribution == "rng_normal"
    if wide is None or not size or (is_normal and not shape.element_type.is_float):
        return
    numbered = options if isinstance(options, _Numbered) else _Numbered(RngExpanderPass())
    key = (op.distribution, str(shape), holder(op).thread)
    if key not in numbered.made:
        inner, block = Graph.of(op)
        root = _normal(inner, shape, wide) if is_normal else _uniform(inner, shape, wide)
        numbered.made[key] = add_computation(op, "rng", block, root.op)
    b = Builder(op, rewriter)
    graph = Graph(op, Writer(b.made.append))
    state = graph.make(
        "rng-get-and-update-state",
        shape=plain(_U64, (2,)),
        delta=integer(size * wide.bits // 32),
    )
    a, c = (Value(graph, cast(Instruction, v.owner)) for v in op.inputs)
    graph.make(
        "call", _key(graph, numbered), state, a, c, shape=op.shape, to_apply=numbered.made[key]
    )
    b.done()


def _key(graph: Graph, numbered: _Numbered) -> Value:
    """A number of 64 bits, of each instruction and each device another."""
    numbered.count += 1
    mixed = numbered.count * _STRIDE % (1 << 64) >> 32
    assert isinstance(numbered.expander, RngExpanderPass)
    key = graph.scalar(_U64, numbered.expander.seed % (1 << 64) ^ mixed)
    u32 = plain(PRIMITIVE_TYPES["u32"], ())
    if numbered.replicas > 1:
        key = key ^ graph.make("replica-id", shape=u32).convert(_U64)
    if numbered.partitions > 1:
        key = key ^ (graph.make("partition-id", shape=u32).convert(_U64) << 32)
    return key


def _bits(graph: Graph, wide: PrimitiveType, count: int) -> Value:
    """So many random words of a type's width; takes the parameters `key` and `state`."""
    key, state = graph.parameter(plain(_U64, ())), graph.parameter(plain(_U64, (2,)))
    whole = graph.concatenate((key.reshape(1), state), 0)
    words = philox(graph, whole, key, plain(wide, (count,)))[1]
    return words.convert(PRIMITIVE_TYPES[f"u{wide.bits}"])


def _parameters(graph: Graph, type_: PrimitiveType, wide: PrimitiveType) -> tuple[Value, Value]:
    """The two scalars of the distribution, in the type that is drawn."""
    given = [graph.parameter(plain(type_, ())) for _ in range(2)]
    a, c = given if type_ is wide else [v.convert(wide) for v in given]
    return a, c


def _fraction(bits: Value, wide: PrimitiveType) -> Value:
    """Uniform numbers in [0, 1), as many as the mantissa tells apart."""
    kept = _MANTISSA[wide.name]
    return (bits >> (wide.bits - kept)).convert(wide) * 2.0**-kept


def _uniform(graph: Graph, shape: ArrayShape, wide: PrimitiveType) -> Value:
    type_ = shape.element_type
    bits = _bits(graph, wide, prod(shape.dimensions))
    if type_.kind is Kind.PRED:
        a, c = (graph.parameter(plain(type_, ())) for _ in range(2))
        found = _fraction(bits, wide).compare("LT", 0.5).select(a, c.broadcast(bits.sizes))
        return found.reshape(*shape.dimensions)
    low, high = _parameters(graph, type_, wide)
    if wide.is_float:
        found = _fraction(bits, wide) * (high - low) + low
    else:
        unsigned = bits.type
        ends = [v if wide is unsigned else v.bitcast_convert(unsigned) for v in (low, high)]
        distance = bits.elementwise("remainder", (ends[1] - ends[0]).maximum(1))
        found = distance + ends[0]  # modulo the width, which is where signed numbers are
        found = found if wide is unsigned else found.bitcast_convert(wide)
    return _as(found, shape)


def _normal(graph: Graph, shape: ArrayShape, wide: PrimitiveType) -> Value:
    """Box and Muller's pairs of normal numbers from pairs of uniform ones."""
    size = prod(shape.dimensions)
    half = -(-size // 2)
    uniform = _fraction(_bits(graph, wide, 2 * half), wide)
    mean, deviation = _parameters(graph, shape.element_type, wide)
    radius = (uniform.slice((0, half)).maximum(_LEAST).elementwise("log") * -2.0).sqrt()
    angle = uniform.slice((half, 2 * half)) * (2 * pi)
    pairs = [radius * angle.elementwise(part) for part in ("cosine", "sine")]
    found = graph.concatenate(pairs, 0)
    found = found if size == 2 * half else found.slice((0, size))
    return _as(found * deviation + mean, shape)


def _as(found: Value, shape: ArrayShape) -> Value:
    """Numbers in the type and the sizes that are asked for."""
    type_ = shape.element_type
    return (found if found.type is type_ else found.convert(type_)).reshape(*shape.dimensions)


@dataclass(frozen=True)
class RngExpanderPass(ExpanderPass):
    """Writes `rng` as arithmetic on the bits of Philox-4x32-10, a counter that a state holds.

    Before and after:

        %r = f32[8] rng(%a, %b), distribution=rng_uniform
          =>   %s = u64[2] rng-get-and-update-state(), delta=8
               %r = f32[8] call(u64[] %key, %s, %a, %b), to_apply=%rng

    Uniform floats are all the fractions of the mantissa's bits, between `a` and `b`; integers remainders; normal
    numbers pairs by Box and Muller. Each instruction has a key of its own from `seed` and its number, and each replica
    and partition another, so results are those of the distribution, but other numbers than the interpreter's `rng`.
    Types of less than 32 bits are drawn in 32. Source: XLA's pass of this name.
    """

    name = "rng-expander"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (rng_of_philox,)

    seed: int = 0
    """Of the module's random numbers."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Expands outside of fusions; whether there was any."""
        if not module.candidates(RngOp):
            return False
        count = len(module.instructions_of(RngGetAndUpdateStateOp))
        counts = count, module.replica_count, module.num_partitions
        numbered = _Numbered(self, {}, {}, *counts)
        return self.apply_outside(module, trace, self.selected(), numbered)
