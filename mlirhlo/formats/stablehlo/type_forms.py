"""The ways in which pretty forms give the types of operands and results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ComplexType, TensorType, TupleType
from xdsl.ir import Attribute, Operation

from mlirhlo.formats.stablehlo.reader_types import tensor_type
from mlirhlo.formats.stablehlo.scan import BAD_VALUE

if TYPE_CHECKING:
    from mlirhlo.formats.stablehlo.printer import Printer
    from mlirhlo.formats.stablehlo.reader import Reader
    from mlirhlo.formats.stablehlo.templates import Draft


@dataclass(frozen=True, slots=True)
class TypeForm:
    """How types are read and printed."""

    read: Callable[[Reader, Draft], None]
    text: Callable[[Printer, Operation], str]


def _result_count(draft: Draft) -> int:
    return len(draft.row.results)


def _read_functional(reader: Reader, draft: Draft) -> None:
    draft.operand_types, draft.result_types = reader.function_types()


def _functional(printer: Printer, op: Operation) -> str:
    return printer.functional_type(op)


def _read_same(reader: Reader, draft: Draft) -> None:
    if reader.at("("):
        return _read_functional(reader, draft)
    type_ = reader.type()
    draft.operand_types = [type_] * len(draft.uses)
    draft.result_types = [type_] * _result_count(draft)
    return None


def _same(printer: Printer, op: Operation) -> str:
    types = [*(v.type for v in op.operands), *(v.type for v in op.results)]
    first = types[0]
    if all(t is first or t == first for t in types):
        return printer.type(first)
    return printer.functional_type(op)


def _read_results(reader: Reader, draft: Draft) -> None:
    draft.result_types = [reader.type()]
    while reader.accept(","):
        draft.result_types.append(reader.type())


def _results(printer: Printer, op: Operation) -> str:
    return ", ".join(printer.type(v.type) for v in op.results)


def _read_optional_types(reader: Reader, draft: Draft) -> None:
    if reader.accept(":"):
        draft.operand_types = [reader.type()]
        while reader.accept(","):
            draft.operand_types.append(reader.type())


def _optional_types(printer: Printer, op: Operation) -> str:
    if not op.operands:
        return ""
    return f" : {', '.join(printer.type(v.type) for v in op.operands)}"


def _read_arrow(reader: Reader, draft: Draft) -> None:
    draft.operand_types = [reader.type()]
    while reader.accept(","):
        draft.operand_types.append(reader.type())
    reader.need("->")
    draft.result_types = reader.type_list() if reader.at("(") else [reader.type()]


def _arrow(printer: Printer, op: Operation) -> str:
    operands = ", ".join(printer.type(v.type) for v in op.operands)
    results = _results(printer, op)
    return f"{operands} -> {results if len(op.results) == 1 else f'({results})'}"


def _read_select(reader: Reader, draft: Draft) -> None:
    if reader.at("("):
        return _read_functional(reader, draft)
    pred = reader.type()
    reader.need(",")
    type_ = reader.type()
    draft.operand_types = [pred, type_, type_]
    draft.result_types = [type_]
    return None


def _select(printer: Printer, op: Operation) -> str:
    pred, on_true, on_false = (v.type for v in op.operands)
    if on_true == on_false == op.results[0].type:
        return f"{printer.type(pred)}, {printer.type(on_true)}"
    return printer.functional_type(op)


def _real_part(type_: Attribute) -> Attribute | None:
    if not isinstance(type_, TensorType):
        return None
    tensor = cast("TensorType[Attribute]", type_)
    element: Attribute = tensor.element_type
    if not isinstance(element, ComplexType):
        return None
    inner: Attribute = cast("ComplexType[Any]", element).element_type
    return tensor_type(inner, [d.data for d in tensor.shape.data], tensor.encoding)


def _read_complex(reader: Reader, draft: Draft) -> None:
    if reader.at("("):
        return _read_functional(reader, draft)
    at = reader.skip()
    type_ = reader.type()
    real = _real_part(type_)
    if real is None:
        reader.fail("expected a tensor of complex numbers", at, code=BAD_VALUE)
    draft.operand_types = [real, real]
    draft.result_types = [type_]
    return None


def _complex(printer: Printer, op: Operation) -> str:
    real = _real_part(op.results[0].type)
    if all(v.type == real for v in op.operands):
        return printer.type(op.results[0].type)
    return printer.functional_type(op)


def _read_tuple(reader: Reader, draft: Draft) -> None:
    if reader.at("("):
        return _read_functional(reader, draft)
    at = reader.skip()
    type_ = reader.type()
    if not isinstance(type_, TupleType):
        reader.fail("expected a tuple type", at, code=BAD_VALUE)
    draft.operand_types = list(cast("Sequence[Attribute]", type_.types.data))
    draft.result_types = [type_]
    return None


def _tuple(printer: Printer, op: Operation) -> str:
    type_ = op.results[0].type
    if isinstance(type_, TupleType) and [v.type for v in op.operands] == list(
        cast("Sequence[Attribute]", type_.types.data)
    ):
        return printer.type(type_)
    return printer.functional_type(op)


TYPE_FORMS = {
    "arrow": TypeForm(_read_arrow, _arrow),
    "complex": TypeForm(_read_complex, _complex),
    "functional": TypeForm(_read_functional, _functional),
    "results": TypeForm(_read_results, _results),
    "same": TypeForm(_read_same, _same),
    "select": TypeForm(_read_select, _select),
    "tuple": TypeForm(_read_tuple, _tuple),
    "types?": TypeForm(_read_optional_types, _optional_types),
}
"""Type forms by their name in templates."""
