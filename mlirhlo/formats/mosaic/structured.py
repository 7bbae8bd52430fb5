"""Readers of the pretty forms that no template describes: those with regions or successors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.ir.affine import AffineExpr, AffineMap

from mlirhlo.dialects.hlo.build import append
from mlirhlo.dialects.quick import create_op
from mlirhlo.dialects.tpu.op_classes import SEGMENTS, class_of
from mlirhlo.dialects.tpu.rows import Row
from mlirhlo.formats.mosaic import gpu_forms
from mlirhlo.formats.mosaic.reading import Draft, finish
from mlirhlo.formats.stablehlo import functions
from mlirhlo.formats.stablehlo.scan import BAD_VALUE

if TYPE_CHECKING:
    from mlirhlo.formats.mosaic.reader import KernelReader
    from mlirhlo.formats.stablehlo.reader_ops import Use

FormReader: TypeAlias = "Callable[[KernelReader, Row, int], Operation]"
_INDEX = IndexType()


def _function_form(name: str) -> FormReader:
    read = functions.READERS[name]
    return lambda reader, row, start: read(reader, start)


def _read_constant(reader: KernelReader, row: Row, start: int) -> Operation:
    """`{…} value : type`."""
    attributes = reader.optional_dictionary()
    at = reader.skip()
    value = reader.attribute()
    type_ = getattr(value, "type", None)
    if type_ is None:
        get_type = getattr(value, "get_type", None)
        type_ = get_type() if get_type is not None else None
    if not isinstance(type_, Attribute):
        reader.fail("this constant has no type", at, code=BAD_VALUE)
    return reader.make_row(row, [], [type_], {"value": value}, attributes, start)


def _read_select(reader: KernelReader, row: Row, start: int) -> Operation:
    """`%c, %t, %f {…} : type`, or `: type of the condition, type`."""
    draft = Draft(row, start)
    for number, slot in enumerate(row.operands):
        if number:
            reader.need(",")
        draft.uses[slot.name] = [_use(reader)]
    draft.attributes = reader.optional_dictionary()
    reader.need(":")
    first = reader.type()
    is_both = reader.accept(",")
    draft.types["condition"] = [first if is_both else i1]
    draft.types["result"] = [reader.type() if is_both else first]
    return finish(reader, draft)


def _use(reader: KernelReader) -> Use:
    found = reader.optional_value()
    return found if found is not None else reader.expected("a value")


def _types(reader: KernelReader) -> list[Attribute]:
    """`-> type`, `-> (types)` or nothing."""
    if not reader.accept("->"):
        return []
    return reader.type_list() if reader.at("(") else [reader.type()]


def _region(
    reader: KernelReader,
    arguments: list[tuple[str, Attribute, int]] | None = None,
    terminator: str | None = None,
    dialect: str = "",
) -> Region:
    """`{ … }`, with its terminator put in where it is left out."""
    reader.dialects.append(dialect)
    region = reader.region(arguments)
    reader.dialects.pop()
    if terminator is not None:
        if not region.blocks:
            region.add_block(Block())
        last = region.blocks[-1].last_op
        if last is None or last.name != terminator:
            cls = class_of(terminator)
            assert cls is not None
            append(region.blocks[-1], create_op(cls))
    return region


def _read_if(reader: KernelReader, row: Row, start: int) -> Operation:
    """`%c -> (types) { … } else { … } {…}`."""
    condition = reader.resolve([_use(reader)], [i1], start)
    results = _types(reader)
    regions = [_region(reader, terminator="scf.yield")]
    if reader.accept_word("else"):
        regions.append(_region(reader, terminator="scf.yield"))
    else:
        regions.append(Region())
    attributes = reader.optional_dictionary()
    return reader.make_row(row, condition, results, {}, attributes, start, regions)


def _carried(reader: KernelReader) -> tuple[list[Use], list[Use]]:
    """`(%a = %x, …)`: names of arguments and what they begin with."""
    names: list[Use] = []
    uses: list[Use] = []
    reader.need("(")
    if not reader.accept(")"):
        while True:
            names.append(_use(reader))
            reader.need("=")
            uses.append(_use(reader))
            if not reader.accept(","):
                break
        reader.need(")")
    return names, uses


def _arguments(
    reader: KernelReader, names: list[Use], types: list[Attribute], at: int
) -> list[tuple[str, Attribute, int]]:
    if len(names) != len(types):
        reader.fail(f"{len(names)} values but {len(types)} types for them", at, code=BAD_VALUE)
    return [(name, type_, at) for (name, _, at), type_ in zip(names, types, strict=True)]


def _read_for(reader: KernelReader, row: Row, start: int) -> Operation:
    """`%i = %lower to %upper step %step iter_args(%a = %x) -> (types) : type { … } {…}`."""
    properties: dict[str, Attribute] = {}
    if reader.accept_word("unsigned"):
        properties["unsignedCmp"] = UnitAttr()
    induction = _use(reader)
    reader.need("=")
    bounds = [_use(reader)]
    for word in ("to", "step"):
        reader.need_word(word)
        bounds.append(_use(reader))
    names: list[Use] = []
    initial: list[Use] = []
    results: list[Attribute] = []
    if reader.accept_word("iter_args"):
        names, initial = _carried(reader)
        results = _types(reader)
    type_: Attribute = reader.type() if reader.accept(":") else _INDEX
    operands = reader.resolve([*bounds, *initial], [type_] * 3 + results, start)
    arguments = _arguments(reader, [induction, *names], [type_, *results], start)
    region = _region(reader, arguments, "scf.yield")
    attributes = reader.optional_dictionary()
    return reader.make_row(row, operands, results, properties, attributes, start, [region])


def _read_while(reader: KernelReader, row: Row, start: int) -> Operation:
    """`(%a = %x) : (types) -> types { … } do { … } attributes {…}`."""
    names: list[Use] = []
    initial: list[Use] = []
    if reader.at("("):
        names, initial = _carried(reader)
    reader.need(":")
    inputs, results = reader.function_types()
    operands = reader.resolve(initial, inputs, start)
    before = _region(reader, _arguments(reader, names, inputs, start))
    reader.need_word("do")
    after = _region(reader)
    attributes = reader.dictionary() if reader.accept_word("attributes") else {}
    return reader.make_row(row, operands, results, {}, attributes, start, [before, after])


def _read_index_switch(reader: KernelReader, row: Row, start: int) -> Operation:
    """`%i {…} -> types case 0 { … } default { … }`."""
    operands = reader.resolve([_use(reader)], [_INDEX], start)
    attributes = reader.optional_dictionary()
    results = _types(reader)
    cases: list[int] = []
    regions: list[Region] = []
    while reader.accept_word("case"):
        at = reader.skip()
        cases.append(reader.integer())
        if cases[-1].bit_length() > 63:
            reader.fail("this case does not fit into 64 bits", at, code=BAD_VALUE)
        regions.append(_region(reader, terminator="scf.yield"))
    reader.need_word("default")
    regions.insert(0, _region(reader, terminator="scf.yield"))
    properties: dict[str, Attribute] = {"cases": DenseArrayBase.from_list(i64, cases)}
    return reader.make_row(row, operands, results, properties, attributes, start, regions)


def _read_execute_region(reader: KernelReader, row: Row, start: int) -> Operation:
    """`-> types { … } {…}`."""
    properties: dict[str, Attribute] = {}
    if reader.accept_word("no_inline"):
        properties["no_inline"] = UnitAttr()
    results = _types(reader)
    regions = [_region(reader)]
    attributes = reader.optional_dictionary()
    return reader.make_row(row, [], results, properties, attributes, start, regions)


def _read_alloca_scope(reader: KernelReader, row: Row, start: int) -> Operation:
    """`-> (types) { … } {…}`."""
    results = _types(reader)
    regions = [_region(reader, terminator="memref.alloca_scope.return")]
    attributes = reader.optional_dictionary()
    return reader.make_row(row, [], results, {}, attributes, start, regions)


def _bracketed(reader: KernelReader) -> list[Use]:
    reader.need("(")
    uses = reader.uses()
    reader.need(")")
    return uses


def _read_parallel(reader: KernelReader, row: Row, start: int) -> Operation:
    """`(%i) = (%lower) to (%upper) step (%step) init (%x) -> types { … } {…}`."""
    names = _bracketed(reader)
    reader.need("=")
    uses = _bracketed(reader)
    for word in ("to", "step"):
        reader.need_word(word)
        uses += _bracketed(reader)
    initial = _bracketed(reader) if reader.accept_word("init") else []
    results = _types(reader)
    rank = len(names)
    types = cast("list[Attribute]", [_INDEX] * (3 * rank)) + results
    operands = reader.resolve([*uses, *initial], types, start)
    arguments = _arguments(reader, names, [_INDEX] * rank, start)
    region = _region(reader, arguments, "scf.reduce")
    attributes = reader.optional_dictionary()
    sizes = DenseArrayBase.from_list(i32, [rank, rank, rank, len(initial)])
    return reader.make_row(row, operands, results, {SEGMENTS: sizes}, attributes, start, [region])


def _read_reduce(reader: KernelReader, row: Row, start: int) -> Operation:
    """`(%x : type) { … }, { … } {…}`."""
    uses: list[Use] = []
    types: list[Attribute] = []
    regions: list[Region] = []
    if reader.accept("("):
        uses = reader.uses()
        reader.need(":")
        types.append(reader.type())
        while reader.accept(","):
            types.append(reader.type())
        reader.need(")")
        regions.append(_region(reader))
        while reader.accept(","):
            regions.append(_region(reader))
    operands = reader.resolve(uses, types, start)
    attributes = reader.optional_dictionary()
    return reader.make_row(row, operands, [], {}, attributes, start, regions)


def _bound(reader: KernelReader) -> tuple[AffineMap, list[Use]]:
    """A number, or one value."""
    use = reader.optional_value()
    if use is not None:
        return AffineMap(0, 1, (AffineExpr.symbol(0),)), [use]
    if reader.at("affine_map") or reader.at("min") or reader.at("max") or reader.at("#"):
        reader.fail('such bounds are read in generic form only: "affine.for"(…)', code=BAD_VALUE)
    return AffineMap.constant_map(reader.integer()), []


def _read_affine_for(reader: KernelReader, row: Row, start: int) -> Operation:
    """`%i = 0 to 4 step 2 iter_args(%a = %x) -> (types) { … } {…}`."""
    induction = _use(reader)
    reader.need("=")
    lower, lower_uses = _bound(reader)
    reader.need_word("to")
    upper, upper_uses = _bound(reader)
    step = reader.integer() if reader.accept_word("step") else 1
    names: list[Use] = []
    initial: list[Use] = []
    results: list[Attribute] = []
    if reader.accept_word("iter_args"):
        names, initial = _carried(reader)
        results = _types(reader)
    uses = [*lower_uses, *upper_uses]
    types = cast("list[Attribute]", [_INDEX] * len(uses)) + results
    operands = reader.resolve([*uses, *initial], types, start)
    arguments = _arguments(reader, [induction, *names], [_INDEX, *results], start)
    region = _region(reader, arguments, "affine.yield")
    attributes = reader.optional_dictionary()
    sizes = [len(lower_uses), len(upper_uses), len(initial)]
    properties: dict[str, Attribute] = {
        SEGMENTS: DenseArrayBase.from_list(i32, sizes),
        "lowerBoundMap": AffineMapAttr(lower),
        "upperBoundMap": AffineMapAttr(upper),
        "step": IntegerAttr(step, _INDEX),
    }
    return reader.make_row(row, operands, results, properties, attributes, start, [region])


def _read_contract(reader: KernelReader, row: Row, start: int) -> Operation:
    """`{indexing_maps = …, iterator_types = ["parallel"], kind = …} %a, %b, %c : A, B into C`."""
    entries = reader.dictionary()
    kinds = entries.get("iterator_types")
    if isinstance(kinds, ArrayAttr):
        items = cast("ArrayAttr[Attribute]", kinds).data
        entries["iterator_types"] = ArrayAttr(
            [
                reader.small_attribute(f"#vector.iterator_type<{item.data}>", start)
                if isinstance(item, StringAttr)
                else item
                for item in items
            ]
        )
    draft = Draft(row, start, properties=entries)
    for number, slot in enumerate(row.operands):
        if number:
            reader.need(",")
        draft.uses[slot.name] = [_use(reader)]
    reader.need(":")
    draft.types["lhs"] = [reader.type()]
    reader.need(",")
    draft.types["rhs"] = [reader.type()]
    reader.need_word("into")
    draft.types["acc"] = [reader.type()]
    return finish(reader, draft)


def _successor(reader: KernelReader) -> tuple[Block, list[Use], list[Attribute]]:
    """`^bb1(%a, %b : types)`."""
    reader.need("^")
    block = reader.block_named(reader.suffix())
    uses: list[Use] = []
    types: list[Attribute] = []
    if reader.accept("("):
        uses = reader.uses()
        reader.need(":")
        types.append(reader.type())
        while reader.accept(","):
            types.append(reader.type())
        reader.need(")")
    return block, uses, types


def _read_branch(reader: KernelReader, row: Row, start: int) -> Operation:
    """`^bb1(%a : type) {…}`."""
    block, uses, types = _successor(reader)
    attributes = reader.optional_dictionary()
    operands = reader.resolve(uses, types, start)
    return reader.make_row(row, operands, [], {}, attributes, start, successors=[block])


def _read_cond_branch(reader: KernelReader, row: Row, start: int) -> Operation:
    """`%c, ^bb1(%a : type), ^bb2 {…}`."""
    uses: list[Use] = [_use(reader)]
    types: list[Attribute] = [i1]
    blocks: list[Block] = []
    sizes = [1]
    for _ in range(2):
        reader.need(",")
        block, more, more_types = _successor(reader)
        blocks.append(block)
        uses += more
        types += more_types
        sizes.append(len(more))
    attributes = reader.optional_dictionary()
    properties: dict[str, Attribute] = {SEGMENTS: DenseArrayBase.from_list(i32, sizes)}
    operands = reader.resolve(uses, types, start)
    return reader.make_row(row, operands, [], properties, attributes, start, successors=blocks)


READERS: Mapping[str, FormReader] = {
    **gpu_forms.READERS,
    "!module": _function_form("builtin.module"),
    "!function": _function_form("func.func"),
    "!call": _function_form("func.call"),
    "!return": _function_form("func.return"),
    "!constant": _read_constant,
    "!select": _read_select,
    "!if": _read_if,
    "!for": _read_for,
    "!while": _read_while,
    "!index_switch": _read_index_switch,
    "!execute_region": _read_execute_region,
    "!alloca_scope": _read_alloca_scope,
    "!parallel": _read_parallel,
    "!reduce": _read_reduce,
    "!affine_for": _read_affine_for,
    "!contract": _read_contract,
    "!branch": _read_branch,
    "!cond_branch": _read_cond_branch,
}
"""What reads a form, by its name in the rows."""
