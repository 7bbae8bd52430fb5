"""Custom calls of `jax.ffi` targets in C: handlers that the user's libraries register with JAX.

A handler takes one struct, the call frame: buffers of operands and results, attributes with their types, and a table of
functions that it may call back. The structs are those of `xla/ffi/api/c_api.h`, which jaxlib ships.
"""

# The structs of ctypes, and what jaxlib hands out, have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUnknownLambdaType=false, reportMissingTypeArgument=false

from __future__ import annotations

import ctypes as c
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.integrations.jax.ffi_attributes import Attrs, attributes_of, data_type
from mlirhlo.integrations.jax.ffi_context import Context, api, message_of, register_type, struct
from mlirhlo.integrations.optional import require
from mlirhlo.interp.registry import TOKEN
from mlirhlo.lowering.memory_order import physical_order

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.interp.registry import Array, Frame, Meaning

STAGES = ("instantiate", "prepare", "initialize", "execute")

_Buffer = struct("Buffer", dtype=c.c_int, data=c.c_void_p, rank=c.c_int64, dims=c.c_void_p)
_Buffers = struct("Buffers", size=c.c_int64, types=c.c_void_p, buffers=c.c_void_p)
_Frame = struct(
    "CallFrame",
    api=c.c_void_p,
    ctx=c.c_void_p,
    stage=c.c_int,
    args=_Buffers,
    rets=_Buffers,
    attrs=Attrs,
    future=c.c_void_p,
)
_Handler = c.CFUNCTYPE(c.c_void_p, c.c_void_p)

Bundle = Mapping[str, int]
"""Addresses of a target's handlers, by stage."""


def handlers_of(target: str) -> Bundle | None:
    """The handlers that JAX knows of a target for the CPU; None where there is none, or one of an older interface."""
    xla_client: Any = require("jaxlib.xla_client", "jax", "targets of jax.ffi")
    # Until XLA:CPU starts, if it ever does, JAX keeps what was registered.
    kept = xla_client._custom_callback.get("Host", ())
    typed = {name: function for name, function, version, _ in kept if version == 1}
    found = typed.get(target) or xla_client.custom_call_targets("Host").get(target)
    if found is None:
        return None
    bundle: dict[str, Any] = found if isinstance(found, dict) else {"execute": found}
    if target not in typed and bundle is not found:
        return None
    for name, given in xla_client._custom_type_id.get("Host", ()):
        register_type(name, _pointer(given["type_id"] if isinstance(given, dict) else given))
    return {stage: _pointer(bundle[stage]) for stage in STAGES if bundle.get(stage) is not None}


def _pointer(capsule: Any) -> int:
    name, get = c.pythonapi.PyCapsule_GetName, c.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = c.c_char_p, [c.py_object]
    get.restype, get.argtypes = c.c_void_p, [c.py_object, c.c_char_p]
    return int(get(capsule, name(capsule)) or 0)


def meaning_of(bundle: Bundle) -> Meaning:
    """What custom calls of these handlers mean. They raise `HloError` HLO0610 where a handler returns an error."""
    known: dict[Instruction, Context] = {}

    def call(op: Instruction, inputs: Sequence[Any], frame: Frame) -> Any:
        context = known.get(op)
        arrays = _Call(op, inputs)
        device = frame.machine.device(frame.replica, frame.partition)
        if context is None:
            context = known.setdefault(op, Context())
            _run(op, bundle, "instantiate", context, arrays)
        for stage in STAGES[1:]:
            _run(op, bundle, stage, context.of_run(device), arrays)
        return arrays.result()

    return call


def _run(op: Instruction, bundle: Bundle, stage: str, context: Context, call: _Call) -> None:
    if not (address := bundle.get(stage)):
        return
    frame = call.frame(stage, context)
    context.stage = STAGES.index(stage)
    with context:
        problem = _Handler(address)(c.addressof(frame))
    if problem:
        target = getattr(op, "custom_call_target", "")
        raise error("HLO0610", f"%{op.instruction_name}: {target} failed: {message_of(problem)}")


class _Call:
    """The buffers of a call, as they lie in memory."""

    def __init__(self, op: Instruction, inputs: Sequence[Any]) -> None:
        self.op = op
        self.kept: list[Any] = []
        shapes = getattr(op, "operand_layout_constraints", None) or op.input_shapes
        operands = zip(_leaves(shapes), _flat(inputs), strict=True)
        self.operands = [(s, _in_memory(s, v)) for s, v in operands if isinstance(s, ArrayShape)]
        self.is_tuple = isinstance(op.shape, TupleShape)
        self.shapes = _leaves([op.shape])
        self.results = [(s, _new(s)) for s in self.shapes if isinstance(s, ArrayShape)]
        self.attributes = attributes_of(op, self.kept)
        aliases = getattr(op, "output_to_operand_aliasing", None)
        for alias in () if aliases is None else aliases.entries:
            result = alias.output_index[0] if alias.output_index else 0
            self._share(result, alias.operand_number)

    def _share(self, result: int, operand: int) -> None:
        """Lets a result lie over the operand that it updates."""
        target = self.results[result][1]
        shape, values = self.operands[operand]
        target[...] = values
        self.operands[operand] = shape, target

    def frame(self, stage: str, context: Context) -> Any:
        """The struct that a handler takes; operands and results are there when it executes."""
        executes = stage == "execute"
        made = _Frame(
            struct_size=_Frame.future.offset,  # as the header counts it
            api=c.addressof(api()),
            ctx=context.handle,
            stage=STAGES.index(stage),
            args=self._buffers(self.operands if executes else ()),
            rets=self._buffers(self.results if executes else ()),
            attrs=self.attributes,
        )
        self.kept.append(made)
        return made

    def _buffers(self, arrays: Sequence[tuple[ArrayShape, Array]]) -> Any:
        count = max(len(arrays), 1)
        types, buffers = (c.c_int * count)(*[1] * count), (c.c_void_p * count)()
        for number, (shape, values) in enumerate(arrays):
            dims = (c.c_int64 * max(len(shape.dimensions), 1))(*shape.dimensions)
            buffer = _Buffer(
                struct_size=c.sizeof(_Buffer),
                dtype=data_type(shape.element_type.name),
                data=values.ctypes.data,
                rank=len(shape.dimensions),
                dims=c.addressof(dims),
            )
            buffers[number] = c.addressof(buffer)
            self.kept += [dims, buffer]
        self.kept += [types, buffers]
        return _Buffers(
            struct_size=c.sizeof(_Buffers),
            size=len(arrays),
            types=c.addressof(types),
            buffers=c.addressof(buffers),
        )

    def result(self) -> Any:
        """The value of the instruction."""
        arrays = iter(self.results)
        values = tuple(
            _logical(*next(arrays)) if isinstance(shape, ArrayShape) else TOKEN
            for shape in self.shapes
        )
        return values if self.is_tuple else values[0]


def _leaves(shapes: Sequence[Any]) -> list[Any]:
    return [
        leaf
        for shape in shapes
        for leaf in (_leaves(shape.elements) if isinstance(shape, TupleShape) else [shape])
    ]


def _flat(values: Sequence[Any]) -> list[Any]:
    return [
        leaf for value in values for leaf in (_flat(value) if isinstance(value, tuple) else [value])
    ]


def _in_memory(shape: ArrayShape, value: Any) -> Array:
    return np.ascontiguousarray(np.asarray(value).transpose(physical_order(shape)))


def _new(shape: ArrayShape) -> Array:
    sizes = [shape.dimensions[dim] for dim in physical_order(shape)]
    return np.zeros(sizes, shape.element_type.dtype)


def _logical(shape: ArrayShape, values: Array) -> Array:
    return values.transpose(np.argsort(physical_order(shape))) if shape.dimensions else values
