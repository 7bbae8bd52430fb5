"""Op classes made from the rows of the tables.

A class has the name, the row, and accessors for operands, properties, results and regions by the
names in the row (`op.lhs`, `op.dimension_numbers`, `op.body` …). Programs are read by `op.name`,
operands and properties; classes are there so that contexts know the ops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from xdsl.ir import Attribute, Operation, OpTraits, SSAValue
from xdsl.traits import Commutative, ConstantLike, IsTerminator, OpTrait
from xdsl.utils.exceptions import VerifyException

from mlirhlo.dialects.effects import TRAITS, Effect, FlaggedEffects
from mlirhlo.dialects.stablehlo.rows import Operand, OpRow

if TYPE_CHECKING:
    from xdsl.parser import Parser

EMPTY: Mapping[str, Attribute] = MappingProxyType({})


class TableOp(Operation):
    """An op described by a row of a table."""

    row: ClassVar[OpRow]
    traits: ClassVar[OpTraits] = OpTraits(lambda: ())

    CHECK: ClassVar[Callable[[TableOp], None] | None] = None
    """Further rules for xDSL's tools, which raise; `analysis.within_xdsl` offers them."""
    READ_PRETTY: ClassVar[Callable[[type[TableOp], Parser], Operation] | None] = None
    """Reads the pretty form in a text that xDSL reads; `formats.stablehlo.within_xdsl` offers it."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Reads the pretty form, for xDSL's parser."""
        if TableOp.READ_PRETTY is None:
            return super().parse(parser)
        return cast(Self, TableOp.READ_PRETTY(cls, parser))

    @classmethod
    def create(
        cls,
        *,
        attributes: Mapping[str, Attribute] = EMPTY,
        properties: Mapping[str, Attribute] = EMPTY,
        **others: Any,
    ) -> Self:
        """As xDSL's; inherent attributes among the others, as older texts have them, are moved."""
        own = {name: value for name, value in attributes.items() if name in cls.row.by_name}
        rest = {name: value for name, value in attributes.items() if name not in own}
        return super().create(attributes=rest, properties={**own, **properties}, **others)

    def count_problem(self) -> str | None:
        """What is wrong with the numbers of operands, results and regions, if anything."""
        row = self.row
        for what, group, count in (
            ("operands", row.operands, len(self.operands)),
            ("results", row.results, len(self.results)),
        ):
            least = sum(not (o.is_variadic or o.is_optional) for o in group)
            if count < least or (count > least and least == len(group)):
                return f"{row.name} has {least} {what}, not {count}"
        if row.regions >= 0 and len(self.regions) != row.regions:
            return f"{row.name} has {row.regions} regions, not {len(self.regions)}"
        return None

    def verify_(self) -> None:
        """Checks counts and required properties."""
        problem = self.count_problem()
        if problem is not None:
            raise VerifyException(problem)
        for property_ in self.row.properties:
            if property_.is_required and property_.name not in self.properties:
                raise VerifyException(f"{self.row.name} needs '{property_.name}'")
        if TableOp.CHECK is not None:
            TableOp.CHECK(self)

    def __getattr__(self, name: str) -> Any:
        row = type(self).row
        if name.startswith("_"):  # fields that are not set yet
            raise AttributeError(name)
        if name in row.by_name:
            return self.properties.get(name)
        for group, values in ((row.operands, self.operands), (row.results, self.results)):
            for index, operand in enumerate(group):
                if operand.name == name:
                    return _segment(group, index, cast("Sequence[SSAValue]", values), self)
        raise AttributeError(f"{row.name} has no '{name}'")


def _segment(
    group: tuple[Operand, ...], index: int, values: Sequence[SSAValue], op: Operation
) -> SSAValue | tuple[SSAValue, ...] | None:
    """The values of entry `index`; variadic entries without sizes of their own are equally long."""
    fixed = sum(not (o.is_variadic or o.is_optional) for o in group)
    open_ = len(group) - fixed
    share = (len(values) - fixed) // open_ if open_ else 0
    sizes = [share if o.is_variadic or o.is_optional else 1 for o in group]
    key = "operandSegmentSizes" if values is op.operands else "resultSegmentSizes"
    given = op.properties.get(key) or op.attributes.get(key)
    if given is not None:
        sizes = [int(v) for v in cast(Any, given).get_values()]
    begin = sum(sizes[:index])
    found = tuple(values[begin : begin + sizes[index]])
    if group[index].is_variadic:
        return found
    return found[0] if found else None


def class_name(op_name: str) -> str:
    """`stablehlo.dot_general` gives `DotGeneralOp`."""
    words = op_name.partition(".")[2].replace("-", "_").split("_")
    return "".join(word.capitalize() for word in words) + "Op"


def _traits(row: OpRow) -> tuple[OpTrait, ...]:
    kinds = {"terminator": IsTerminator(), "constant": ConstantLike(), "commutative": Commutative()}
    own = (trait for name, trait in kinds.items() if name in row.traits)
    flagged = row.effect is Effect.BY_INSTANCE
    return (*own, *((FlaggedEffects(),) if flagged else TRAITS[row.effect]))


def make_classes(rows: Iterable[OpRow]) -> dict[str, type[TableOp]]:
    """A class for each row, by the op's name."""
    classes: dict[str, type[TableOp]] = {}
    for row in rows:
        fields = {
            "__doc__": f"`{row.name}`, as its row in the table says.",
            "__module__": __name__,
            "__slots__": (),
            "name": row.name,
            "row": row,
            "traits": OpTraits(partial(_traits, row)),
        }
        classes[row.name] = type(class_name(row.name), (TableOp,), fields)
    return classes
