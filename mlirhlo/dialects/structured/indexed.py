"""Ops that read or write at indices given as operands: gather, scatter, select_and_scatter."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    AttrSizedOperandSegments,
    base,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from mlirhlo.dialects.hlo.element_types import PRED
from mlirhlo.dialects.interned import UNIT
from mlirhlo.dialects.quick import operands_of
from mlirhlo.dialects.structured.base import (
    StructuredOp,
    check_body,
    check_map,
    check_maps,
    check_tensor,
    element_types,
    ints_attribute,
    ints_of,
    maps_attribute,
    maps_of,
    same_sizes,
    sizes_of,
)
from mlirhlo.dialects.structured.dense import check_index


class _Indexed(StructuredOp):
    """Dimensions of an array that index operands are added to."""

    maps = prop_def(ArrayAttr)
    dimensions = prop_def(DenseArrayBase.constr(i64))
    limits = prop_def(DenseArrayBase.constr(i64))
    offsets = prop_def(AffineMapAttr)

    @property
    def index_maps(self) -> tuple[AffineMap, ...]:
        """From the iteration space to the indices of each index operand."""
        return maps_of(self.maps)

    @property
    def indexed(self) -> tuple[int, ...]:
        """The dimension that each index operand is added to."""
        return ints_of(self.dimensions)

    @property
    def largest(self) -> tuple[int, ...]:
        """The greatest valid value of each index operand."""
        return ints_of(self.limits)

    @property
    def offset_map(self) -> AffineMap:
        """From the iteration space to the offsets that the index operands are added to."""
        return self.offsets.data

    def check_indices(
        self, indices: Sequence[SSAValue], space: Sequence[int], sizes: Sequence[int]
    ) -> None:
        """Index operands are integers; maps, dimensions and limits fit them. Raises `VerifyException`."""
        for index in indices:
            check_index(index)
        check_maps(self.index_maps, indices, space, "index operands")
        dimensions, limits = self.indexed, self.largest
        if not len(dimensions) == len(limits) == len(indices):
            raise VerifyException("each index operand has a dimension and a limit")
        if len(set(dimensions)) != len(dimensions):
            raise VerifyException("a dimension has one index operand")
        room = list(sizes)
        for dim, limit in zip(dimensions, limits, strict=True):
            if not 0 <= dim < len(sizes) or not 0 <= limit <= max(sizes[dim] - 1, 0):
                raise VerifyException(f"dimension {dim} with limit {limit} is out of bounds")
            room[dim] = sizes[dim] - limit
        check_map(self.offset_map, room, space, "the map of the offsets")


def _indexed_properties(
    maps: Sequence[AffineMap], dimensions: Sequence[int], limits: Sequence[int], offsets: AffineMap
) -> dict[str, Attribute]:
    return {
        "maps": maps_attribute(maps),
        "dimensions": ints_attribute(dimensions),
        "limits": ints_attribute(limits),
        "offsets": AffineMapAttr(offsets),
    }


@irdl_op_definition
class GatherOp(_Indexed):
    """Elements read at indices that are data: gathers, dynamic slices.

    The iteration space is the shape of the result. The index read is `offsets` of it; to dimension
    `dimensions[k]` the element of index operand `k` at its mapped index is added, clamped to 0 … `limits[k]`.
    """

    name = "structured.gather"

    source = operand_def(base(TensorType))
    indices = var_operand_def(base(TensorType))
    output = result_def(base(TensorType))

    assembly_format = (
        "$source `:` type($source) `indices` `(` ($indices^ `:` type($indices))? `)` `maps` $maps"
        " `dimensions` $dimensions `limits` $limits `offsets` $offsets attr-dict `->` type($output)"
    )
    traits = traits_def(Pure())

    def __init__(
        self,
        source: SSAValue,
        indices: Sequence[SSAValue],
        maps: Sequence[AffineMap],
        dimensions: Sequence[int],
        limits: Sequence[int],
        offsets: AffineMap,
        type_: Attribute,
    ) -> None:
        super().__init__(
            operands=[source, indices],
            result_types=[type_],
            properties=_indexed_properties(maps, dimensions, limits, offsets),
        )

    @property
    def space(self) -> tuple[int, ...]:
        """Sizes of the iteration space."""
        return sizes_of(self.output)

    def verify_(self) -> None:
        """Maps, dimensions and limits fit source and result."""
        source, result = check_tensor(self.source.type), check_tensor(self.output.type)
        if source.element_type != result.element_type:
            raise VerifyException("source and result have one element type")
        self.check_indices(self.indices, self.space, source.get_shape())


@irdl_op_definition
class ScatterOp(_Indexed):
    """Updates combined into copies of the targets at indices that are data.

    The iteration space is the shape of the updates. The index written is `offsets` of it; to dimension
    `dimensions[k]` the element of index operand `k` at its mapped index is added. An update with an index
    operand outside of 0 … `limits[k]` is dropped. The combiner takes the targets' elements and the updates'.
    """

    name = "structured.scatter"

    targets = var_operand_def(base(TensorType))
    indices = var_operand_def(base(TensorType))
    updates = var_operand_def(base(TensorType))
    unique_indices = opt_prop_def(UnitAttr)
    """No two updates go to one element."""
    indices_are_sorted = opt_prop_def(UnitAttr)
    outputs = var_result_def(base(TensorType))
    combiner = region_def("single_block")

    assembly_format = (
        "`targets` `(` $targets `:` type($targets) `)` `indices` `(` ($indices^ `:` type($indices))? `)`"
        " `maps` $maps `updates` `(` $updates `:` type($updates) `)` `dimensions` $dimensions"
        " `limits` $limits `offsets` $offsets (`unique` $unique_indices^)? (`sorted` $indices_are_sorted^)? attr-dict"
        " `->` type($outputs) $combiner"
    )
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        targets: Sequence[SSAValue],
        indices: Sequence[SSAValue],
        updates: Sequence[SSAValue],
        maps: Sequence[AffineMap],
        dimensions: Sequence[int],
        limits: Sequence[int],
        offsets: AffineMap,
        combiner: Region,
        *,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
    ) -> None:
        self.fill_fields(
            [targets, indices, updates],
            [target.type for target in targets],
            {
                **_indexed_properties(maps, dimensions, limits, offsets),
                "unique_indices": UNIT if unique_indices else None,
                "indices_are_sorted": UNIT if indices_are_sorted else None,
            },
            [combiner],
        )

    @property
    def space(self) -> tuple[int, ...]:
        """Sizes of the iteration space."""
        return sizes_of(operands_of(self)[-1])

    def verify_(self) -> None:
        """Targets, updates, maps and combiner fit each other."""
        sizes = same_sizes(self.targets, "targets")
        space = same_sizes(self.updates, "updates")
        if [v.type for v in self.targets] != [v.type for v in self.outputs]:
            raise VerifyException("the results have the types of the targets")
        elements = element_types(self.targets)
        if element_types(self.updates) != elements:
            raise VerifyException("updates have the element types of the targets")
        self.check_indices(self.indices, space, sizes)
        check_body(self.combiner, [*elements, *elements], elements, "combiner")


@irdl_op_definition
class SelectAndScatterOp(StructuredOp):
    """Each element of `source` combined in where the selected element of its window of `operand` stands.

    The result begins as `init`. Window `w` has its first element at `w * window_strides - padding_low` of the
    operand dilated by `base_dilations`; what is outside or in a gap takes no part. The first element stays selected
    until `select(selected, other)` is false. `select` and `combiner` take two elements each.
    """

    name = "structured.select_and_scatter"

    operand = operand_def(base(TensorType))
    source = operand_def(base(TensorType))
    init = operand_def(base(TensorType))
    window_sizes = prop_def(DenseArrayBase.constr(i64))
    window_strides = prop_def(DenseArrayBase.constr(i64))
    window_dilations = prop_def(DenseArrayBase.constr(i64))
    base_dilations = prop_def(DenseArrayBase.constr(i64))
    padding_low = prop_def(DenseArrayBase.constr(i64))
    output = result_def(base(TensorType))
    select = region_def("single_block")
    combiner = region_def("single_block")

    assembly_format = (
        "$operand `,` $source `,` $init `:` type($operand) `,` type($source) `,` type($init) `windows` $window_sizes"
        " `strides` $window_strides `dilations` $window_dilations `base` $base_dilations `low` $padding_low attr-dict"
        " `->` type($output) $select `combiner` $combiner"
    )
    traits = traits_def(Pure())

    def verify_(self) -> None:
        """Windows have the operand's rank; types agree."""
        operand, source = check_tensor(self.operand.type), check_tensor(self.source.type)
        element = operand.element_type
        rank = len(operand.get_shape())
        if self.output.type != operand:
            raise VerifyException("the result has the type of the operand")
        if source.element_type != element or len(source.get_shape()) != rank:
            raise VerifyException("the source has the operand's element type and rank")
        if sizes_of(self.init) or element_types([self.init]) != [element]:
            raise VerifyException("the initial value is a scalar of the operand's element type")
        rows = (
            self.window_sizes,
            self.window_strides,
            self.window_dilations,
            self.base_dilations,
            self.padding_low,
        )
        if any(len(ints_of(row)) != rank for row in rows):
            raise VerifyException("the window has the rank of the operand")
        if any(number < 1 for row in rows[1:4] for number in ints_of(row)):
            raise VerifyException("strides and dilations are positive")
        assert PRED.mlir is not None
        check_body(self.select, [element, element], [PRED.mlir], "selection")
        check_body(self.combiner, [element, element], [element], "combiner")
