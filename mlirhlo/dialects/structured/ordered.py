"""Ops whose elements depend on their order along a dimension: scan, sort, top_k."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, TensorType, UnitAttr, i32, i64
from xdsl.ir import Attribute, Region, SSAValue
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
from mlirhlo.dialects.interned import UNIT, integer64
from mlirhlo.dialects.structured.base import (
    StructuredOp,
    check_body,
    check_tensor,
    element_types,
    same_sizes,
    sizes_of,
)


def _check_dimension(attribute: IntegerAttr, rank: int) -> int:
    dim = attribute.value.data
    if not 0 <= dim < rank:
        raise VerifyException(f"there is no dimension {dim} of {rank}")
    return dim


@irdl_op_definition
class ScanOp(StructuredOp):
    """A state carried along a dimension: cumulative sums and the like.

    `inits` are the first state, tensors of the inputs' shape without the dimension. The body takes an element of
    each input, then the state; it yields an element of each output, then the next state. Results: the outputs, of
    the inputs' shape, then the last state. `reverse` begins at the end; `associative` says that the body
    yields `f(state, x)` twice for an associative `f`, so that the order of folding is open.
    """

    name = "structured.scan"

    inputs = var_operand_def(base(TensorType))
    inits = var_operand_def(base(TensorType))
    dimension = prop_def(IntegerAttr.constr(i64))
    reverse = opt_prop_def(UnitAttr)
    associative = opt_prop_def(UnitAttr)
    outputs = var_result_def(base(TensorType))
    body = region_def("single_block")

    assembly_format = (
        "`ins` `(` $inputs `:` type($inputs) `)` `inits` `(` $inits `:` type($inits) `)` `dimension` $dimension"
        " (`reverse` $reverse^)? (`associative` $associative^)? attr-dict `->` type($outputs) $body"
    )
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        inits: Sequence[SSAValue],
        dimension: int,
        types: Sequence[Attribute],
        body: Region,
        *,
        reverse: bool = False,
        associative: bool = False,
    ) -> None:
        self.fill_fields(
            [inputs, inits],
            types,
            {
                "dimension": integer64(dimension),
                "reverse": UNIT if reverse else None,
                "associative": UNIT if associative else None,
            },
            [body],
        )

    @property
    def dim(self) -> int:
        """The dimension scanned."""
        return self.dimension.value.data

    def verify_(self) -> None:
        """States have the inputs' shape without the dimension; the body fits."""
        sizes = same_sizes(self.inputs, "inputs")
        dim = _check_dimension(self.dimension, len(sizes))
        rest = (*sizes[:dim], *sizes[dim + 1 :])
        split = len(self.outputs) - len(self.inits)
        if split < 0 or any(sizes_of(v) != sizes for v in self.outputs[:split]):
            raise VerifyException("outputs have the shape of the inputs")
        if any(sizes_of(v) != rest for v in (*self.inits, *self.outputs[split:])):
            raise VerifyException("states have the shape of the inputs without the dimension")
        states = element_types(self.inits)
        if element_types(self.outputs[split:]) != states:
            raise VerifyException("first and last states have the same types")
        arguments = [*element_types(self.inputs), *states]
        check_body(self.body, arguments, element_types(self.outputs), "body")


@irdl_op_definition
class SortOp(StructuredOp):
    """Tensors of one shape sorted together along a dimension.

    The comparator takes two elements of the first input, two of the second …, and tells whether the first ones
    stand before the second ones.
    """

    name = "structured.sort"

    inputs = var_operand_def(base(TensorType))
    dimension = prop_def(IntegerAttr.constr(i64))
    stable = opt_prop_def(UnitAttr)
    outputs = var_result_def(base(TensorType))
    comparator = region_def("single_block")

    assembly_format = (
        "`ins` `(` $inputs `:` type($inputs) `)` `dimension` $dimension (`stable` $stable^)? attr-dict"
        " `->` type($outputs) $comparator"
    )
    traits = traits_def(Pure())

    def __init__(
        self, inputs: Sequence[SSAValue], dimension: int, comparator: Region, *, stable: bool
    ) -> None:
        self.fill_fields(
            [inputs],
            [value.type for value in inputs],
            {"dimension": integer64(dimension), "stable": UNIT if stable else None},
            [comparator],
        )

    @property
    def dim(self) -> int:
        """The dimension sorted."""
        return self.dimension.value.data

    def verify_(self) -> None:
        """Results have the inputs' types; the comparator fits."""
        sizes = same_sizes(self.inputs, "inputs")
        _check_dimension(self.dimension, len(sizes))
        if [v.type for v in self.inputs] != [v.type for v in self.outputs]:
            raise VerifyException("the results have the types of the inputs")
        pairs = [element for element in element_types(self.inputs) for _ in range(2)]
        assert PRED.mlir is not None
        check_body(self.comparator, pairs, [PRED.mlir], "comparator")


@irdl_op_definition
class TopKOp(StructuredOp):
    """The first `k` elements of each row (the last dimension) in order, and their indices in it.

    Greatest first with `largest`, else least first; equal ones by index.
    """

    name = "structured.top_k"

    input = operand_def(base(TensorType))
    largest = opt_prop_def(UnitAttr)
    values = result_def(base(TensorType))
    indices = result_def(base(TensorType))

    assembly_format = "$input `:` type($input) (`largest` $largest^)? attr-dict `->` type($values) `,` type($indices)"
    traits = traits_def(Pure())

    def __init__(self, input_: SSAValue, k: int, *, largest: bool) -> None:
        sizes = (*sizes_of(input_)[:-1], k)
        (element,) = element_types([input_])
        super().__init__(
            operands=[input_],
            result_types=[TensorType(element, sizes), TensorType(i32, sizes)],
            properties={"largest": UnitAttr() if largest else None},
        )

    @property
    def k(self) -> int:
        """Elements kept of each row."""
        return sizes_of(self.values)[-1]

    def verify_(self) -> None:
        """Values and indices have `k` of each row."""
        source, values = check_tensor(self.input.type), check_tensor(self.values.type)
        sizes = source.get_shape()
        if not sizes or values.element_type != source.element_type:
            raise VerifyException("values have the input's element type")
        kept = values.get_shape()
        if kept[:-1] != sizes[:-1] or not kept or kept[-1] > sizes[-1]:
            raise VerifyException("values have the input's shape but for a shorter last dimension")
        if self.indices.type != TensorType(i32, kept):
            raise VerifyException("indices are i32 of the values' shape")
