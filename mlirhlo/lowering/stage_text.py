"""Modules of the stages below HLO as text that MLIR and xDSL both read."""

from __future__ import annotations

from io import StringIO
from typing import Any, cast

from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import Attribute
from xdsl.printer import Printer

from mlirhlo.formats.mlir.printer import MlirPrinter


def print_stage(module: ModuleOp, *, is_generic: bool = False) -> str:
    """A module as the file of its stage holds it; every op in the generic form on request."""
    stream = StringIO()
    _StagePrinter(stream, print_generic_format=is_generic).print_op(module)
    return f"{stream.getvalue()}\n"


class _StagePrinter(MlirPrinter):
    """The printer of HLO's MLIR form, but for vectors of floats that it spells by their bits, element by element.

    MLIR reads `dense<0xFF800000>` as bits, xDSL as the number; both read one string of the elements' bytes.
    """

    def print_attribute(self, attribute: Attribute) -> None:
        """As `Printer`."""
        if isinstance(attribute, DenseIntOrFPElementsAttr):
            dense = cast(Any, attribute)
            if isinstance(dense.get_element_type(), AnyFloat):
                self.print_string(_floats(dense))
                return
        super().print_attribute(cast(Attribute, attribute))


def _floats(dense: Any) -> str:
    """A constant of floats: decimals where each element has one, else bytes."""
    stream = StringIO()
    Printer(stream).print_attribute(dense)
    elements, _, type_ = stream.getvalue().rpartition("> : ")
    data: bytes = dense.data.data
    count = len(dense)
    is_splat = count > 0 and data == data[: len(data) // count] * count
    if "0x" in elements or (dense.is_splat() and not is_splat):  # zeros of both signs
        elements = f'dense<"0x{data.hex().upper()}"'
    return f"{elements}> : {type_}"
