"""The matcher: unique subtrees by their numbers, then context, then names, in near-linear time.

1. Rows with equal keys (what they say and what they compute) are pairs; among several, those of one name first.
2. Context: operands of pairs by position, users of pairs that say the same.
3. Names: rows of one name that say the same, then those of one opcode, then those of one computation.

Names go before context when most of what structure matched has kept its name: then no pass renamed everything.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from mlirhlo.debug.match.listing import Listing
from mlirhlo.debug.match.result import Difference, Kind, Match
from mlirhlo.debug.match.structure import Interner, Structure

_MAX_USERS = 64
"""Context does not look at the users of a row that has more."""


def match(before: Listing | Structure, after: Listing | Structure) -> Match:
    """Which instruction of `before` each of `after` is, and what happened to it.

    A listing that is compared more than once is passed as a `Structure`; both are then of one `Interner`.
    """
    interner = next((s.interner for s in (before, after) if isinstance(s, Structure)), Interner())
    old, new = (s if isinstance(s, Structure) else Structure(s, interner) for s in (before, after))
    return _Matcher(old, new).run()


class _Matcher:
    """Pairs of rows, as they are found."""

    def __init__(self, old: Structure, new: Structure) -> None:
        self.old, self.new = old, new
        self.before, self.after = old.listing, new.listing
        self.partner = [-1] * len(self.before.rows)
        """The row of `after`, by row of `before`; -1 for none."""
        self.origin = [-1] * len(self.after.rows)
        """The row of `before`, by row of `after`."""

    def run(self) -> Match:
        """Finds all pairs and says what happened to each."""
        flows = (self.before.flows, self.after.flows)
        opcodes = (self.before.opcodes, self.after.opcodes)
        keeps_names = self._by_structure()
        if keeps_names:
            self._by_name(*flows)
        self._by_context(*flows)
        self._by_name(*(opcodes if keeps_names else flows))
        self._by_context(*opcodes)
        self._by_name(*opcodes)
        self._by_name(_computation_names(self.before), _computation_names(self.after))
        return self._result()

    def _pair(self, old: int, new: int) -> None:
        self.partner[old], self.origin[new] = new, old

    def _is_free(self, old: int, new: int) -> bool:
        return self.partner[old] < 0 and self.origin[new] < 0

    # ------------------------------------------------------------ structure

    def _by_structure(self) -> bool:
        """Pairs rows of equal keys; returns whether those that are unique have mostly kept their names."""
        groups: dict[tuple[str, int], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for index, key in enumerate(self.old.keys):
            groups[key][0].append(index)
        for index, key in enumerate(self.new.keys):
            if key in groups:
                groups[key][1].append(index)
        unique = kept = 0
        for olds, news in groups.values():
            if len(olds) == len(news) == 1:
                unique += 1
                kept += self.before.rows[olds[0]].name == self.after.rows[news[0]].name
                self._pair(olds[0], news[0])
            elif news:
                self._among(olds, news)
        return 2 * kept >= unique

    def _among(self, olds: Sequence[int], news: Sequence[int]) -> None:
        """Pairs rows that are all alike: by name, then in order where as many are left on both sides."""
        by_name = {self.before.rows[index].name: index for index in olds}
        for new in news:
            old = by_name.get(self.after.rows[new].name)
            if old is not None and self._is_free(old, new):
                self._pair(old, new)
        olds = [index for index in olds if self.partner[index] < 0]
        news = [index for index in news if self.origin[index] < 0]
        if len(olds) == len(news):
            for old, new in zip(olds, news, strict=True):
                self._pair(old, new)

    # ------------------------------------------------------------ names

    def _by_name(self, before: Sequence[str], after: Sequence[str]) -> None:
        """Pairs rows of one name that have equal words in `before` and `after`."""
        names: dict[object, int] = {}
        for index, row in enumerate(self.before.rows):
            if self.partner[index] < 0:
                names[row.name] = index
                names[self.before.computations[row.computation], row.name] = index
        for new, row in enumerate(self.after.rows):
            if self.origin[new] < 0:
                here = names.get((self.after.computations[row.computation], row.name))
                old = names.get(row.name) if here is None else here
                if old is not None and self._is_free(old, new) and before[old] == after[new]:
                    self._pair(old, new)

    # ------------------------------------------------------------ context

    def _by_context(self, before: Sequence[str], after: Sequence[str]) -> None:
        """Pairs what stands at the same place around pairs and has equal words, outwards from all pairs."""
        queue = [(old, new) for old, new in enumerate(self.partner) if new >= 0]
        entries = (self.before.entry, self.after.entry)
        if min(entries) >= 0:
            self._candidate(
                self.before.roots[entries[0]], self.after.roots[entries[1]], before, after, queue
            )
        for old, new in queue:  # grows
            for left, right in self._beside(old, new):
                self._candidate(left, right, before, after, queue)
            for left, right in self._users(old, new, before, after):
                self._candidate(left, right, before, after, queue)

    def _candidate(
        self,
        old: int,
        new: int,
        before: Sequence[str],
        after: Sequence[str],
        queue: list[tuple[int, int]],
    ) -> None:
        if min(old, new) >= 0 and self._is_free(old, new) and before[old] == after[new]:
            self._pair(old, new)
            queue.append((old, new))

    def _beside(self, old: int, new: int) -> list[tuple[int, int]]:
        """Operands of a pair by position, as they stand and as what computes them; roots of what it calls."""
        left, right = self.before.rows[old], self.after.rows[new]
        found = list(zip(left.operands, right.operands, strict=False))
        values = (self.old.values, self.new.values)
        found += [(values[0][x], values[1][y]) for x, y in found]
        found += [
            (self.before.roots[x], self.after.roots[y])
            for x, y in zip(left.calls, right.calls, strict=False)
        ]
        return found

    def _users(
        self, old: int, new: int, before: Sequence[str], after: Sequence[str]
    ) -> list[tuple[int, int]]:
        """Users of a pair that are alone on both sides in what they say and where they read it."""
        olds, news = self.before.users[old], self.after.users[new]
        if not olds or not news or max(len(olds), len(news)) > _MAX_USERS:
            return []
        groups: dict[tuple[str, int], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for index in olds:
            if self.partner[index] < 0:
                place = self.before.rows[index].operands.index(old)
                groups[before[index], place][0].append(index)
        if not groups:
            return []
        for index in news:
            if self.origin[index] < 0:
                place = self.after.rows[index].operands.index(new)
                groups[after[index], place][1].append(index)
        return [(x[0], y[0]) for x, y in groups.values() if len(x) == len(y) == 1]

    # ------------------------------------------------------------ what happened

    def _result(self) -> Match:
        counterparts = self._counterparts()
        rows = [
            Difference(Kind.ADDED, None, new)
            if old < 0
            else Difference(self._kind(old, new, counterparts), old, new)
            for new, old in enumerate(self.origin)
        ]
        rows += [
            Difference(Kind.REMOVED, old, None) for old, new in enumerate(self.partner) if new < 0
        ]
        return Match(rows)

    def _counterparts(self) -> dict[int, int]:
        """The computation of `after` that each of `before` is: the entry, or most of each other."""
        votes = Counter(
            (self.before.rows[old].computation, self.after.rows[new].computation)
            for old, new in enumerate(self.partner)
            if new >= 0
        )
        found = {self.before.entry: self.after.entry}
        taken = {self.after.entry}
        by_votes = sorted(
            votes.items(),
            key=lambda vote: (
                -vote[1],
                self.before.computations[vote[0][0]] != self.after.computations[vote[0][1]],
                vote[0],
            ),
        )
        for (old, new), _ in by_votes:
            if old not in found and new not in taken:
                found[old] = new
                taken.add(new)
        return found

    def _kind(self, old: int, new: int, counterparts: dict[int, int]) -> Kind:
        left, right = self.before.rows[old], self.after.rows[new]
        if left.label != right.label or len(left.operands) != len(right.operands):
            return Kind.CHANGED
        values = (self.old.values, self.new.values)
        for x, y in zip(left.operands, right.operands, strict=True):
            if self.partner[x] != y and self.partner[values[0][x]] != values[1][y]:
                return Kind.CHANGED
        if counterparts.get(left.computation) != right.computation:
            return Kind.MOVED
        return Kind.SAME if left.name == right.name else Kind.RENAMED


def _computation_names(side: Listing) -> list[str]:
    """By row, the name of its computation; one word for all entries."""
    return [
        "ENTRY" if row.computation == side.entry else side.computations[row.computation]
        for row in side.rows
    ]
