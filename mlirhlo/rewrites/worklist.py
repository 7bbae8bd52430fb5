"""What the driver of rules still has to look at."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from mlirhlo.dialects.hlo.ops import ComputationOp
from mlirhlo.dialects.quick import ops_of

_WIDE = 64
"""Operands from which on an instruction waits for changes of all of them."""


class Worklist:
    """Instructions still to look at, each once: first those that were pushed, last in first out.

    Those of many operands that were pushed come last: they are not looked at anew for each operand that changes.
    """

    __slots__ = ("_first", "_member", "_stack", "_wide")

    def __init__(self) -> None:
        self._first: Iterator[Operation] = iter(())
        self._stack: list[Operation] = []
        self._wide: list[Operation] = []
        self._member: set[Operation] = set()

    def push(self, op: Operation) -> None:
        """Holds one more, to be looked at next."""
        if op not in self._member:
            self._member.add(op)
            is_wide = len(op._operands) > _WIDE  # pyright: ignore[reportPrivateUsage]
            (self._wide if is_wide else self._stack).append(op)

    def pop(
        self, settled: Collection[Operation], far: Container[type[Operation]]
    ) -> Operation | None:
        """The next one; `settled` ones of no class of `far` are passed over."""
        while self._stack:
            op = self._stack.pop()
            if op in self._member:
                self._member.discard(op)
                return op
        for op in self._first:
            if op in self._member:
                self._member.discard(op)
                if op not in settled or type(op) in far:
                    return op
        while self._wide:
            op = self._wide.pop()
            if op in self._member:
                self._member.discard(op)
                return op
        return None

    def forget(self, op: Operation) -> None:
        """Holds it no longer."""
        self._member.discard(op)

    def start(self, ops: Sequence[Operation]) -> None:
        """Holds these, in this order, and nothing else."""
        self._first = iter(ops)
        self._stack, self._wide = [], []
        self._member = set(ops)


def ops_of_kinds(root: Operation, kinds: Collection[type[Operation]]) -> list[Operation]:
    """Those of `root.walk()` that are of these classes; quick where ops stand in computations, which
    hold no others."""
    if isinstance(root, ModuleOp):
        return [found for op in root.body.block.ops for found in ops_of_kinds(op, kinds)]
    if not isinstance(root, ComputationOp):
        return [op for op in root.walk() if type(op) in kinds]
    return [op for op in ops_of(root.body.block) if type(op) in kinds]
