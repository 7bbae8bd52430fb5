"""Result shapes that do not count as they are declared.

XLA's parser makes some instructions from their operands and looks at the declared shape in part or
not at all (`Opcode.declared_shape`); such a text is read as XLA reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute, SSAValue

from mlirhlo.dialects.hlo.shapes import Shape, TokenShape, TupleShape, array, compatible
from mlirhlo.dialects.hlo.table import DeclaredShape, Opcode
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.analysis import shape_inference
    from mlirhlo.analysis.shape_inference import base


_AFTER_DATA: Mapping[str, tuple[Shape, ...]] = {
    "infeed": (TokenShape(),),
    "recv": (array("u32"), TokenShape()),
}
"""Elements of the result behind the data, by opcode."""


def result_type(
    row: Opcode,
    operands: Sequence[SSAValue],
    declared: Attribute,
    properties: Mapping[str, Attribute],
) -> Attribute:
    """The type of an instruction whose shape is declared as `declared`.

    That is `declared` itself (the same object) where it fits or where operands break a constraint,
    about which the verifier says more.
    """
    shape = shape_of(declared)
    if row.declared_shape is DeclaredShape.DATA:
        counts = _with_data(row.name, shape)
    else:
        counts = _inferred(row.name, operands, shape, properties)
    return declared if compatible(counts, shape) else type_of(counts)


def _with_data(opcode: str, declared: Shape) -> Shape:
    if not isinstance(declared, TupleShape) or not declared.elements:
        return declared
    return TupleShape((declared.elements[0], *_AFTER_DATA[opcode]))


def _inferred(
    opcode: str, operands: Sequence[SSAValue], declared: Shape, properties: Mapping[str, Attribute]
) -> Shape:
    try:
        return shape_inference.infer(
            opcode, [shape_of(value.type) for value in operands], properties
        )
    except base.ConstraintError:
        return declared
