"""Recording: the computation that is being built, and the instructions that go into it.

A `Trace` is one computation under construction. Traces nest: the branches of `cond` and the body
of `while_loop` are traces inside of the one around them, and take what they use of it as operands.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Attribute, Block, SSAValue

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.attributes.annotations import Metadata, MetadataAttr
from mlirhlo.dialects.hlo.attributes.base import integer, string
from mlirhlo.dialects.hlo.build import append, close, create
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import OP_CLASSES, ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, array
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.numpy.dtypes import DType, primitive
from mlirhlo.numpy.errors import HloTypeError, problem, user_frame

if TYPE_CHECKING:
    from mlirhlo.numpy.array import Array

_STATE = threading.local()


def current() -> Trace | None:
    """The innermost trace of this thread; None outside of `jit`."""
    return getattr(_STATE, "trace", None)


def active() -> Trace:
    """The innermost trace of this thread, which there must be."""
    trace = current()
    assert trace is not None, "instructions are recorded inside of a trace only"
    return trace


@functools.lru_cache(maxsize=1 << 14)
def shape_for(dtype: DType, shape: tuple[int, ...]) -> ArrayShape:
    """The row-major HLO shape of an array."""
    return array(primitive(dtype), shape)


@functools.lru_cache(maxsize=1 << 14)
def type_for(dtype: DType, shape: tuple[int, ...]) -> Attribute:
    """The MLIR type of an array."""
    return type_of(shape_for(dtype, shape))


@functools.lru_cache(maxsize=1 << 12)
def _metadata(op_name: str, file: str, line: int) -> MetadataAttr:
    return MetadataAttr(Metadata(op_name=op_name, source_file=file, source_line=line))


class Builder:
    """A module under construction: its finished computations and their names."""

    def __init__(self, name: str, op_name: str = "") -> None:
        """`op_name`: what begins the `op_name` of every instruction (`jit(f)`); empty for none."""
        self.name, self.op_name = name, op_name
        self.computations: list[ComputationOp] = []
        self.regions: dict[object, str] = {}
        self._names: dict[str, int] = {}

    def unique(self, stem: str) -> str:
        """A name for a computation."""
        count = self._names[stem] = self._names.get(stem, 0) + 1
        return stem if count == 1 else f"{stem}.{count}"

    def add(self, name: str, block: Block, root: SSAValue, *, is_entry: bool = False) -> None:
        """Makes a computation of a block."""
        properties: dict[str, Attribute] = {"is_entry": UnitAttr()} if is_entry else {}
        self.computations.append(close(name, block, root, properties))

    def checkpoint(self) -> tuple[int, dict[object, str], dict[str, int]]:
        """What there is now; see `restore`."""
        return len(self.computations), dict(self.regions), dict(self._names)

    def restore(self, state: tuple[int, dict[object, str], dict[str, int]]) -> None:
        """Takes away what was added since a checkpoint."""
        count, self.regions, self._names = state
        del self.computations[count:]

    def finish(self) -> ModuleOp:
        """The module."""
        op = ModuleOp(list(self.computations))
        module = HloModule(op)
        module.name = self.name
        signature = module.entry_signature
        module.set_program_layout(signature.parameters, signature.result)
        return op


class Trace:
    """A computation under construction; a context manager that makes it the current one."""

    def __init__(self, builder: Builder, parent: Trace | None = None) -> None:
        self.builder, self.parent = builder, parent
        self.block = Block()
        self.is_open = True
        self.captures: dict[int, tuple[Array, SSAValue]] = {}
        """Values of traces further out that this one uses, and what stands for them here."""
        self.scope: str = ""
        """The public function that instructions are recorded for."""
        self._place: tuple[str, int] = ("", 0) if parent is None else parent._place
        self._constants: dict[object, tuple[Any, SSAValue]] = {}

    def __enter__(self) -> Trace:
        self._before = current()
        _STATE.trace = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        _STATE.trace = self._before
        self.is_open = False

    # -------------------------------------------------------------- whose instruction

    def enter(self, scope: str) -> str:
        """Says which function of the user's the next instructions are for; returns the last one."""
        before = self.scope
        if not before:
            self.scope = scope
            if self.builder.op_name:
                frame = user_frame()
                if frame is not None:
                    self._place = (frame.f_code.co_filename, frame.f_lineno)
        return before

    def _origin(self, opcode: str) -> MetadataAttr:
        parts = [self.builder.op_name]
        parts += [self.scope] if self.scope else []
        if opcode != self.scope:
            parts.append(opcode)
        return _metadata("/".join(parts), *self._place)

    # -------------------------------------------------------------- instructions

    def emit(
        self,
        opcode: str,
        operands: Sequence[SSAValue],
        type_: Attribute,
        properties: dict[str, Attribute] | None = None,
        name: str | None = None,
    ) -> SSAValue:
        """Appends an instruction; takes ownership of `properties`."""
        own = {} if properties is None else properties
        if self.builder.op_name and "metadata" not in own:
            own["metadata"] = self._origin(opcode)
        op = create(OP_CLASSES[opcode], operands, type_, own, name)
        append(self.block, op)
        return op.results[0]

    def parameter(
        self, number: int, shape: Shape, name: str | None = None, label: str = ""
    ) -> SSAValue:
        """Appends a parameter; `label` is its `op_name`."""
        properties: dict[str, Attribute] = {"parameter_number": integer(number)}
        if self.builder.op_name and label:
            properties["metadata"] = MetadataAttr(Metadata(op_name=label))
        op = create(OP_CLASSES["parameter"], (), type_of(shape), properties, name)
        append(self.block, op)
        return op.results[0]

    def value(self, given: Array) -> SSAValue:
        """What stands for an array in this computation: itself, a constant, or a captured operand.

        Raises HLO0622 for a value of a trace that is over.
        """
        if given.data is not None:
            return self._constant(given.data)
        if given.trace is self:
            return given.value
        trace = cast("Trace | None", given.trace)
        if trace is None or not trace.is_open or not self.is_inside(trace):
            raise leaked(given)
        captured = self.captures.get(id(given.value))
        if captured is None:
            # A stand-in outside of the block; `finish_inner` puts the real operand in its place.
            stand_in = create(OP_CLASSES["parameter"], (), given.value.type, {}).results[0]
            captured = self.captures[id(given.value)] = (given.snapshot(), stand_in)
        return captured[1]

    def is_inside(self, other: Trace) -> bool:
        """Whether `other` is this trace or one around it."""
        trace: Trace | None = self
        while trace is not None and trace is not other:
            trace = trace.parent
        return trace is not None

    def _constant(self, data: np.ndarray[Any, Any]) -> SSAValue:
        key: object = (
            (data.dtype, data.tobytes()) if not data.shape else (id(data), data.dtype, data.shape)
        )
        found = self._constants.get(key)
        if found is None:
            shape = shape_for(data.dtype, data.shape)
            literal = LiteralAttr(Literal.from_array(shape, data))
            value = self.emit("constant", (), type_of(shape), {"literal": literal})
            # The array is kept with its constant: its id must not be given to another.
            found = self._constants[key] = (data, value)
        return found[1]

    # -------------------------------------------------------------- called computations

    def region(self, opcode: str, dtype: DType) -> str:
        """The name of the scalar computation `opcode(a, b)`."""
        name = f"{opcode}_{primitive(dtype)}"

        def body(trace: Trace, values: Sequence[SSAValue]) -> SSAValue:
            return trace.emit(opcode, values, type_for(dtype, ()))

        return self.scalar_region((opcode, dtype), name, (dtype, dtype), body)

    def scalar_region(self, key: object, stem: str, dtypes: Sequence[DType], body: Any) -> str:
        """The name of a computation on scalars of `dtypes`, made by `body` once a module."""
        found = self.builder.regions.get(key)
        if found is None:
            trace = Trace(self.builder)
            trace.scope, trace._place = self.scope, self._place
            values = [
                trace.parameter(number, shape_for(dtype, ())) for number, dtype in enumerate(dtypes)
            ]
            found = self.builder.regions[key] = self.builder.unique(stem)
            self.builder.add(found, trace.block, body(trace, values))
        return found

    def tuple(self, values: Sequence[SSAValue]) -> SSAValue:
        """Appends a tuple."""
        shape = TupleShape(tuple(shape_of(v.type) for v in values))
        return self.emit("tuple", values, type_of(shape))

    def element(self, value: SSAValue, index: int) -> SSAValue:
        """Appends the taking of a tuple's element."""
        shape = shape_of(value.type)
        assert isinstance(shape, TupleShape)
        return self.emit(
            "get-tuple-element",
            (value,),
            type_of(shape.elements[index]),
            {"index": integer(index)},
        )


def leaked(given: Array) -> HloError:
    """HLO0622: a traced value met where its trace is not."""
    return problem(
        HloTypeError,
        "HLO0622",
        f"{given.describe()} is used outside of the function it was traced in",
        help="return it from the function (or from the body of cond, while_loop or scan), instead of"
        " keeping it in a variable outside",
    )


def strings(**values: str) -> Mapping[str, Attribute]:
    """String properties."""
    return {key: string(value) for key, value in values.items()}
