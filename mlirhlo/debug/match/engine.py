"""The matcher: unique subtrees by their numbers, then context, then names, in near-linear time.

1. Rows with equal keys (what they say and what they compute) are pairs; among several, those of one name first.
2. Context: operands of pairs by position, users of pairs that say the same; at last of any opcode (`thorough`).
3. Names: rows of one name that say the same, then those of one opcode, then those of one computation.

Names go before context when most of what structure matched has kept its name: then no pass renamed everything.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from mlirhlo.debug.match.listing import Listing
from mlirhlo.debug.match.result import Difference, Kind, Match
from mlirhlo.debug.match.structure import Interner, Structure

_CALL_VOTES = 4
"""What it counts for two computations that instructions that are each other call them."""
_MAX_LEVELS = 8
"""Calls in calls whose parameters are paired one level after the other."""
_MAX_USERS = 64
"""Context does not look at the users of a row that has more."""


def match(
    before: Listing | Structure, after: Listing | Structure, *, thorough: bool = False
) -> Match:
    """Which instruction of `before` each of `after` is, and what happened to it.

    `thorough`: takes longer where nothing kept its name. What is alike is paired by its surroundings first, and
    instructions of another opcode are the same, too, where all else around them says so.

    A listing that is compared more than once is passed as a `Structure`; both are then of one `Interner`.
    """
    interner = next((s.interner for s in (before, after) if isinstance(s, Structure)), Interner())
    old, new = (s if isinstance(s, Structure) else Structure(s, interner) for s in (before, after))
    return _Matcher(old, new).run(thorough=thorough)


class _Matcher:
    """Pairs of rows, as they are found."""

    def __init__(self, old: Structure, new: Structure) -> None:
        self.old, self.new = old, new
        self.before, self.after = old.listing, new.listing
        self.partner = [-1] * len(self.before.rows)
        """The row of `after`, by row of `before`; -1 for none."""
        self.origin = [-1] * len(self.after.rows)
        """The row of `before`, by row of `after`."""

    def run(self, *, thorough: bool = False) -> Match:
        """Finds all pairs and says what happened to each."""
        flows = (self.before.flows, self.after.flows)
        opcodes = (self.before.opcodes, self.after.opcodes)
        alike = list[tuple[list[int], list[int]]]()
        keeps_names = self._by_structure(alike)
        if thorough and not keeps_names:
            self._by_levels(*flows)
        for olds, news in alike:
            self._among(olds, news)
        if keeps_names:
            self._by_name(*flows)
            if thorough:
                self._by_levels(*flows)
        self._by_context(*flows)
        self._by_name(*(opcodes if keeps_names else flows))
        if thorough:
            self._by_context(*flows, flows, opcodes)
        else:
            self._by_context(*opcodes)
        self._by_name(*opcodes)
        if thorough:
            types = (self.before.types, self.after.types)
            self._by_context(*flows, flows, types)
            self._by_place(*flows)
            self._by_context(*flows, flows, types)
        self._by_name(_computation_names(self.before), _computation_names(self.after))
        return self._result()

    def _pair(self, old: int, new: int) -> None:
        self.partner[old], self.origin[new] = new, old

    def _is_free(self, old: int, new: int) -> bool:
        return self.partner[old] < 0 and self.origin[new] < 0

    # ------------------------------------------------------------ structure

    def _by_structure(self, alike: list[tuple[list[int], list[int]]]) -> bool:
        """Pairs rows of keys that are unique; returns whether these have mostly kept their names.

        `alike` gets those of other keys that are on both sides.
        """
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
                alike.append((olds, news))
        return 2 * kept >= unique

    def _among(self, olds: Sequence[int], news: Sequence[int]) -> None:
        """Pairs rows that are all alike: by name, then in order where as many are left on both sides."""
        by_name = {self.before.rows[index].name: index for index in olds if self.partner[index] < 0}
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

    # ------------------------------------------------------------ places

    def _by_levels(self, before: Sequence[str], after: Sequence[str]) -> None:
        """Pairs parameters by their numbers and what is around them, from the entry down through what it calls."""
        for _ in range(_MAX_LEVELS):
            found = self._by_number()
            self._by_context(before, after)
            if not found:
                return

    def _by_number(self) -> bool:
        """Pairs parameters by their numbers in computations that are each other; whether there were any."""
        partners = self._counterparts()
        numbers = {
            (row.computation, number): index
            for index, row in enumerate(self.after.rows)
            if (number := self.after.parameter_number(index)) >= 0
        }
        found = False
        for index, row in enumerate(self.before.rows):
            number = self.before.parameter_number(index)
            new = numbers.get((partners.get(row.computation, -1), number))
            if number >= 0 and new is not None and self._is_free(index, new):
                if self.before.flows[index] == self.after.flows[new]:
                    self._pair(index, new)
                    found = True
        return found

    def _by_place(self, before: Sequence[str], after: Sequence[str]) -> None:
        """Pairs rows that are left over in computations that are each other, and have equal words there: parameters
        by their numbers, others in order where as many are left on both sides."""
        partners = self._counterparts()
        groups: dict[tuple[int, str], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        for index, row in enumerate(self.before.rows):
            if self.partner[index] < 0 and row.computation in partners:
                groups[partners[row.computation], before[index]][0].append(index)
        for index, row in enumerate(self.after.rows):
            if self.origin[index] < 0:
                groups[row.computation, after[index]][1].append(index)
        for olds, news in groups.values():
            if len(olds) == len(news):
                for old, new in zip(olds, news, strict=True):
                    self._pair(old, new)

    # ------------------------------------------------------------ context

    def _by_context(
        self,
        before: Sequence[str],
        after: Sequence[str],
        *looser: tuple[Sequence[str], Sequence[str]],
    ) -> None:
        """Pairs what stands at the same place around pairs and has equal words, outwards from all pairs.

        With `looser` words only where no pair is left around which the stricter ones find any; all but the last
        are compared with what lies behind an instruction that only one side has.
        """
        queue = [(old, new) for old, new in enumerate(self.partner) if new >= 0]
        entries = (self.before.entry, self.after.entry)
        levels = [(before, after), *looser]
        if min(entries) >= 0:
            roots = self.before.roots[entries[0]], self.after.roots[entries[1]]
            self._candidate(*roots, *levels[-1], queue)
        done = [0] * len(levels)
        while (
            level := next((k for k, at in enumerate(done) if at < len(queue)), None)
        ) is not None:
            old, new = queue[done[level]]
            done[level] += 1
            words = levels[level]
            beside = self._beside(old, new)
            if 0 < level < len(levels) - 1:
                beside = [pair for x, y in beside for pair in self._behind(x, y)]
            for left, right in beside:
                self._candidate(left, right, *words, queue)
            for left, right in self._users(old, new, *words):
                self._candidate(left, right, *words, queue)

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
        if len(left.operands) == len(right.operands) == 2:  # as they are when operands are swapped
            flows = self.before.flows, self.after.flows
            x, y = (
                tuple(f[k] for k in row.operands)
                for f, row in zip(flows, (left, right), strict=True)
            )
            if x[0] != x[1] and x == y[::-1]:
                found = list(zip(left.operands, reversed(right.operands), strict=True))
        values = (self.old.values, self.new.values)
        found += [(values[0][x], values[1][y]) for x, y in found]
        found += [
            (self.before.roots[x], self.after.roots[y])
            for x, y in zip(left.calls, right.calls, strict=False)
        ]
        return found

    def _behind(self, old: int, new: int) -> list[tuple[int, int]]:
        """Pairs that two rows at the same place hint at when one of them was put in, or taken out."""
        found: list[tuple[int, int]] = []
        if self.partner[old] < 0:
            found += [(old, y) for y in self._through(self.after, new)]
        if self.origin[new] < 0:
            found += [(x, new) for x in self._through(self.before, old)]
        return found

    @staticmethod
    def _through(side: Listing, index: int) -> tuple[int, ...]:
        """The operand of a row that has one."""
        operands = side.rows[index].operands
        return operands if len(operands) == 1 else ()

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
        return Match(rows, counterparts)

    def _counterparts(self) -> dict[int, int]:
        """The computation of `after` that each of `before` is: the entry, or most of each other."""
        votes = Counter(
            (self.before.rows[old].computation, self.after.rows[new].computation)
            for old, new in enumerate(self.partner)
            if new >= 0
        )
        for old, new in enumerate(self.partner):
            if new >= 0 and self.before.opcodes[old] == self.after.opcodes[new]:
                calls = zip(self.before.rows[old].calls, self.after.rows[new].calls, strict=False)
                votes.update(dict.fromkeys(calls, _CALL_VOTES))
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
