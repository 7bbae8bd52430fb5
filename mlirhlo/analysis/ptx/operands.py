"""Whether the operands of an instruction are those of a row of the table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from mlirhlo.dialects.ptx.forms import Form, OperandForm
from mlirhlo.dialects.ptx.values import (
    TYPE_BITS,
    Address,
    Component,
    Group,
    Immediate,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Vector,
)


class Shape(NamedTuple):
    """All that matters of an operand. Operands of one shape fit the same forms."""

    kind: str
    """`register`, `special`, `integer`, `float`, `symbol`, `address`, `vector`, `pair`, `negated`, `group`, `sink`."""
    type: str = ""
    """Of registers, and of that of an address."""
    parts: tuple[Shape, ...] = ()
    """Of an address: what follows the comma."""


_SPECIAL_64 = re.compile(r"%(clock64|globaltimer|gridid|pm\d_64|current_graph_exec)$")
_WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
_SINGLE = ("ld", "st", "ldu", "suld", "sust", "tex", "sured")
"""Opcodes whose operands of one register may stand in braces."""
_NUMBER = re.compile(r"([busf]|bf|tf|e\dm\d|ue\dm\d)(\d+)?(?:x(\d))?$")


def shape_of(operand: Operand, registers: Mapping[str, str]) -> Shape:
    """The shape of an operand of a flat instruction."""
    match operand:
        case Register(name):
            return Shape("register", registers[name])
        case Special(name):
            if name in ("%tid", "%ntid", "%ctaid", "%nctaid"):
                return Shape("special", "v4.u32")
            return Shape("special", "u64" if _SPECIAL_64.match(name) else "u32")
        case Immediate(kind=kind):
            return Shape("float", kind) if kind in ("f32", "f64") else Shape("integer")
        case Address(base, _, parts):
            following = tuple([shape_of(part, registers) for part in parts])
            return Shape(
                "address", registers[base.name] if isinstance(base, Register) else "", following
            )
        case Vector(parts):
            kind = "vector"
        case Pair(first, second):
            kind, parts = "pair", (first, second)
        case Negated(inner):
            kind, parts = "negated", (inner,)
        case Group():
            return Shape("group")
        case Sink():
            return Shape("sink")
        case Component(register, part):
            type_ = shape_of(register, registers).type
            # A byte or half of a video operand counts as the whole register.
            return Shape("register", type_.partition(".")[2] if part in "xyzwrgba" else type_)
        case _:
            return Shape("symbol")
    return Shape(kind, parts=tuple([shape_of(part, registers) for part in parts]))


@lru_cache(maxsize=1024)
def kind_and_bits(type_: str) -> tuple[str, int]:
    """`bits`, `integer`, `packed`, `pred`, or the float's own kind; and the width."""
    if type_ == "pred":
        return "pred", 1
    match = _NUMBER.match(type_)
    assert match is not None, type_
    letter, digits, lanes = match.groups()
    if letter == "tf":
        return "f32", 32
    if letter.startswith(("e", "ue")):
        width = (16 if int(lanes or 1) == 2 else 32) if lanes else 32
        return "bits", 8 if type_ == "e2m1x2" else 16 if type_ == "e2m1x4" else width
    bits = int(digits) * int(lanes or 1)
    if letter == "b":
        return "bits", bits
    if letter in "us":
        return ("packed" if lanes else "integer"), bits
    return ("packed" if lanes else f"{letter}{digits}"), bits


def fits_register(declared: str, wanted: str, *, is_relaxed: bool) -> bool:
    """Whether a register of the type `declared` may stand where the instruction has the type `wanted`."""
    if declared not in TYPE_BITS and declared != "f32x2":
        return False
    kind, bits = kind_and_bits(declared)
    if wanted == "address":
        return bits in (32, 64) and kind in ("bits", "integer")
    want, want_bits = kind_and_bits(wanted)
    if "pred" in (kind, want):
        return kind == want
    if is_relaxed and bits > want_bits:
        return kind in ("bits", "integer") or want == "bits"
    return bits == want_bits and ("bits" in (kind, want) or kind == want)


def _fits_value(shape: Shape, wanted: str, form: OperandForm, opcode: str) -> bool:
    """Whether a register or constant fits one source or destination."""
    match shape.kind:
        case "special":
            is_source = form.role in "sr" and opcode in ("mov", "cvt")
            return is_source and (
                wanted == "u16" or fits_register(shape.type, wanted, is_relaxed=form.is_relaxed)
            )
        case "register":
            if form.role == "c":
                return False
            return fits_register(shape.type, wanted, is_relaxed=form.is_relaxed)
        case "integer":
            return form.role in "sc" and (
                wanted == "address" or kind_and_bits(wanted)[0] in ("bits", "integer", "pred")
            )
        case "float":
            if form.role not in "sc" or wanted == "address":
                return False
            kind, bits = kind_and_bits(wanted)
            return kind in ("f32", "f64") or (kind == "bits" and bits == TYPE_BITS[shape.type])
        case "symbol":
            # The address of a variable or function, or a parameter of a function.
            return form.role in "sc" and opcode in ("mov", "cvta")
        case _:
            return False


def operand_type(
    form: OperandForm, choices: Mapping[str, str], text: str, *, is_matrix: bool
) -> str:
    """The PTX type that an operand of a form has."""
    doubled = text.startswith("2")
    text = choices.get(text.removeprefix("2"), text.removeprefix("2"))
    if doubled:
        return _WIDER[text]
    if is_matrix and form.count is not None and text != "pred" and _packs(text):
        return "b32"
    return text


def _packs(type_: str) -> bool:
    """Whether elements of a fragment are packed into registers of 32 bits."""
    return type_ == "tf32" or kind_and_bits(type_)[1] < 32 or type_.startswith("e")


def fits(
    form: Form, choices: Mapping[str, str], shapes: tuple[Shape, ...]
) -> tuple[int, str] | None:
    """None if operands of these shapes fit a form; else the number of the first that does not, and what it expects."""
    counts: Mapping[str, int] = {}
    if form.counts is not None:
        known = form.counts(choices)
        if known is None:
            return 0, "a combination of modifiers that exists"
        counts = known
    return _fit_from(form, choices, counts, shapes, 0, 0)


def _fit_from(
    form: Form,
    choices: Mapping[str, str],
    counts: Mapping[str, int],
    shapes: tuple[Shape, ...],
    at: int,
    number: int,
) -> tuple[int, str] | None:
    """The same from operand `at` of the form and `number` of the instruction on."""
    if at == len(form.operands):
        return None if number == len(shapes) else (number, "no more operands")
    wanted = form.operands[at]
    problem: tuple[int, str] | None = number, describe(wanted, choices, counts, form)
    is_due = not wanted.when or any(word in choices.values() for word in wanted.when)
    if wanted.when and is_due:
        wanted = replace(wanted, is_optional=False)
    if is_due and number < len(shapes) and _fit_one(shapes[number], wanted, choices, counts, form):
        problem = _fit_from(form, choices, counts, shapes, at + 1, number + 1)
        if problem is None or not wanted.is_optional:
            return problem
    if wanted.is_optional and _fit_from(form, choices, counts, shapes, at + 1, number) is None:
        return None
    return problem


def _fit_one(
    shape: Shape,
    wanted: OperandForm,
    choices: Mapping[str, str],
    counts: Mapping[str, int],
    form: Form,
) -> bool:
    kind, opcode = shape.kind, form.opcode
    match wanted.role:
        case "[]":
            return kind == "address" and not shape.parts
        case "[,]":
            return kind == "address" and bool(shape.parts)
        case "_":
            return kind == "sink"
        case "[t]":
            is_wide = bool(shape.type) and kind_and_bits(shape.type)[1] != 32
            return kind == "address" and not shape.parts and not is_wide
        case "l":
            return kind == "symbol"
        case "g":
            return kind in ("group", "symbol", "register")
        case _:
            pass
    type_ = operand_type(wanted, choices, wanted.type, is_matrix=form.category == "matrix")
    if wanted.count is not None:
        return _fit_vector(shape, wanted, type_, counts, choices, opcode)
    if kind == "pair":
        if wanted.second is None:
            return False
        first, second = shape.parts
        return _fit_target(first, wanted, type_, opcode) and _fit_target(
            second, wanted, wanted.second, opcode
        )
    if wanted.second is not None and not wanted.second_may_be_absent:
        return False
    if kind == "negated":
        return wanted.is_negatable and _fits_value(shape.parts[0], type_, wanted, opcode)
    if kind == "vector" and len(shape.parts) == 1 and opcode in _SINGLE:
        shape = shape.parts[0]
    return _fit_target(shape, wanted, type_, opcode)


def _fit_target(shape: Shape, wanted: OperandForm, type_: str, opcode: str) -> bool:
    if shape.kind == "sink":
        return wanted.may_be_sink
    return _fits_value(shape, type_, wanted, opcode)


def _fit_vector(
    shape: Shape,
    wanted: OperandForm,
    type_: str,
    counts: Mapping[str, int],
    choices: Mapping[str, str],
    opcode: str,
) -> bool:
    assert wanted.count is not None
    if shape.kind == "register" and shape.type.startswith("v"):
        # A vector register stands for its parts.
        length, _, element = shape.type[1:].partition(".")
        shape = Shape("vector", parts=(Shape("register", element),) * int(length))
    expected = counts.get(wanted.count, 0) or (wanted.count != "+" and int(wanted.count)) or None
    if shape.kind != "vector":
        return expected == 1 and _fit_target(shape, wanted, type_, opcode)
    parts = shape.parts
    if type_ == "part":
        width = kind_and_bits(choices["T"])[1]
        return len(parts) in (1, 2, 4, 8) and all(
            part.kind in ("sink", "integer", "float")
            or (part.kind == "register" and part.type in TYPE_BITS
                and kind_and_bits(part.type)[1] * len(parts) == width)
            for part in parts
        )  # fmt: skip
    if expected is not None and len(parts) != expected:
        return False
    return all(_fit_target(part, wanted, type_, opcode) for part in parts)


def describe(
    wanted: OperandForm, choices: Mapping[str, str], counts: Mapping[str, int], form: Form
) -> str:
    """What an operand of a form may be, in words."""
    match wanted.role:
        case "[]":
            return "an address"
        case "[,]":
            return "an address with coordinates"
        case "_":
            return "the sink _"
        case "[t]":
            return "an address of 32 bits in tensor memory"
        case "l":
            return "a name"
        case "g":
            return "a group of operands"
        case role:
            type_ = operand_type(wanted, choices, wanted.type, is_matrix=form.category == "matrix")
    what = {"d": "a register", "r": "a register", "c": "a constant"}.get(
        role, "a register or constant"
    )
    at_least = "at least " if wanted.is_relaxed else ""
    if wanted.count is not None:
        length = counts.get(wanted.count, wanted.count)
        return f"a vector of {'' if length == '+' else f'{length} '}{at_least}.{type_} registers"
    return f"{what} of {at_least}.{type_}"
