"""Reads the operations: no recursion, regions stand in a list of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr, UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.quick import MAX_REGION_DEPTH, REGION_DEPTH_HELP, create_op, replace
from mlirhlo.dialects.stablehlo.locations import is_location
from mlirhlo.formats.bytecode import properties
from mlirhlo.formats.bytecode.codec import Source
from mlirhlo.formats.bytecode.container import Container, OpEntry, Section, Since, read_section
from mlirhlo.formats.bytecode.cursor import Cursor
from mlirhlo.formats.bytecode.entries import Entries
from mlirhlo.formats.bytecode.problems import at
from mlirhlo.formats.bytecode.use_lists import UseListOrder, UseLists, read_orders

if TYPE_CHECKING:
    from xdsl.dialects.builtin import LocationAttr

HAS_ATTRIBUTES = 1
HAS_RESULTS = 2
HAS_OPERANDS = 4
HAS_SUCCESSORS = 8
HAS_REGIONS = 16
HAS_USE_LIST_ORDERS = 32
HAS_PROPERTIES = 64
_KNOWN_BITS = 127


class Adapter(Protocol):
    """Makes an operation another one while it is read."""

    def __call__(
        self,
        name: str,
        cls: type[Operation],
        properties: dict[str, Attribute],
        attributes: dict[str, Attribute],
        parent: Operation | None,
        offset: int,
    ) -> tuple[type[Operation], dict[str, Attribute], dict[str, Attribute]]:
        """Class, properties and attributes of the operation to build."""
        ...


class Pending(SSAValue[Attribute]):
    """Stands for a value that is used before its definition has been read."""

    @property
    def owner(self) -> Operation | Block:
        """There is none yet."""
        raise ValueError("the value is not defined yet")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


@dataclass(slots=True)
class _Scope:
    """The values that can be referred to; a new one begins at an isolated operation."""

    values: list[SSAValue | None] = field(default_factory=list["SSAValue | None"])


@dataclass(slots=True)
class _Frame:
    """The regions of one operation, as far as they are still to be read."""

    cursor: Cursor
    scope: _Scope
    regions: Iterator[Region]
    depth: int
    blocks: tuple[Block, ...] = ()
    next_block: int = 0
    operations_left: int = 0
    base: int = 0
    """Number of values in scope outside of the region."""
    next_value: int = 0
    block: Block | None = None


class IrReader:
    """Makes operations from the IR section of a container."""

    def __init__(
        self,
        container: Container,
        entries: Entries,
        op_class: Callable[[str], type[Operation]],
        adapt: Adapter | None = None,
    ) -> None:
        self._container, self._entries, self._op_class = container, entries, op_class
        self._adapt = adapt
        self._classes: list[tuple[type[Operation], frozenset[str]] | None] = [None] * len(
            container.op_names
        )
        self._use_lists = UseLists()
        self._attributes_left = 1_000_000 + 64 * len(container.data)
        self._blocks: tuple[Block, ...] = ()

    def read(self) -> ModuleOp:
        """The module; one is put around another top-level operation. Raises HLO0221 to HLO0226."""
        cursor = self._container.section(Section.IR)
        assert cursor is not None
        offset = cursor.pos
        count, has_arguments = cursor.flagged()
        if count != 1 or has_arguments:
            raise cursor.problem("there must be one operation at the top", offset)
        top = Block()
        scope = _Scope()
        stack = [_Frame(cursor, scope, iter(()), 0, operations_left=1, block=top)]
        while stack:
            frame = stack[-1]
            if frame.operations_left:
                frame.operations_left -= 1
                inner = self._operation(frame)
                if inner is not None:
                    stack.append(inner)
            elif frame.next_block < len(frame.blocks):
                self._begin_block(frame)
            elif not self._next_region(frame):
                if frame.cursor is not (stack[-2].cursor if len(stack) > 1 else None) and (
                    not frame.cursor.done()
                ):
                    raise frame.cursor.problem("bytes are left over behind the operations")
                stack.pop()
        self._use_lists.apply()
        root = top.first_op
        assert root is not None
        root.detach()
        return root if isinstance(root, ModuleOp) else ModuleOp([root])

    # ------------------------------------------------------------ regions and blocks

    def _next_region(self, frame: _Frame) -> bool:
        """Begins the next region of a frame; False when there is none."""
        self._end_region(frame)
        region = next(frame.regions, None)
        if region is None:
            return False
        cursor = frame.cursor
        count = cursor.count()
        frame.blocks, frame.next_block, frame.block = (), 0, None
        frame.base = frame.next_value = len(frame.scope.values)
        if not count:
            return True
        offset = cursor.pos
        values = cursor.varint()
        # A value takes at least two bytes: its type, and its operation or its location.
        if values > (cursor.end - cursor.pos):
            raise cursor.problem(f"{values} values do not fit in what is left", offset)
        frame.scope.values.extend([None] * values)
        frame.blocks = tuple(Block() for _ in range(count))
        region.add_block(list(frame.blocks))
        return True

    def _end_region(self, frame: _Frame) -> None:
        values = frame.scope.values
        if frame.blocks:
            for value in values[frame.base :]:
                if isinstance(value, Pending):
                    raise frame.cursor.problem("a value is used and nowhere defined")
            del values[frame.base :]
            frame.blocks = ()

    def _begin_block(self, frame: _Frame) -> None:
        cursor = frame.cursor
        block = frame.blocks[frame.next_block]
        frame.next_block += 1
        frame.block = block
        count, has_arguments = cursor.flagged()
        if count * 3 > cursor.end - cursor.pos:
            raise cursor.problem(f"{count} operations do not fit in what is left")
        frame.operations_left = count
        if not has_arguments:
            return
        version = self._container.version
        for _ in range(cursor.count()):
            offset = cursor.pos
            index = cursor.varint()
            has_location = True
            if version >= Since.ELIDED_LOCATIONS:
                index, has_location = index >> 1, bool(index & 1)
            argument = block.insert_arg(self._entries.type(index, cursor), len(block.args))
            if has_location:
                argument.location = self._location(cursor)
            self._define(frame, argument, offset)
        if version >= Since.USE_LIST_ORDERS and cursor.byte():
            self._use_lists.add(block.args, read_orders(cursor, len(block.args)))

    def _location(self, cursor: Cursor) -> LocationAttr:
        offset = cursor.pos
        value = self._entries.attribute(cursor.varint(), cursor)
        if not is_location(value):
            raise cursor.problem(f"a location is expected, this is {str(value)[:60]}", offset)
        return cast("LocationAttr", value)

    # ------------------------------------------------------------ values

    def _define(self, frame: _Frame, value: SSAValue, offset: int) -> None:
        values, number = frame.scope.values, frame.next_value
        if number >= len(values):
            raise frame.cursor.problem("there are more values than the region promises", offset)
        frame.next_value = number + 1
        before = values[number]
        values[number] = value
        if before is not None:
            replace(before, value)

    def _operand(self, scope: _Scope, cursor: Cursor) -> SSAValue:
        offset = cursor.pos
        number = cursor.varint()
        if number >= len(scope.values):
            raise cursor.problem(f"value {number} of {len(scope.values)} does not exist", offset)
        value = scope.values[number]
        if value is None:
            value = scope.values[number] = Pending(_NO_TYPE)
        return value

    # ------------------------------------------------------------ operations

    def _operation(self, frame: _Frame) -> _Frame | None:
        """Reads one operation; a frame for its regions if it has any."""
        cursor, entries = frame.cursor, self._entries
        start = cursor.pos
        number = cursor.varint()
        names = self._container.op_names
        if number >= len(names):
            raise cursor.problem(f"operation name {number} of {len(names)} does not exist", start)
        entry = names[number]
        mask = cursor.byte()
        if mask > _KNOWN_BITS:
            raise cursor.problem(f"the parts 0x{mask:02x} of an operation are not known")
        location = self._location(cursor)
        attributes: dict[str, Attribute] = {}
        if mask & HAS_ATTRIBUTES:
            attributes = self._dictionary(cursor)
        cls, inherent = self._class(number, entry)
        own: dict[str, Attribute] = {}
        if mask & HAS_PROPERTIES:
            own = self._properties(cursor, entry, cls)
            if not inherent.issuperset(own):
                extra = {name: value for name, value in own.items() if name not in inherent}
                if not issubclass(cls, UnregisteredOp):
                    attributes.update(extra)
                    own = {name: value for name, value in own.items() if name in inherent}
        elif inherent and attributes:
            own, attributes = properties.split(attributes, inherent)
        types: list[Attribute] = []
        if mask & HAS_RESULTS:
            types = [entries.type(cursor.varint(), cursor) for _ in range(cursor.count())]
        operands: list[SSAValue] = []
        if mask & HAS_OPERANDS:
            scope = frame.scope
            operands = [self._operand(scope, cursor) for _ in range(cursor.count())]
        successors: list[Block] = []
        if mask & HAS_SUCCESSORS:
            successors = [self._successor(frame) for _ in range(cursor.count())]
        orders: list[UseListOrder] = []
        if mask & HAS_USE_LIST_ORDERS:
            orders = read_orders(cursor, len(types))
        inner: _Frame | None = None
        regions: list[Region] = []
        if mask & HAS_REGIONS:
            regions, inner = self._regions(frame)
        if self._adapt is not None:
            assert frame.block is not None
            parent = frame.block.parent_op()
            cls, own, attributes = self._adapt(entry.name, cls, own, attributes, parent, start)
        op = create_op(
            cls,
            operands,
            types,
            own,
            regions=regions,
            successors=successors,
            attributes=attributes,
        )
        if issubclass(cls, UnregisteredOp):
            op.attributes["op_name__"] = StringAttr(entry.name)
        op.location = location
        assert frame.block is not None
        frame.block.add_op(op)
        for result in op.results:
            self._define(frame, result, start)
        if orders:
            self._use_lists.add(op.results, orders)
        return inner

    def _regions(self, frame: _Frame) -> tuple[list[Region], _Frame]:
        cursor = frame.cursor
        offset = cursor.pos
        count, is_isolated = cursor.flagged()
        if count > cursor.end - cursor.pos:
            raise cursor.problem(f"{count} regions do not fit in what is left", offset)
        if frame.depth >= MAX_REGION_DEPTH:
            raise error(
                "HLO0223",
                f"regions are nested deeper than {MAX_REGION_DEPTH}",
                at(self._container.file, offset),
                help=REGION_DEPTH_HELP,
            )
        if is_isolated and self._container.version >= Since.LAZY_REGIONS:
            tag, cursor = read_section(cursor)
            if tag != Section.IR:
                raise cursor.problem("a section with operations is expected", offset)
        regions = [Region() for _ in range(count)]
        scope = _Scope() if is_isolated else frame.scope
        inner = _Frame(cursor, scope, iter(regions), frame.depth + 1)
        return regions, inner

    def _successor(self, frame: _Frame) -> Block:
        offset = frame.cursor.pos
        number = frame.cursor.varint()
        if number >= len(frame.blocks):
            raise frame.cursor.problem(
                f"block {number} of {len(frame.blocks)} does not exist", offset
            )
        return frame.blocks[number]

    def _class(self, number: int, entry: OpEntry) -> tuple[type[Operation], frozenset[str]]:
        known = self._classes[number]
        if known is None:
            cls = self._op_class(entry.name)
            known = self._classes[number] = cls, properties.names_of(entry.name, cls)
        return known

    def _dictionary(self, cursor: Cursor) -> dict[str, Attribute]:
        value = self._entries.attribute(cursor.varint(), cursor)
        if not isinstance(value, DictionaryAttr):
            raise cursor.problem(f"a dictionary is expected, this is {str(value)[:60]}")
        # Operations share dictionaries in the file, and each has its own in memory.
        self._attributes_left -= len(value.data)
        if self._attributes_left < 0:
            raise error(
                "HLO0223",
                "the operations have far more attributes than a file of this size can mean",
                at(self._container.file, cursor.pos),
            )
        return dict(value.data)

    def _properties(
        self, cursor: Cursor, entry: OpEntry, cls: type[Operation]
    ) -> dict[str, Attribute]:
        offset = cursor.pos
        index = cursor.varint()
        places = self._container.properties
        if index >= len(places):
            raise cursor.problem(f"properties {index} of {len(places)} do not exist", offset)
        if not entry.is_registered:
            return self._dictionary(Cursor(cursor.data, cursor.file, *places[index]))
        known = properties.layout(entry.name) or properties.class_layout(cls)
        if known is None:
            raise self._unknown_properties(entry, offset)
        problem: HloError | None = None
        for layout in (known, *properties.earlier_layouts(entry.name)):
            source = Source(Cursor(cursor.data, cursor.file, *places[index]), self._entries)
            try:
                return properties.read(source, layout, self._container.version)
            except HloError as found:
                problem = problem or found
        assert problem is not None
        if entry.name.startswith(properties.HIDDEN):
            raise self._unknown_properties(entry, offset) from None
        raise problem

    def _unknown_properties(self, entry: OpEntry, offset: int) -> HloError:
        return error(
            "HLO0226",
            f"the properties of '{entry.name}' are stored without names, and it is not known"
            " which it has",
            at(self._container.file, offset),
            help="write the module with --emit-bytecode-version=4, or as text",
        )


_NO_TYPE = StringAttr("not defined yet")
