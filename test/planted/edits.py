"""Modules with a few edits that are known: what `hlo-diff` has to say of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.debug.trials.texts import module_text
from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.hlo.build import OP_CLASSES, create, make
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.formats import load

SWAPS = {
    "add": "subtract",
    "multiply": "add",
    "maximum": "minimum",
    "exponential": "tanh",
    "negate": "abs",
    "tanh": "sine",
}


@dataclass(slots=True)
class Edited:
    """A module's text before and after, and the differences by kind: names, of added ones those after."""

    before: str
    after: str
    truth: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])


def edit(text: str, seed: int, count: int = 3) -> Edited:
    """Makes `count` edits in different places, gives every instruction another name, and says what was done."""
    draw = random.Random(seed)
    module = load(text.encode(), name="before.hlo").module
    HloModule(module).set("is_scheduled", None)
    before = module_text(module)
    edited = Edited(before, "")
    view = HloModule(module)
    touched: set[Instruction] = set()
    for _ in range(60):
        if count == 0:
            break
        ops = [op for op in view.instructions if op not in touched]
        if not ops:
            break
        op = draw.choice(ops)
        near = {op, *(v.owner for v in op.operands), *(u.operation for u in op.results[0].uses)}
        if near & touched:
            continue
        done = draw.choice((_opcode, _constant, _direction, _operands, _insert, _delete))(op, draw)
        if done:
            touched |= {o for o in near if isinstance(o, Instruction)}
            touched |= {o for o, _ in done}
            edited.truth |= {
                (kind, o.instruction_name or "") for o, kind in done if kind != "added"
            }
            _ADDED.update({id(o): o for o, kind in done if kind == "added"})
            count -= 1
    names = _rename(view, draw)
    for op in list(_ADDED.values()):
        edited.truth.add(("added", names.get(op, "")))
    _ADDED.clear()
    edited.after = module_text(module)
    return edited


_ADDED: dict[int, Instruction] = {}


def _rename(view: HloModule, draw: random.Random) -> dict[Instruction, str]:
    """Other names everywhere: of the same words with other numbers."""
    numbers = list(range(1000, 1000 + sum(1 for _ in view.instructions)))
    draw.shuffle(numbers)
    found: dict[Instruction, str] = {}
    for number, op in zip(numbers, list(view.instructions), strict=True):
        op.instruction_name = found[op] = f"{op.opcode.name}.{number}"
    return found


def _opcode(op: Instruction, draw: random.Random) -> list[tuple[Instruction, str]]:
    del draw
    new = SWAPS.get(op.opcode.name)
    if new is None:
        return []
    name = op.instruction_name
    other = create(
        OP_CLASSES[new], list(op.operands), op.results[0].type, dict(op.properties), name
    )
    op.parent.insert_op_before(other, op)
    op.results[0].replace_all_uses_with(other.results[0])
    op.detach()
    op.erase()
    return [(other, "changed")]


def _constant(op: Instruction, draw: random.Random) -> list[tuple[Instruction, str]]:
    literal = getattr(op, "literal", None)
    if (
        op.opcode.name != "constant"
        or literal is None
        or not isinstance(op.shape, ArrayShape)
        or literal.is_elided
    ):
        return []
    values = np.array(literal.array)
    if values.size == 0 or values.dtype.kind not in "fiu":
        return []
    values = (values + draw.choice((1, 2, 3))).astype(values.dtype)
    op.properties["literal"] = LiteralAttr(Literal.from_array(op.shape, values))
    return [(op, "changed")]


def _direction(op: Instruction, draw: random.Random) -> list[tuple[Instruction, str]]:
    del draw
    if op.opcode.name != "compare":
        return []
    op.properties["direction"] = string("LT" if "GE" in str(op.properties["direction"]) else "GE")
    return [(op, "changed")]


def _operands(op: Instruction, draw: random.Random) -> list[tuple[Instruction, str]]:
    del draw
    if op.opcode.name not in ("subtract", "divide", "power") or op.inputs[0] is op.inputs[1]:
        return []
    op.operands = list(reversed(op.inputs))
    return [(op, "changed")]


def _insert(op: Instruction, draw: random.Random) -> list[tuple[Instruction, str]]:
    users = list(
        {use.operation for use in op.results[0].uses if isinstance(use.operation, Instruction)}
    )
    if (
        not isinstance(op.shape, ArrayShape)
        or op.shape.element_type.name not in ("f32", "s32")
        or not users
    ):
        return []
    users.sort(key=lambda user: user.instruction_name or "")
    user = draw.choice(users)
    around = {op.opcode.name, user.opcode.name}
    new = make(
        draw.choice([o for o in ("negate", "abs", "copy") if o not in around]),
        (op.results[0],),
        op.shape,
        name="inserted",
    )
    user.parent.insert_op_before(new, user)
    op.results[0].replace_uses_with_if(new.results[0], lambda use: use.operation is user)
    return [(new, "added"), (user, "changed")]


def _delete(op: Instruction, draw: random.Random) -> list[tuple[Instruction, str]]:
    del draw
    if len(op.inputs) != 1 or op.inputs[0].type != op.results[0].type or op.called_computations:
        return []
    users = [use.operation for use in op.results[0].uses]
    readers = [user for user in users if isinstance(user, Instruction)]
    if not users or len(readers) != len(users):
        return []
    op.results[0].replace_all_uses_with(op.inputs[0])
    name = op.instruction_name
    op.detach()
    op.erase()
    op.instruction_name = name
    return [(op, "removed"), *((user, "changed") for user in readers)]


__all__ = ["Edited", "ModuleOp", "edit"]
