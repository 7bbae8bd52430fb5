"""How a row of the instruction table is written and matched.

A row is a form of an instruction: its modifiers, its operands, and its class. The assembler takes modifiers in other
orders than the one that is documented, but types and other choices from one set in theirs. Modifiers are words: `ftz?`
may be absent, `rn|rz` is a choice, a word in capitals names a set of `SETS`, `T=INT` gives what was chosen a name.
Operands are written

* `d:T` a destination of type `T`, `s:T` a source (a register or constant), `r:T` a source that must be a register,
  `c:T` a constant, `!s:pred` a source that may be negated;
* `_` the sink, `[]` an address, `[,]` an address with coordinates, `[t]` one in tensor memory, `l` a name (label,
  function, variable);
* `{d:T*N}` a vector of `N` registers, where `N` is a number, a name that `counts` gives, or `+` for any number;
* `d:T|pred` two destinations, `d:T|pred?` of which the second may be absent; `_d:T` may be the sink `_`;
* `?` after an operand that may be absent, `?L2::cache_hint` after one that is there if and only if the modifier is.

A type is a PTX type, the name of a choice, `2T` (twice as wide), or either with `~`: the register may be wider.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

SETS: Mapping[str, str] = {
    "INT": "u16|u32|u64|s16|s32|s64",
    "RND": "rn|rz|rm|rp",
    "BITS": "b16|b32|b64",
    "CMPF": "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan",
    "BOOL": "and|or|xor",
    "HALF": "f16|f16x2|bf16|bf16x2",
    "SEM": "relaxed|acquire|release|acq_rel",
    "SCOPE": "cta|cluster|gpu|sys",
    "DATA": "b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64",
    "SHARED": "shared::cta|shared::cluster|shared",
    "PREFETCH": "L2::64B|L2::128B|L2::256B",
    "EVICT": "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate",
    "EVICT2": "L2::evict_normal|L2::evict_first|L2::evict_last",
    "DIM": "1d|2d|3d|4d|5d",
}

_OPERAND = re.compile(
    r"(?P<brace>\{)?(?P<negatable>!)?(?P<sink>_)?"
    r"(?:(?P<role>[dsrcb]):(?P<type>\w+)(?P<relaxed>~)?(?:\|(?P<second>\w+?)(?P<absent>\?)?)?|(?P<other>\[,\]|\[t?\]|l|g|_))"
    r"(?:\*(?P<count>\w+|\+)\})?(?P<optional>\?(?P<when>[\w:|]+)?)?"
)


_NAMED = (
    "clusterlaunchcontrol",
    "cp",
    "createpolicy",
    "mbarrier",
    "multimem",
    "tcgen05",
    "tensormap",
    "wgmma",
    "wmma",
)
"""Opcodes whose first modifiers belong to the name."""
_NAME_WORDS = (("async",), ("bulk",), ("tensor",), ("prefetch",))
_TYPES = ("D", "T", "S", "A", "B", "C")
"""Names of groups of types, which keep their order."""
_MAY_REPEAT = ("sat", "ftz", "cc", "approx", "sync", "aligned", "relu", "uni")
"""Modifiers that the assembler takes twice."""


@dataclass(frozen=True, slots=True)
class OperandForm:
    """What one operand of a form may be."""

    text: str
    role: str
    """`d`, `s`, `r`, `c`, `[]`, `[,]`, `[t]`, `_`, `l` or `g` (the group of a call)."""
    type: str = ""
    """Type, or the name of a choice; `2T` for twice its width."""
    is_relaxed: bool = False
    is_negatable: bool = False
    may_be_sink: bool = False
    second: str | None = None
    second_may_be_absent: bool = False
    count: str | None = None
    """Of a vector: how many registers."""
    is_optional: bool = False
    when: tuple[str, ...] = ()
    """Modifiers with any of which the operand is there, and without which it is not."""

    @staticmethod
    def read(text: str) -> OperandForm:
        """An operand in the notation above."""
        match = _OPERAND.fullmatch(text)
        if match is None:
            raise ValueError(f"operand form {text!r}")
        found = match.groupdict()
        return OperandForm(
            text,
            found["role"] or found["other"],
            found["type"] or "",
            found["relaxed"] is not None,
            found["negatable"] is not None,
            found["sink"] is not None,
            found["second"],
            found["absent"] is not None,
            found["count"],
            found["optional"] is not None,
            tuple((found["when"] or "").split("|")) if found["when"] else (),
        )


@dataclass(frozen=True)
class Form:
    """A row of the table."""

    opcode: str
    modifiers: str
    operands: tuple[OperandForm, ...]
    category: str
    """`integer`, `float`, `half`, `compare`, `logic`, `move`, `convert`, `memory`, `atomic`, `control`, `barrier`,
    `async`, `warp`, `matrix`, `texture`, `video`, `other`."""
    counts: Callable[[Mapping[str, str]], Mapping[str, int] | None] | None = None
    """Lengths of vectors by the chosen modifiers; None where the choice does not exist."""

    @cached_property
    def groups(self) -> tuple[tuple[str | None, tuple[str, ...], bool], ...]:
        """Name, choices, and whether it may be absent, of each modifier."""
        found: list[tuple[str | None, tuple[str, ...], bool]] = []
        for word in self.modifiers.split():
            name, _, choices = word.rpartition("=")
            is_optional = choices.endswith("?")
            words = choices.removesuffix("?").split("|")
            options = [one for choice in words for one in SETS.get(choice, choice).split("|")]
            found.append((name or None, tuple(options), is_optional))
        return tuple(found)

    @cached_property
    def name_length(self) -> int:
        """How many modifiers belong to the instruction's name, and stand first."""
        if self.opcode not in _NAMED:
            return 0
        count = 1
        while count < len(self.groups) and self.groups[count][1] in _NAME_WORDS:
            count += 1
        return count

    def match(self, modifiers: Sequence[str]) -> Mapping[str, str] | None:
        """The choices where the modifiers are of this form, by the numbers and names of their groups.

        Each modifier takes the first group of its set that has none yet.
        """
        chosen: dict[str, str] = {}
        groups, last_type = self.groups, -1
        for at, modifier in enumerate(modifiers):
            for number, (_, options, _) in enumerate(groups):
                if str(number) not in chosen and modifier in options:
                    break
            else:
                if modifier in _MAY_REPEAT and modifier in chosen.values():
                    continue
                return None
            if at < self.name_length and number != at:
                return None
            name = groups[number][0]
            if name in _TYPES:
                if number < last_type:
                    return None
                last_type = number
            chosen[str(number)] = modifier
            if name is not None:
                chosen[name] = modifier
        for number, (_, _, is_optional) in enumerate(groups):
            if not is_optional and str(number) not in chosen:
                return None
        return chosen

    def ordered(self, choices: Mapping[str, str]) -> tuple[str, ...]:
        """Chosen modifiers in the order of the form."""
        numbers = map(str, range(len(self.groups)))
        return tuple(choices[number] for number in numbers if number in choices)

    def __str__(self) -> str:
        text = self.opcode
        for _, options, is_optional in self.groups:
            choice = options[0] if len(options) == 1 else f"{{{'|'.join(options)}}}"
            text += f"(.{choice})?" if is_optional else f".{choice}"
        return text


class Family:
    """Makes the rows of one class."""

    def __init__(self, category: str, rows: list[Form]) -> None:
        self.category, self.rows = category, rows

    def __call__(
        self,
        opcodes: str,
        modifiers: str,
        operands: str,
        counts: Callable[[Mapping[str, str]], Mapping[str, int] | None] | None = None,
    ) -> None:
        """A row for each of the opcodes."""
        forms = tuple(OperandForm.read(text) for text in operands.split())
        for opcode in opcodes.split():
            self.rows.append(Form(opcode, modifiers, forms, self.category, counts))
