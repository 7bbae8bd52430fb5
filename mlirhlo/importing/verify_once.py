"""xDSL's check of an op against its declaration, done once for equal ops.

Types and attributes never change, and an op without regions is held against nothing else, so that ops of a class
with the very same ones need one check together. Traits, which may look at what lies around an op, and an op's own
`verify_` are checked each time. Compiled modules have tens of thousands of ops and some hundred kinds of them.
"""
# pyright: reportPrivateUsage=false

from __future__ import annotations

from xdsl.ir import Operation
from xdsl.irdl import OpDef
from xdsl.traits import OpTrait

_verify_all = OpDef.verify

_verified: dict[tuple[int, ...], tuple[tuple[object, ...], list[OpTrait]]] = {}
"""By ids of class, types and attributes: these themselves, so that the ids stay theirs, and the traits that check."""

MAX_VERIFIED = 20_000
"""Kinds of ops that are remembered."""


def verify(self: OpDef, op: Operation) -> None:
    """What `OpDef.verify` does. Raises xDSL's `VerifyException`."""
    if op.regions:
        _verify_all(self, op)
        return
    operands, results = op._operands, op.results
    parts = (
        self,
        len(operands),
        len(results),
        len(op.successors),
        *[value._type for value in operands],
        *[value._type for value in results],
        *op.properties,
        *op.properties.values(),
        *op.attributes,
        *op.attributes.values(),
    )
    key = tuple(map(id, parts))
    if (known := _verified.get(key)) is not None:
        for trait in known[1]:
            trait.verify(op)
        return
    _verify_all(self, op)
    if len(_verified) >= MAX_VERIFIED:
        _verified.clear()
    _verified[key] = parts, [t for t in self.traits if type(t).verify is not OpTrait.verify]
