"""What MLIR text may say wrong though it parses: attributes of another kind, uses before definitions.

HLO text and protos cannot spell these, so everything behind the readers takes them for granted.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from mlirhlo.dialects.hlo.attributes.base import TextAttr
from mlirhlo.dialects.hlo.attributes.header import RawTextAttr
from mlirhlo.dialects.hlo.module import HEADER_CLASSES, HEADER_PREFIX
from mlirhlo.dialects.hlo.names import legal_name
from mlirhlo.dialects.hlo.ops import ComputationOp, Instruction
from mlirhlo.dialects.hlo.ops.assembly import PARAMETER_NUMBER
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS
from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem


def check_header(module: ModuleOp) -> None:
    """Raises `VerifyException` when a header attribute is of another kind than its name says."""
    for name, attribute in module.attributes.items():
        key = name.removeprefix(HEADER_PREFIX)
        if not name.startswith(HEADER_PREFIX) or key.startswith("proto") or key == "raw_attributes":
            continue
        # A key that is not known is carried through HLO text as raw text.
        wanted = HEADER_CLASSES.get(key, RawTextAttr)
        if not isinstance(attribute, wanted):
            raise VerifyException(f"{name} is {wanted.name}, not {attribute.name}")


def check_properties(cls: type[Instruction], properties: Mapping[str, Attribute]) -> None:
    """Raises `VerifyException` when a property is unknown or of another kind than the row says."""
    specs = {spec.property_name: spec for spec in cls.opcode.specs.values()}
    for name, value in properties.items():
        spec = specs.get(name)
        if spec is None:
            if name in (PARAMETER_NUMBER, CONTROL_PREDECESSORS, "proto_id"):
                if not isinstance(value, IntegerAttr):
                    raise VerifyException(f"{cls.name}: {name} is an integer, not {value.name}")
            elif name not in cls.get_irdl_definition().properties:
                raise VerifyException(f"{cls.name} has no property {name!r}")
            continue
        if not isinstance(value, spec.kind.attribute):
            raise VerifyException(f"{cls.name}: {name} is a {spec.kind.name}, not {value.name}")
        if isinstance(value, TextAttr | StringAttr):
            continue  # its own syntax was read already; words are the verifier's
        try:
            cursor = Cursor(spec.kind.write(value))
            spec.kind.read(cursor)
        except (SyntaxProblem, AttributeError, TypeError, ValueError) as problem:
            raise VerifyException(
                f"{cls.name}: {name} is not a {spec.kind.name}: {problem}"
            ) from None


def check_computation(computation: ComputationOp) -> None:
    """Raises `VerifyException` for uses before definitions, wrong properties, names HLO cannot spell."""
    name = computation.computation_name
    if legal_name(name) != name:
        raise VerifyException(f"{name!r} is no name HLO can spell; {legal_name(name)!r} would be")
    seen: set[SSAValue] = set()
    for op in computation.block.ops:
        for operand in op.operands:
            if operand not in seen:
                raise VerifyException(f"@{name}: an operand of {op.name} is not defined before it")
        seen.update(op.results)
        if isinstance(op, Instruction):
            check_properties(type(op), op.properties)
            if len(op.control_predecessors) > len(op.operands):
                raise VerifyException(
                    f"@{name}: {op.name} has fewer operands than control predecessors"
                )
            _ = op.shape
