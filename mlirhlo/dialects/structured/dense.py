"""Ops that read at indices known beforehand: map, assemble, fold, contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Region, SSAValue, TypeAttribute
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    AttrSizedOperandSegments,
    base,
    irdl_op_definition,
    opt_operand_def,
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

from mlirhlo.dialects.hlo.element_types import BY_MLIR, PRED
from mlirhlo.dialects.structured.base import (
    StructuredOp,
    check_body,
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

DYNAMIC = -(1 << 63)
"""Stands in `offsets` for an offset that the next index operand gives."""


@irdl_op_definition
class MapOp(StructuredOp):
    """Each element of the results computed from one element of every input.

    The iteration space is the shape of the results; the body gets the inputs' elements at the mapped indices.
    Broadcasts, transposes, slices, reshapes and iota are maps like any other.
    """

    name = "structured.map"

    inputs = var_operand_def(base(TensorType))
    maps = prop_def(ArrayAttr)
    outputs = var_result_def(base(TensorType))
    body = region_def("single_block")

    assembly_format = "`ins` `(` ($inputs^ `:` type($inputs))? `)` `maps` $maps attr-dict `->` type($outputs) $body"
    traits = traits_def(Pure())

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        maps: Sequence[AffineMap],
        types: Sequence[Attribute],
        body: Region,
    ) -> None:
        super().__init__(
            operands=[inputs],
            result_types=[types],
            properties={"maps": maps_attribute(maps)},
            regions=[body],
        )

    @property
    def index_maps(self) -> tuple[AffineMap, ...]:
        """From the iteration space to the indices of each input."""
        return maps_of(self.maps)

    @property
    def space(self) -> tuple[int, ...]:
        """Sizes of the iteration space."""
        return sizes_of(self.outputs[0])

    def verify_(self) -> None:
        """Results have one shape; maps and body fit inputs and results."""
        space = same_sizes(self.outputs, "results")
        check_maps(self.index_maps, self.inputs, space, "inputs")
        elements = element_types(self.inputs)
        check_body(self.body, elements, element_types(self.outputs), "body", len(space))


@irdl_op_definition
class AssembleOp(StructuredOp):
    """A tensor put together from pieces: pads, concatenations, updated slices.

    Element `i` of piece `p` stands at `offset[p] + i * stride[p]` in each dimension; what falls outside of the
    result is dropped. A later piece covers an earlier one, `fill` stands where there is none. An offset that is
    dynamic is the next of `indices`, clamped so that the piece lies inside of the result.
    """

    name = "structured.assemble"

    pieces = var_operand_def(base(TensorType))
    fill = opt_operand_def(base(TensorType))
    indices = var_operand_def(base(TensorType))
    offsets = prop_def(ArrayAttr)
    strides = prop_def(ArrayAttr)
    output = result_def(base(TensorType))

    assembly_format = (
        "`pieces` `(` $pieces `:` type($pieces) `)` (`fill` `(` $fill^ `:` type($fill) `)`)?"
        " (`indices` `(` $indices^ `:` type($indices) `)`)? `offsets` $offsets"
        " `strides` $strides attr-dict `->` type($output)"
    )
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        pieces: Sequence[SSAValue],
        offsets: Sequence[Sequence[int]],
        type_: Attribute,
        *,
        strides: Sequence[Sequence[int]] | None = None,
        fill: SSAValue | None = None,
        indices: Sequence[SSAValue] = (),
    ) -> None:
        if strides is None:
            strides = [[1] * len(row) for row in offsets]
        super().__init__(
            operands=[pieces, [] if fill is None else [fill], indices],
            result_types=[type_],
            properties={
                "offsets": ArrayAttr([ints_attribute(row) for row in offsets]),
                "strides": ArrayAttr([ints_attribute(row) for row in strides]),
            },
        )

    @property
    def piece_offsets(self) -> tuple[tuple[int, ...], ...]:
        """Index of each piece's first element; `DYNAMIC` where an index operand gives it."""
        return tuple(ints_of(row) for row in self.offsets.data)

    @property
    def piece_strides(self) -> tuple[tuple[int, ...], ...]:
        """Steps between neighbours of each piece in the result."""
        return tuple(ints_of(row) for row in self.strides.data)

    def verify_(self) -> None:
        """Pieces, offsets and strides fit the result; a fill is a scalar of its type."""
        type_ = check_tensor(self.output.type)
        rank = len(type_.get_shape())
        offsets, strides = self.piece_offsets, self.piece_strides
        if not len(self.pieces) == len(offsets) == len(strides):
            raise VerifyException("each piece has a row of offsets and a row of strides")
        for piece, row, steps in zip(self.pieces, offsets, strides, strict=True):
            if check_tensor(piece.type).element_type != type_.element_type:
                raise VerifyException("pieces have the element type of the result")
            if not len(sizes_of(piece)) == len(row) == len(steps) == rank:
                raise VerifyException("pieces, offsets and strides have the rank of the result")
            if any(step < 1 for step in steps):
                raise VerifyException("strides are positive")
            for size, offset, step, whole in zip(
                sizes_of(piece), row, steps, type_.get_shape(), strict=True
            ):
                if offset == DYNAMIC and (step != 1 or size > whole):
                    raise VerifyException(
                        "a piece at a dynamic offset is dense and fits the result"
                    )
        if self.fill is not None and (
            sizes_of(self.fill) or element_types([self.fill]) != [type_.element_type]
        ):
            raise VerifyException("the fill is a scalar of the result's element type")
        if sum(row.count(DYNAMIC) for row in offsets) != len(self.indices):
            raise VerifyException("there is an index operand for each dynamic offset")
        for index in self.indices:
            check_index(index)
            if sizes_of(index):
                raise VerifyException("a dynamic offset is a scalar")


def check_index(value: SSAValue) -> None:
    """`value` holds integers. Raises `VerifyException`."""
    element = check_tensor(value.type).element_type
    if not BY_MLIR[element].is_integer:
        raise VerifyException("index operands hold integers")


@irdl_op_definition
class FoldOp(StructuredOp):
    """Elements folded by a combiner: reductions, windows.

    The iteration space is the shape of the results, then `sizes`, the folded dimensions. The body makes of the
    inputs' elements those that are folded, one a result, in the guarded form also a pred whether they take part.
    The combiner makes of the state and the next elements the next state; the first one is `inits`. It is
    associative: the order of folding is open, that of the operands row-major.
    """

    name = "structured.fold"

    inputs = var_operand_def(base(TensorType))
    inits = var_operand_def(base(TensorType))
    maps = prop_def(ArrayAttr)
    sizes = prop_def(DenseArrayBase.constr(i64))
    guarded = opt_prop_def(UnitAttr)
    outputs = var_result_def(base(TensorType))
    body = region_def("single_block")
    combiner = region_def("single_block")

    assembly_format = (
        "`ins` `(` ($inputs^ `:` type($inputs))? `)` `maps` $maps `inits` `(` $inits `:` type($inits) `)`"
        " `sizes` $sizes (`guarded` $guarded^)? attr-dict `->` type($outputs) $body `combiner` $combiner"
    )
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        maps: Sequence[AffineMap],
        inits: Sequence[SSAValue],
        sizes: Sequence[int],
        types: Sequence[Attribute],
        body: Region,
        combiner: Region,
        *,
        guarded: bool = False,
    ) -> None:
        super().__init__(
            operands=[inputs, inits],
            result_types=[types],
            properties={
                "maps": maps_attribute(maps),
                "sizes": ints_attribute(sizes),
                "guarded": UnitAttr() if guarded else None,
            },
            regions=[body, combiner],
        )

    @property
    def index_maps(self) -> tuple[AffineMap, ...]:
        """From the iteration space to the indices of each input."""
        return maps_of(self.maps)

    @property
    def folded(self) -> tuple[int, ...]:
        """Sizes of the folded dimensions."""
        return ints_of(self.sizes)

    @property
    def space(self) -> tuple[int, ...]:
        """Sizes of the iteration space: dimensions of the results, then those folded."""
        return (*sizes_of(self.outputs[0]), *self.folded)

    def verify_(self) -> None:
        """Maps, body, combiner and initial values fit inputs and results."""
        same_sizes(self.outputs, "results")
        space = self.space
        check_maps(self.index_maps, self.inputs, space, "inputs")
        elements = element_types(self.outputs)
        if any(sizes_of(init) for init in self.inits) or element_types(self.inits) != elements:
            raise VerifyException("there is an initial scalar of the element type of each result")
        guard = [] if self.guarded is None else [cast(Attribute, PRED.mlir)]
        check_body(self.body, element_types(self.inputs), [*elements, *guard], "body", len(space))
        check_body(self.combiner, [*elements, *elements], elements, "combiner")


@irdl_op_definition
class ContractOp(StructuredOp):
    """Sums of products: dots and convolutions.

    The iteration space is the shape of the result, then `sizes`, the contracted dimensions. The body makes of the
    inputs' elements the two that are multiplied; products are summed in the type `accumulator`, in an open order,
    and the sum is converted to the result's type.
    """

    name = "structured.contract"

    inputs = var_operand_def(base(TensorType))
    maps = prop_def(ArrayAttr)
    sizes = prop_def(DenseArrayBase.constr(i64))
    accumulator = prop_def(TypeAttribute)
    output = result_def(base(TensorType))
    body = region_def("single_block")

    assembly_format = (
        "`ins` `(` $inputs `:` type($inputs) `)` `maps` $maps `sizes` $sizes `accumulator` $accumulator"
        " attr-dict `->` type($output) $body"
    )
    traits = traits_def(Pure())

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        maps: Sequence[AffineMap],
        sizes: Sequence[int],
        accumulator: Attribute,
        type_: Attribute,
        body: Region,
    ) -> None:
        super().__init__(
            operands=[inputs],
            result_types=[type_],
            properties={
                "maps": maps_attribute(maps),
                "sizes": ints_attribute(sizes),
                "accumulator": accumulator,
            },
            regions=[body],
        )

    @property
    def index_maps(self) -> tuple[AffineMap, ...]:
        """From the iteration space to the indices of each input."""
        return maps_of(self.maps)

    @property
    def contracted(self) -> tuple[int, ...]:
        """Sizes of the contracted dimensions."""
        return ints_of(self.sizes)

    @property
    def space(self) -> tuple[int, ...]:
        """Sizes of the iteration space: dimensions of the result, then those contracted."""
        return (*sizes_of(self.output), *self.contracted)

    def verify_(self) -> None:
        """Maps and body fit inputs and result."""
        check_tensor(self.output.type)
        for value in self.inputs:
            check_tensor(value.type)
        space = self.space
        check_maps(self.index_maps, self.inputs, space, "inputs")
        if self.accumulator not in BY_MLIR:
            raise VerifyException(f"{self.accumulator} is not an HLO element type")
        factors = (
            [v.type for v in self.body.block.last_op.operands] if self.body.block.last_op else []
        )
        if len(factors) != 2:
            raise VerifyException("the body yields the two elements that are multiplied")
        both = [check_tensor(factor).element_type for factor in factors]
        check_body(self.body, element_types(self.inputs), both, "body", len(space))
