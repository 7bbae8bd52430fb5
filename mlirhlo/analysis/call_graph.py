"""Who calls whom: call sites, post-order, cycles, and the context a computation runs in.

Names that mean no computation of the module are left out; the verifier reports them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.dialects.hlo.attributes.base import symbols_of
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.ops import ComputationOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.table import opcodes


class Context(Enum):
    """How a computation is run by those who call it."""

    NONE = "none"
    """Nobody calls it: the entry, and dead computations."""
    SEQUENTIAL = "sequential"
    """As a whole, its instructions one after the other: call, while, conditional, async-start."""
    EMBEDDED = "embedded"
    """As a function of elements inside an instruction: reduce, map, sort, fusion, …"""
    BOTH = "both"
    """Called in both ways."""


SEQUENTIAL_OPCODES = opcodes(lambda row: row.runs_whole)
"""Opcodes whose called computations run as a whole; all others embed theirs."""


def context_of(opcode: str) -> Context:
    """Context in which instructions of `opcode` call."""
    return Context.SEQUENTIAL if opcode in SEQUENTIAL_OPCODES else Context.EMBEDDED


class CallSite(NamedTuple):
    """One reference of an instruction to a computation."""

    caller: ComputationOp
    instruction: Instruction
    key: str
    """Property that holds the reference: `to_apply`."""
    callee: str

    @property
    def context(self) -> Context:
        """How the callee is run."""
        return context_of(self.instruction.opcode.name)


@dataclass(frozen=True, slots=True)
class CallGraph:
    """Call sites of a module, by caller and by callee."""

    computations: Mapping[str, ComputationOp]
    """By name, in stored order."""
    sites_in: Mapping[str, tuple[CallSite, ...]]
    """References that stand in a computation, in block order."""
    sites_of: Mapping[str, tuple[CallSite, ...]]
    """References to a computation, in stored order."""

    def callees(self, name: str) -> tuple[str, ...]:
        """Computations that `name` calls, each once, in order of first mention."""
        return tuple(dict.fromkeys(site.callee for site in self.sites_in[name]))

    def callers(self, name: str) -> tuple[str, ...]:
        """Computations that call `name`, each once."""
        return tuple(dict.fromkeys(s.caller.computation_name for s in self.sites_of[name]))

    def context(self, name: str) -> Context:
        """How `name` is run, judged by its direct callers."""
        sites = self.sites_of[name]
        if not sites:
            return Context.NONE
        first = sites[0].context
        return first if all(site.context is first for site in sites) else Context.BOTH

    def embedded(self) -> frozenset[str]:
        """Computations that run inside an instruction, directly or through callers."""
        found: set[str] = set()
        pending = [n for n in self.computations if self.context(n) is Context.EMBEDDED]
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                pending += self.callees(name)
        return frozenset(found)

    def roots(self) -> tuple[str, ...]:
        """Computations that nobody calls, in stored order."""
        return tuple(name for name in self.computations if not self.sites_of[name])

    def post_order(self) -> list[ComputationOp]:
        """Every computation after those it calls, roots in stored order. Where calls form a cycle,
        the call that closes it is passed over."""
        return [self.computations[name] for name in self._walk()[0]]

    def cycle(self) -> tuple[str, ...] | None:
        """Names along some cycle of calls, the first one again at the end; None when there is none."""
        return self._walk()[1]

    def _walk(self) -> tuple[list[str], tuple[str, ...] | None]:
        done: dict[str, None] = {}
        cycle: tuple[str, ...] | None = None
        for start in (*self.roots(), *self.computations):
            path: list[tuple[str, Iterator[str]]] = []
            open_: set[str] = set()
            if start not in done:
                path.append((start, iter(self.callees(start))))
                open_.add(start)
            while path:
                name, rest = path[-1]
                callee = next(rest, None)
                if callee is None:
                    path.pop()
                    open_.discard(name)
                    done[name] = None
                elif callee in open_:
                    names = [n for n, _ in path]
                    cycle = cycle or (*names[names.index(callee) :], callee)
                elif callee not in done:
                    path.append((callee, iter(self.callees(callee))))
                    open_.add(callee)
        return list(done), cycle


def call_graph(module: ModuleOp) -> CallGraph:
    """The call graph of `module`; linear in its instructions."""
    return call_graph_of(HloModule(module))


def call_graph_of(module: HloModule) -> CallGraph:
    """The call graph; where the view knows the instructions by class, it takes those that call."""
    computations: dict[str, ComputationOp] = {}
    for computation in module.computations:
        computations.setdefault(computation.computation_name, computation)
    sites_in: dict[str, list[CallSite]] = {name: [] for name in computations}
    sites_of: dict[str, list[CallSite]] = {name: [] for name in computations}
    for op in module.calling():
        caller = holder(op)
        name = caller.computation_name
        if computations[name] is not caller:
            continue  # another one of the same name, which the verifier reports
        for key in op.calling_keys:
            for callee in symbols_of(op.properties.get(key)):
                if callee in computations:
                    site = CallSite(caller, op, key, callee)
                    sites_in[name].append(site)
                    sites_of[callee].append(site)
    return CallGraph(
        computations,
        {name: tuple(found) for name, found in sites_in.items()},
        {name: tuple(found) for name, found in sites_of.items()},
    )


def callees_first(
    start: str, callees: Callable[[str], Iterable[str]], is_known: Callable[[str], bool]
) -> Iterator[str]:
    """`start` and what it leads to, each after all that it leads to itself; not what is known already.

    A stack, not recursion: calls nest deeper than Python's.
    """
    met = {start}
    stack = [(start, iter(callees(start)))]
    while stack:
        name, rest = stack[-1]
        following = next((c for c in rest if c not in met and not is_known(c)), None)
        if following is None:
            stack.pop()
            yield name
        else:
            met.add(following)
            stack.append((following, iter(callees(following))))
