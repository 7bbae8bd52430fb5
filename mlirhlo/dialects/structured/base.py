"""What the structured ops share: access to sizes, maps and bodies, and the checks of all three."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    NoneAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

from mlirhlo.dialects.hlo.element_types import BY_MLIR
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.interned import integers32, integers64
from mlirhlo.dialects.quick import array_of, fill_op, unchecked

ULP = "structured.ulp"
"""An attribute of quotients of floats in bodies: units in the last place that they may be off; 1/2 without it."""


class StructuredOp(IRDLOperation):
    """An op of a kernel: tensors in, tensors out, no side effect."""

    __hash__ = object.__hash__

    def fill_fields(
        self,
        operands: Sequence[Sequence[SSAValue]],
        types: Sequence[Attribute],
        properties: Mapping[str, Attribute | None],
        regions: Sequence[Region] = (),
    ) -> None:
        """What xDSL's constructor does, without its checks; `operands` by the fields that hold them."""
        kept = {key: value for key, value in properties.items() if value is not None}
        if len(operands) > 1:
            kept["operandSegmentSizes"] = integers32(*map(len, operands))
        fill_op(self, [value for part in operands for value in part], types, kept, regions)


def check_tensor(type_: Attribute) -> TensorType[Attribute]:
    """`type_` as a static row-major tensor of an HLO element type. Raises `VerifyException`."""
    if not isinstance(type_, TensorType):
        raise VerifyException(f"{type_} is not a tensor")
    if not isinstance(type_.encoding, NoneAttr) or any(size < 0 for size in type_.get_shape()):
        raise VerifyException(f"{type_} is not static and row-major")
    tensor = cast("TensorType[Attribute]", type_)
    if tensor.element_type not in BY_MLIR:
        raise VerifyException(f"{tensor.element_type} is not an HLO element type")
    return tensor


def sizes_of(value: SSAValue) -> tuple[int, ...]:
    """Sizes of a tensor."""
    return cast("TensorType[Attribute]", value.type).get_shape()


def element_types(values: Iterable[SSAValue]) -> list[Attribute]:
    """Element types of tensors."""
    return [cast("TensorType[Attribute]", value.type).element_type for value in values]


def scalar_of(element: Attribute) -> TensorType[Any]:
    """The type of a scalar in a body."""
    return TensorType(element, [])


@lru_cache(maxsize=1024)
def identity_map(rank: int) -> AffineMap:
    """`(d0, d1, …) -> (d0, d1, …)`."""
    return AffineMap(rank, 0, tuple(AffineExpr.dimension(dim) for dim in range(rank)))


def maps_of(attribute: Attribute) -> tuple[AffineMap, ...]:
    """The maps of an array of `affine_map`s."""
    return tuple(m.data for m in cast("ArrayAttr[AffineMapAttr]", attribute).data)


def maps_attribute(maps: Iterable[AffineMap]) -> ArrayAttr[AffineMapAttr]:
    """The attribute that holds `maps`."""
    return array_of([unchecked(AffineMapAttr, data=m) for m in maps])


def ints_attribute(numbers: Iterable[int]) -> DenseArrayBase[Any]:
    """The attribute that holds `numbers`."""
    return integers64(*numbers)


def ints_of(attribute: Attribute | None) -> tuple[int, ...]:
    """The numbers of an `array<i64: …>`; `()` when absent."""
    if attribute is None:
        return ()
    return tuple(int(n) for n in cast("DenseArrayBase[Any]", attribute).get_values())


def same_sizes(values: Sequence[SSAValue], what: str) -> tuple[int, ...]:
    """The sizes that all `values` have. Raises `VerifyException`."""
    for value in values:
        check_tensor(value.type)
    if not values:
        raise VerifyException(f"there are no {what}")
    sizes = sizes_of(values[0])
    if any(sizes_of(value) != sizes for value in values):
        raise VerifyException(f"the sizes of the {what} differ")
    return sizes


def check_maps(
    maps: Sequence[AffineMap], values: Sequence[SSAValue], space: Sequence[int], what: str
) -> None:
    """There is a map from `space` to the dimensions of each value. Raises `VerifyException`."""
    if len(maps) != len(values):
        raise VerifyException(f"{len(values)} {what} have {len(maps)} maps")
    for number, (map_, value) in enumerate(zip(maps, values, strict=True)):
        check_map(map_, sizes_of(value), space, f"map {number} of the {what}")


def check_map(map_: AffineMap, sizes: Sequence[int], space: Sequence[int], what: str) -> None:
    """`map_` takes `space` into `sizes`; indices that are linear are held against the bounds."""
    if map_.num_symbols or map_.num_dims != len(space) or len(map_.results) != len(sizes):
        raise VerifyException(
            f"{what} goes from {map_.num_dims} to {len(map_.results)} dimensions, "
            f"where {len(space)} and {len(sizes)} are expected"
        )
    if 0 in space:
        return
    for dim, (result, size) in enumerate(zip(map_.results, sizes, strict=True)):
        for part in result.dfs():
            if isinstance(part, AffineDimExpr) and part.position >= len(space):
                raise VerifyException(f"{what} names d{part.position}, which does not exist")
        reach = linear_range(result, space)
        if reach is not None and (reach[0] < 0 or reach[1] >= size):
            raise VerifyException(
                f"{what} reads dimension {dim} of size {size} at {reach[0]} to {reach[1]}"
            )


def linear_range(expr: AffineExpr, space: Sequence[int]) -> tuple[int, int] | None:
    """Least and greatest value over `space`; None for a sum that names a dimension twice, where they depend
    on each other, or that divides."""
    found = _linear(expr)
    if found is None:
        return None
    coefficients, constant = found
    low = high = constant
    for dim, factor in coefficients.items():
        reach = factor * (space[dim] - 1)
        low, high = low + min(0, reach), high + max(0, reach)
    return low, high


def _linear(expr: AffineExpr) -> tuple[dict[int, int], int] | None:
    """Coefficients of the dimensions and the constant of a linear expression."""
    coefficients: dict[int, int] = {}
    constant = 0
    stack: list[tuple[AffineExpr, int]] = [(expr, 1)]
    while stack:
        part, factor = stack.pop()
        match part:
            case AffineConstantExpr():
                constant += factor * part.value
            case AffineDimExpr():
                coefficients[part.position] = coefficients.get(part.position, 0) + factor
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add):
                stack += [(part.lhs, factor), (part.rhs, factor)]
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul) if isinstance(
                part.rhs, AffineConstantExpr
            ):
                stack.append((part.lhs, factor * part.rhs.value))
            case _:
                return None
    return coefficients, constant


def check_body(
    region: Region,
    arguments: Sequence[Attribute],
    yielded: Sequence[Attribute],
    what: str,
    rank: int = 0,
) -> None:
    """The body takes and yields scalars of these element types. Raises `VerifyException`.

    `rank`: dimensions that `structured.index` may name.
    """
    from mlirhlo.dialects.structured.kernel import IndexOp, YieldOp

    block = region.block
    if list(block.arg_types) != [scalar_of(element) for element in arguments]:
        raise VerifyException(f"the {what} takes scalars of other types than the op gives it")
    ending = block.last_op
    if not isinstance(ending, YieldOp):
        raise VerifyException(f"the {what} ends in structured.yield")
    if [v.type for v in ending.operands] != [scalar_of(element) for element in yielded]:
        raise VerifyException(f"the {what} yields other types than the op needs")
    for op in block.ops:
        if isinstance(op, IndexOp):
            if op.dimension >= rank:
                raise VerifyException(f"the {what} has no dimension {op.dimension}")
        elif op is not ending:
            _check_scalar(op, what)


def _check_scalar(op: Operation, what: str) -> None:
    if not isinstance(op, Instruction) or not (op.opcode.elementwise or op.name in SCALAR_OPS):
        raise VerifyException(f"the {what} holds elementwise HLO instructions, not {op.name}")
    if sizes_of(op.output):
        raise VerifyException(f"the {what} works on scalars, not on {op.output.type}")
    ulp = op.attributes.get(ULP)
    if ulp is not None:
        is_float = BY_MLIR[cast(Any, op.output.type).element_type].is_float
        if op.opcode.name != "divide" or not is_float or not isinstance(ulp, IntegerAttr):
            raise VerifyException(f"{ULP} is an integer, of quotients of floats in the {what}")


SCALAR_OPS = frozenset({"hlo.bitcast_convert", "hlo.constant"})
"""Instructions of bodies that are not elementwise on arrays."""


def yielded(region: Region) -> tuple[SSAValue, ...]:
    """The values that a body yields."""
    return tuple(cast(Operation, region.block.last_op).operands)


def passes_through(region: Region) -> bool:
    """Whether a body yields its arguments, in order, and does nothing else."""
    block: Block = region.block
    return block.first_op is block.last_op and yielded(region) == tuple(block.args)
