"""Operands of operations that have thousands of them."""

from __future__ import annotations

from typing import Any, cast

from xdsl.ir import SSAValue, SSAValues


class WideOperands(list[SSAValue]):
    """Operands of an operation that has thousands, one of which changes without a copy of the others.

    All else is as of the tuple that it stands for.
    """

    LEAST = 2000
    """Operands from which on they are kept so once one of them changes."""

    def __getitem__(self, index: Any) -> Any:
        found = cast(Any, super().__getitem__(index))
        return found if isinstance(index, int) else cast(Any, SSAValues)(found)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, (tuple, WideOperands)) and tuple(self) == (*other,)

    def __hash__(self) -> int:  # type: ignore[override]  # as the tuple
        return hash(tuple(self))

    def __add__(self, other: Any) -> Any:
        return (*self, *other)

    def __radd__(self, other: Any) -> Any:
        return (*other, *self)
