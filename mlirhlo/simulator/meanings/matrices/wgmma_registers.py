"""Registers of products of warp groups: accesses before a product has completed, or without a fence before it.

From its start until it has been waited for, a product owns its accumulators and the registers with fragments of its
first factor. `wgmma.fence` orders earlier accesses to them; without one, only products of the same shape may
accumulate into the same registers one after another. Source: PTX ISA, `wgmma.fence` and `wgmma.wait_group`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from mlirhlo.analysis.ptx.liveness import read, registers_in, written
from mlirhlo.diagnostics import Diagnostic
from mlirhlo.dialects.ptx import Register, Vector
from mlirhlo.simulator.access import place_at
from mlirhlo.simulator.assembler import Assembler, Run, Split
from mlirhlo.simulator.lanes import Array, Lanes

if TYPE_CHECKING:
    from mlirhlo.analysis.ptx.flat import FlatInstruction
    from mlirhlo.simulator.cohort import Cohort

Columns: TypeAlias = Mapping[tuple[str, str], int]
"""By function and name of a register, its column in the arrays of `Products`."""


@dataclass(slots=True)
class Products:
    """Products of a cohort that may not have completed, and who accessed their registers."""

    fenced: Array
    """Whether a thread has executed `wgmma.fence`."""
    committed: Array
    """Groups that a thread has committed."""
    done: Array
    """Groups for which it has waited."""
    started: Array
    """By thread and register: the number of the group with the last product that uses it."""
    accessed: Array
    """By thread and register: one more than the index of the last instruction that accessed it since a fence, or 0."""
    reads: list[tuple[int, int, int, tuple[Array, Array]]] = field(
        default_factory=list["tuple[int, int, int, tuple[Array, Array]]"]
    )
    """Of products under way: the first thread, the number of its group, the instruction, what they read."""


def products_of(cohort: Cohort, registers: Columns) -> Products:
    """The products of a cohort; `registers` are those of all products of the kernel."""
    if "wgmma" not in cohort.extra:
        none, sizes = np.zeros(cohort.count, np.int64), (cohort.count, len(registers))
        cohort.extra["wgmma"] = Products(
            none != 0, none, none.copy(), np.zeros(sizes, np.int32), np.zeros(sizes, np.uint16)
        )
    return cast("Products", cohort.extra["wgmma"])


def is_product(op: FlatInstruction) -> bool:
    """Whether an instruction is a product of a warp group."""
    return op.opcode == "wgmma" and "mma_async" in op.modifiers


def _registers_of(op: FlatInstruction) -> tuple[list[str], list[str]]:
    """The accumulators of a product, and its registers with fragments of the first factor."""
    to, first, *_ = op.operands
    fragments = registers_in(first) if isinstance(first, Vector) else ()
    return list(registers_in(to)), list(dict.fromkeys(fragments))


def _copied(op: FlatInstruction) -> tuple[str, str] | None:
    """Target and source of an instruction that copies a register: the two are one register to an assembler."""
    match op.opcode, op.operands:
        case "mov", (Register(to), Register(source)) if op.guard is None:
            return to, source
        case _:
            return None


def note_registers(assembler: Assembler, instructions: Sequence[FlatInstruction]) -> None:
    """Numbers the registers of all products in a function, and those that are copied to them."""
    columns, function = assembler.product_registers, assembler.names.function
    sources = dict[str, list[str]]()
    for op in instructions:
        if copy := _copied(op):
            sources.setdefault(copy[0], []).append(copy[1])
    todo = [n for op in instructions if is_product(op) for part in _registers_of(op) for n in part]
    while todo:
        name = todo.pop()
        if (function, name) not in columns:
            columns[function, name] = len(columns)
            todo += sources.get(name, ())


def columns_of(assembler: Assembler, names: Iterable[str]) -> dict[str, int]:
    """The columns of those registers that products use."""
    columns, function = assembler.product_registers, assembler.names.function
    return {name: columns[function, name] for name in names if (function, name) in columns}


def guarded_registers(assembler: Assembler, run: Run) -> Run:
    """`run`, after a check that no product under way uses the registers of the instruction."""
    op, registers = assembler.op, assembler.product_registers
    used = columns_of(assembler, dict.fromkeys((*read(op), *written(op))))
    if op.opcode == "wgmma" or not used:
        return run

    copy = _copied(op)
    ends = [used[name] for name in copy] if copy and len(used) == len(set(copy)) else None

    def checked(cohort: Cohort, lanes: Lanes) -> int | Split | None:
        products = products_of(cohort, registers)
        for name, column in used.items():
            if (products.started[lanes, column] > products.done[lanes]).any():
                _not_waited_for(cohort, f"{op.opcode}: {name}")
        if ends is not None:
            products.accessed[lanes, ends[0]] = products.accessed[lanes, ends[1]]
        else:
            for column in used.values():
                products.accessed[lanes, column] = cohort.pc + 1
        return run(cohort, lanes)

    return checked


def _not_waited_for(cohort: Cohort, what: str) -> None:
    cohort.launch.finding(
        ("accumulator", cohort.pc),
        Diagnostic(
            "HLO0786",
            f"{what} is used by a product that has not been waited for",
            place_at(cohort),
            help="execute wgmma.commit_group and wgmma.wait_group first",
        ),
    )


@dataclass(frozen=True, slots=True)
class OfProduct:
    """The registers of one product."""

    accumulators: dict[str, int]
    factors: dict[str, int]
    """Registers with fragments of the first factor."""
    same: Sequence[int]
    """One more than the indices of all products of the same shape, and 0."""

    def begin(self, cohort: Cohort, products: Products, lanes: Lanes) -> None:
        """The product starts: HLO0786 for accesses that no fence orders before it."""
        accessed = products.accessed[lanes]
        watched: Sequence[tuple[Mapping[str, int], Sequence[int]]] = (
            (self.accumulators, self.same),
            (self.factors, (0,)),
        )
        for names, fine in watched:
            stamps = accessed[:, list(names.values())]
            wrong = np.argwhere(~np.isin(stamps, fine))
            if len(wrong):
                row, column = (int(n) for n in wrong[0])
                _unordered(cohort, list(names)[column], int(stamps[row, column]) - 1)
        group = products.committed[lanes] + 1
        for column in (*self.accumulators.values(), *self.factors.values()):
            products.started[lanes, column] = group
        for column in self.accumulators.values():
            products.accessed[lanes, column] = cohort.pc + 1


def of_product(assembler: Assembler, shape: str) -> OfProduct:
    """The registers of the product at hand."""
    same = assembler.product_shapes.setdefault(shape, [0])
    same.append(assembler.pc + 1)
    accumulators, factors = (columns_of(assembler, names) for names in _registers_of(assembler.op))
    return OfProduct(accumulators, factors, same)


def _unordered(cohort: Cohort, name: str, other: int) -> None:
    op = cohort.code.instructions[other]
    cohort.launch.finding(
        ("wgmma", cohort.pc),
        Diagnostic(
            "HLO0786",
            f"wgmma.mma_async: no wgmma.fence orders the access of {op.opcode} to {name} before it",
            place_at(cohort),
            notes=(("the other access is", cohort.launch.place(other)),),
            help="execute wgmma.fence between the two"
            + (", or give both products the same shape" if is_product(op) else ""),
        ),
    )
