"""Source places in every form MLIR has. Most are xDSL's; built without its checks, which know fewer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, BuiltinAttribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from mlirhlo.dialects.quick import file_location

LocT = TypeVar("LocT", bound=Attribute)


@dataclass(frozen=True, slots=True)
class FileRange:
    """From a line and column to another of the same file."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


@irdl_attr_definition
class FileRangeLoc(Data[FileRange], BuiltinAttribute):
    """`loc("f.py":1:2 to 3:4)`."""

    name = "builtin.file_range_loc"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> FileRange:
        """Not used: locations are syntax of the builtin dialect."""
        parser.raise_error("write loc(…)")

    def print_parameter(self, printer: Printer) -> None:
        """As `print_builtin`."""
        self.print_builtin(printer)

    def print_builtin(self, printer: Printer) -> None:
        """Prints the location."""
        from mlirhlo.dialects.stablehlo.locations import location_body

        printer.print_string(f"loc({location_body(self)})")


LOCATIONS = (UnknownLoc, FileLineColLoc, NameLoc, CallSiteLoc, FusedLoc, FileRangeLoc)


def is_location(attribute: Attribute) -> bool:
    """Whether an attribute is a source place."""
    return isinstance(attribute, LOCATIONS)


def _make(cls: type[LocT], **fields: Attribute) -> LocT:
    made = cls.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def name_loc(name: str, child: Attribute | None) -> NameLoc:
    """A name, possibly of another place."""
    return _make(NameLoc, desc=StringAttr(name), location=child or NoneAttr())


def file_loc(file: str, line: int, column: int) -> FileLineColLoc:
    """A point in a file."""
    return file_location(StringAttr(file), IntAttr(line), IntAttr(column))


def call_loc(callee: Attribute, caller: Attribute) -> CallSiteLoc:
    """A place inlined into another."""
    return _make(CallSiteLoc, callee=callee, caller=caller)


def fused_loc(places: list[Attribute], metadata: Attribute | None) -> FusedLoc:
    """Several places at once."""
    return _make(FusedLoc, locations=ArrayAttr(places), metadata=metadata or NoneAttr())


def children(location: Attribute) -> tuple[Attribute, ...]:
    """The attributes directly in a place, in the order in which they are printed."""
    match location:
        case NameLoc():
            return () if isinstance(location.location, NoneAttr) else (location.location,)
        case CallSiteLoc():
            return (location.callee, location.caller)
        case FusedLoc():
            inner = tuple(cast("ArrayAttr[Attribute]", location.locations).data)
            return inner if isinstance(location.metadata, NoneAttr) else (location.metadata, *inner)
        case _:
            return ()


def location_body(location: Attribute, show: Any = None) -> str:
    """What stands in `loc(…)`; `show` prints inner places and other attributes."""
    show = show or location_body
    match location:
        case UnknownLoc():
            return "unknown"
        case FileLineColLoc():
            return f"{location.filename}:{location.line.data}:{location.column.data}"
        case FileRangeLoc():
            data = location.data
            text = f"{StringAttr(data.file)}:{data.line}:{data.column} to "
            return (
                text
                + (f"{data.end_line}" if data.end_line != data.line else "")
                + (f":{data.end_column}")
            )
        case NameLoc():
            inner = location.location
            return str(location.desc) + ("" if isinstance(inner, NoneAttr) else f"({show(inner)})")
        case CallSiteLoc():
            return f"callsite({show(location.callee)} at {show(location.caller)})"
        case FusedLoc():
            metadata = (
                "" if isinstance(location.metadata, NoneAttr) else f"<{show(location.metadata)}>"
            )
            places = cast("ArrayAttr[Attribute]", location.locations).data
            return f"fused{metadata}[{', '.join(show(place) for place in places)}]"
        case _:
            return str(location)
