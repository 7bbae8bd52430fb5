"""What an operation costs on a modelled core: which unit, how long, and what it counts for.

An operation on a vector is one on each of its registers of 8x128 words. A unit takes them one after the
other, `interval` cycles apart, several in a cycle where it is several wide; each result is there `latency`
cycles later.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import MemRefType, VectorType

from mlirhlo.mosaic.attributes import attribute_of, case_of, integers_of, name_of
from mlirhlo.mosaic.interpreter.memory import dtype_in, shape_of
from mlirhlo.mosaic.interpreter.numbers import width_of
from mlirhlo.mosaic.interpreter.ops.tpu_matmul import maps_of
from mlirhlo.mosaic.interpreter.products import indexing_maps
from mlirhlo.mosaic.timeline.figures import Chip

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation

LANES, SUBLANES, WORD = 128, 8, 32

LOAD, STORE, VPU, EUP, XLU, MXU, SCALAR = "load", "store", "vpu", "eup", "xlu", "mxu", "scalar"
UNITS = (LOAD, STORE, VPU, EUP, XLU, MXU, SCALAR)

_LATENCY = {LOAD: 4, STORE: 1, VPU: 2, EUP: 7, XLU: 69, MXU: 83, SCALAR: 1}
_EUP_INTERVAL, _XLU_INTERVAL = 2, 8
_REDUCE_LATENCY = 3 * 2
"""Adding up the eight rows of a register: three rotations."""

_FREE = frozenset(
    {
        "arith.constant",
        "arith.bitcast",
        "tpu.assume_multiple",
        "tpu.assume_layout",
        "tpu.bitcast_vreg",
        "tpu.mask_cast",
        "tpu.roll_vectors",
        "tpu.unroll_vectors",
        "tpu.erase_memref_layout",
        "tpu.reinterpret_cast",
        "tpu.internal_scratch",
        "tpu.sem_barrier",
        "vector.extract",
        "vector.constant_mask",
        "memref.alloca",
        "memref.cast",
        "memref.dim",
    }
)
_LOADS = frozenset(
    {"tpu.load", "tpu.vector_load", "tpu.strided_load", "tpu.shuffled_load", "vector.load"}
)
_STORES = frozenset(
    {"tpu.store", "tpu.vector_store", "tpu.strided_store", "tpu.shuffled_store", "vector.store"}
)
_CROSS_LANES = frozenset(
    {
        "tpu.dynamic_rotate",
        "tpu.rotate",
        "tpu.dynamic_gather",
        "tpu.gather",
        "tpu.transpose",
        "vector.transpose",
        "vector.shuffle",
        "tpu.sublane_shuffle",
        "tpu.relayout",
        "mosaic_tc.relayout",
    }
)
_REDUCTIONS = frozenset(
    {
        "tpu.reduce",
        "tpu.all_reduce",
        "tpu.reduce_index",
        "vector.multi_reduction",
        "vector.reduction",
        "tpu.scan",
        "tpu.sort",
    }
)
_RESHAPES = frozenset({"vector.shape_cast", "tpu.reshape"})
_EUP_OPS = {
    # By name: uses of the transcendental unit, and vector operations around them.
    "math.exp": (1, 1),
    "math.exp2": (1, 0),
    "math.log": (1, 1),
    "math.log2": (1, 0),
    "math.log1p": (1, 2),
    "math.rsqrt": (1, 0),
    "math.sqrt": (1, 3),
    "math.tanh": (1, 0),
    "tpu.reciprocal": (1, 3),
    "tpu.logistic": (2, 3),
    "arith.divf": (1, 4),
    "math.powf": (2, 3),
}
_VPU_OPS = {
    "arith.muli": 33,
    "arith.divsi": 40,
    "arith.divui": 40,
    "arith.remsi": 40,
    "arith.remui": 40,
    "math.sin": 40,
    "math.cos": 40,
    "math.tan": 60,
    "math.erf": 25,
    "math.atan2": 40,
    "math.round": 4,
    "math.roundeven": 3,
    "tpu.prng_random_bits": 20,
    "tpu.stochastic_convert": 4,
}
"""Operations that take several vector instructions; all others take one."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one operation."""

    unit: str
    cycles: float
    """How long the unit is busy."""
    latency: float
    """From the last start to the last result."""
    flops: float = 0
    transcendentals: float = 0
    also: tuple[tuple[str, float], ...] = ()
    """Other units that it needs at the same time, and for how long."""


NOTHING = Cost(SCALAR, 0, 0)


def registers(type_: Attribute, bits: int | None = None) -> int:
    """Registers of a vector type; 0 for others. `bits` of an element, if not its own."""
    if not _is_vector(type_):
        return 0
    shape = shape_of(type_)
    if not shape:
        return 1
    width = bits or _bits(type_)
    rows = SUBLANES * max(1, WORD // width)
    if len(shape) == 1:
        return ceil(shape[0] / (rows * LANES))
    return prod(shape[:-2]) * ceil(shape[-2] / rows) * ceil(shape[-1] / LANES)


def _bits(type_: Attribute) -> int:
    found = width_of(dtype_in(type_))
    # Masks have a word for each element.
    return WORD if found == 1 else found


def _is_vector(type_: Attribute) -> bool:
    return isinstance(type_, VectorType)


def _is_float(type_: Attribute) -> bool:
    return str(getattr(type_, "element_type", type_)).startswith(("f", "bf"))


def cost_of(op: Operation, chip: Chip) -> Cost:
    """The cost of an operation that neither moves blocks nor waits."""
    name = name_of(op)
    if name in _FREE:
        return NOTHING
    vectors = [value.type for value in (*op.operands, *op.results) if _is_vector(value.type)]
    if not vectors:
        is_reference = any(isinstance(value.type, MemRefType) for value in op.results)
        # Slices of references are addresses.
        return Cost(SCALAR, 1 if not is_reference else 2, _LATENCY[SCALAR])
    if name in _LOADS:
        return Cost(LOAD, registers(op.results[0].type) / chip.loads, _LATENCY[LOAD])
    if name in _STORES:
        return Cost(STORE, registers(vectors[0]) / chip.stores, _LATENCY[STORE])
    if name in ("tpu.matmul", "vector.contract"):
        return _matmul(op, chip)
    if name in _REDUCTIONS:
        return _reduction(op, name, chip)
    if name in _CROSS_LANES or (name in _RESHAPES and not _is_free_reshape(op)):
        count = max(registers(type_) for type_ in vectors)
        return Cost(XLU, count * _XLU_INTERVAL / chip.xlus, _LATENCY[XLU])
    if name in _RESHAPES:
        return NOTHING
    if name in ("vector.extract_strided_slice", "tpu.concatenate") and _is_whole_tiles(op):
        return NOTHING
    return _elementwise(name, vectors, chip)


def _elementwise(name: str, vectors: list[Attribute], chip: Chip) -> Cost:
    widest = max(vectors, key=lambda type_: prod(shape_of(type_)))
    count, extra = registers(widest), 0.0
    if (
        not chip.has_bf16_alus
        and _is_float(widest)
        and _bits(widest) == 16
        and not name.endswith(("extf", "truncf"))
    ):
        # Widened, computed as f32, narrowed.
        wide = registers(widest, WORD)
        extra, count = 2.0 * wide, wide
    elements = prod(shape_of(widest))
    arithmetic = elements if name.startswith(("arith.", "math.", "tpu.")) else 0
    uses, around = _EUP_OPS.get(name, (0, 0))
    if uses:
        cycles = uses * count * _EUP_INTERVAL
        vpu = (around * count + extra) / chip.alus
        return Cost(
            EUP, cycles, _LATENCY[EUP] + 2 * around, arithmetic, elements * uses, ((VPU, vpu),)
        )
    each = _VPU_OPS.get(name, 1)
    return Cost(VPU, (each * count + extra) / chip.alus, _LATENCY[VPU] * min(each, 8), arithmetic)


def _matmul(op: Operation, chip: Chip) -> Cost:
    """Every operand is cut into the unit's squares; fewer rows than a square has cost as many."""
    left, right, out = maps_of(op) if name_of(op) == "tpu.matmul" else indexing_maps(op)
    shapes = (shape_of(op.operands[0].type), shape_of(op.operands[1].type))
    sizes = dict(zip((*left, *right), (*shapes[0], *shapes[1]), strict=True))
    batch = prod(sizes[i] for i in left if i in right and i in out)
    k = prod(sizes[i] for i in left if i in right and i not in out)
    m = prod(sizes[i] for i in left if i not in right)
    n = prod(sizes[i] for i in right if i not in left)
    side = chip.mxu
    padded = batch * max(m, side) * ceil(k / side) * side * ceil(n / side) * side
    kinds = {str(getattr(op.operands[i].type, "element_type", "")) for i in range(2)}
    speed = min(chip.narrow.get(kind, 1.0) for kind in kinds)
    if "f32" in kinds and case_of(attribute_of(op, "precision"), "bf16") == "fp32":
        # Six products of bf16 parts.
        speed = 1 / 6
    added = registers(op.results[0].type) / chip.alus
    flops = 2.0 * batch * m * k * n
    return Cost(MXU, padded / chip.macs / speed, _LATENCY[MXU], flops, 0, ((VPU, added),))


def _reduction(op: Operation, name: str, chip: Chip) -> Cost:
    """Rows are added up by the vector unit; lanes go through the cross-lane unit."""
    source = next(value.type for value in op.operands if _is_vector(value.type))
    count, shape = registers(source), shape_of(source)
    stated = (
        integers_of(op, "reduction_dims")
        or integers_of(op, "dimensions")
        or integers_of(op, "dim")
        or integers_of(op, "axis")
        or (len(shape) - 1,)
    )
    last = len(shape) - 1
    elements = float(prod(shape))
    if last not in stated:
        cycles = count / chip.alus
        return Cost(VPU, cycles, _LATENCY[VPU] + _REDUCE_LATENCY, elements)
    # First the registers of a row among themselves, then the lanes of what is left.
    left = max(1, count // max(1, ceil(shape[-1] / LANES)))
    steps = 8 if name == "tpu.sort" else 1
    cycles = steps * left * _XLU_INTERVAL / chip.xlus
    return Cost(XLU, cycles, _LATENCY[XLU], elements, 0, ((VPU, (count - left) / chip.alus),))


def _is_free_reshape(op: Operation) -> bool:
    """Whether elements stay where they are: the last two dimensions do, or only lose ones."""
    source, result = (list(shape_of(value.type)) for value in (op.operands[0], op.results[0]))
    if source[-2:] == result[-2:]:
        return True
    trimmed = [size for size in source if size != 1], [size for size in result if size != 1]
    return trimmed[0] == trimmed[1] and source[-1:] == result[-1:]


def _is_whole_tiles(op: Operation) -> bool:
    """Whether every part is made of whole registers."""
    parts = [value.type for value in (*op.operands, *op.results)]
    offsets = list(integers_of(op, "offsets") or ())
    for type_ in parts:
        shape = shape_of(type_)
        rows = SUBLANES * max(1, WORD // _bits(type_))
        if len(shape) < 2 or shape[-1] % LANES or shape[-2] % rows:
            return False
        if len(offsets) > 1 and (offsets[-1] % LANES or offsets[-2] % rows):
            return False
    return True
