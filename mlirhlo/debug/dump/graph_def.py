"""A module's entry as a GraphDef in text, the form of TensorFlow's graph dumps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_TYPES = {
    "f32": "DT_FLOAT", "f64": "DT_DOUBLE", "s32": "DT_INT32", "u8": "DT_UINT8", "s16": "DT_INT16",
    "s8": "DT_INT8", "c64": "DT_COMPLEX64", "s64": "DT_INT64", "pred": "DT_BOOL",
    "bf16": "DT_BFLOAT16", "u16": "DT_UINT16", "c128": "DT_COMPLEX128", "f16": "DT_HALF",
    "u32": "DT_UINT32", "u64": "DT_UINT64",
}  # fmt: skip


def graph_def_text(op: ModuleOp, cluster: str = "") -> str:
    """A node an instruction; `cluster` marks those that are compiled together."""
    lines: list[str] = []
    for instruction in HloModule(op).entry.instructions:
        lines += ["node {", f'  name: "{_name(instruction)}"', f'  op: "{_kind(instruction)}"']
        for operand in instruction.inputs:
            producer = operand.owner
            if isinstance(producer, Instruction):
                lines.append(f'  input: "{_name(producer)}"')
        shape = instruction.shape
        if isinstance(shape, ArrayShape):
            kind = _TYPES.get(str(shape.element_type.name), "DT_INVALID")
            lines += _attribute("T", [f"type: {kind}"])
            sizes = [f"        dim {{ size: {size} }}" for size in shape.dimensions]
            lines += _attribute(
                "_output_shapes", ["list {", "      shape {", *sizes, "      }", "    }"]
            )
        if cluster and instruction.opcode.name not in ("parameter", "constant"):
            lines += _attribute("_XlaCluster", [f's: "{cluster}"'])
        lines.append("}")
    return "".join(f"{line}\n" for line in [*lines, "library {", "}", "versions {", "}"])


def _attribute(key: str, value: list[str]) -> list[str]:
    first, *rest = value
    return ["  attr {", f'    key: "{key}"', "    value {", f"      {first}",
            *(f"  {line}" for line in rest), "    }", "  }"]  # fmt: skip


def _name(op: Instruction) -> str:
    return op.instruction_name or op.opcode.name


def _kind(op: Instruction) -> str:
    """TensorFlow names its operations in camel case; what feeds a function is a placeholder."""
    if op.opcode.name == "parameter":
        return "Placeholder"
    if op.opcode.name == "constant":
        return "Const"
    return "".join(part.capitalize() for part in op.opcode.name.split("-"))
