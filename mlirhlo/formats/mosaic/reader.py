"""Reads kernel modules: MLIR text of the `tpu` dialect and of those it is used with.

Any mixture of pretty and generic form is read, with plain names or those of the stable form
(`"stable_mosaic.tpu.load"`), which stay unregistered ops; `mlirhlo.mosaic.decode` gives them plain
names and the newest form.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import Builtin, ModuleOp, StringAttr, UnregisteredOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirhlo.diagnostics import HloError, SourceText, error
from mlirhlo.dialects.mosaic_gpu.dialect import MOSAIC_GPU
from mlirhlo.dialects.quick import create_op
from mlirhlo.dialects.stablehlo.opaque import OpaqueAttr
from mlirhlo.dialects.tpu import MOSAIC_TC, ROWS, TPU
from mlirhlo.dialects.tpu.op_classes import SEGMENTS, attribute_names, class_of
from mlirhlo.dialects.tpu.rows import Row
from mlirhlo.formats.mosaic.reading import read_form
from mlirhlo.formats.stablehlo.attribute_text import AttributeTexts
from mlirhlo.formats.stablehlo.reader import Reader, read_program
from mlirhlo.formats.stablehlo.scan import (
    BAD_CONSTANT,
    BAD_VALUE,
    SYNTAX,
    TOO_DEEP,
    UNKNOWN,
)

_INNER = re.compile(r"#[A-Za-z_][\w$]*(?![\w.<$])")
PREFIX, GPU_PREFIX = "stable_mosaic.", "stable_mosaic_gpu."
"""Before the names of ops in the stable form of kernels for TPUs, for GPUs."""
CODES = {
    SYNTAX: "HLO0710",
    UNKNOWN: "HLO0711",
    BAD_VALUE: "HLO0712",
    BAD_CONSTANT: "HLO0712",
    TOO_DEEP: "HLO0713",
}
"""The errors of kernels' text, by those of the reader underneath."""


@cache
def context() -> Context:
    """The dialects whose attributes and types kernels have."""
    ctx = Context()
    for dialect in (Builtin, TPU, MOSAIC_TC, MOSAIC_GPU):
        ctx.load_dialect(dialect)
    for name, factory in get_all_dialects().items():
        if name not in ("builtin", "tpu", "stablehlo", "chlo"):
            ctx.register_dialect(name, factory)
    return ctx


class KernelReader(Reader):
    """A reader of one text.

    A raw one takes the prefix of the stable form away, and leaves ops in generic form as they stand,
    for rules that mend those of former versions; `finish_module` does the rest.
    """

    def __init__(self, source: SourceText, ctx: Context, *, is_raw: bool = False) -> None:
        super().__init__(source, ctx)
        self._is_raw = is_raw

    def _plain(self, name: str) -> str:
        return plain_name(name) if self._is_raw else name

    def read_lines(self, block: Block) -> bool:
        """Lines are read one by one: kernels are short, and their values keep their names."""
        del block
        return False

    def define(self, name: str, values: tuple[SSAValue, ...], at: int) -> None:
        """Gives values their name; those that programs give are kept for printing."""
        super().define(name, values, at)
        if not name[0].isdigit() and not (name.startswith("arg") and name[3:].isdigit()):
            values[0].name_hint = name

    def _new_of_dialect(self, mark: str, name: str, spelled: str) -> Attribute:
        found = super()._new_of_dialect(mark, name, spelled)
        if isinstance(found, OpaqueAttr) and "#" in spelled[1:]:
            return OpaqueAttr(spelled[0] + _INNER.sub(self._inner, spelled[1:]))
        return found

    def _inner(self, match: re.Match[str]) -> str:
        """The text behind an alias in an attribute that is kept as it is spelled."""
        known = self.alias(match[0], self.pos)
        return match[0] if known is None else AttributeTexts().text(known)

    def op_class(self, name: str, at: int, *, is_generic: bool) -> type[Operation]:
        """The class of an op; what nobody knows is kept in generic form."""
        if "." not in name:
            self.fail(f"'{name}' is no name of an op: it has no dialect", at, length=len(name) or 1)
        name = self._plain(name)
        found = class_of(name)
        if found is not None:
            return found
        if not is_generic:
            self.fail(
                f"there is no op '{name}' with a pretty form{self._near_op(name)}",
                at,
                length=len(name),
                code=UNKNOWN,
            )
        return UnregisteredOp.with_name(name)

    def _near_op(self, name: str) -> str:
        from difflib import get_close_matches

        near = get_close_matches(name, ROWS, 1)
        return f"; did you mean '{near[0]}'?" if near else ""

    def _pretty(self, name: str, start: int) -> Operation:
        from mlirhlo.formats.mosaic.structured import READERS

        full = name
        if "." not in name:
            full = f"{(self.dialects[-1] if self.dialects else '') or 'builtin'}.{name}"
        row = ROWS.get(full)
        if row is None:
            self.op_class(full, start, is_generic=False)
        if row is None or row.form is None:
            self.fail(
                f'{full} has no pretty form; write "{full}"(…) : (…) -> …', start, length=len(name)
            )
        if row.form.startswith("!"):
            return READERS[row.form](self, row, start)
        return read_form(self, row, start)

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
        """An op with its attributes sorted into inherent and others, defaults filled in."""
        name = self._plain(self._generic_name)
        row = ROWS.get(name)
        if row is not None and not self._is_raw:
            return self.make_row(
                row, operands, result_types, properties, attributes, start, regions, successors
            )
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
            op.attributes["op_name__"] = StringAttr(name)
        return op

    def make_row(
        self,
        row: Row,
        operands: list[SSAValue],
        result_types: list[Attribute],
        properties: dict[str, Attribute],
        attributes: dict[str, Attribute],
        start: int,
        regions: list[Region] | None = None,
        successors: list[Block] | None = None,
    ) -> Operation:
        """An op of a row. Counts of operands, results and regions are those of the row."""
        cls = class_of(row.name)
        assert cls is not None
        op = create_op(
            cls,
            operands,
            result_types,
            properties,
            regions=regions or (),
            successors=successors or (),
            attributes=attributes,
        )
        settle(op)
        problem = count_problem(op, row)
        if problem is not None:
            self.fail(problem, start, length=len(row.name), code=BAD_VALUE)
        return op

    def small_attribute(self, text: str, at: int) -> Attribute:
        """The attribute that `text`, put together from what stands at `at`, spells."""
        try:
            return KernelReader(SourceText("", text), self.ctx).attribute()
        except HloError as problem:
            first = problem.diagnostics[0]
            self.fail(first.message, at, code=first.code)

    def small_type(self, text: str) -> Attribute:
        """The type that `text` spells."""
        return KernelReader(SourceText("", text), self.ctx).type()


def plain_name(name: str) -> str:
    """The name of an op without the prefix of a stable form."""
    return name.removeprefix(PREFIX).removeprefix(GPU_PREFIX)


def finish_module(module: ModuleOp) -> None:
    """Settles every op of a module that was read raw, or from bytecode. Raises HLO0712."""
    for op in module.walk():
        row = ROWS.get(op.name)
        if row is None:
            continue
        settle(op)
        problem = count_problem(op, row)
        if problem is not None:
            source: Any = getattr(op, "text_source", None)
            place = source[0].place(source[1], len(row.name)) if source is not None else None
            raise error("HLO0712", problem, place)


def settle(op: Operation) -> None:
    """Moves attributes that belong to the op among its properties, and fills in the defaults."""
    row = ROWS.get(op.name)
    if row is None:
        return
    own = attribute_names(op)
    for name in [name for name in op.attributes if name in own]:
        op.properties.setdefault(name, op.attributes.pop(name))
    for attribute in row.attributes:
        if attribute.is_filled_in and attribute.name not in op.properties:
            op.properties[attribute.name] = default_of(attribute.default or "")


@lru_cache(maxsize=1024)
def default_of(text: str) -> Attribute:
    """The attribute that the default in a row spells."""
    return KernelReader(SourceText("", text), context()).attribute()


def count_problem(op: Operation, row: Row) -> str | None:
    """What is wrong with the numbers of operands, results and regions, if anything."""
    for what, group, count in (
        ("operands", row.operands, len(op.operands)),
        ("results", row.results, len(op.results)),
    ):
        least = sum(not (slot.is_variadic or slot.is_optional) for slot in group)
        if count < least or (count > least == len(group)):
            if group or row.form is None or not row.form.startswith("!"):
                return f"{row.name} has {least} {what}, not {count}"
    if row.has_segments:
        stated: Any = op.properties.get(SEGMENTS)
        sizes = [int(size) for size in stated.get_values()] if stated is not None else None
        known = len(row.operands)
        # A compiler newer than the table may have entries more, which are empty in older kernels.
        if sizes is None or len(sizes) < known or sum(sizes[:known]) != len(op.operands):
            return f"{row.name} needs {SEGMENTS} of {known} numbers that add up"
        for slot, size in zip(row.operands, sizes, strict=False):
            most = size if slot.is_variadic else 1
            if not (0 if slot.is_variadic or slot.is_optional else 1) <= size <= most:
                return f"{row.name} has {size} operands for '{slot.name}'"
    if row.regions >= 0 and len(op.regions) != row.regions:
        return f"{row.name} has {row.regions} regions, not {len(op.regions)}"
    for attribute in row.attributes:
        if attribute.is_required and attribute.name not in op.properties:
            return f"{row.name} needs '{attribute.name}'"
    return None


def parse_kernel(
    text: str, file: str = "<kernel>", first_line: int = 1, *, is_raw: bool = False
) -> ModuleOp:
    """The module that `text` spells, in pretty, generic or stable form; `is_raw` as in `KernelReader`.

    Raises `HloError`: HLO0710 syntax, HLO0711 unknown names, HLO0712 parts that do not go together,
    HLO0713 nesting too deep.
    """
    reader = KernelReader(SourceText(file, text, first_line), context(), is_raw=is_raw)
    try:
        return read_program(reader)
    except HloError as problem:
        found = problem.diagnostics[0]
        code = CODES.get(found.code)
        if code is None:
            raise
        raise HloError(replace(found, code=code)) from None
