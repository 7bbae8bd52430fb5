"""Reads operations, blocks and regions, in generic and in pretty form."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser.core import ForwardDeclaredValue

from mlirhlo.dialects.chlo import ROWS as CHLO_ROWS
from mlirhlo.dialects.hlo.build import append
from mlirhlo.dialects.quick import MAX_REGION_DEPTH, REGION_DEPTH_HELP, create_op, replace
from mlirhlo.dialects.stablehlo import ROWS
from mlirhlo.dialects.stablehlo.op_classes import TableOp
from mlirhlo.formats.stablehlo.foreign import Bridge
from mlirhlo.formats.stablehlo.properties import settle
from mlirhlo.formats.stablehlo.reader_attributes import AttributeReader
from mlirhlo.formats.stablehlo.scan import BAD_VALUE, TOO_DEEP, UNKNOWN

Use = tuple[str, int, int]
"""Name, index and place of an operand."""

_MAX_RESULTS = 1 << 16


class OpReader(AttributeReader):
    """The part of the reader that reads operations."""

    blocks: dict[str, Block]
    """Blocks of the region that is being read, by name."""
    awaited: dict[str, int]
    """Blocks that are used before they stand, and where."""
    forward: dict[str, dict[int, tuple[ForwardDeclaredValue, int]]]
    """Values that are used before they are defined, and where."""
    defined: list[str]
    """Names defined in the region that is being read."""
    early: list[tuple[str, int]]
    """Values of the region that is being read that were used before they were defined."""
    dialects: list[str]
    """Dialect whose name may be left out, for each open region."""

    depth: int = 0
    """Number of open regions."""

    _generic_name: str = ""

    # ------------------------------------------------------------ values

    def use(self, name: str, index: int, type_: Attribute, at: int) -> SSAValue:
        """The value a use means; checks its type."""
        known = self.values.get(name)
        if known is None:
            waiting = self.forward.setdefault(name, {})
            if index not in waiting:
                waiting[index] = (ForwardDeclaredValue(type_), at)
            value: SSAValue = waiting[index][0]
        elif index < len(known):
            value = known[index]
        else:
            self.fail(
                f"%{name} has {len(known)} values, there is no %{name}#{index}",
                at,
                length=len(name) + 1,
                code=UNKNOWN,
            )
        if value.type is not type_ and value.type != type_:
            self.fail(
                f"%{name} is used as {self.show(type_)}, but it is {self.show(value.type)}",
                at,
                length=len(name) + 1,
                code=BAD_VALUE,
            )
        return value

    def define(self, name: str, values: tuple[SSAValue, ...], at: int) -> None:
        """Gives values their name."""
        if name in self.values:
            self.fail(f"%{name} is defined twice", at, length=len(name) + 1, code=UNKNOWN)
        self.values[name] = values
        self.defined.append(name)
        waiting = self.forward.pop(name, None)
        if waiting is None:
            return
        self.early.append((name, next(iter(waiting.values()))[1]))
        for index, (placeholder, place) in waiting.items():
            if index >= len(values):
                self.fail(f"there is no %{name}#{index}", place, code=UNKNOWN)
            if placeholder.type != values[index].type:
                self.fail(
                    f"%{name} is used as {self.show(placeholder.type)}, but it is"
                    f" {self.show(values[index].type)}",
                    place,
                    length=len(name) + 1,
                    code=BAD_VALUE,
                )
            replace(placeholder, values[index])

    @staticmethod
    def show(type_: Attribute) -> str:
        """A type in a message."""
        text = str(type_)
        return text if len(text) < 80 else text[:77] + "…"

    def uses(self) -> list[Use]:
        """`%a, %b#1, …`; may be empty."""
        found: list[Use] = []
        first = self.optional_value()
        if first is None:
            return found
        found.append(first)
        while True:
            before = self.pos
            if not self.accept(","):
                return found
            following = self.optional_value()
            if following is None:
                self.pos = before
                return found
            found.append(following)

    def resolve(self, uses: list[Use], types: list[Attribute], at: int) -> list[SSAValue]:
        """The values of uses, whose types have been read by now."""
        if len(uses) != len(types):
            self.fail(f"{len(uses)} operands but {len(types)} types for them", at, code=BAD_VALUE)
        return [
            self.use(name, index, type_, place)
            for (name, index, place), type_ in zip(uses, types, strict=True)
        ]

    # ------------------------------------------------------------ operations

    def optional_operation(self) -> Operation | None:
        """An operation, if one begins here; its results get their names."""
        start = self.skip()
        results: list[tuple[str, int, int]] = []
        if self.text.startswith("%", start):
            results = self._results()
            start = self.skip()
        op: Operation
        if self.text.startswith('"', start):
            op = self._generic(start)
        else:
            name = self.optional_word()
            if name is None:
                if results:
                    self.expected("an operation")
                return None
            op = self._pretty(name, start)
        location = self.optional_location()
        if location is not None:
            op.location = cast(Any, location)
        self.finish(op, results, start)
        return op

    def finish(self, op: Operation, names: list[tuple[str, int, int]], start: int) -> None:
        """Names the results of an operation and remembers where it stands."""
        op.text_source = (self.source, start)  # type: ignore[attr-defined]
        if not names:
            return
        results = tuple(op.results)
        if sum(count for _, count, _ in names) != len(results):
            self.fail(
                f"{op.name} has {len(results)} results, not {sum(n for _, n, _ in names)}",
                names[0][2],
                code=BAD_VALUE,
            )
        begin = 0
        for name, count, place in names:
            self.define(name, results[begin : begin + count], place)
            begin += count

    def _results(self) -> list[tuple[str, int, int]]:
        """`%a, %b:2 =`: names, counts and places."""
        found: list[tuple[str, int, int]] = []
        while True:
            use = self.optional_value()
            if use is None:
                self.expected("a result")
            count = 1
            if self.accept(":"):
                count = self.integer()
                if not 0 < count < _MAX_RESULTS:
                    self.fail("no op has so many results", use[2], code=BAD_VALUE)
            found.append((use[0], count, use[2]))
            if not self.accept(","):
                break
        self.need("=")
        return found

    def op_class(self, name: str, at: int, *, is_generic: bool) -> type[Operation]:
        """The class of an op. Ops of dialects nobody knows are kept in generic form."""
        if "." not in name:
            self.fail(f"'{name}' is no name of an op: it has no dialect", at, length=len(name) or 1)
        found = self.ctx.get_optional_op(name)
        if found is not None and (is_generic or not issubclass(found, UnregisteredOp)):
            return found
        dialect = name.partition(".")[0]
        if dialect in ("stablehlo", "chlo") or not is_generic:
            self.fail(
                f"there is no op '{name}'" + self._suggestion(name),
                at,
                length=len(name),
                code=UNKNOWN,
            )
        return UnregisteredOp.with_name(name)

    def _suggestion(self, name: str) -> str:
        from difflib import get_close_matches

        near = get_close_matches(name, [*ROWS, *CHLO_ROWS], 1)
        return f"; did you mean '{near[0]}'?" if near else ""

    def _generic(self, start: int) -> Operation:
        """`"name"(operands) [successors] <{properties}> (regions) {attributes} : types`."""
        name = self._generic_name = self.string()
        cls = self.op_class(name, start, is_generic=True)
        self.need("(")
        uses = self.uses()
        self.need(")")
        successors: list[Block] = []
        if self.accept("["):
            while True:
                self.need("^")
                successors.append(self.block_named(self.suffix()))
                if not self.accept(","):
                    break
            self.need("]")
        properties: dict[str, Attribute] = {}
        if self.accept("<"):
            properties = self.dictionary()
            self.need(">")
        regions: list[Region] = []
        if self.accept("("):
            self.dialects.append("")
            is_isolated = name in ("builtin.module", "func.func")
            is_graph = name == "builtin.module" or issubclass(cls, UnregisteredOp)
            while True:
                regions.append(self.region(is_isolated=is_isolated, is_graph=is_graph))
                if not self.accept(","):
                    break
            self.dialects.pop()
            self.need(")")
        attributes = self.optional_dictionary()
        self.need(":")
        at = self.pos
        operand_types, result_types = self.function_types()
        operands = self.resolve(uses, operand_types, at)
        self._generic_name = name
        return self.make(
            cls, operands, result_types, properties, attributes, start, regions, successors
        )

    def make(
        self,
        cls: type[Operation],
        operands: list[SSAValue],
        result_types: list[Attribute],
        properties: dict[str, Attribute],
        attributes: dict[str, Attribute],
        start: int,
        regions: list[Region] | None = None,
        successors: list[Block] | None = None,
    ) -> Operation:
        """An op with its attributes sorted into inherent and others, former spellings mended."""
        settle(self, cls, properties, attributes, start)
        op = create_op(
            cls,
            operands,
            result_types,
            properties,
            regions=regions or (),
            successors=successors or (),
            attributes=attributes,
        )
        if issubclass(cls, UnregisteredOp):
            from xdsl.dialects.builtin import StringAttr

            op.attributes["op_name__"] = StringAttr(self._generic_name)
        if isinstance(op, TableOp) and (problem := op.count_problem()) is not None:
            self.fail(problem, start, code=BAD_VALUE)
        return op

    def _pretty(self, name: str, start: int) -> Operation:
        from mlirhlo.formats.stablehlo.pretty import readers

        full = name
        if "." not in name:
            dialect = self.dialects[-1] if self.dialects else ""
            full = f"{dialect or 'builtin'}.{name}"
        found = readers().get(full)
        if found is not None:
            return found(cast(Any, self), start)
        cls = self.op_class(full, start, is_generic=False)
        if not hasattr(cls, "parse"):
            self.fail(
                f'{full} has no form of its own; write it in generic form: "{full}"(…)',
                start,
                length=len(name),
            )
        with Bridge.over(cast(Any, self)) as bridge:
            self.dialects.append("")
            is_foreign = not cls.__module__.startswith("mlirhlo.")
            outer, bridge.for_foreign_op = bridge.for_foreign_op, is_foreign
            op = cls.parse(bridge)
            bridge.for_foreign_op = outer
            self.dialects.pop()
        return op

    # ------------------------------------------------------------ regions

    def region(
        self,
        arguments: list[tuple[str, Attribute, int]] | None = None,
        *,
        is_isolated: bool = False,
        is_graph: bool = False,
        locations: list[Attribute | None] | None = None,
    ) -> Region:
        """`{ … }`; `arguments` are names, types and places of the entry block's arguments."""
        self.need("{")
        return self.region_body(
            arguments, is_isolated=is_isolated, is_graph=is_graph, locations=locations
        )

    def region_body(
        self,
        arguments: list[tuple[str, Attribute, int]] | None = None,
        *,
        is_isolated: bool = False,
        is_graph: bool = False,
        locations: list[Attribute | None] | None = None,
    ) -> Region:
        """A region after its `{`."""
        self.depth += 1
        if self.depth > MAX_REGION_DEPTH:
            message = f"regions are nested deeper than {MAX_REGION_DEPTH}"
            self.fail(message, self.pos, code=TOO_DEEP, help=REGION_DEPTH_HELP)
        outer = (self.blocks, self.awaited, self.values, self.forward, self.defined)
        self.blocks, self.awaited, self.defined = {}, {}, []
        early, self.early = self.early, []
        if is_isolated:
            self.values, self.forward = {}, {}
        region = Region()
        if arguments is not None:
            block = Block(arg_types=[type_ for _, type_, _ in arguments])
            for argument, (name, _, at) in zip(block.args, arguments, strict=True):
                self.define(name, (argument,), at)
            for argument, location in zip(block.args, locations or (), strict=False):
                if location is not None:
                    argument.location = cast(Any, location)
            region.add_block(block)
            self.block_body(block)
        elif not self.at("^") and not self.at("}"):
            block = Block()
            region.add_block(block)
            self.block_body(block)
        while not self.accept("}"):
            self._labelled_block(region)
        if self.early and not is_graph and len(region.blocks) == 1:
            name, at = self.early[0]
            self.fail(
                f"%{name} is used before it is defined", at, length=len(name) + 1, code=UNKNOWN
            )
        self.early = early
        if self.awaited:
            name, at = next(iter(self.awaited.items()))
            self.fail(f"no block is called ^{name}", at, code=UNKNOWN)
        if is_isolated:
            self.check_forward()
        else:
            for name in self.defined:
                del self.values[name]
        self.depth -= 1
        own = (self.values, self.forward)
        self.blocks, self.awaited, self.values, self.forward, self.defined = outer
        if not is_isolated:
            self.values, self.forward = own
        return region

    def check_forward(self) -> None:
        """Raises for values that were used and never defined."""
        for name, waiting in self.forward.items():
            at = next(iter(waiting.values()))[1]
            near = self._near_value(name)
            self.fail(f"%{name} is not defined{near}", at, length=len(name) + 1, code=UNKNOWN)

    def _near_value(self, name: str) -> str:
        from difflib import get_close_matches

        near = get_close_matches(name, list(self.values)[:10000], 1)
        return f"; did you mean %{near[0]}?" if near else ""

    def block_body(self, block: Block) -> None:
        """Operations up to the next block or the end of the region."""
        while not self.read_lines(block):
            op = self.optional_operation()
            if op is None:
                if not self.at("}") and not self.at("^"):
                    self.expected("an operation or '}'")
                return
            append(block, op)

    def read_lines(self, block: Block) -> bool:
        """Reads lines of forms that have been read before; whether the region ends."""
        del block
        return False

    def _labelled_block(self, region: Region) -> None:
        if not self.at("^"):
            self.expected("an operation or '}'")
        at = self.pos
        self.need("^")
        name = self.suffix()
        block = self.block_named(name)
        if self.awaited.pop(name, None) is None:
            self.fail(f"block ^{name} stands twice", at, code=UNKNOWN)
        region.add_block(block)
        if self.accept("("):
            types: list[tuple[str, Attribute, int]] = []
            while not self.accept(")"):
                types.append(self.argument())
                argument = block.insert_arg(types[-1][1], len(types) - 1)
                location = self.optional_location()
                if location is not None:
                    argument.location = cast(Any, location)
                self.define(types[-1][0], (argument,), types[-1][2])
                if not self.accept(","):
                    self.need(")")
                    break
        self.need(":")
        self.block_body(block)

    def argument(self) -> tuple[str, Attribute, int]:
        """`%name: type`."""
        use = self.optional_value()
        if use is None:
            self.expected("an argument")
        self.need(":")
        return use[0], self.type(), use[2]

    def block_named(self, name: str) -> Block:
        """The block of a name, which may come later."""
        known = self.blocks.get(name)
        if known is None:
            known = self.blocks[name] = Block()
            self.awaited[name] = max(0, self.pos - len(name) - 1)
        return known
