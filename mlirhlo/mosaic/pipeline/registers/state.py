"""What the rules of registers share: the registers of each vector, and how to make operations.

A register holds 8 sublanes of 128 lanes of 32 bits; elements of `bits` share a word, and the type of a
register says so: `vector<8x128xf32>`, `vector<8x128x2xbf16>`, `vector<8x128x4xi8>`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerType, i1, i32
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.tpu.attributes import VectorLayoutAttr
from mlirhlo.dialects.tpu.registers import RegisterGrid, register_grid
from mlirhlo.dialects.tpu.values import LANES, SUBLANES, VectorLayout
from mlirhlo.mosaic.attributes import name_of
from mlirhlo.mosaic.pipeline.building import (
    attribute,
    build,
    constant,
    element_of,
    insert,
    vector_type,
)
from mlirhlo.mosaic.pipeline.faults import cannot
from mlirhlo.mosaic.pipeline.layouts import layouts_of, native
from mlirhlo.mosaic.target.tiling import shape_in

MOST = 1 << 14
"""Registers of one vector above which a kernel is refused: its code would not fit any memory."""


class Registers:
    """The registers of the vectors of one function, and a builder of operations before `op`."""

    def __init__(self, mxu: int = LANES) -> None:
        self.mxu = mxu
        """Rows and columns of a matrix unit."""
        self.known: dict[SSAValue, list[SSAValue]] = {}
        self.op: Operation | None = None

    # Operations.

    def emit(
        self,
        name: str,
        operands: Sequence[SSAValue],
        type_: Attribute,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> SSAValue:
        """An operation with one result, before the operation that is unrolled."""
        assert self.op is not None
        return insert(build(name, operands, (type_,), attributes, self.op), self.op).results[0]

    def effect(
        self, name: str, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute]
    ) -> None:
        """An operation without a result."""
        assert self.op is not None
        insert(build(name, operands, (), attributes, self.op), self.op)

    def number(self, value: int, type_: IndexType | IntegerType = i32) -> SSAValue:
        """An integer constant."""
        assert self.op is not None
        return insert(constant(value, type_), self.op).results[0]

    def splat(self, text: str, type_: Attribute) -> SSAValue:
        """A vector with one value, spelled as in MLIR, everywhere."""
        return self.emit(
            "arith.constant", (), type_, {"value": attribute(f"dense<{text}> : {type_}")}
        )

    def index(self, value: int) -> SSAValue:
        """A constant of type `index`."""
        return self.number(value, IndexType())

    def box(
        self, rows: tuple[int, int], lanes: tuple[int, int], type_: Attribute | None = None
    ) -> SSAValue:
        """A mask that is true in a box of sublanes and lanes."""
        bounds = [self.index(at) for at in (rows[0], lanes[0], rows[1], lanes[1])]
        return self.emit("tpu.create_mask", bounds, type_ or mask_type())

    def inside(self, rows: int, lanes: int, packing: int = 1) -> SSAValue | None:
        """A mask of the first rows and lanes of a register; None where that is all of it."""
        rows, lanes = min(rows, SUBLANES * packing), min(lanes, LANES)
        type_ = mask_type(packing)
        if (rows, lanes) == (SUBLANES * packing, LANES):
            return None
        found = self.box((0, -(-rows // packing)), (0, lanes), type_)
        if rows % packing == 0:
            return found
        ends = {"from": attribute("0 : i32"), "to": attribute(f"{rows} : i32")}
        odd = self.emit("tpu.create_subelement_mask", (), type_, ends)
        return self.both(odd, found)

    def kept(self, register: SSAValue, mask: SSAValue | None, text: str) -> SSAValue:
        """The register where the mask is true, a number elsewhere."""
        if mask is None:
            return register
        other = self.splat(text, register.type)
        return self.emit("arith.select", (mask, register, other), register.type)

    def words(self, register: SSAValue) -> SSAValue:
        """The register seen as 8x128 words."""
        return self.cast(register, word_type())

    def cast(self, register: SSAValue, type_: Attribute) -> SSAValue:
        """The register with the same bits and another type."""
        if register.type == type_:
            return register
        owner = register.owner
        if isinstance(owner, Operation) and name_of(owner) == "tpu.bitcast_vreg":
            return self.cast(owner.operands[0], type_)
        return self.emit("tpu.bitcast_vreg", (register,), type_)

    def both(self, left: SSAValue | None, right: SSAValue | None) -> SSAValue | None:
        """The mask where both are true; None is true everywhere."""
        if left is None or right is None:
            return right if left is None else left
        return self.emit("arith.andi", (left, right), left.type)

    def turned(self, value: SSAValue, amount: int, dim: int) -> SSAValue:
        """Words turned along sublanes (0) or lanes (1)."""
        return self.emit(
            "tpu.dynamic_rotate",
            (value, self.number(amount)),
            value.type,
            {"dimension": attribute(f"{dim} : si32")},
        )

    # Registers.

    def of(self, value: SSAValue, layout: VectorLayout) -> list[SSAValue]:
        """The registers of a vector that has the layout."""
        known = self.known.get(value)
        return self.unrolled(value, layout) if known is None else known

    def unrolled(
        self, value: SSAValue, layout: VectorLayout, *, stated: bool = True
    ) -> list[SSAValue]:
        """The registers of a vector that has the layout, taken apart; `stated` says the layout too."""
        assert self.op is not None
        grid = grid_of(layout, value.type, self.op)
        new = build(
            "tpu.unroll_vectors", (value,), [register_type(layout, value.type)] * grid.count
        )
        new.results[0].name_hint = value.name_hint
        if stated:
            new.attributes["in_layout"] = ArrayAttr([VectorLayoutAttr(layout)])
        insert(new, self.op)
        self.known[value] = list(new.results)
        return list(new.results)

    def operand(self, at: int) -> tuple[list[SSAValue], VectorLayout]:
        """The registers and the layout of an operand of the operation."""
        assert self.op is not None
        layout = layout_in(self.op, at)
        return self.of(self.op.operands[at], layout), layout

    def rolled(
        self, registers: Sequence[SSAValue], type_: Attribute, layout: VectorLayout
    ) -> SSAValue:
        """The vector that registers hold."""
        assert self.op is not None
        new = build("tpu.roll_vectors", registers, (type_,), None, self.op)
        new.attributes["out_layout"] = ArrayAttr([VectorLayoutAttr(layout)])
        value = insert(new, self.op).results[0]
        self.known[value] = list(registers)
        return value


@dataclass(frozen=True, slots=True)
class Part:
    """A vector in registers, as the source of a move."""

    registers: Sequence[SSAValue]
    layout: VectorLayout
    type: Attribute


Rule = Callable[[Operation, Registers], "Sequence[Sequence[SSAValue]]"]
"""The registers of each result; the operation goes."""


def layout_in(op: Operation, at: int) -> VectorLayout:
    """The layout of an operand as the operation wants it."""
    stated = layouts_of(op, "in_layout")
    layout = stated[at] if at < len(stated) else None
    return layout or native(op.operands[at].type)


def layout_out(op: Operation, at: int = 0) -> VectorLayout:
    """The layout of a result."""
    stated = layouts_of(op, "out_layout")
    layout = stated[at] if at < len(stated) else None
    return layout or native(op.results[at].type)


def grid_of(layout: VectorLayout, type_: Attribute, op: Operation) -> RegisterGrid:
    """The registers of a vector type. Raises `HloError` HLO0753 where the layout is not of it."""
    grid = register_grid(layout, shape_in(type_))
    if grid is None:
        raise cannot(op, f"{type_} does not lie in registers as {layout}")
    if grid.count > MOST:
        raise cannot(op, f"{type_} has {grid.count} registers", "work on smaller blocks")
    return grid


def packing_of(layout: VectorLayout) -> int:
    """Elements a word."""
    return 32 // layout.bits


def typed(element: Attribute, packing: int) -> Attribute:
    """The type of a register of elements of which a word has `packing`."""
    shape = (SUBLANES, LANES) if packing == 1 else (SUBLANES, LANES, packing)
    return vector_type(shape, element)


def register_type(layout: VectorLayout, vector: Attribute) -> Attribute:
    """The type of the registers of a vector: `vector<8x128xf32>`, `vector<8x128x2xbf16>`."""
    return typed(element_of(vector), packing_of(layout))


def word_type() -> Attribute:
    """`vector<8x128xi32>`."""
    return typed(i32, 1)


def mask_type(packing: int = 1) -> Attribute:
    """`vector<8x128xi1>`."""
    return typed(i1, packing)


def integer_type(bits: int) -> Attribute:
    """`i8` for 8."""
    return IntegerType(bits)


def is_float(type_: Attribute) -> bool:
    """Whether the elements are floats."""
    return not str(element_of(type_)).startswith("i")


def indices_of(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """All indices of a shape, the last dimension fastest."""
    return list(product(*(range(size) for size in shape)))


def flat(index: Sequence[int], shape: Sequence[int]) -> int:
    """The place of an index; dimensions of size one take any."""
    number = 0
    for at, size in zip(index, shape, strict=True):
        number = number * size + (at if size > 1 else 0)
    return number
