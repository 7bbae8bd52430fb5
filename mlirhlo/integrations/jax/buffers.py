"""What a pass must leave alone once the compiler has decided which values share a buffer.

XLA calls passes after copy insertion: ops that write in place do so from then on, and copies keep
apart what they would overwrite. Nothing inserts copies again, so a pass that merges two equal copies
(or two equal values that are each overwritten) makes a program that is valid and wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mlirhlo.diagnostics import error

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from mlirhlo import Module
    from mlirhlo.dialects.hlo.attributes.aliasing import OutputOperandAliases
    from mlirhlo.dialects.hlo.ops import Instruction

_HELP = (
    "at this stage copies keep buffers apart, and nothing inserts them again; leave out passes that"
    " merge equal instructions (cse), or register with verify=False"
)


def check_buffers(before: Module, after: Module) -> None:
    """Raises `HloError` HLO0605 when a pass took away copies, or shares what is overwritten."""
    was, now = _copies(before), _copies(after)
    if now < was:
        raise error("HLO0605", f"{was - now} of the module's {was} copies are gone", help=_HELP)
    known, found = _shared(before), _shared(after)
    if len(found) > len(known):
        name = next((name for name in found if name not in known), found[0])
        raise error(
            "HLO0605",
            f"%{name} overwrites an operand that others read, and did not before",
            help=_HELP,
        )


def _instructions(module: Module) -> Iterator[Instruction]:
    """Instructions that have buffers: those outside of fusions."""
    fused = {
        callee
        for op in module.hlo.instructions
        if op.opcode.name == "fusion"
        for callee in op.called_computations
    }
    for computation in module.hlo.computations:
        if computation.computation_name not in fused:
            yield from computation.instructions


def _copies(module: Module) -> int:
    return sum(op.opcode.name in ("copy", "copy-start") for op in _instructions(module))


def _shared(module: Module) -> list[str]:
    """Instructions that write into an operand which has other users."""
    return [
        op.instruction_name or op.opcode.name
        for op in _instructions(module)
        if any(len({id(use.operation) for use in value.uses}) > 1 for value in _overwritten(op))
    ]


def _overwritten(op: Instruction) -> list[SSAValue]:
    if op.opcode.name == "dynamic-update-slice":
        return [op.inputs[0]]
    aliases: OutputOperandAliases | None = getattr(op, "output_to_operand_aliasing", None)
    return [] if aliases is None else [op.inputs[one.operand_number] for one in aliases.entries]
