"""The opcode table: one row an opcode, read by every tool.

Columns follow HLO text, "Opcodes": operand count, attributes in print order, whether a written
shape may be left out, elementwise or not, side effects, cost. The rule that infers a result's
shape and the function that gives an opcode its meaning are registered under the opcode's name in
`mlirhlo.analysis` and `mlirhlo.interp`; tests hold that each row has both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from mlirhlo.dialects.effects import Effect
from mlirhlo.dialects.hlo.attributes import kinds as k
from mlirhlo.dialects.hlo.attributes.kinds import AttrKind

PLAIN_NS = 0.03
"""Nanoseconds for an element of what is one or two instructions of a processor, in vectors."""
ALL = slice(None)
FIRST = slice(1)
FIRST_TWO = slice(2)


class Arity(Enum):
    """Operand counts that are not one number."""

    ANY = "any number of"
    EVEN = "an even number of"
    ODD = "an odd number of"
    NONE = "no parsed"
    """`parameter` and `constant`: the parentheses hold something else."""


class DeclaredShape(Enum):
    """What XLA's parser takes of the result shape that a text declares."""

    KEPT = "all of it"
    INFERRED = "nothing: the shape follows from the operands"
    DATA = "its first element: the rest of the tuple is always the same"


class Extreme(Enum):
    """A number that every type with arithmetic has; `identities` says which."""

    ZERO = "zero"
    ONE = "one"
    ALL_ONES = "all ones"
    LEAST = "least"
    GREATEST = "greatest"


class Role(Enum):
    """What a property is for."""

    MEANING = "says what is computed"
    PLACEMENT = "says where, and what tools were told about it"
    PROVENANCE = "says where an instruction came from; no difference by itself"
    CONFIGURATION = "says how a back end computes it"
    ORDER = "says what runs before it"


@dataclass(frozen=True, slots=True)
class AttrSpec:
    """One attribute of an opcode."""

    key: str
    """As in HLO text."""
    kind: AttrKind
    required: bool = False
    default: str | None = None
    """Text of the default; it is dropped on reading and, unless `always`, on printing."""
    always: bool = False
    """Printed even at its default."""
    read_only: bool = False
    """Accepted and dropped."""
    newer: bool = False
    """libtpu 0.0.51 and later; jaxlib 0.10.2 does not know it."""
    role: Role = Role.MEANING

    @property
    def property_name(self) -> str:
        """Key in `op.properties`."""
        return self.key.replace("-", "_")


@dataclass(frozen=True, slots=True)
class Opcode:
    """What every tool needs to know of one opcode."""

    name: str
    """As XLA prints it: `dynamic-slice`."""
    arity: int | Arity
    attributes: tuple[AttrSpec, ...] = ()
    """In print order."""
    infers: bool = False
    """Whether the written result shape may be left out."""
    declared_shape: DeclaredShape = DeclaredShape.KEPT
    """What counts of a declared shape that does not fit; one that fits is kept, layouts and all."""
    elementwise: bool = False
    accuracy: bool = False
    """Whether `result_accuracy` is allowed."""
    commutes: bool = False
    data: slice | None = None
    """Operands whose elements, in the result's own type, the result is made of; see `data_operands`."""
    gives_real: bool = False
    """Whether the result of complex numbers is of the type of their parts."""
    moves: bool = False
    """Whether every element of the result is an element of an operand, bit for bit."""
    free: bool = False
    """Whether it takes no code: the result stands for an operand, its parts, or something that is there anyway."""
    forwards: bool = False
    """Whether the result is the first operand, in the same memory."""
    transfers: bool = False
    """Whether it exchanges data with the host or another program while the module runs."""
    varies: bool = False
    """Whether the result depends on more than the operands: on a state, or on what comes from outside."""
    element_ns: float = PLAIN_NS
    """Time that an element of an elementwise opcode takes in vectors of floats, measured on CPUs."""
    is_root: bool = False
    """Whether it is a root: dearer than a sum, yet no elementary function."""
    identity: Extreme | None = None
    """What leaves the other operand as it is, on either side; the opcodes that have one commute and associate (sums
    and products of floats up to rounding), so that reductions are made of them."""
    side_effect: bool = False
    """Kept by dce even without users."""
    collective: bool = False
    transcendental: bool = False
    flops: int = 0
    """Floating-point operations an element of the result, for elementwise opcodes."""
    newer: bool = False
    """libtpu 0.0.51 and later."""
    summary: str = ""
    """The equation or sentence that says what it computes."""

    @property
    def op_name(self) -> str:
        """Name of the op: `hlo.dynamic_slice`."""
        return "hlo." + self.name.replace("-", "_")

    @property
    def is_plain(self) -> bool:
        """Whether an element of it takes no more than one or two instructions of a processor."""
        return self.element_ns <= PLAIN_NS

    def data_operands(self, count: int) -> Sequence[int]:
        """Those of `count` operands whose elements, in the result's own type, the result is made of.

        Indices, predicates and sizes are none; opcodes whose result is of a type by their nature have none.
        """
        if self.name == "scatter":
            return [number for number in range(count) if number != count // 2]
        return () if self.data is None else range(count)[self.data]

    @property
    def effect(self) -> Effect:
        """What it affects beside its result. A parameter stays because it belongs to the signature."""
        if self.side_effect or self.name == "parameter":
            return Effect.WRITE
        depends = self.is_asynchronous or self.name == "custom-call"
        depends |= self.collective and not self.name.endswith("-id")
        depends |= any(spec.kind.names_computations for spec in self.attributes)
        return Effect.BY_INSTANCE if depends else Effect.NONE

    @property
    def is_asynchronous(self) -> bool:
        """Begins, goes on with or ends what runs aside."""
        return self.name.endswith(("-start", "-update", "-done"))

    @property
    def is_async_start(self) -> bool:
        """Begins an asynchronous pair."""
        return self.name.endswith("-start")

    def attribute(self, key: str) -> AttrSpec | None:
        """The attribute written `key`, common ones included."""
        return _SPECS[self.name].get(key)

    @property
    def specs(self) -> Mapping[str, AttrSpec]:
        """Every attribute the reader takes, by key, common ones included."""
        return _SPECS[self.name]


def _a(
    key: str,
    kind: AttrKind,
    default: str | None = None,
    *,
    required: bool = False,
    always: bool = False,
    read_only: bool = False,
    newer: bool = False,
    role: Role = Role.MEANING,
) -> AttrSpec:
    return AttrSpec(key, kind, required, default, always, read_only, newer, role)


COMMON_BEFORE: tuple[AttrSpec, ...] = (
    _a("sharding", k.SHARDING, role=Role.PLACEMENT),
    _a("frontend_attributes", k.FRONTEND_ATTRIBUTES, role=Role.PLACEMENT),
)
"""Printed after the opcode's own attributes and before `control-predecessors`."""

COMMON_AFTER: tuple[AttrSpec, ...] = (
    _a("statistics", k.STATISTICS, role=Role.PROVENANCE),
    _a("result_accuracy", k.RESULT_ACCURACY),
    _a("origin", k.ORIGIN, role=Role.PROVENANCE),
    _a("metadata", k.METADATA, role=Role.PROVENANCE),
    _a("backend_config", k.BYTES, role=Role.CONFIGURATION),
)
"""Printed after `control-predecessors`. `result_accuracy` only where the row says `accuracy`."""

PARAMETER_REPLICATION = _a("parameter_replication", k.BOOLEANS)
"""Read on every opcode by XLA, meaningful on `parameter`."""

_DIMENSIONS = _a("dimensions", k.INTEGERS, required=True)
_CHANNEL = _a("channel_id", k.INTEGER)
_GROUPS = _a("replica_groups", k.REPLICA_GROUPS)
_CONSTRAIN = _a("constrain_layout", k.BOOLEAN, "false")
_GLOBAL_IDS = _a("use_global_device_ids", k.BOOLEAN, "false")
_MODE = _a("mode", k.COLLECTIVE_MODE, read_only=True)
_TO_APPLY = _a("to_apply", k.COMPUTATION, required=True)
_WINDOW = _a("window", k.WINDOW)
_PRECISION = _a("operand_precision", k.PRECISIONS)
_ALIASING = _a("output_to_operand_aliasing", k.OUTPUT_OPERAND_ALIASES)
_HOST = _a("is_host_transfer", k.BOOLEAN, "false")
_THREAD = _a("async_execution_thread", k.STRING)
_DYNAMIC_ROOT = _a("has_dynamic_root", k.BOOLEAN, "false", newer=True)

_ALL_GATHER = (_CHANNEL, _GROUPS, _CONSTRAIN, _DIMENSIONS, _GLOBAL_IDS, _MODE)
_ALL_REDUCE = (_CHANNEL, _GROUPS, _CONSTRAIN, _GLOBAL_IDS, _MODE, _TO_APPLY)
_PERMUTE = (
    _CHANNEL,
    _a("source_target_pairs", k.INTEGER_LISTS, required=True),
    _a("slice_sizes", k.INTEGER_LISTS),
    _MODE,
)
_BATCH_NORM = (_a("epsilon", k.FLOAT, required=True), _a("feature_index", k.INTEGER, required=True))
_DOT = (
    _a("lhs_batch_dims", k.INTEGERS, "{}"),
    _a("lhs_contracting_dims", k.INTEGERS, "{}", always=True),
    _a("rhs_batch_dims", k.INTEGERS, "{}"),
    _a("rhs_contracting_dims", k.INTEGERS, "{}", always=True),
)
_BLOCK_SCALING = _a("block_scaling_config", k.RAW, newer=True)


def _unary(
    name: str,
    summary: str,
    *,
    accuracy: bool = False,
    flops: int = 1,
    data: slice | None = ALL,
    gives_real: bool = False,
    moves: bool = False,
    element_ns: float = PLAIN_NS,
    is_root: bool = False,
    newer: bool = False,
) -> Opcode:
    return Opcode(
        name,
        1,
        infers=True,
        elementwise=True,
        data=data,
        gives_real=gives_real,
        moves=moves,
        element_ns=element_ns,
        is_root=is_root,
        newer=newer,
        accuracy=accuracy,
        transcendental=accuracy,
        flops=0 if accuracy else flops,
        summary=summary,
    )


def _binary(
    name: str,
    summary: str,
    *,
    commutes: bool = False,
    transcendental: bool = False,
    identity: Extreme | None = None,
    data: slice | None = ALL,
    element_ns: float = PLAIN_NS,
) -> Opcode:
    return Opcode(
        name,
        2,
        infers=True,
        elementwise=True,
        commutes=commutes or identity is not None,
        identity=identity,
        data=data,
        element_ns=element_ns,
        transcendental=transcendental,
        flops=0 if transcendental else 1,
        summary=summary,
    )


ELEMENTWISE_ROWS: tuple[Opcode, ...] = (
    _unary("abs", "|x|; of complex numbers the magnitude, a real number", gives_real=True),
    _unary("acos", "arc cosine", element_ns=1.0, accuracy=True),
    _unary("acosh", "inverse hyperbolic cosine", element_ns=1.5, accuracy=True),
    _unary("asin", "arc sine", element_ns=1.0, accuracy=True),
    _unary("asinh", "inverse hyperbolic sine", element_ns=1.5, accuracy=True),
    _unary("atan", "arc tangent", element_ns=1.0, accuracy=True, newer=True),
    _unary("atanh", "inverse hyperbolic tangent", element_ns=1.0, accuracy=True),
    _unary("cbrt", "cube root", element_ns=1.0, is_root=True, accuracy=True),
    _unary("ceil", "least integer not below x"),
    Opcode(
        "convert",
        1,
        elementwise=True,
        flops=1,
        element_ns=0.02,
        summary="x in another element type",
    ),
    _unary("copy", "x, possibly in another layout", flops=0, moves=True, element_ns=0.0),
    _unary("cosine", "cos x, radians", element_ns=0.8, accuracy=True),
    _unary("cosh", "hyperbolic cosine", element_ns=0.6, accuracy=True),
    _unary("count-leading-zeros", "zero bits before the first one"),
    _unary("erf", "error function", element_ns=0.6, accuracy=True),
    _unary("exponential", "e**x", element_ns=0.3, accuracy=True),
    _unary("exponential-minus-one", "e**x - 1", element_ns=0.5, accuracy=True),
    _unary("floor", "greatest integer not above x"),
    _unary("imag", "imaginary part; 0 for real numbers", gives_real=True, element_ns=0.0),
    _unary("is-finite", "whether x is neither infinite nor NaN", data=None),
    _unary("log", "natural logarithm", element_ns=0.4, accuracy=True),
    _unary("log-plus-one", "log(1 + x)", element_ns=0.5, accuracy=True),
    _unary("logistic", "1 / (1 + e**-x)", element_ns=0.5, accuracy=True),
    _unary("negate", "-x"),
    _unary("not", "bitwise complement; logical on pred"),
    _unary("popcnt", "one bits"),
    _unary("real", "real part", gives_real=True, element_ns=0.0),
    _unary("round-nearest-afz", "nearest integer, halves away from zero"),
    _unary("round-nearest-even", "nearest integer, halves to even"),
    _unary("rsqrt", "1 / sqrt(x)", element_ns=0.4, is_root=True, accuracy=True),
    _unary("sign", "-1, 0 or 1; x / |x| for complex numbers"),
    _unary("sine", "sin x, radians", element_ns=0.8, accuracy=True),
    _unary("sinh", "hyperbolic sine", element_ns=0.6, accuracy=True),
    _unary("sqrt", "square root", element_ns=0.3, is_root=True, accuracy=True),
    _unary("tan", "tangent, radians", element_ns=1.0, accuracy=True),
    _unary("tanh", "hyperbolic tangent", element_ns=0.5, accuracy=True),
    _binary("add", "x + y; or on pred", identity=Extreme.ZERO),
    _binary("and", "bitwise and; logical on pred", identity=Extreme.ALL_ONES),
    _binary("atan2", "angle of the point (y, x)", element_ns=1.2, transcendental=True),
    _binary("complex", "x + i*y", data=None),
    Opcode(
        "compare",
        2,
        (
            _a("direction", k.DIRECTION, required=True),
            _a("type", k.COMPARISON_TYPE),
            _a("order", k.COMPARISON_ORDER, "PARTIAL", newer=True),
        ),
        infers=True,
        elementwise=True,
        flops=1,
        summary="x EQ|NE|GE|GT|LE|LT y, as pred",
    ),
    _binary("divide", "x / y; integers truncate, x / 0 = -1, MIN / -1 = MIN", element_ns=0.3),
    _binary("maximum", "greater of x and y; NaN wins", identity=Extreme.LEAST),
    _binary("minimum", "lesser of x and y; NaN wins", identity=Extreme.GREATEST),
    _binary("mulhi", "high half of the double-width product", commutes=True),
    _binary("multiply", "x * y; and on pred", identity=Extreme.ONE),
    _binary("or", "bitwise or; logical on pred", identity=Extreme.ZERO),
    _binary("power", "x ** y", element_ns=2.0, transcendental=True),
    _binary("remainder", "x - y*trunc(x/y), the sign of x; x rem 0 = x", element_ns=2.0),
    _binary("shift-left", "x << y; 0 when y is the width or more"),
    _binary("shift-right-arithmetic", "x >> y with the sign; all sign when y is the width or more"),
    _binary("shift-right-logical", "x >> y with zeros; 0 when y is the width or more"),
    Opcode(
        "stochastic-convert",
        2,
        elementwise=True,
        flops=1,
        element_ns=0.3,
        summary="x in a narrower type, rounded by random bits y",
    ),
    _binary("subtract", "x - y"),
    _binary("xor", "bitwise exclusive or; logical on pred", identity=Extreme.ZERO),
    Opcode(
        "clamp",
        3,
        infers=True,
        elementwise=True,
        data=ALL,
        flops=1,
        summary="min(max(x, low), high)",
    ),
    Opcode(
        "select",
        3,
        infers=True,
        elementwise=True,
        data=slice(1, None),
        moves=True,
        flops=1,
        summary="x where the predicate holds, else y",
    ),
    Opcode(
        "reduce-precision",
        1,
        (
            _a("exponent_bits", k.INTEGER, required=True),
            _a("mantissa_bits", k.INTEGER, required=True),
        ),
        elementwise=True,
        flops=1,
        summary="x rounded to fewer exponent and mantissa bits, in its own type",
    ),
)

DATA_MOVEMENT_ROWS: tuple[Opcode, ...] = (
    Opcode(
        "bitcast",
        1,
        free=True,
        forwards=True,
        summary="the same bytes under another shape and layout",
    ),
    Opcode(
        "bitcast-convert",
        1,
        flops=1,
        element_ns=0.0,
        summary="the same bits as another element type",
    ),
    Opcode(
        "broadcast",
        1,
        (_DIMENSIONS,),
        infers=True,
        data=FIRST,
        moves=True,
        summary="operand dimension i becomes result dimension dimensions[i]",
    ),
    Opcode(
        "concatenate",
        Arity.ANY,
        (_DIMENSIONS,),
        infers=True,
        data=ALL,
        moves=True,
        summary="operands one after the other along a dimension",
    ),
    Opcode(
        "dynamic-reshape",
        Arity.ANY,
        data=FIRST,
        moves=True,
        summary="reshape to sizes given as operands",
    ),
    Opcode(
        "dynamic-slice",
        Arity.ANY,
        (_a("dynamic_slice_sizes", k.INTEGERS, required=True),),
        data=FIRST,
        moves=True,
        summary="a slice at start indices given as operands, clamped into the array",
    ),
    Opcode(
        "dynamic-update-slice",
        Arity.ANY,
        data=FIRST_TWO,
        moves=True,
        summary="the array with a slice replaced, start indices clamped",
    ),
    Opcode(
        "gather",
        2,
        (
            _a("offset_dims", k.INTEGERS, required=True),
            _a("collapsed_slice_dims", k.INTEGERS, required=True),
            _a("start_index_map", k.INTEGERS, required=True),
            _a("operand_batching_dims", k.INTEGERS, "{}"),
            _a("start_indices_batching_dims", k.INTEGERS, "{}"),
            _a("index_vector_dim", k.INTEGER, required=True),
            _a("slice_sizes", k.INTEGERS, required=True),
            _a("indices_are_sorted", k.BOOLEAN, "false"),
        ),
        infers=True,
        data=FIRST,
        moves=True,
        summary="slices of the operand at the places the indices name",
    ),
    Opcode(
        "get-dimension-size",
        1,
        (_DIMENSIONS,),
        infers=True,
        summary="size of a dimension, as s32[]",
    ),
    Opcode(
        "iota",
        0,
        (_a("iota_dimension", k.INTEGER, required=True),),
        summary="0, 1, 2, … along a dimension",
    ),
    Opcode(
        "pad",
        2,
        (_a("padding", k.PADDING, required=True),),
        infers=True,
        data=FIRST_TWO,
        moves=True,
        summary="edges and gaps filled with a value; negative edges crop",
    ),
    Opcode(
        "reshape",
        1,
        (_a("inferred_dimension", k.INTEGER, "-1"),),
        data=FIRST,
        moves=True,
        summary="the same elements in row-major order under another shape",
    ),
    Opcode(
        "reverse",
        1,
        (_DIMENSIONS,),
        infers=True,
        data=FIRST,
        moves=True,
        summary="dimensions turned round",
    ),
    Opcode(
        "scatter",
        Arity.ODD,
        (
            _a("update_window_dims", k.INTEGERS, required=True),
            _a("inserted_window_dims", k.INTEGERS, required=True),
            _a("scatter_dims_to_operand_dims", k.INTEGERS, required=True),
            _a("input_batching_dims", k.INTEGERS, "{}"),
            _a("scatter_indices_batching_dims", k.INTEGERS, "{}"),
            _a("index_vector_dim", k.INTEGER, required=True),
            _a("indices_are_sorted", k.BOOLEAN, "false"),
            _a("unique_indices", k.BOOLEAN, "false"),
            _TO_APPLY,
        ),
        infers=True,
        data=ALL,
        summary="inputs with updates combined in at the places the indices name",
    ),
    Opcode(
        "set-dimension-size",
        2,
        (_DIMENSIONS,),
        infers=True,
        moves=True,
        summary="the array with a dimension's dynamic size set",
    ),
    Opcode(
        "shuffle",
        Arity.ANY,
        (
            _DIMENSIONS,
            # `mode={rotate={shifts={1}}}`; newer XLA: `mode=rotate, shifts={1}` and `mode=permute, indices=…`.
            _a("mode", k.RAW_OR_WORD, newer=True),
            _a("shifts", k.INTEGERS, newer=True),
            _a("indices", k.LITERAL, newer=True),
        ),
        newer=True,
        summary="elements moved along dimensions, by a rotation or to places that are told",
    ),
    Opcode(
        "slice",
        1,
        (_a("slice", k.SLICE, required=True),),
        data=FIRST,
        moves=True,
        summary="x[start:limit:stride] in every dimension",
    ),
    Opcode(
        "transpose",
        1,
        (_DIMENSIONS,),
        infers=True,
        data=FIRST,
        moves=True,
        summary="result dimension i is operand dimension dimensions[i]",
    ),
)

REDUCTION_ROWS: tuple[Opcode, ...] = (
    Opcode(
        "map",
        Arity.ANY,
        (_a("dimensions", k.INTEGERS), _TO_APPLY),
        infers=True,
        summary="a computation on each element",
    ),
    Opcode(
        "reduce",
        Arity.EVEN,
        (_DIMENSIONS, _TO_APPLY),
        infers=True,
        data=ALL,
        summary="dimensions folded by a computation from initial values",
    ),
    Opcode(
        "reduce-window",
        Arity.EVEN,
        (_WINDOW, _TO_APPLY),
        infers=True,
        data=ALL,
        summary="each window folded by a computation",
    ),
    Opcode(
        "scan",
        Arity.ANY,
        (
            _DIMENSIONS,
            _a("num_carries", k.INTEGER, required=True),
            _a("is_reverse", k.BOOLEAN, "false"),
            _a("is_associative", k.BOOLEAN, "false", always=True),
            _TO_APPLY,
        ),
        infers=True,
        summary="a computation carried along a dimension, outputs stacked",
    ),
    Opcode(
        "select-and-scatter",
        3,
        (
            _WINDOW,
            _a("select", k.COMPUTATION, required=True),
            _a("scatter", k.COMPUTATION, required=True),
        ),
        infers=True,
        data=ALL,
        summary="source values added where the selected element of each window lies",
    ),
    Opcode(
        "sort",
        Arity.ANY,
        (_DIMENSIONS, _a("is_stable", k.BOOLEAN, "false"), _TO_APPLY),
        infers=True,
        summary="operands sorted together along a dimension by a comparator",
    ),
    Opcode(
        "topk",
        1,
        (
            _a("k", k.INTEGER, required=True),
            _a("largest", k.BOOLEAN, "true", always=True),
            _a("is_stable", k.BOOLEAN, "false", newer=True),
        ),
        infers=True,
        summary="the k largest or smallest of the last dimension and their indices",
    ),
)

LINEAR_ALGEBRA_ROWS: tuple[Opcode, ...] = (
    Opcode(
        "batch-norm-grad", 5, _BATCH_NORM, infers=True, summary="gradients of batch-norm-training"
    ),
    Opcode(
        "batch-norm-inference",
        5,
        _BATCH_NORM,
        infers=True,
        summary="(x - mean) / sqrt(variance + epsilon) * scale + offset",
    ),
    Opcode(
        "batch-norm-training",
        3,
        _BATCH_NORM,
        infers=True,
        summary="batch-norm-inference with the batch's own mean and variance",
    ),
    Opcode(
        "cholesky",
        1,
        (_a("lower", k.BOOLEAN, "false"),),
        infers=True,
        summary="triangular L with L * adjoint(L) = A",
    ),
    Opcode(
        "convolution",
        Arity.ANY,
        (
            _WINDOW,
            _a("dim_labels", k.DIM_LABELS, required=True),
            _a("feature_group_count", k.INTEGER, "1"),
            _a("batch_group_count", k.INTEGER, "1"),
            _a("convolution_kind", k.CONVOLUTION_KIND, "unset"),
            _PRECISION,
            _a("sparsity_config", k.SPARSITY_CONFIG),
            _BLOCK_SCALING,
        ),
        infers=True,
        summary="sums of products of a sliding, dilated, grouped window",
    ),
    Opcode(
        "dot",
        Arity.ANY,
        (*_DOT, _PRECISION, _a("algorithm", k.DOT_ALGORITHM, "unset"), _BLOCK_SCALING),
        infers=True,
        summary="sums of products over contracting dimensions, batched",
    ),
    Opcode(
        "fft",
        1,
        (_a("fft_type", k.FFT_TYPE, required=True), _a("fft_length", k.INTEGERS, required=True)),
        infers=True,
        summary="discrete Fourier transform of the last dimensions",
    ),
    Opcode(
        "ragged-dot",
        3,
        (
            *_DOT,
            _a("lhs_ragged_dims", k.INTEGERS, "{}"),
            _a("rhs_group_dims", k.INTEGERS, "{}"),
            _PRECISION,
        ),
        infers=True,
        summary="dot in which groups of rows meet different right-hand sides",
    ),
    Opcode(
        "scaled-dot",
        4,
        (*_DOT, _PRECISION, _BLOCK_SCALING),
        infers=True,
        summary="dot of operands multiplied by block scales",
    ),
    Opcode(
        "triangular-solve",
        2,
        (
            _a("left_side", k.BOOLEAN, "false"),
            _a("lower", k.BOOLEAN, "false"),
            _a("unit_diagonal", k.BOOLEAN, "false"),
            _a("transpose_a", k.TRANSPOSE, required=True),
        ),
        infers=True,
        summary="x with op(a) * x = b, or x * op(a) = b",
    ),
)

CONTROL_FLOW_ROWS: tuple[Opcode, ...] = (
    Opcode(
        "call",
        Arity.ANY,
        (_TO_APPLY, _a("is_composite", k.BOOLEAN, "false")),
        infers=True,
        summary="result of a computation",
    ),
    Opcode(
        "conditional",
        Arity.ANY,
        (
            _a("true_computation", k.COMPUTATION),
            _a("false_computation", k.COMPUTATION),
            _a("branch_computations", k.COMPUTATIONS),
        ),
        infers=True,
        summary="result of the branch that the first operand picks",
    ),
    Opcode(
        "constant",
        Arity.NONE,
        (_a("literal", k.LITERAL, read_only=True),),
        free=True,
        summary="a literal",
    ),
    Opcode(
        "custom-call",
        Arity.ANY,
        (
            _a("window", k.OPTIONAL_WINDOW),
            _a("dim_labels", k.DIM_LABELS),
            _a("feature_group_count", k.INTEGER, "1"),
            _a("batch_group_count", k.INTEGER, "1"),
            _PRECISION,
            _a("padding_type", k.PADDING_TYPE, "PADDING_INVALID"),
            _a("custom_call_target", k.STRING, required=True),
            _a("operand_layout_constraints", k.SHAPES),
            _a("custom_call_has_side_effect", k.BOOLEAN, "false"),
            _a("literal", k.LITERAL),
            _ALIASING,
            _a("schedule", k.SCHEDULE, "SCHEDULE_NONE"),
            _a("api_version", k.API_VERSION, "API_VERSION_ORIGINAL"),
            _a("called_computations", k.COMPUTATIONS),
            _a("to_apply", k.COMPUTATION, read_only=True),
        ),
        summary="what the target of that name computes",
    ),
    Opcode(
        "fusion",
        Arity.ANY,
        (
            _a("kind", k.FUSION_KIND, required=True),
            _ALIASING,
            _a("calls", k.COMPUTATION, required=True),
        ),
        infers=True,
        summary="result of a computation that becomes one kernel",
    ),
    Opcode(
        "get-tuple-element",
        1,
        (_a("index", k.INTEGER, required=True),),
        infers=True,
        moves=True,
        free=True,
        summary="element of a tuple",
    ),
    Opcode(
        "opt-barrier",
        1,
        infers=True,
        moves=True,
        free=True,
        forwards=True,
        summary="its operand, which no pass may look through",
    ),
    Opcode(
        "parameter",
        Arity.NONE,
        (PARAMETER_REPLICATION,),
        free=True,
        summary="argument of the computation",
    ),
    Opcode(
        "tuple", Arity.ANY, infers=True, moves=True, free=True, summary="its operands as one value"
    ),
    Opcode(
        "while",
        1,
        (_a("condition", k.COMPUTATION, required=True), _a("body", k.COMPUTATION, required=True)),
        infers=True,
        summary="body applied as long as condition holds",
    ),
)

TOKEN_ROWS: tuple[Opcode, ...] = (
    Opcode(
        "add-dependency",
        2,
        infers=True,
        declared_shape=DeclaredShape.INFERRED,
        moves=True,
        free=True,
        forwards=True,
        summary="its first operand, after its second",
    ),
    Opcode(
        "after-all",
        Arity.ANY,
        infers=True,
        declared_shape=DeclaredShape.INFERRED,
        free=True,
        summary="a token after all its operands",
    ),
    Opcode(
        "async-done",
        1,
        (_THREAD, _a("calls", k.COMPUTATION, read_only=True)),
        summary="result of an asynchronous computation",
    ),
    Opcode(
        "async-start",
        Arity.ANY,
        (_THREAD, _ALIASING, _a("calls", k.COMPUTATION, required=True)),
        summary="starts a computation that runs aside",
    ),
    Opcode(
        "async-update",
        1,
        (_THREAD, _a("calls", k.COMPUTATION, read_only=True)),
        summary="an asynchronous computation going on",
    ),
    Opcode("copy-done", 1, moves=True, summary="result of copy-start"),
    Opcode(
        "copy-start",
        1,
        (_a("cross_program_prefetch_index", k.INTEGER),),
        moves=True,
        summary="starts a copy that runs aside",
    ),
    Opcode(
        "domain",
        1,
        (_a("domain", k.DOMAIN, required=True),),
        infers=True,
        moves=True,
        free=True,
        forwards=True,
        summary="its operand, between two shardings",
    ),
    Opcode(
        "infeed",
        1,
        (_a("infeed_config", k.BYTES),),
        side_effect=True,
        declared_shape=DeclaredShape.DATA,
        transfers=True,
        varies=True,
        summary="a value from the host's queue, and a token",
    ),
    Opcode(
        "outfeed",
        2,
        (_a("outfeed_shape", k.SHAPE, always=True), _a("outfeed_config", k.BYTES)),
        side_effect=True,
        declared_shape=DeclaredShape.INFERRED,
        transfers=True,
        summary="puts a value into the host's queue",
    ),
    Opcode(
        "recv",
        1,
        (_CHANNEL, _HOST),
        side_effect=True,
        declared_shape=DeclaredShape.DATA,
        transfers=True,
        varies=True,
        summary="starts receiving from a channel",
    ),
    Opcode(
        "recv-done",
        1,
        (_CHANNEL, _HOST),
        side_effect=True,
        declared_shape=DeclaredShape.INFERRED,
        transfers=True,
        varies=True,
        summary="received data, and a token",
    ),
    Opcode(
        "send",
        2,
        (_CHANNEL, _HOST),
        side_effect=True,
        declared_shape=DeclaredShape.INFERRED,
        transfers=True,
        summary="starts sending to a channel",
    ),
    Opcode(
        "send-done",
        1,
        (_CHANNEL, _HOST),
        side_effect=True,
        declared_shape=DeclaredShape.INFERRED,
        transfers=True,
        summary="a token after the send",
    ),
)

RANDOM_ROWS: tuple[Opcode, ...] = (
    Opcode(
        "rng",
        Arity.ANY,
        (_a("distribution", k.DISTRIBUTION, required=True),),
        side_effect=True,
        varies=True,
        summary="random numbers between or around its operands",
    ),
    Opcode(
        "rng-bit-generator",
        1,
        (_a("algorithm", k.RNG_ALGORITHM, required=True),),
        summary="new state and random bits",
    ),
    Opcode(
        "rng-get-and-update-state",
        0,
        (_a("delta", k.INTEGER, required=True),),
        side_effect=True,
        varies=True,
        summary="the module's random state, moved on by delta",
    ),
)

COLLECTIVE_ROWS: tuple[Opcode, ...] = tuple(
    Opcode(
        name,
        arity,
        attributes,
        infers=infers,
        collective=True,
        moves="reduce" not in name and not name.endswith("-id"),
        newer=newer,
        summary=summary,
    )
    for name, arity, attributes, infers, newer, summary in (
        ("all-gather", Arity.ANY, _ALL_GATHER, False, False, "operands of a group concatenated"),
        ("all-gather-done", 1, (), False, False, "result of all-gather-start"),
        ("all-gather-start", Arity.ANY, _ALL_GATHER, False, False, "starts an all-gather"),
        (
            "all-reduce",
            Arity.ANY,
            _ALL_REDUCE,
            False,
            False,
            "operands of a group reduced, for each",
        ),
        ("all-reduce-done", 1, (), False, False, "result of all-reduce-start"),
        ("all-reduce-start", Arity.ANY, _ALL_REDUCE, False, False, "starts an all-reduce"),
        (
            "all-to-all",
            Arity.ANY,
            (_CHANNEL, _GROUPS, _CONSTRAIN, _a("dimensions", k.INTEGERS), _MODE),
            False,
            False,
            "part i of every member's operand goes to member i",
        ),
        (
            "collective-broadcast",
            Arity.ANY,
            (_CHANNEL, _GROUPS, _MODE, _DYNAMIC_ROOT),
            False,
            False,
            "the first member's operand, for each of its group",
        ),
        (
            "collective-permute",
            Arity.ANY,
            _PERMUTE,
            False,
            False,
            "operands sent from source to target; zeros elsewhere",
        ),
        ("collective-permute-done", 1, (), False, False, "result of collective-permute-start"),
        (
            "collective-permute-start",
            Arity.ANY,
            _PERMUTE,
            False,
            False,
            "starts a collective-permute",
        ),
        (
            "collective-reduce",
            Arity.ANY,
            (_CHANNEL, _GROUPS, _CONSTRAIN, _GLOBAL_IDS, _MODE, _DYNAMIC_ROOT, _TO_APPLY),
            False,
            True,
            "operands of a group reduced, for one member",
        ),
        ("partition-id", 0, (), True, False, "number of this partition, u32[]"),
        (
            "ragged-all-to-all",
            Arity.ANY,
            (_CHANNEL, _GROUPS, _a("dimensions", k.INTEGERS, read_only=True), _MODE),
            False,
            False,
            "slices of different sizes exchanged within a group",
        ),
        (
            "reduce-scatter",
            Arity.ANY,
            (_CHANNEL, _GROUPS, _CONSTRAIN, _GLOBAL_IDS, _DIMENSIONS, _MODE, _TO_APPLY),
            False,
            False,
            "operands of a group reduced, each member keeping its part",
        ),
        ("replica-id", 0, (), True, False, "number of this replica, u32[]"),
    )
)

OPCODES: Mapping[str, Opcode] = {
    row.name: row
    for rows in (
        ELEMENTWISE_ROWS,
        DATA_MOVEMENT_ROWS,
        REDUCTION_ROWS,
        LINEAR_ALGEBRA_ROWS,
        CONTROL_FLOW_ROWS,
        TOKEN_ROWS,
        RANDOM_ROWS,
        COLLECTIVE_ROWS,
    )
    for row in rows
}
"""Every opcode by its name in HLO text."""

COMMON: tuple[AttrSpec, ...] = (*COMMON_BEFORE, *COMMON_AFTER)
"""Attributes every instruction may carry (`control-predecessors` aside, which are operands)."""


CONTROL_PREDECESSORS = "control_predecessors"
"""Property with the number of trailing operands that are control predecessors."""
UNWRITTEN: Mapping[str, Role] = {
    CONTROL_PREDECESSORS: Role.ORDER,
    "proto_id": Role.PROVENANCE,
    "proto_rest": Role.PROVENANCE,
    "raw_attributes": Role.CONFIGURATION,
}
"""Properties that every instruction may have and that text writes in ways of their own. `proto_id`: id in the proto it
was read from; `proto_rest`: fields nothing else holds, serialised; `raw_attributes`: unknown attributes carried through
as text."""


def properties_of(*roles: Role) -> frozenset[str]:
    """The properties that every instruction may have, of some roles."""
    written = {spec.property_name: spec.role for spec in COMMON}
    return frozenset(name for name, role in {**written, **UNWRITTEN}.items() if role in roles)


PROVENANCE = properties_of(Role.PROVENANCE)
ANNOTATIONS = properties_of(*set(Role) - {Role.MEANING})
"""Properties that no value depends on."""


def _specs(row: Opcode) -> Mapping[str, AttrSpec]:
    common = [spec for spec in COMMON if row.accuracy or spec.key != "result_accuracy"]
    if row.name == "constant":
        return {spec.key: spec for spec in common}
    return {spec.key: spec for spec in (*row.attributes, *common)}


_SPECS: Mapping[str, Mapping[str, AttrSpec]] = {name: _specs(row) for name, row in OPCODES.items()}
