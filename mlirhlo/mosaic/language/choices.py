"""`select_ref`: one of several references, by a number that is known when the kernel runs.

There is no such reference on the chip: what uses it stands in a branch for each.
"""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mlirhlo.mosaic.language.control import cond
from mlirhlo.mosaic.language.elements import DTypeLike
from mlirhlo.mosaic.language.faults import bad_memory
from mlirhlo.mosaic.language.indexing import scalar
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.value import ArrayLike, Value, is_number


class ChosenRef(Ref):
    """One of several references: loads, stores, copies and semaphores take it, views are of each."""

    __slots__ = ("choices", "number")

    def __init__(self, number: Value, choices: Sequence[Ref]) -> None:
        first = choices[0]
        self.number, self.choices = number, tuple(choices)
        self.sizes, self.hidden = first.shape, (False,) * len(first.shape)
        self.dtype, self.space, self.semaphore = first.dtype, first.space, first.semaphore

    @property
    def ssa(self) -> Any:
        """There is none."""
        raise bad_memory(
            "a reference of select_ref is used where one is to be known",
            "load, store or copy it, or choose by lax.cond or pl.when",
        )

    @ssa.setter
    def ssa(self, _: Any) -> None:
        """There is none."""

    @property
    def at(self) -> Any:
        """The view of each."""
        return _At(self)

    def each(self, view: Callable[[Ref], Ref]) -> ChosenRef:
        """The views of all of them."""
        return ChosenRef(self.number, [view(ref) for ref in self.choices])

    def reshape(self, *shape: Any) -> Ref:
        """Each in another shape."""
        return self.each(lambda ref: ref.reshape(*shape))

    def bitcast(self, dtype: DTypeLike) -> Ref:
        """Each as elements of another width."""
        return self.each(lambda ref: ref.bitcast(dtype))

    def __getitem__(self, index: Any) -> Value:
        found: Value = with_chosen(lambda ref: ref[index], self)
        return found

    def __setitem__(self, index: Any, value: ArrayLike) -> None:
        def store(ref: Ref) -> None:
            ref[index] = value

        with_chosen(store, self)


class _At:
    """`ref.at` of each."""

    def __init__(self, ref: ChosenRef) -> None:
        self._ref = ref

    def __getitem__(self, index: Any) -> Ref:
        return self._ref.each(lambda ref: ref.at[index])


def select_ref(idx: ArrayLike, *refs: Any) -> Ref:
    """One of several references of one shape, element type and memory.

    Raises `HloError` HLO0725 where they differ, or there are none.
    """
    if not refs or not all(isinstance(ref, Ref) for ref in refs):
        raise bad_memory("select_ref takes a number and references")
    kinds = {(ref.shape, ref.dtype, ref.space, ref.semaphore) for ref in refs}
    if len(kinds) > 1:
        raise bad_memory(
            f"select_ref is of references of one kind, not of {', '.join(map(repr, refs))}",
            "take parts of one shape with at[...]",
        )
    if is_number(idx):
        known: Ref = refs[int(idx)]
        return known
    return ChosenRef(scalar(idx, "the number of a reference"), refs)


def with_chosen(function: Callable[..., Any], *refs: Ref | None) -> Any:
    """`function` of the references, in a branch for each choice of those that are chosen."""
    for at, ref in enumerate(refs):
        if isinstance(ref, ChosenRef):
            return _branches(function, refs, at, ref)
    return function(*refs)


def _branches(
    function: Callable[..., Any], refs: Sequence[Ref | None], at: int, ref: ChosenRef
) -> Any:
    def of(choice: int) -> Any:
        return with_chosen(function, *refs[:at], ref.choices[choice], *refs[at + 1 :])

    def from_(choice: int) -> Any:
        if choice == len(ref.choices) - 1:
            return of(choice)
        return cond(ref.number <= choice, lambda: of(choice), lambda: from_(choice + 1))

    return from_(0)
