"""Pretty forms of kernels for GPUs that no template describes: launches, globals, members of structs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, Region

from mlirhlo.dialects.tpu.op_classes import SEGMENTS, groups
from mlirhlo.dialects.tpu.rows import Row
from mlirhlo.dialects.tpu.table import ROWS
from mlirhlo.formats.mosaic.reading import known_type
from mlirhlo.formats.stablehlo.attribute_text import string_text
from mlirhlo.formats.stablehlo.scan import BAD_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from mlirhlo.formats.mosaic.printer import KernelPrinter
    from mlirhlo.formats.mosaic.reader import KernelReader
    from mlirhlo.formats.stablehlo.printer import OpPrinter, Printer
    from mlirhlo.formats.stablehlo.reader_ops import Use

    FormReader: TypeAlias = "Callable[[KernelReader, Row, int], Operation]"

_INDEX = IndexType()
_SIZES = ("clusters", "blocks", "threads")
_AXES = "XYZ"


def _use(reader: KernelReader) -> Use:
    found = reader.optional_value()
    return found if found is not None else reader.expected("a value")


# ---------------------------------------------------------------- members


def member(container: Attribute, position: tuple[int, ...]) -> Attribute | None:
    """The type at a position of a struct or array; None where there is none."""
    found: Any = container
    for index in position:
        types = getattr(found, "types", None)
        if types is not None:
            found = types.data[index] if 0 <= index < len(types.data) else None
        else:
            found = getattr(found, "type", None)
        if found is None:
            return None
    return cast(Attribute, found)


def _read_member(reader: KernelReader, row: Row, start: int) -> Operation:
    """`%container[1, 0] {…} : type`."""
    use = _use(reader)
    at = reader.skip()
    position: list[int] = []
    reader.need("[")
    while not reader.accept("]"):
        position.append(reader.integer())
        reader.accept(",")
    attributes = reader.optional_dictionary()
    reader.need(":")
    container = reader.type()
    found = member(container, tuple(position))
    if found is None:
        reader.fail(f"{reader.show(container)} has nothing at {position}", at, code=BAD_VALUE)
    properties: dict[str, Attribute] = {"position": DenseArrayBase.from_list(i64, position)}
    operands = reader.resolve([use], [container], start)
    return reader.make_row(row, operands, [found], properties, attributes, start)


def _print_member(printer: Printer, op: Operation, indent: str) -> None:
    del indent
    kernel = cast("KernelPrinter", printer)
    position: Any = op.properties["position"]
    kernel.out.append(
        f"{op.name} {kernel.value(op.operands[0])}{list(position.get_values())}"
        f"{_rest(kernel, op, 'position')} : {kernel.type(op.operands[0].type)} "
    )


def _rest(printer: KernelPrinter, op: Operation, *shown: str) -> str:
    return printer.rest(op, ROWS[op.name], frozenset(shown))


# ---------------------------------------------------------------- globals


def _read_global(reader: KernelReader, row: Row, start: int) -> Operation:
    """`external constant @name(value) {…} : type { … }`."""
    at = reader.skip()
    words = [reader.keyword()]
    while not reader.at("@"):
        words.append(reader.keyword())
    linkage, *flags = words
    properties: dict[str, Attribute] = {
        "linkage": reader.small_attribute(f"#llvm.linkage<{linkage}>", at)
    }
    properties.update({flag: UnitAttr() for flag in flags})
    reader.need("@")
    properties["sym_name"] = StringAttr(reader.suffix())
    reader.need("(")
    if not reader.accept(")"):
        properties["value"] = reader.attribute()
        reader.need(")")
    attributes = reader.optional_dictionary()
    type_: Attribute | None = reader.type() if reader.accept(":") else None
    value = properties.get("value")
    if type_ is None and isinstance(value, StringAttr):
        size = len(value.data.encode("utf-8", "surrogateescape"))
        type_ = reader.small_type(f"!llvm.array<{size} x i8>")
    if type_ is None:
        reader.expected("a type")
    properties["global_type"] = type_
    region = reader.region(None) if reader.at("{") else Region()
    return reader.make_row(row, [], [], properties, attributes, start, [region])


_SHOWN = ("sym_name", "global_type", "linkage", "value", "constant", "visibility_")


def _print_global(printer: Printer, op: Operation, indent: str) -> None:
    kernel = cast("KernelPrinter", printer)
    properties: Any = op.properties
    linkage = properties["linkage"].linkage.data
    constant = " constant" if "constant" in properties else ""
    value: Attribute | None = properties.get("value")
    shown = "" if value is None else kernel.attribute(value)
    unnamed = properties.get("unnamed_addr")
    hidden = ("unnamed_addr",) if _is_zero(unnamed) else ()
    name = properties["sym_name"].data
    symbol = name if name.replace("_", "a").isalnum() else string_text(name)
    kernel.out.append(
        f"{op.name} {linkage}{constant} @{symbol}({shown}){_rest(kernel, op, *_SHOWN, *hidden)}"
    )
    if not isinstance(value, StringAttr):
        kernel.out.append(f" : {kernel.type(properties['global_type'])}")
    if op.regions[0].blocks:
        kernel.out.append(" ")
        kernel.region(op.regions[0], indent)


def _is_zero(attribute: Attribute | None) -> bool:
    return isinstance(attribute, IntegerAttr) and cast(Any, attribute).value.data == 0


# ---------------------------------------------------------------- launches


def _three(reader: KernelReader) -> list[Use]:
    reader.need("(")
    found = [_use(reader)]
    while reader.accept(","):
        found.append(_use(reader))
    reader.need(")")
    return found


def _read_launch(reader: KernelReader, row: Row, start: int) -> Operation:
    """`async [%t] clusters(%x, %y, %z) in (%nx = %a, …) blocks(…) in (…) threads(…) in (…)
    dynamic_shared_memory_size %n { … } {…}`.
    """
    is_async = reader.accept_word("async")
    tokens = reader.uses() if is_async and not reader.at("[") else []
    if reader.accept("["):
        tokens = [] if reader.at("]") else reader.uses()
        reader.need("]")
    ids: dict[str, list[Use]] = {}
    names: dict[str, list[Use]] = {}
    sizes: dict[str, list[Use]] = {}
    for what in _SIZES:
        if not reader.accept_word(what):
            continue
        ids[what] = _three(reader)
        reader.need_word("in")
        names[what], sizes[what] = _bindings(reader)
    memory = [_use(reader)] if reader.accept_word("dynamic_shared_memory_size") else []
    order = ("blocks", "threads", "clusters")
    uses = [*tokens, *(use for what in order for use in sizes.get(what, ())), *memory]
    token = reader.small_type("!gpu.async.token")
    count = sum(len(found) for found in sizes.values())
    types: list[Attribute] = [*[token] * len(tokens), *[_INDEX] * count, *[i32] * len(memory)]
    for number, use in enumerate(uses):
        types[number] = types[number] if number < len(tokens) else known_type(reader, use)
    operands = reader.resolve(uses, types, start)
    arguments = [
        *(use for what in ("blocks", "threads") for use in ids[what]),
        *(use for what in ("blocks", "threads") for use in names[what]),
        *(use for group in (ids, names) for use in group.get("clusters", ())),
    ]
    reader.dialects.append("")
    region = reader.region([(name, _INDEX, start) for name, _, _ in arguments])
    reader.dialects.pop()
    attributes = reader.optional_dictionary()
    clusters = [1 if "clusters" in sizes else 0] * 3
    segments = [len(tokens), *[1] * 6, *clusters, len(memory)]
    properties: dict[str, Attribute] = {SEGMENTS: DenseArrayBase.from_list(i32, segments)}
    results = [token] if is_async else []
    return reader.make_row(row, operands, results, properties, attributes, start, [region])


def _bindings(reader: KernelReader) -> tuple[list[Use], list[Use]]:
    """`(%nx = %a, …)`."""
    names: list[Use] = []
    uses: list[Use] = []
    reader.need("(")
    while not reader.accept(")"):
        names.append(_use(reader))
        reader.need("=")
        uses.append(_use(reader))
        reader.accept(",")
    return names, uses


def _print_launch(printer: Printer, op: Operation, indent: str) -> None:
    kernel = cast("KernelPrinter", printer)
    out = kernel.out
    row = ROWS[op.name]
    parts = groups(op, row, row.operands, tuple(op.operands))
    arguments = [kernel.value(argument) for argument in op.regions[0].blocks[0].args]
    out.append(op.name)
    if op.results:
        out.append(" async")
    if parts["asyncDependencies"]:
        out.append(f" [{kernel.values(parts['asyncDependencies'])}]")
    begins = {"clusters": (12, 15), "blocks": (0, 6), "threads": (3, 9)}
    entries = {"clusters": "cluster", "blocks": "grid", "threads": "block"}
    for what in _SIZES:
        sizes = [value for axis in _AXES for value in parts[f"{entries[what]}Size{axis}"]]
        if not sizes:
            continue
        first, second = begins[what]
        bound = ", ".join(
            f"{name} = {kernel.value(value)}"
            for name, value in zip(arguments[second : second + 3], sizes, strict=True)
        )
        out.append(f" {what}({', '.join(arguments[first : first + 3])}) in ({bound})")
    if parts["dynamicSharedMemorySize"]:
        out.append(f" dynamic_shared_memory_size {kernel.values(parts['dynamicSharedMemorySize'])}")
    out.append(" ")
    kernel.dialects.append("")
    kernel.region(op.regions[0], indent, with_arguments=False)
    kernel.dialects.pop()
    out.append(_rest(kernel, op))


READERS: Mapping[str, FormReader] = {
    "!extractvalue": _read_member,
    "!global": _read_global,
    "!launch": _read_launch,
}
"""What reads a form, by its name in the rows."""

PRINTERS: Mapping[str, OpPrinter] = {
    "!extractvalue": _print_member,
    "!global": _print_global,
    "!launch": _print_launch,
}
"""What prints a form."""
