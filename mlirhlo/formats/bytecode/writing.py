"""Module in, bytecode out."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, UnknownLoc, UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsolatedFromAbove

from mlirhlo.diagnostics import error
from mlirhlo.dialects.quick import MAX_REGION_DEPTH, REGION_DEPTH_HELP, is_nested_too_deep
from mlirhlo.formats.bytecode import properties
from mlirhlo.formats.bytecode.container import CURRENT_VERSION, MAGIC, Layout, Section, Since
from mlirhlo.formats.bytecode.cursor import Emitter
from mlirhlo.formats.bytecode.dialects import default_codecs
from mlirhlo.formats.bytecode.ir_reader import (
    HAS_ATTRIBUTES,
    HAS_OPERANDS,
    HAS_PROPERTIES,
    HAS_REGIONS,
    HAS_RESULTS,
    HAS_SUCCESSORS,
)
from mlirhlo.formats.bytecode.resources import Resource
from mlirhlo.formats.bytecode.tables import PLAIN, Tables, TableSink

_ISOLATED = frozenset({"builtin.module", "func.func", "vhlo.func_v1"})
"""Operations whose regions use no values from outside; others say so by their trait."""

_SEGMENTS = (properties.OPERAND_SEGMENTS, properties.RESULT_SEGMENTS)


@dataclass(frozen=True, slots=True)
class OpForm:
    """How an operation is written; by default as it is."""

    name: str
    properties: Mapping[str, Attribute]
    attributes: Mapping[str, Attribute]
    mode: str = PLAIN
    """Encoding of its attributes, and of the types of its results and block arguments."""


class Former(Protocol):
    """Says how operations are written."""

    def __call__(self, op: Operation) -> OpForm:
        """The form of one operation."""
        ...

    def location(self, value: Attribute) -> Attribute:
        """The location to write."""
        ...


class AsItIs:
    """Every operation under its own name."""

    def __call__(self, op: Operation) -> OpForm:
        """The operation as it is."""
        attributes: Mapping[str, Attribute] = op.attributes
        name = op.name
        if isinstance(op, UnregisteredOp):
            name = op.op_name.data
            attributes = {k: v for k, v in op.attributes.items() if k != "op_name__"}
        return OpForm(name, op.properties, attributes)

    def location(self, value: Attribute) -> Attribute:
        """The location as it is."""
        return value


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a module is written."""

    version: int = CURRENT_VERSION
    producer: str = "mlirhlo"
    dialect_versions: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    resources: Sequence[Resource] = ()
    """Those of the builtin dialect are written where an attribute names them, external ones always."""


def write_module(
    module: Operation,
    version: int = CURRENT_VERSION,
    producer: str = "mlirhlo",
    *,
    resources: Sequence[Resource] = (),
) -> bytes:
    """The bytecode of a module (or another operation without operands), for readers of `version`.

    Raises `HloError` HLO0222 for a version that is not written, HLO0227 for what cannot be written.
    """
    options = WriteOptions(version, producer, resources=resources)
    return Writer(options, Tables(default_codecs(), version), AsItIs()).write(module)


class Writer:
    """Writes one module."""

    def __init__(self, options: WriteOptions, tables: Tables, former: Former) -> None:
        if not 0 <= options.version <= CURRENT_VERSION:
            raise error(
                "HLO0222",
                f"bytecode version {options.version} is not written",
                help=f"versions are 0 to {CURRENT_VERSION}",
            )
        self._options, self._tables, self._former = options, tables, former
        self._version = options.version
        self._values: dict[SSAValue, int] = {}
        self._blocks: dict[Block, int] = {}
        self._unknown = UnknownLoc()

    def write(self, module: Operation) -> bytes:
        """The whole file."""
        if is_nested_too_deep(module):
            message = f"regions are nested deeper than {MAX_REGION_DEPTH}"
            raise error("HLO0223", message, help=REGION_DEPTH_HELP)
        body = Emitter()
        body.varint(1 << 1)
        tables = self._tables
        try:
            self._drive(self._operation(module, body, _Scope(0)))
            tables.encode()
        except RecursionError:  # attributes hash and print themselves recursively
            raise error("HLO0223", "attributes are nested too deep to be written") from None
        resources, resource_index = self._resource_sections()
        dialects = tables.dialects_section(self._options.dialect_versions)
        data, index = tables.entries_sections()
        out = Emitter()
        out.raw(MAGIC)
        out.varint(self._version)
        out.cstring(self._options.producer.encode())
        # Sections that hold numbers of strings have been made by now, so that the strings are all.
        out.section(Section.STRING, tables.strings_section())
        out.section(Section.DIALECT, dialects)
        out.section(Section.ATTR_TYPE_OFFSET, index)
        out.section(Section.ATTR_TYPE, data)
        out.section(Section.IR, body)
        if resource_index is not None:
            out.section(Section.RESOURCE_OFFSET, resource_index)
            out.section(Section.RESOURCE, resources)
        native = tables.properties_section()
        if native is not None:
            out.section(Section.PROPERTIES, native)
        return bytes(out.data)

    # ------------------------------------------------------------ regions

    def _drive(self, first: Generator[Any, None, None]) -> None:
        """Runs generators that wait for others, with a list as the stack."""
        stack = [first]
        while stack:
            inner = next(stack[-1], None)
            if inner is None:
                stack.pop()
            else:
                stack.append(inner)

    def _region(
        self, region: Region, out: Emitter, scope: _Scope, mode: str
    ) -> Generator[Any, None, None]:
        blocks = list(region.blocks)
        out.varint(len(blocks))
        if not blocks:
            return
        first = number = scope.next_value
        for position, block in enumerate(blocks):
            self._blocks[block] = position
            for argument in block.args:
                self._values[argument] = number
                number += 1
            for op in block.ops:
                for result in op.results:
                    self._values[result] = number
                    number += 1
        out.varint(number - first)
        inner = _Scope(number)
        for block in blocks:
            ops = list(block.ops)
            out.flagged(len(ops), bool(block.args))
            if block.args:
                self._arguments(block, out, mode)
            for op in ops:
                yield self._operation(op, out, inner)

    def _arguments(self, block: Block, out: Emitter, mode: str) -> None:
        out.varint(len(block.args))
        for argument in block.args:
            number = self._tables.type(argument.type, mode)
            place = self._former.location(argument.location)
            if self._version >= Since.ELIDED_LOCATIONS:
                has_location = place != self._unknown
                out.flagged(number, has_location)
                if has_location:
                    out.varint(self._tables.attribute(place))
            else:
                out.varint(number)
                out.varint(self._tables.attribute(place))
        if self._version >= Since.USE_LIST_ORDERS:
            out.byte(0)

    # ------------------------------------------------------------ operations

    def _operation(self, op: Operation, out: Emitter, scope: _Scope) -> Generator[Any, None, None]:
        form = self._former(op)
        tables, mode = self._tables, form.mode
        known = properties.layout(form.name) or properties.class_layout(type(op))
        if self._version >= Since.PROPERTIES and form.name.startswith(properties.HIDDEN):
            raise error(
                "HLO0227",
                f"'{form.name}' cannot be written: its native properties are not known",
                help=f"write version {Since.PROPERTIES - 1}, which stores them with their names",
            )
        attributes, native = self._split(op, form, known)
        is_registered = known is not None or not isinstance(op, UnregisteredOp) or bool(mode)
        out.varint(tables.op_name(form.name, is_registered=is_registered))
        mask = (
            (HAS_ATTRIBUTES if attributes else 0)
            | (HAS_RESULTS if op.results else 0)
            | (HAS_OPERANDS if op.operands else 0)
            | (HAS_SUCCESSORS if op.successors else 0)
            | (HAS_REGIONS if op.regions else 0)
            | (HAS_PROPERTIES if native is not None else 0)
        )
        out.byte(mask)
        out.varint(tables.attribute(self._former.location(op.location)))
        if attributes:
            out.varint(self._dictionary(attributes, mode))
        if native is not None:
            out.varint(tables.properties(native))
        if op.results:
            out.varint(len(op.results))
            for result in op.results:
                out.varint(tables.type(result.type, mode))
        if op.operands:
            out.varint(len(op.operands))
            for operand in op.operands:
                out.varint(self._value(operand, form.name))
        if op.successors:
            out.varint(len(op.successors))
            for successor in op.successors:
                out.varint(self._blocks[successor])
        if op.regions:
            isolated = form.name in _ISOLATED or op.has_trait(
                IsolatedFromAbove, value_if_unregistered=False
            )
            out.flagged(len(op.regions), isolated)
            yield self._regions(op.regions, out, _Scope(0) if isolated else scope, mode, isolated)

    def _regions(
        self,
        regions: Iterable[Region],
        out: Emitter,
        scope: _Scope,
        mode: str,
        is_isolated: bool,
    ) -> Generator[Any, None, None]:
        if is_isolated and self._version >= Since.LAZY_REGIONS:
            content = Emitter()
            for region in regions:
                yield self._region(region, content, scope, mode)
            out.section(Section.IR, content)
        else:
            for region in regions:
                yield self._region(region, out, scope, mode)

    def _value(self, value: SSAValue, user: str) -> int:
        number = self._values.get(value)
        if number is None:
            raise error("HLO0227", f"'{user}' uses a value that is not defined in the module")
        return number

    # ------------------------------------------------------------ attributes

    def _split(
        self, op: Operation, form: OpForm, known: Layout | None
    ) -> tuple[Mapping[str, Attribute], bytes | None]:
        """The attribute dictionary, and the encoded properties where they stand apart."""
        own = form.properties
        if self._version < Since.PROPERTIES:
            return ({**own, **form.attributes} if own else form.attributes), None
        if known is None:
            if not own:
                return form.attributes, None
            if not isinstance(op, UnregisteredOp):
                return {**own, **form.attributes}, None
            sink = TableSink(self._tables)
            sink.emitter.varint(self._dictionary(own, form.mode))
            return form.attributes, bytes(sink.emitter.data)
        names = known.names
        attributes = form.attributes
        if not names.issuperset(own) or not names.isdisjoint(attributes):
            every = {**own, **attributes}
            own = {name: value for name, value in every.items() if name in names}
            attributes = {name: value for name, value in every.items() if name not in names}
        if not names:
            return attributes, None
        return attributes, self._native(form, own, known)

    def _native(self, form: OpForm, own: Mapping[str, Attribute], known: Layout) -> bytes:
        sink = TableSink(self._tables, form.mode)
        sizes_of = dict(known.segments)
        for name, needed in known.order(self._version):
            value = own.get(name)
            if value is None and name in sizes_of:
                value = properties.segment_sizes([0] * sizes_of[name])
            if needed and value is None:
                raise error(
                    "HLO0227",
                    f"'{form.name}' cannot be written: it lacks the property '{name}'",
                )
            if needed and value is not None:
                sink.attribute(value)
            else:
                sink.optional_attribute(value)
        if self._version >= Since.PACKED_SEGMENTS:
            for name, count in known.segments:
                value = own.get(name)
                sizes = [0] * count
                if isinstance(value, DenseArrayBase):
                    sizes = list(cast("DenseArrayBase[Any]", value).get_values())
                _sparse_array(sizes, sink.emitter)
        return bytes(sink.emitter.data)

    def _dictionary(self, attributes: Mapping[str, Attribute], mode: str) -> int:
        """The number of a dictionary; it is the builtin dialect's own even where its values are not."""
        if not mode:
            return self._tables.attribute(DictionaryAttr(dict(attributes)))
        return self._tables.dictionary(attributes, mode)

    # ------------------------------------------------------------ resources

    def _resource_sections(self) -> tuple[Emitter, Emitter | None]:
        tables = self._tables
        data, index = Emitter(), Emitter()
        given = self._options.resources
        groups: dict[str, list[Resource]] = {}
        for resource in given:
            if resource.is_external:
                groups.setdefault(resource.group, []).append(resource)
        keys = tables.resource_keys
        if not groups and not keys:
            return data, None
        index.varint(len(groups))
        for name, members in groups.items():
            index.varint(tables.string(name))
            index.varint(len(members))
            for member in members:
                self._resource(member.key, member, data, index)
        if keys:
            known = {r.key: r for r in given if not r.is_external}
            index.varint(tables.dialect("builtin"))
            index.varint(len(keys))
            for key in keys:
                self._resource(key, known.get(key), data, index)
        return data, index

    def _resource(self, key: str, resource: Resource | None, data: Emitter, index: Emitter) -> None:
        index.varint(self._tables.string(key))
        start = len(data.data)
        kind = 0
        value = b"" if resource is None else resource.value
        if isinstance(value, bool):
            kind = 1
            data.byte(int(value))
        elif isinstance(value, str):
            kind = 2
            data.varint(self._tables.string(value))
        else:
            alignment = max(1, resource.alignment if resource is not None else 1)
            data.varint(alignment)
            data.varint(len(value))
            data.align(alignment)
            data.raw(value)
        index.varint(len(data.data) - start)
        index.byte(kind)


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where the numbers of values inside begin."""

    next_value: int


def _sparse_array(sizes: list[int], out: Emitter) -> None:
    """Small numbers, in the shorter of two forms."""
    used = [(index, size) for index, size in enumerate(sizes) if size]
    last = used[-1][0] if used else 0
    if last > 256 or len(used) > len(sizes) // 2:
        out.flagged(len(sizes), False)
        for size in sizes:
            out.varint(size)
        return
    out.flagged(len(used), True)
    width = last.bit_length()
    out.varint(width)
    for index, size in used:
        out.varint(size << width | index)
