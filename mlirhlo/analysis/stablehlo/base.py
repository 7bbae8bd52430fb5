"""What every StableHLO rule is given, and the registry of rules and numbered constraints.

A rule is a function of `Given`; its decorator names the ops (without dialect) and states each
constraint in a sentence under StableHLO's number. The check raises `given.error(number, …)`. What
an operand or attribute may be at all is the input constraint of its place: `cosine_i1`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mlirhlo.analysis.shape_inference.base import ConstraintError, listed
from mlirhlo.analysis.stablehlo.tensors import DYNAMIC, Tensor, tensor_of, type_of
from mlirhlo.dialects.stablehlo.elements import array_of

__all__ = ["ConstraintError", "Given", "Results", "checks", "infers", "listed", "sentence"]

Results = Sequence["Tensor | Attribute"]
"""Types of the results, tensors as tensors."""
Infer = Callable[["Given"], "Results | None"]
Check = Callable[["Given"], None]

INFERENCES: dict[str, Infer] = {}
"""Rule that infers the results, by op; None from it means that they cannot be inferred."""
CHECKS: dict[str, Check] = {}
"""Checks that look at the declared results, by op."""
CONSTRAINTS: dict[str, str] = {}
"""Sentence of every numbered constraint, by its number (`dot_general_c3`)."""
RESULT_NUMBERS: dict[str, tuple[int, ...]] = {}
"""For each result of an op the constraints that a declared shape, and a declared element type, that
differ from the inferred ones break: two numbers a result, the last two for all further ones."""


def declare(subject: str, **constraints: str) -> None:
    """States constraints of an op: `c1="…"`."""
    for number, text in constraints.items():
        key = f"{subject}_{number}"
        if key in CONSTRAINTS:
            raise ValueError(f"constraint {key} is stated twice")
        CONSTRAINTS[key] = text


def infers(
    *ops: str, result: tuple[int, ...] = (1, 1), **constraints: str
) -> Callable[[Infer], Infer]:
    """Registers the rule that infers the results of `ops`, and their constraints. `result` has the
    numbers for declared results that differ from it, as in `RESULT_NUMBERS`."""

    def register(rule: Infer) -> Infer:
        for op in ops:
            INFERENCES[op] = rule
            RESULT_NUMBERS[op] = result
            declare(op, **constraints)
        return rule

    return register


def checks(*ops: str, **constraints: str) -> Callable[[Check], Check]:
    """Registers a check of `ops` that runs after inference, and its constraints."""

    def register(rule: Check) -> Check:
        for op in ops:
            CHECKS[op] = rule
            declare(op, **constraints)
        return rule

    return register


def sentence(constraint: str) -> str:
    """What a numbered constraint says; empty for an unknown one."""
    return CONSTRAINTS.get(constraint, "")


@dataclass(frozen=True, slots=True)
class Given:
    """What a rule knows of an op. `error` makes the exceptions it raises."""

    name: str
    """`dot_general`, `chlo.top_k`: without dialect where that is StableHLO."""
    operands: tuple[Attribute, ...]
    """Types of the operands."""
    properties: dict[str, Attribute]
    values: tuple[SSAValue | None, ...] = ()
    """The operands themselves where they are known; constants among them count."""
    regions: tuple[Region, ...] = ()
    declared: tuple[Attribute, ...] | None = None
    """Types of the results; None while they are being inferred."""
    op: Operation | None = field(default=None, compare=False)

    @staticmethod
    def of(op: Operation) -> Given:
        """What an op says of itself."""
        return Given(
            op.name.removeprefix("stablehlo."),
            tuple(value.type for value in op.operands),
            # Text written before properties were has inherent attributes in the dictionary.
            {**op.attributes, **op.properties},
            tuple(op.operands),
            tuple(op.regions),
            tuple(result.type for result in op.results),
            op,
        )

    def error(
        self,
        number: int | str,
        message: str,
        *,
        operand: int | None = None,
        attribute: str | None = None,
        help: str | None = None,
    ) -> ConstraintError:
        """The exception for a broken constraint: `3` means `<op>_c3`; `i1` stands as it is."""
        word = number if isinstance(number, str) else f"c{number}"
        return ConstraintError(f"{self.name}_{word}", message, operand, attribute, help)

    # -------------------------------------------------------------- operands and results

    def tensor(self, index: int) -> Tensor:
        """Operand `index`, which must be a tensor."""
        if index >= len(self.operands):
            raise ConstraintError(
                f"{self.name}_i{index + 1}",
                f"expects at least {index + 1} operands, but has {len(self.operands)}",
            )
        found = tensor_of(self.operands[index])
        if found is None:
            raise self.error(
                f"i{index + 1}", f"operand #{index} must be a ranked tensor", operand=index
            )
        return found

    def tensors(self, start: int = 0, stop: int | None = None) -> tuple[Tensor, ...]:
        """Operands `start` to `stop`, which must be tensors."""
        last = len(self.operands) if stop is None else stop
        return tuple(self.tensor(index) for index in range(start, last))

    def result(self, index: int = 0) -> Tensor:
        """Declared result `index`, which must be a tensor."""
        found = tensor_of(self.results[index]) if index < len(self.results) else None
        if found is None:
            raise self.error("o1", f"result #{index} must be a ranked tensor")
        return found

    @property
    def results(self) -> tuple[Attribute, ...]:
        """Declared types, in checks."""
        assert self.declared is not None
        return self.declared

    def constant(self, index: int) -> tuple[int, ...] | None:
        """Elements of operand `index` where it is an integer constant, else None."""
        if index >= len(self.values):
            return None
        value = self.values[index]
        owner = None if value is None else value.owner
        if owner is None or isinstance(owner, Block):
            return None
        if owner.name not in ("stablehlo.constant", "arith.constant", "sdy.constant"):
            return None
        found = owner.properties.get("value", owner.attributes.get("value"))
        return None if found is None else dense_ints(found)

    # -------------------------------------------------------------- attributes

    def has(self, key: str) -> builtins.bool:
        """Whether the attribute is there."""
        return key in self.properties

    def ints(self, key: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """A list of integers; `default` when absent."""
        found = self.properties.get(key)
        return tuple(default) if found is None else dense_ints(found)

    def int(self, key: str, default: int = 0) -> int:
        """An integer, or its default."""
        found = self.properties.get(key)
        return cast("IntegerAttr[Any]", found).value.data if found is not None else default

    def bool(self, key: str, default: bool = False) -> builtins.bool:
        """A bool, or its default."""
        return self.int(key, default) != 0

    def str(self, key: builtins.str, default: builtins.str = "") -> builtins.str:
        """A string, a symbol's name or a word; `default` when absent."""
        found = self.properties.get(key)
        if found is None:
            return default
        if isinstance(found, SymbolRefAttr):
            return found.root_reference.data
        if isinstance(found, StringAttr):
            return found.data
        return cast("builtins.str", cast(Any, found).data)

    def data(self, key: builtins.str) -> Any:
        """Value of a structured attribute; None when absent."""
        found: Any = self.properties.get(key)
        return None if found is None else found.data

    def array(self, key: builtins.str) -> tuple[Attribute, ...]:
        """Elements of an array attribute; `()` when absent."""
        found = self.properties.get(key)
        return cast("ArrayAttr[Attribute]", found).data if isinstance(found, ArrayAttr) else ()

    def shape_of(self, key: builtins.str) -> tuple[builtins.int, ...]:
        """Shape of a dense attribute; `()` when absent."""
        found: Any = self.properties.get(key)
        if isinstance(found, DenseArrayBase):
            return (len(cast(Any, found)),)
        kind = getattr(found, "type", None)
        if isinstance(kind, TensorType):
            return tuple(size.data for size in cast("TensorType[Attribute]", kind).shape.data)
        return ()

    # -------------------------------------------------------------- regions

    def block(self, index: builtins.int) -> Block:
        """The block of region `index`; ops of these dialects have one each."""
        if index >= len(self.regions) or self.regions[index].first_block is None:
            raise self.error("form", f"expects region #{index} to have one block")
        return cast(Block, self.regions[index].first_block)

    def arguments(self, index: builtins.int) -> tuple[Attribute, ...]:
        """Types of the arguments of region `index`."""
        return tuple(argument.type for argument in self.block(index).args)

    def returned(self, index: builtins.int) -> tuple[Attribute, ...]:
        """Types of what region `index` returns."""
        last = self.block(index).last_op
        return () if last is None else tuple(value.type for value in last.operands)


def check_wide(given: Given, key: str) -> None:
    """A dense attribute has elements of type i64."""
    kind: Any = getattr(given.properties.get(key), "type", None)
    if isinstance(kind, TensorType):
        element = cast("TensorType[Attribute]", kind).element_type
        if element != i64:
            raise given.error("form", f"{key} has elements {element}, not i64", attribute=key)


def dense_ints(attribute: Attribute) -> tuple[int, ...]:
    """Elements of an `array<i64>`, `array<i1>` or dense attribute, in row-major order."""
    if isinstance(attribute, DenseArrayBase):
        return tuple(int(value) for value in attribute.get_values())
    if isinstance(attribute, ArrayAttr):
        entries = cast("ArrayAttr[IntegerAttr[Any]]", attribute).data
        return tuple(entry.value.data for entry in entries)

    return tuple(int(value) for value in array_of(attribute).reshape(-1))


def as_types(results: Results) -> tuple[Attribute, ...]:
    """The types of inferred results."""
    return tuple(type_of(r) if isinstance(r, Tensor) else r for r in results)


def shown(sizes: Sequence[int]) -> str:
    """Sizes as messages show them: `2x?`."""
    return "x".join("?" if size == DYNAMIC else str(size) for size in sizes) or "scalar"


def check_range(
    given: Given, values: Sequence[int], limit: int, number: int, key: str, what: str
) -> None:
    """Raises constraint `number` unless `0 <= value < limit` for all."""
    for value in values:
        if not 0 <= value < limit:
            raise given.error(
                number, f"{key} has {value}, which is none of the {limit} {what}", attribute=key
            )


def check_unique(given: Given, values: Sequence[int], number: int, key: str) -> None:
    """Raises constraint `number` when a value stands twice."""
    if len(set(values)) != len(values):
        raise given.error(number, f"{key} has duplicates: {listed(values)}", attribute=key)


def check_sorted(given: Given, values: Sequence[int], number: int, key: str) -> None:
    """Raises constraint `number` unless values ascend."""
    if list(values) != sorted(values):
        raise given.error(number, f"{key} is not sorted: {listed(values)}", attribute=key)
