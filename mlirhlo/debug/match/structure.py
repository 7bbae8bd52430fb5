"""What each instruction computes, as a number: equal subtrees have equal numbers, in all listings of one `Interner`.

Calls that are the only one of their computation (fusions, `call`) are looked through: a parameter in there is
the operand of the call, the call is the root in there, an element of a tuple is what went into the tuple. So
an instruction keeps its number when it is fused, inlined or outlined.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property

from mlirhlo.debug.match.listing import Listing

_TRANSPARENT = frozenset(("fusion", "call"))
_UNKNOWN, _STARTED = -1, -2


class Interner:
    """Numbers of keys; the same key has the same number."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def number(self, key: Hashable) -> int:
        """The number of a key."""
        return self._numbers.setdefault(key, len(self._numbers))


class Structure:
    """A listing with the numbers of its subtrees. Nothing here recurses."""

    def __init__(self, listing: Listing, interner: Interner) -> None:
        self.listing = listing
        self.interner = interner

    @cached_property
    def _caller(self) -> dict[int, int]:
        """The call that each computation is looked through by."""
        listing = self.listing
        return {
            computation: calls[0]
            for computation, calls in enumerate(listing.callers)
            if len(calls) == 1
            and listing.opcodes[calls[0]] in _TRANSPARENT
            and len(listing.rows[calls[0]].calls) == 1
        }

    def _is_transparent(self, index: int) -> bool:
        """Whether a row is a call that is looked through."""
        calls = self.listing.rows[index].calls
        return len(calls) == 1 and self._caller.get(calls[0]) == index

    @cached_property
    def values(self) -> list[int]:
        """The row that computes what each row stands for: itself, unless it only hands a value on."""
        found = [_UNKNOWN] * len(self.listing.rows)
        for start in range(len(found)):
            stack = [start]
            while stack:
                index = stack[-1]
                source = index if found[index] >= 0 else self._source(index, found)
                if source != index and found[source] == _UNKNOWN:
                    found[index] = _STARTED
                    stack.append(source)
                    continue
                stack.pop()
                if found[index] < 0:
                    # A circle, which no valid module has, ends where it began.
                    found[index] = found[source] if found[source] >= 0 else index
        return found

    def _source(self, index: int, found: list[int]) -> int:
        """The row that `index` has its value from, or that has to be known first; itself where it computes one."""
        listing = self.listing
        row = listing.rows[index]
        opcode = listing.opcodes[index]
        if opcode == "parameter":
            call = self._caller.get(row.computation)
            number = listing.parameter_number(index)
            if call is not None and 0 <= number < len(listing.rows[call].operands):
                return listing.rows[call].operands[number]
        elif opcode == "get-tuple-element" and len(row.operands) == 1:
            source = found[row.operands[0]]
            if source == _UNKNOWN:
                return row.operands[0]
            number = listing.tuple_index(index)
            if source >= 0 and listing.opcodes[source] == "tuple":
                elements = listing.rows[source].operands
                return elements[number] if 0 <= number < len(elements) else index
        elif opcode in _TRANSPARENT and self._is_transparent(index):
            root = listing.roots[row.calls[0]]
            return index if root < 0 else root
        return index

    @cached_property
    def numbers(self) -> list[int]:
        """The number of what each row computes."""
        found = [_UNKNOWN] * len(self.listing.rows)
        for start in range(len(found)):
            stack = [self.values[start]]
            while stack:
                index = stack[-1]
                if found[index] >= 0:
                    stack.pop()
                    continue
                needed = [need for need in self._needs(index) if found[need] == _UNKNOWN]
                if needed and found[index] == _UNKNOWN:
                    found[index] = _STARTED  # a circle is cut here
                    stack += needed
                    continue
                stack.pop()
                found[index] = self._number(index, found)
            found[start] = found[self.values[start]]
        return found

    def _needs(self, index: int) -> list[int]:
        """Rows whose numbers the number of a row depends on."""
        row, listing = self.listing.rows[index], self.listing
        roots = [listing.roots[callee] for callee in row.calls]
        return [self.values[need] for need in (*row.operands, *roots) if need >= 0]

    def _number(self, index: int, found: list[int]) -> int:
        needs = tuple(max(found[need], -1) for need in self._needs(index))
        return self.interner.number((self.listing.flows[index], needs))

    @cached_property
    def keys(self) -> list[tuple[str, int]]:
        """What makes rows alike: what they say, and what they compute."""
        return list(zip(self.listing.flows, self.numbers, strict=True))
