"""Arrays that kernels change: `new_ref`, and `run_state` around kernels."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType
from typing import Any, TypeAlias

import numpy as np

from mlirhlo.mosaic.language.call import kernel_call
from mlirhlo.mosaic.language.faults import misuse
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.scratch import MemorySpace
from mlirhlo.mosaic.language.specs import ShapeDtypeStruct
from mlirhlo.mosaic.language.tree import flatten

_Tree: TypeAlias = "tuple[list[Any], Callable[[list[Any]], Any]]"

_OUTSIDE: Any = None
"""Where a reference is that no kernel has at the moment."""


class State(Ref):
    """An array that kernels change: numpy's between them, the kernel's own reference in one."""

    __slots__ = ("is_frozen", "value")

    def __init__(self, value: Any) -> None:
        self.value: Any = np.array(value)
        self.is_frozen = False
        super().__init__(_OUTSIDE, self.value.shape, self.value.dtype, MemorySpace.ANY.value)

    @contextmanager
    def within(self, ref: Ref) -> Generator[None]:
        """Is the reference of a kernel."""
        self.ssa = ref.ssa
        try:
            yield
        finally:
            self.ssa = _OUTSIDE

    def _array(self) -> Any:
        if self.is_frozen:
            raise misuse("a frozen reference is used", "freeze it after its last use")
        return self.value

    def __getitem__(self, index: Any) -> Any:
        if self.ssa is not _OUTSIDE:
            return super().__getitem__(index)
        return np.array(self._array()[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.ssa is _OUTSIDE:
            self._array()[index] = value
        else:
            super().__setitem__(index, value)


def new_ref(value: Any, **_: Any) -> State:
    """A reference to a copy of the array, which kernels on a mesh read and write where they stand in it."""
    return State(value)


def empty_ref(type_: Any, **_: Any) -> State:
    """`new_ref` for an array of that shape and type; of zeros here."""
    return State(np.zeros(type_.shape, type_.dtype))


def empty_ref_like(x: Any, **_: Any) -> State:
    """`empty_ref` for the shape and type of an array, of a type of one, or of a `MemoryRef`."""
    return empty_ref(x)


def freeze(ref: Any) -> Any:
    """The array, at the end: the reference is not used any more.

    Raises `HloError` HLO0720 for what is no reference of `new_ref`.
    """
    if not isinstance(ref, State):
        raise misuse("freeze of what is no reference", "give it what pl.new_ref(array) returned")
    value = ref[...]
    ref.is_frozen = True
    return value


_RUNNING: ContextVar[tuple[State, ...]] = ContextVar("running", default=())
"""The arrays of the innermost `run_state`."""


def run_state(function: Callable[[Any], None]) -> Callable[[Any], Any]:
    """A function of arrays that calls `function` with references to them, and returns what they hold then.

    Arrays, as references, may stand in tuples, lists and dictionaries. Kernels are `core_map` within; between
    them `ref[index]` reads and writes as numpy does.
    """

    def run(arrays: Any) -> Any:
        leaves, rebuild = flatten(arrays)
        states = tuple(map(State, leaves))
        token = _RUNNING.set(states)
        try:
            function(rebuild(list(states)))
        finally:
            _RUNNING.reset(token)
        return rebuild([state.value for state in states])

    return run


def _names(code: CodeType) -> Generator[str]:
    """What a function and the functions in it look up around its module."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def running(body: Callable[..., Any]) -> tuple[State, ...]:
    """The references that a kernel may use beside its own: those of `run_state`, and what its function, and
    functions in it, see around them.
    """
    found: dict[int, State] = {id(state): state for state in _RUNNING.get()}
    seen: set[int] = set()

    def look(thing: Any) -> None:
        if id(thing) in seen:
            return
        seen.add(id(thing))
        if isinstance(thing, State):
            found[id(thing)] = thing
        elif isinstance(thing, partial):
            look((thing.func, *thing.args, *thing.keywords.values()))
        elif isinstance(thing, tuple | list | dict):
            for item in flatten(thing)[0]:
                look(item)
        elif isinstance(thing, FunctionType) and thing.__module__.split(".")[0] != "mlirhlo":
            for cell in thing.__closure__ or ():
                with suppress(ValueError):  # a name that has no value yet
                    look(cell.cell_contents)
            for name in _names(thing.__code__):
                look(thing.__globals__.get(name))

    look(body)
    return tuple(found.values())


@dataclass(frozen=True, slots=True, eq=False)
class _Bound:
    """The function of a kernel, and the references that it uses around it."""

    func: Callable[..., Any]
    states: tuple[State, ...]
    operands: _Tree
    results: _Tree

    def __call__(self, *refs: Any, **scratch: Any) -> Any:
        leaves, arranged = self.operands
        outs, arranged_out = self.results
        rest = iter(refs)

        def take(count: int) -> list[Any]:
            return [next(rest) for _ in range(count)]

        take(len(self.states))  # the arrays as they began, which are not looked at
        mine, changed, own = take(len(leaves)), take(len(self.states)), take(len(outs))
        with ExitStack() as bound:
            for state, ref in zip(self.states, changed, strict=True):
                bound.enter_context(state.within(ref))
            found: Any = arranged_out(own)
            given = found if isinstance(found, tuple | list) else [found]
            return self.func(*arranged(mine), *given, *rest, **scratch)


def on_references(function: Callable[..., Any], *, out_shape: Any, **stated: Any) -> Any:
    """`kernel_call` of a function that may use references around it: a call that changes their arrays."""
    states = running(function)
    if not states:
        return kernel_call(function, out_shape, **stated)
    func = function.func if isinstance(function, partial) else function
    title = stated.pop("name", None) or getattr(func, "__name__", None)

    def call(*arrays: Any, **options: Any) -> Any:
        operands, results = flatten(arrays), flatten(out_shape)
        values = [state[...] for state in states]
        types = [ShapeDtypeStruct(value.shape, value.dtype) for value in values]
        made = kernel_call(
            _Bound(function, states, operands, results),
            [*types, *results[0]],
            input_output_aliases={number: number for number in range(len(states))},
            name=title,
            **stated,
        )
        found = made(*values, *operands[0], **options)
        for state, value in zip(states, found, strict=False):
            state.value = np.array(value)
        return results[1](list(found[len(states) :]))

    return call


__all__ = [
    "State",
    "empty_ref",
    "empty_ref_like",
    "freeze",
    "new_ref",
    "on_references",
    "run_state",
    "running",
]
