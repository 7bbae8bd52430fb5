"""What a row of the tables of the stablehlo and chlo dialects says of an op.

The pretty form is a template: `{operands}`, `{results}`, `{dict}` (what the form does not show),
`{same}` and the other type forms of `formats/stablehlo/forms.py`, `{$name}` for one operand,
`{property:kind}`, and `(? …)` around a part that is left out where its property is absent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mlirhlo.dialects.effects import Effect


@dataclass(frozen=True, slots=True)
class Property:
    """One inherent attribute of an op."""

    name: str
    kind: str
    """What it is: a key of `KINDS`."""
    is_required: bool = True
    default: str | None = None
    """The value that stands for an absent one and that pretty forms leave out, as MLIR spells it."""
    is_filled_in: bool = False
    """Whether MLIR writes the default into every op that lacks it."""


KINDS = {
    "any": "any attribute",
    "bool": "true or false",
    "bools": "`array<i1: …>`",
    "dict": "a dictionary",
    "elements": "a dense constant",
    "elements64": "a dense constant of i64",
    "f32": "an f32 number",
    "i32": "an i32 number",
    "i32s": "`array<i32: …>`",
    "i64": "an i64 number",
    "i64s": "`array<i64: …>`",
    "layouts": "a list of dense constants of index",
    "list": "a list of attributes",
    "precisions": "a list of precisions",
    "str": "a string",
    "symbol": "a symbol reference",
    "symbols": "a list of symbol references",
    "unit": "present or absent",
}
"""Kinds of properties beside the attributes of the dialect, which are named by their class."""


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand, or a variadic list of them; results are described in the same way."""

    name: str
    is_variadic: bool = False
    is_optional: bool = False


@dataclass(frozen=True, slots=True)
class OpRow:
    """What every tool needs to know of one op."""

    name: str
    """With the dialect: `stablehlo.add`."""
    operands: tuple[Operand, ...]
    properties: tuple[Property, ...] = ()
    results: tuple[Operand, ...] = (Operand("result"),)
    regions: int = 0
    """Number of regions; -1 for any number."""
    form: str | None = None
    """Template of the pretty form; None for ops that are printed in generic form."""
    traits: frozenset[str] = frozenset()
    """`elementwise`, `commutative`, `side_effect`, `collective`, `terminator`, `segments` (operands
    are split by `operandSegmentSizes`), `dynamic`, `deprecated`, `moves` (the same on numbers that
    stand for elements: it computes nothing)."""
    by_name: dict[str, Property] = field(default_factory=dict[str, Property], compare=False)

    @property
    def effect(self) -> Effect:
        """What it affects beside its results."""
        if self.traits & {"side_effect", "collective"}:
            return Effect.BY_INSTANCE if "has_side_effect" in self.by_name else Effect.WRITE
        return Effect.NESTED if self.regions else Effect.NONE

    @property
    def is_variadic(self) -> bool:
        """Whether the number of operands is open."""
        return any(o.is_variadic or o.is_optional for o in self.operands)


def values(text: str) -> tuple[Operand, ...]:
    """`"inputs* token rest?"`: names; `*` marks variadic ones, `?` optional ones."""
    return tuple(
        Operand(word.rstrip("*?"), word.endswith("*"), word.endswith("?")) for word in text.split()
    )


def properties(text: str) -> tuple[Property, ...]:
    """`"dimension:i64 lower:bool=false config:str!="`: `?` marks optional ones, `=` a default, `!=`
    one that is filled in."""
    found: list[Property] = []
    for word in text.split():
        name, _, kind = word.partition(":")
        kind, equals, default = kind.partition("=")
        found.append(
            Property(
                name,
                kind.rstrip("?!"),
                not kind.endswith("?") and not equals,
                default if equals else None,
                kind.endswith("!"),
            )
        )
    return tuple(found)


def row(
    name: str,
    operands: str = "",
    attributes: str = "",
    form: str | None = None,
    *,
    results: str = "result",
    regions: int = 0,
    traits: str = "",
) -> OpRow:
    """A row; operands, results and properties in the notation of `values` and `properties`."""
    own = properties(attributes)
    return OpRow(
        name,
        values(operands),
        own,
        values(results),
        regions,
        form,
        frozenset(traits.split()),
        {p.name: p for p in own},
    )
