"""LAPACK's custom calls: matrix by matrix, in memory of their own, column by column, by the library.

Targets are those of JAX on the CPU (`lapack_<s|d|c|z><routine>_ffi`), of JAX on GPUs (`cusolver_geev_ffi`,
`cuhybrid_geqp3`, their twins for ROCm) and XLA's own of the same meaning (`Qr`). A call has machine code only
where its arrays fit the routine's signature (`interp/custom_calls/lapack_signature.py`). Batches go to several threads.
A matrix that holds a NaN or an infinity never gets to an eigenvalue or singular value routine.
Source: LAPACK's documentation of each routine; meanings as in `interp/custom_calls/lapack.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

from xdsl.dialects.builtin import i8, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects import arith as casts
from mlirhlo.dialects.hlo.element_types import S32
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.interp.custom_calls.lapack_signature import (
    LETTERS,
    OF_COMPLEX,
    named,
    routine_of,
    signature,
)
from mlirhlo.interp.custom_calls.options import options_of
from mlirhlo.lowering import routines
from mlirhlo.lowering.builder import Index
from mlirhlo.lowering.hlo_to_loops.array_kernel import ArrayKernel, is_minor
from mlirhlo.lowering.hlo_to_loops.elements import register_type
from mlirhlo.lowering.hlo_to_loops.kernels import builds
from mlirhlo.lowering.hlo_to_loops.loop_kernels import lanes_for
from mlirhlo.lowering.hlo_to_loops.outside import Outside
from mlirhlo.lowering.hlo_to_loops.places import Coordinate, Places

_FLOP_NS = 0.3

Routine = Callable[["Call"], None]

ROUTINES: dict[str, Routine] = {}
"""What builds the calls of a routine."""


def routine(function: Routine) -> Routine:
    """Decorator: the function, named after LAPACK's routine, builds its calls."""
    ROUTINES[function.__name__.strip("_")] = function
    return function


@builds("custom-call")
def custom_call(name: str, op: Any) -> FuncOp:
    """Kernels of custom calls that LAPACK answers. Raises `HloError` HLO0432 for all others, and for
    arrays and options that do not fit the routine."""
    k = ArrayKernel(name, op)
    target = str(op.custom_call_target)
    if named(target) is None:
        raise error("HLO0432", "no routine is known for it")
    called = routine_of(target, k.operands, k.results)
    if called is None:
        raise error("HLO0432", "its routine does not take these shapes")
    call = Call(k, op, signature(called, k.operands[0].element_type).rank)
    ROUTINES[called](call)
    return call.outside.finish(k.finish())


class Call:
    """A kernel that calls a routine for every matrix of a batch."""

    def __init__(self, k: ArrayKernel, op: Instruction, rank: int) -> None:
        self.k, self.b = k, k.b
        self.outside = Outside(k.b)
        self.options = options_of(op)
        element = k.operands[0].element_type
        self.letter = LETTERS[element]
        self.real = register_type(element)
        self.parts = 2 if element.is_complex else 1
        self.rank = rank
        """Dimensions of operand 0 that are one matrix."""
        self.place: Sequence[Coordinate] = ()
        """Of the matrix in its batch."""

    @property
    def is_complex(self) -> bool:
        return self.parts == 2

    def require(self, fits: bool) -> None:
        """Raises `HloError` HLO0432 unless shapes and options fit the routine."""
        if not fits:
            raise error("HLO0432", "its routine does not take these options")

    def letter_of(self, key: str, letters: str) -> str:
        """An option that is one of `letters`, the first unless given, or its number."""
        value = self.options.get(key, letters[0])
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 128:
            value = chr(value)
        self.require(isinstance(value, str) and len(value) == 1 and value in letters)
        return str(value)

    def number_of(self, key: str, default: int) -> int:
        """An option that is an integer."""
        value = self.options.get(key, default)
        self.require(isinstance(value, int))
        return int(value)

    @property
    def triangle(self) -> str:
        """`L` or `U`."""
        if "lower" in self.options:
            return "L" if self.options["lower"] else "U"
        return self.letter_of("uplo", "LU")

    def size(self, number: int) -> tuple[int, int]:
        """Rows and columns of an argument: an operand or, counted on, a result."""
        rows, columns = self.k.shape(number).dimensions[-2:]
        return rows, columns

    @contextmanager
    def each(self, *rooms: tuple[str, int]) -> Generator[list[SSAValue]]:
        """For every matrix; gives memory: so many elements (x), their real parts (r), integers (i)."""
        types: dict[str, Attribute] = {"x": self.real, "r": self.real, "i": i64}
        buffers = [
            (max(count, 1) * (self.parts if kind == "x" else 1), types[kind])
            for kind, count in rooms
        ]
        shape = self.k.operands[0]
        batch = shape.dimensions[: shape.rank - self.rank]
        work = prod(batch) * max(shape.dimensions[-1:]) ** 3 * _FLOP_NS
        with self.k.each(batch, buffers, work) as (place, memory):
            self.place = place
            yield memory

    def call(self, name: str, *arguments: SSAValue | int | float | str) -> None:
        """Calls a routine: everything goes by address, and the lengths of strings at the end."""
        b, values = self.b, list[SSAValue]()
        for argument in arguments:
            type_: Attribute
            match argument:
                case SSAValue():
                    values.append(argument)
                    continue
                case str():
                    value, type_ = b.constant(ord(argument), i8), i8
                case int():
                    value, type_ = b.constant(argument, i64), i64
                case float():
                    value, type_ = b.constant(argument, self.real), self.real
            place = b.scratch([self.parts if isinstance(argument, float) else 1], type_)
            b.store(value, place, [0])
            if isinstance(argument, float) and self.is_complex:
                b.store(b.constant(0.0, self.real), place, [1])
            values.append(place)
        values += [b.constant(1, i64)] * sum(isinstance(a, str) for a in arguments)
        full = OF_COMPLEX.get(name, name) if self.is_complex else name
        self.outside.call(f"{routines.LAPACK}{self.letter}{full}", values)

    # Matrices and vectors, between arguments and memory

    def read(self, number: int, room: SSAValue) -> None:
        """A matrix into memory."""
        b, (rows, columns) = self.b, self.size(number)
        if lanes := self._lanes(number):
            with b.loop(0, columns) as j:
                for i, mask in self._vectors(rows, lanes):
                    place = [*self._at([]), Coordinate(i, 1), Coordinate(j)]
                    (value,) = self.k.read(number, place, Places(b, lanes, mask))
                    b.vector_store(value, room, [b.add(b.mul(j, rows), i)], mask)
            return
        with b.loop(0, columns) as j, b.loop(0, rows) as i:
            self._load(number, room, [i, j], b.add(b.mul(j, rows), i))

    def write(self, number: int, room: SSAValue) -> None:
        """A matrix out of memory."""
        b, (rows, columns) = self.b, self.size(number)
        if lanes := self._lanes(number):
            with b.loop(0, columns) as j:
                for i, mask in self._vectors(rows, lanes):
                    value = b.vector_load(room, [b.add(b.mul(j, rows), i)], lanes, mask)
                    place = [*self._at([]), Coordinate(i, 1), Coordinate(j)]
                    self.k.write(number, place, (value,), lanes, mask)
            return
        with b.loop(0, columns) as j, b.loop(0, rows) as i:
            self._store(number, room, [i, j], b.add(b.mul(j, rows), i))

    def _lanes(self, number: int) -> int:
        """Lanes along a column of a matrix; 0 where its elements are no neighbours, or pairs."""
        shape = self.k.shape(number)
        is_copied = not self.is_complex and shape.element_type is self.k.operands[0].element_type
        return lanes_for([shape]) if is_copied and is_minor(shape, shape.rank - 2) else 0

    def _vectors(self, count: int, lanes: int) -> Generator[tuple[Index, SSAValue | None]]:
        """Starts of vectors, and the mask of the one that is not whole."""
        b, whole = self.b, count - count % lanes
        if whole:
            with b.loop(0, whole, lanes) as i:
                yield i, None
        if whole < count:
            yield whole, b.mask(b.index(count - whole), lanes)

    def read_vector(self, number: int, room: SSAValue, start: int = 0) -> None:
        """A vector into memory; `start`: its first element that is read."""
        with self.b.loop(0, self.k.shape(number).dimensions[-1] - start) as i:
            self._load(number, room, [self.b.add(i, start)], i)

    def write_vector(self, number: int, room: SSAValue) -> None:
        """A vector, or an integer, out of memory."""
        shape = self.k.shape(number)
        if shape.rank == len(self.place):
            self._store(number, room, [], 0)
            return
        with self.b.loop(0, shape.dimensions[-1]) as i:
            self._store(number, room, [i], i)

    def _load(self, number: int, room: SSAValue, index: Sequence[Index], at: Index) -> None:
        b, element = self.b, self.k.shape(number).element_type
        value = self.k.read(number, self._at(index), Places(b, 0))
        if element is S32:
            value = (b.cast(casts.ExtSIOp, value[0], i64),)
        for part, v in enumerate(value):
            b.store(v, room, [b.add(b.mul(at, len(value)), part)])

    def _store(self, number: int, room: SSAValue, index: Sequence[Index], at: Index) -> None:
        b, element = self.b, self.k.shape(number).element_type
        parts = 2 if element.is_complex else 1
        value = tuple(b.load(room, [b.add(b.mul(at, parts), part)]) for part in range(parts))
        if element is S32:
            value = (b.cast(casts.TruncIOp, value[0], register_type(S32)),)
        self.k.write(number, self._at(index), value)

    def _at(self, index: Sequence[Index]) -> list[Coordinate]:
        return [*self.place, *map(Coordinate, index)]

    # Numbers that are none

    @contextmanager
    def sound(self, room: SSAValue, count: int, info: SSAValue, failed: int) -> Generator[None]:
        """What is done where all numbers in memory are finite; elsewhere they become zeros, and `info`
        is `failed` after it."""
        b = self.b
        seen = b.scratch([1], self.real)
        zero = b.constant(0.0, self.real)
        b.store(zero, seen, [0])
        with b.loop(0, count * self.parts) as i:
            # Zero times a number is zero, or NaN.
            product = b.mulf(b.load(room, [i]), zero)
            b.store(b.addf(b.load(seen, [0]), product), seen, [0])
        is_sound = b.cmpf("ord", b.load(seen, [0]), zero)
        with b.loop(0, count * self.parts) as i:
            b.store(b.select(is_sound, b.load(room, [i]), zero), room, [i])
        yield
        found = b.select(is_sound, b.load(info, [0]), b.constant(failed, i64))
        b.store(found, info, [0])
