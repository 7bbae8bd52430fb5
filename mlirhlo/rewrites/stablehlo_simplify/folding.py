"""Ops of constants are constants. Elements are computed as XLA's importer does: in double
precision, then rounded to the type; integers wrap around."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, ComplexType, IntegerType, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo.element_types import BY_MLIR, Kind
from mlirhlo.dialects.hlo.table import OPCODES, Opcode
from mlirhlo.dialects.quick import put_operand
from mlirhlo.dialects.stablehlo.elements import dtype_of
from mlirhlo.importing import LATE
from mlirhlo.rewrites.stablehlo_simplify.driver import (
    ANY_OP,
    CONSTANT,
    Simplifier,
    shape,
    simplifies,
    tensor,
)

with LATE:
    from mlirhlo.interp.ops import elementwise


if TYPE_CHECKING:
    from numpy.typing import NDArray

Values = Sequence[SSAValue]

MOST_ELEMENTS = 65536
"""Larger constants are not computed, unless all their elements are equal."""

_FOLDED: Mapping[str, str] = {
    "abs": "abs",
    "cosine": "cos",
    "exponential": "exp",
    "log": "log",
    "negate": "negative",
    "not": "invert",
    "round_nearest_even": "rint",
    "sign": "sign",
    "sine": "sin",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
    "add": "add",
    "and": "bitwise_and",
    "multiply": "multiply",
    "or": "bitwise_or",
    "remainder": "fmod",
    "subtract": "subtract",
    "divide": "",
    "logistic": "",
    "maximum": "",
    "minimum": "",
    "round_nearest_afz": "",
    "rsqrt": "",
}
"""What XLA folds, and the function of numpy that computes it; `_own` has the others."""
_ROWS: Mapping[str, Opcode] = {name: OPCODES[name.replace("_", "-")] for name in _FOLDED}
_BITWISE = frozenset(name for name, row in _ROWS.items() if row.bitwise)
_UNARY = frozenset(name for name, row in _ROWS.items() if row.arity == 1)
_FLOAT_UNARY = _UNARY - _BITWISE
_INTEGER_UNARY = frozenset(
    name for name in _UNARY if not (_ROWS[name].transcendental or name.startswith("round"))
)
_OUTSIDE: Mapping[str, Callable[[Any], Any]] = {
    "log": lambda x: x <= 0,
    "rsqrt": lambda x: x <= 0,
    "sign": lambda x: x != x,
    "sqrt": lambda x: x < 0,
}
"""Floats that XLA folds nothing with."""


def _own() -> Mapping[str, Callable[..., Any]]:
    import numpy as np

    def away_from_zero(x: Any) -> Any:
        return np.copysign(np.floor(np.abs(x) + 0.5), x)

    def trunc_divide(x: Any, y: Any) -> Any:
        if x.dtype.kind == "f":
            return x / y
        quotient: Any = np.abs(x) // np.abs(y)
        return cast(Any, np.where((x < 0) != (y < 0), -quotient, quotient))

    def logistic(x: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-x))

    def rsqrt(x: Any) -> Any:
        return 1.0 / np.sqrt(x)

    return {
        "divide": trunc_divide,
        "logistic": logistic,
        "maximum": elementwise.maximum,
        "minimum": elementwise.minimum,
        "round_nearest_afz": away_from_zero,
        "rsqrt": rsqrt,
    }


def _is_splat(array: NDArray[Any]) -> bool:
    if array.size <= 1 or all(stride == 0 for stride in array.strides):
        return True
    flat = array.reshape(-1)
    return flat.tobytes() == flat[:1].tobytes() * flat.size


def compute(
    function: Callable[..., Any], arrays: Sequence[NDArray[Any]], type_: TensorType[Any]
) -> NDArray[Any] | None:
    """`function` of constants; None where too large. All equal elements are computed once."""
    import numpy as np

    splats = [_is_splat(a) for a in arrays]
    sizes = tuple(type_.get_shape())
    if all(splats):
        arrays = [a.reshape(-1)[:1].reshape(()) for a in arrays]
    elif any(a.size > MOST_ELEMENTS for a in arrays):
        return None
    target = dtype_of(type_.element_type)
    wide = [_wide(array) for array in arrays]
    with np.errstate(all="ignore"):
        found = np.asarray(function(*wide))
        if found.dtype.kind == "f" and len(wide) == 2:
            # The NaN that the processor makes is negative, that of XLA's arithmetic is not.
            made = np.isnan(found) & ~np.logical_or.reduce([np.isnan(a) for a in wide])
            found = np.where(made, np.nan, found)
        found = found.astype(target)
    return np.broadcast_to(found, sizes) if all(splats) else found.reshape(sizes)


def _wide(array: NDArray[Any]) -> NDArray[Any]:
    """Narrow floats as doubles, narrow integers as 64 bits."""
    import numpy as np

    if array.dtype.kind in "biuc" or array.dtype == np.float64:
        return array
    name = array.dtype.name
    if name.startswith(("int", "uint")):
        return array.astype(np.int64)
    return array.astype(np.float64)


def _foldable(op: Operation) -> bool:
    type_ = op.results[0].type
    if not isinstance(type_, TensorType) or DYNAMIC_INDEX in type_.get_shape():
        return False
    return not isinstance(cast("TensorType[Attribute]", type_).element_type, ComplexType)


@simplifies(*sorted(_FOLDED))
def elementwise_of_constants(op: Operation, s: Simplifier) -> Values | None:
    """op(c, d) => constant"""
    arrays: list[NDArray[Any]] = []
    for value in op.operands:
        found = s.array(value)
        if found is None:
            return None
        arrays.append(found)
    if not _foldable(op) or isinstance(tensor(op.operands[0]).element_type, ComplexType):
        return None
    name = op.name.removeprefix("stablehlo.")
    type_ = tensor(op.results[0])
    integer = isinstance(type_.element_type, IntegerType)
    if len(arrays) == 1 and name not in (_INTEGER_UNARY if integer else _FLOAT_UNARY):
        return None
    if name in _BITWISE and not integer:
        return None
    if name in ("divide", "remainder") and integer and not _wide(arrays[1]).all():
        return None
    if name in ("negate", "sign") and arrays[0].dtype.kind == "b":
        return None
    outside = None if integer else _OUTSIDE.get(name)
    if outside is not None and outside(_wide(arrays[0])).any():
        return None
    folded = compute(_logical(name, type_), arrays, type_)
    return None if folded is None else (s.constant(folded, type_),)


def _logical(name: str, type_: TensorType[Any]) -> Callable[..., Any]:
    import numpy as np

    if BY_MLIR[type_.element_type].kind is Kind.PRED:
        booleans: dict[str, Any] = {
            "add": np.logical_or,
            "multiply": np.logical_and,
            "not": np.logical_not,
            "and": np.logical_and,
            "or": np.logical_or,
            "maximum": np.logical_or,
            "minimum": np.logical_and,
        }
        if name in booleans:
            chosen: Callable[..., Any] = booleans[name]
            return chosen
    return getattr(np, _FOLDED[name]) if _FOLDED[name] else _own()[name]


@simplifies("convert")
def convert_of_constant(op: Operation, s: Simplifier) -> Values | None:
    """convert(c) => constant"""
    import numpy as np

    array = s.array(op.operands[0])
    if array is None or not _foldable(op) or array.dtype.kind == "c":
        return None
    type_ = tensor(op.results[0])
    target = BY_MLIR[type_.element_type]

    def nonzero(x: Any) -> Any:
        return x != 0

    def truncated(x: Any) -> Any:
        low, high = (0, (1 << target.bits) - 1)
        if target.kind is Kind.SIGNED:
            low, high = -(1 << (target.bits - 1)), (1 << (target.bits - 1)) - 1
        return np.clip(np.trunc(x), low, high)

    def itself(x: Any) -> Any:
        return x

    function: Callable[[Any], Any] = itself
    if target.kind is Kind.PRED:
        function = nonzero
    elif target.kind in (Kind.SIGNED, Kind.UNSIGNED) and _wide(array).dtype.kind == "f":
        if not np.isfinite(_wide(array)).all():
            return None
        function = truncated
    return _fold(s, compute(function, (array,), type_), type_)


def _fold(s: Simplifier, array: NDArray[Any] | None, type_: TensorType[Any]) -> Values | None:
    return None if array is None else (s.constant(array, type_),)


@simplifies("compare")
def compare_of_constants(op: Operation, s: Simplifier) -> Values | None:
    """compare(c, d) => constant"""
    import numpy as np

    lhs, rhs = s.array(op.operands[0]), s.array(op.operands[1])
    if lhs is None or rhs is None or lhs.dtype.kind == "c" or not _foldable(op):
        return None
    kind = str(getattr(op.properties.get("compare_type"), "data", ""))
    if kind == "TOTALORDER":
        return None
    functions = {
        "EQ": np.equal,
        "NE": np.not_equal,
        "LT": np.less,
        "LE": np.less_equal,
        "GT": np.greater,
        "GE": np.greater_equal,
    }
    function = functions[str(getattr(op.properties["comparison_direction"], "data", ""))]
    type_ = tensor(op.results[0])
    return _fold(s, compute(function, (lhs, rhs), type_), type_)


@simplifies("select")
def select_of_constants(op: Operation, s: Simplifier) -> Values | None:
    """select(c, d, e) => constant"""
    import numpy as np

    arrays = [s.array(v) for v in op.operands]
    if any(a is None for a in arrays) or not _foldable(op):
        return None
    type_ = tensor(op.results[0])
    if type_.get_shape() and not shape(op.operands[0]):
        return None
    given = [a for a in arrays if a is not None]
    return _fold(s, compute(np.where, given, type_), type_)


@simplifies("clamp")
def clamp_of_constants(op: Operation, s: Simplifier) -> Values | None:
    """clamp(c, d, e) => constant"""
    import numpy as np

    arrays = [s.array(v) for v in op.operands]
    if any(a is None for a in arrays) or not _foldable(op):
        return None
    type_ = tensor(op.results[0])
    given = [a for a in arrays if a is not None]

    def clamped(low: Any, x: Any, high: Any) -> Any:
        return np.minimum(np.maximum(x, low), high)

    return _fold(s, compute(clamped, given, type_), type_)


def no_elements(op: Operation, s: Simplifier) -> Values | None:
    """Operands and lone results without elements => constants without elements"""
    if op.name == CONSTANT or not op.name.startswith("stablehlo."):
        return None
    if op.name in ("stablehlo.custom_call", "stablehlo.return"):
        return None
    changed = False
    for index, value in enumerate(op.operands):
        if s.array(value) is None and (empty := _empty(value.type, s)) is not None:
            put_operand(op, index, empty)
            changed = True
    if len(op.results) == 1 and (empty := _empty(op.results[0].type, s)) is not None:
        return (empty,)
    return () if changed else None


def _empty(type_: Attribute, s: Simplifier) -> SSAValue | None:
    """A constant of a type without elements; None for other types."""
    if not isinstance(type_, TensorType):
        return None
    sizes = cast("TensorType[Attribute]", type_).get_shape()
    if 0 not in sizes or DYNAMIC_INDEX in sizes:
        return None
    import numpy as np

    element = BY_MLIR.get(cast("TensorType[Attribute]", type_).element_type)
    if element is None:
        return None
    return s.constant(np.zeros(sizes, element.dtype), cast(Attribute, type_))


ANY_OP.append(no_elements)
