"""Which ops of CHLO (and which complex functions of StableHLO) are expanded, and into what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, ComplexType, ModuleOp, TensorType, f32
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo.element_types import BY_MLIR, Kind
from mlirhlo.dialects.quick import replace
from mlirhlo.rewrites.chlo_expansion.broadcasting import PLAIN, expand_broadcast
from mlirhlo.rewrites.chlo_expansion.emitter import Emitter
from mlirhlo.rewrites.chlo_expansion.functions import COMPLEX, EXPANSIONS
from mlirhlo.rewrites.hlo_to_stablehlo.marks import MARK
from mlirhlo.rewrites.stablehlo_to_hlo.problems import problem

THROUGH_F32 = frozenset(
    "chlo." + name
    for name in [
        "bessel_i1e",
        "cosh",
        "digamma",
        "erf_inv",
        "erfc",
        "lgamma",
        "polygamma",
        "sinh",
        "zeta",
    ]
)
"""Ops whose narrow floats are computed in f32."""

_ACCURATE = "result_accuracy"


def expand_chlo(module: ModuleOp) -> bool:
    """Expands every op of `module` that has an expansion, in place; whether there was one.

    Raises `HloError` HLO0425 for operands that no expansion takes.
    """
    found = [op for op in module.walk() if _is_expanded(op)]
    for op in found:
        _replace(op, _expanded(op))
    return bool(found)


def _is_complex(op: Operation) -> bool:
    type_ = op.operands[0].type if op.operands else None
    if not isinstance(type_, TensorType):
        return False
    return isinstance(cast("TensorType[Attribute]", type_).element_type, ComplexType)


def _is_expanded(op: Operation) -> bool:
    name = op.name
    if MARK in op.attributes:  # it was an instruction, and becomes that one again
        return False
    if name in COMPLEX:
        return _is_complex(op) or name.startswith("chlo.")
    return name.startswith("chlo.") and (name in EXPANSIONS or name in PLAIN or name in _OTHERS)


def _expanded(op: Operation) -> SSAValue:
    name = op.name
    if name in PLAIN:
        return expand_broadcast(op, PLAIN[name])
    if name in _OTHERS:
        return _OTHERS[name](op)
    operand = cast("TensorType[Attribute]", op.operands[0].type)
    if DYNAMIC_INDEX in operand.get_shape():
        raise problem(
            "HLO0425",
            op,
            f"cannot be expanded for {operand}, whose size is unknown",
            "refine the program's shapes first (stablehlo-refine-shapes)",
        )
    emitter = Emitter(op)
    values = [emitter.value(v) for v in op.operands]
    if _is_complex(op):
        function = COMPLEX.get(name)
        if function is None:
            raise problem("HLO0425", op, f"is not defined for {operand.element_type}")
        return function(*values).ssa
    element = BY_MLIR.get(operand.element_type)
    if element is None or (element.kind is not Kind.FLOAT and name != "chlo.square"):
        raise problem("HLO0425", op, f"is not defined for {operand.element_type}")
    narrow = name in THROUGH_F32 and element.bits < 32
    if narrow:
        values = [v.convert(f32) for v in values]
    result = EXPANSIONS[name](*values)
    return (result.convert(operand.element_type) if narrow else result).ssa


def _replace(op: Operation, value: SSAValue) -> None:
    # The result has the type the op declares: bounds of dynamic sizes, for one.
    replace(op.results[0], value)
    op.detach()
    op.erase()


def _constant(op: Operation) -> SSAValue:
    type_ = cast("TensorType[Attribute]", op.results[0].type)
    value = op.properties["value"]
    return Emitter(op).op("constant", (), type_, {"value": value}).ssa


def _constant_like(op: Operation) -> SSAValue:
    """A number as a tensor like the operand."""
    type_ = cast("TensorType[Attribute]", op.results[0].type)
    if DYNAMIC_INDEX in type_.get_shape():
        raise problem(
            "HLO0425",
            op,
            f"cannot be expanded for {type_}, whose size is unknown",
            "refine the program's shapes first (stablehlo-refine-shapes)",
        )
    value = cast(Any, op.properties["value"])
    if value.name == "complex.number":
        number: complex | float = complex(value.real.data, value.imag.data)
    else:
        number = value.value.data
    return Emitter(op).constant(number, type_).ssa


def _conj(op: Operation) -> SSAValue:
    """The conjugate: the imaginary part negated."""
    emitter = Emitter(op)
    z = emitter.value(op.operands[0])
    if not _is_complex(op):
        return op.operands[0]
    return emitter.complex(z.real(), -z.imag()).ssa


def _tan(op: Operation) -> SSAValue:
    emitter = Emitter(op)
    x = emitter.value(op.operands[0])
    properties = {k: v for k, v in op.properties.items() if k == _ACCURATE}
    return emitter.op("tan", (x,), x.type, properties).ssa


_OTHERS: Mapping[str, Callable[[Operation], SSAValue]] = {
    "chlo.conj": _conj,
    "chlo.constant": _constant,
    "chlo.constant_like": _constant_like,
    "chlo.tan": _tan,
}
