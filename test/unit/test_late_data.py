"""Data classes that are completed late are what `dataclass` makes of them at once."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, InitVar, dataclass, field, fields
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from mlirhlo.importing import late_data

T = TypeVar("T")
Kind = Callable[[Callable[..., Any]], type]


def plain(decorate: Callable[..., Any]) -> type:
    class Plain:
        number: int
        text: str = "text"
        items: list[int] = field(default_factory=list[int], compare=False, repr=False)
        shared: ClassVar[int] = 3
        double: InitVar[int] = 0

        def __post_init__(self, double: int) -> None:
            self.number += double

    return decorate()(named(Plain))


def frozen(decorate: Callable[..., Any]) -> type:
    class Frozen(Generic[T]):
        """A doc."""

        number: int
        text: str = field(default="text", kw_only=True)

        def __repr__(self) -> str:
            return f"own {super().__repr__()[:0]}{self.number}"

    return decorate(frozen=True)(named(Frozen))


def derived(decorate: Callable[..., Any]) -> type:
    base = frozen(decorate)

    class Derived(base):
        further: float = 0.5

    return decorate(frozen=True)(named(Derived))


def without_init(decorate: Callable[..., Any]) -> type:
    class Open(Generic[T]):
        number: int = 4

    return decorate(init=False, eq=False)(named(Open))


def abstract(decorate: Callable[..., Any]) -> type:
    class Abstract(ABC):
        number: int

        @abstractmethod
        def __repr__(self) -> str: ...

    return decorate()(named(Abstract))


def ordered(decorate: Callable[..., Any]) -> type:
    class Ordered:
        number: int

    return decorate(order=True)(named(Ordered))


def slotted(decorate: Callable[..., Any]) -> type:
    class Slotted:
        number: int

    return decorate(slots=True, frozen=True)(named(Slotted))


def hashed(decorate: Callable[..., Any]) -> type:
    class Hashed:
        number: int

        def __hash__(self) -> int:
            return 7

    return decorate()(named(Hashed))


KINDS = (plain, frozen, derived, without_init, abstract, ordered, slotted, hashed)


def named(cls: type) -> type:
    """The class as one of this package, whose annotations mean what they mean here."""
    cls.__module__ = "mlirhlo.late_cases"
    sys.modules[cls.__module__] = sys.modules[__name__]
    return cls


@pytest.fixture
def late() -> Generator[Callable[..., Any]]:
    """`dataclass` as it is while modules are imported."""
    late_data.switch(True)
    yield dataclass
    late_data.switch(False)


def both(kind: Kind) -> tuple[type, type]:
    early = kind(dataclass)
    late_data.switch(True)
    try:
        return early, kind(dataclass)
    finally:
        late_data.switch(False)


def outcome(make: Callable[[], object]) -> object:
    try:
        return make()
    except Exception as problem:  # noqa: BLE001  compared
        return type(problem), str(problem)


@pytest.mark.parametrize("kind", KINDS)
def test_a_late_class_is_as_an_early_one(kind: Kind) -> None:
    early, late = both(kind)
    uses: tuple[Callable[[Any], object], ...] = (
        lambda c: c(1),
        lambda c: c(1) == c(1),
        lambda c: c(1) == c(2),
        lambda c: hash(c(1)),
        lambda c: setattr(c(1), "number", 2),
        lambda c: delattr(c(1), "number"),
        lambda c: setattr(c(1), "other", 2),
        lambda c: [(f.name, f.default, f.compare) for f in fields(c)],
        lambda c: dataclasses.replace(c(1), number=5),
        lambda c: copy.deepcopy(c(1)) == c(1),
        lambda c: c.__doc__,
        lambda c: str(inspect.signature(c)),
        lambda c: c.__match_args__,
        lambda c: c(1) < c(2),
        lambda c: c.text,
        lambda c: c.items,
        lambda c: vars(c(1)),
        lambda c: c.__init__.__qualname__,
    )
    for number, use in enumerate(uses):
        found, expected = (outcome(lambda: str(use(cls))) for cls in (late, early))  # noqa: B023
        if " at 0x" not in str(expected):
            assert found == expected, number
        early, late = both(kind)  # each is the first use of its class
    for name in vars(early):
        assert name in vars(late)


def test_what_is_used_is_completed_and_nothing_else(late: Callable[..., Any]) -> None:
    cls = derived(late)
    base = cls.__mro__[1]
    assert not is_complete(cls)
    assert not is_complete(base)
    assert cls(1).number == 1
    assert is_complete(cls)
    assert is_complete(base)  # its fields were read


def is_complete(cls: type) -> bool:
    return not any(type(v).__name__ == "_LateAttribute" for v in vars(cls).values())


def test_frozen_means_the_class_itself(late: Callable[..., Any]) -> None:
    """`super(cls, self)` in its methods is that of the late class."""
    cls = frozen(late)

    class Open(cls):
        pass

    instance = Open(1)
    instance.other = 2
    assert instance.other == 2
    with pytest.raises(FrozenInstanceError):
        instance.number = 3


def test_what_is_set_meanwhile_stays(late: Callable[..., Any]) -> None:
    cls: Any = plain(late)
    cls.__repr__ = lambda self: "mine"
    assert repr(cls(1)) == "mine"


def test_classes_of_others_are_completed_at_once(late: Callable[..., Any]) -> None:
    @late()
    class Other:
        number: int

    assert is_complete(Other)


def test_threads_see_a_class_whole() -> None:
    with ThreadPoolExecutor(4) as threads:
        for _ in range(50):
            _, late = both(frozen)

            def use(number: int, late: Any = late) -> int:
                return hash(late(number)) + (late(number) == late(number))

            assert len(set(threads.map(use, [1] * 4))) == 1
