"""Named rewrite rules and the driver that applies them.

    @rule(SubtractOp)
    def subtract_of_negate(op: SubtractOp, rewriter: Rewriter) -> None:
        "x - (-y) => x + y"
        if not isinstance(negate := op.rhs.owner, NegateOp):
            return
        rewriter.replace(op, rewriter.build(AddOp, op.lhs, negate.operand))

The driver keeps a worklist of instructions whose class some rule names; after a rewrite it looks
again at what was made and at the users of what was replaced, never at the whole module. xDSL's
stock walker gives the same result (`Rule.pattern`); a test holds that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import ClassVar, cast, get_args

from xdsl.ir import Block, Operation, SSAValue

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ComputationOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.quick import owners_of, readers_of
from mlirhlo.rewrites.authors import Author, CheckedRewriter, is_foreign
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rewriter import Rewriter as Rewriter
from mlirhlo.rewrites.rewriter import effects_around
from mlirhlo.rewrites.rewriter import inherit as inherit
from mlirhlo.rewrites.rule import Contract as Contract
from mlirhlo.rewrites.rule import Rule as Rule
from mlirhlo.rewrites.rule import RuleFunction
from mlirhlo.rewrites.settled import Settled
from mlirhlo.rewrites.simplify.dce import remove_unread_inputs
from mlirhlo.rewrites.worklist import Worklist, ops_of_kinds


def rule(
    *ops: type[Instruction],
    contract: Contract = "exact",
    needs: tuple[str, ...] = (),
    reads: tuple[type[Instruction], ...] = (),
    looks_far: bool = False,
) -> Callable[[RuleFunction], Rule]:
    """Decorator: makes a `Rule` of a function. The first docstring line must hold `=>`.

    Raises `TypeError` without classes of instructions, `ValueError` for an unknown contract.
    """
    classes = cast("Sequence[object]", ops)
    if not ops or not all(isinstance(c, type) and issubclass(c, Operation) for c in classes):
        listed = ", ".join(map(repr, ops))
        raise TypeError(f"rule takes classes of instructions, as in @rule(AddOp), not ({listed})")
    if contract not in get_args(Contract):
        known = ", ".join(get_args(Contract))
        raise ValueError(f"contract {contract!r} is none of {known}")

    def make_rule(function: RuleFunction) -> Rule:
        name = function.__name__
        equation = (function.__doc__ or "").strip().split("\n")[0]
        if "=>" not in equation and sys.flags.optimize < 2:  # -OO drops docstrings
            raise ValueError(
                f"rule {name}: the first docstring line is its equation, left => right"
            )
        return Rule(name, equation, ops, function, contract, needs, reads, looks_far)

    return make_rule


class Rules(tuple[Rule, ...]):
    """Rules in order, to be found by the classes of an instruction and of what it reads.

    What was found is kept: a pass that runs often asks once.
    """

    def __init__(self, rules: Iterable[Rule] = (), /) -> None:
        super().__init__()
        self.by_class: dict[type[Operation], list[Rule]] = {}
        for each in self:
            for cls in each.ops:
                self.by_class.setdefault(cls, []).append(each)
        self.are_foreign = any(is_foreign(each.function) for each in self)
        """Whether any of them is from outside of the project."""
        self._found: dict[tuple[type, ...], tuple[Rule, ...]] = {}
        self.far: dict[type[Operation], tuple[Rule, ...]] = {
            cls: far
            for cls, rules in self.by_class.items()
            if (far := tuple(each for each in rules if each.looks_far))
        }
        """Those that are tried on instructions that are settled."""

    def tried_on(self, op: Operation) -> tuple[Rule, ...]:
        """Those that may match."""
        kinds = [type(value.owner) for value in op._operands]  # pyright: ignore[reportPrivateUsage]
        key = (type(op), *(kinds if len(kinds) < 4 else set(kinds)))
        found = self._found.get(key)
        if found is None:
            read = set(kinds)
            found = self._found[key] = tuple(
                each
                for each in self.by_class[type(op)]
                if not each.reads or not read.isdisjoint(each.reads)
            )
        return found


class RuleDriver:
    """Applies rules to parts of one module, until none matches.

    Rules are tried in order on each instruction, operands' instructions first. Those that are tried
    are found by the class of the instruction and those of what it reads.
    """

    def __init__(
        self,
        module: Operation,
        rules: Iterable[Rule],
        *,
        trace: Trace | None = None,
        name: str = "",
        options: object = None,
        once: bool = False,
        most_each: int | None = None,
        settled: Settled | None = None,
    ) -> None:
        """`module`: holds the parts. Counts go to `trace` under the pass name `name`; `options` are
        the rewriter's. With `once` no instruction is looked at again, and new ones are not looked at.
        `most_each`: so many rewrites for each instruction of a part, and they go round in circles.
        `settled`: what need not be looked at; what is looked at in vain joins it.
        """
        self._worklist = Worklist()
        self._trace = trace or Trace()
        self._name, self._once, self._most_each = name, once, most_each
        effects = cache(lambda: effects_around(module))
        self._rules = rules if isinstance(rules, Rules) else Rules(rules)
        if self._rules.are_foreign:
            author = Author(name, self._trace)
            self._rules = Rules(author.watched(self._rules))
            rewriter: Rewriter = CheckedRewriter(author, module, effects, options)
        else:
            rewriter = Rewriter(module, effects, options)
        self._rewriter = rewriter
        self._index = self._rules.by_class
        self._settled = settled
        if settled is not None:
            rewriter.operation_insertion_handler.append(settled.modified)
            rewriter.operation_modification_handler.append(settled.modified)
            rewriter.operation_replacement_handler.append(settled.replaced)
            rewriter.operation_removal_handler.append(settled.removed)
        rewriter.operation_insertion_handler.append(self._look_again)
        rewriter.operation_modification_handler.append(self._look_again)
        rewriter.operation_replacement_handler.append(self._replaced)
        rewriter.operation_removal_handler.append(self._removed)

    @property
    def kinds(self) -> tuple[type[Instruction], ...]:
        """Classes that the rules match."""
        return cast("tuple[type[Instruction], ...]", tuple(self._index))

    def apply(self, part: Operation, fuel: int | None = None) -> int:
        """How many rewrites were done below `part`: at most `fuel`."""
        return self.apply_to(ops_of_kinds(part, self._index), fuel)

    def apply_in(self, computation: ComputationOp, fuel: int | None = None) -> int:
        """The same of a computation, which is passed over where all of it is settled."""
        settled, block = self._settled, computation.block
        if settled is None:
            return self.apply_to(ops_of_kinds(computation, self._index), fuel)
        calls_changed = computation in settled.calling_changed
        if block in settled.blocks and not calls_changed:
            return 0
        found = ops_of_kinds(computation, self._index)
        done = self.apply_to(found, fuel)
        settled.calling_changed.discard(computation)
        if done or calls_changed:
            settled.changed(computation)
        elif fuel is None and not any(type(op) in self._rules.far for op in found):
            settled.blocks.add(block)
        return done

    def apply_to(self, found: Sequence[Operation], fuel: int | None = None) -> int:
        """The same for a part whose instructions of the classes `kinds` these are."""
        worklist, rewriter, once = self._worklist, self._rewriter, self._once
        if not found:
            return 0
        if self._most_each is not None:
            most = self._most_each * (20 + len(found))
            fuel = most if fuel is None else min(fuel, most)
        worklist.start(found)
        listeners = self._trace.listeners
        known = self._settled
        settled, far = set[Operation]() if known is None else known.ops, self._rules.far
        done = 0
        while fuel is None or done < fuel:
            if known is not None and known.touched:
                known.wake_touched()
            if (op := worklist.pop(settled, far)) is None:
                break
            if op in settled:
                rules = far.get(type(op), ())
            else:
                rules = self._rules.tried_on(op)
                if known is not None:
                    settled.add(op)  # as long as nobody changes anything here
            if rules:
                rewriter.look_at(op)
            for each in rules:
                described = str(op) if listeners else ""
                each.function(op, rewriter)
                if rewriter.has_done_action:
                    settled.discard(op)
                    self._trace.rule_counts[self._name, each.name] += 1
                    done += 1
                    for listener in listeners:
                        listener(f"{each.name}: {described}", cast(Instruction, op))
                    if op.parent is not None and not once:
                        worklist.push(op)
                    break
        return done

    def _look_again(self, op: Operation | Block) -> None:
        if not self._once and type(op) in self._index:
            self._worklist.push(cast(Operation, op))

    def _replaced(self, op: Operation, results: Sequence[SSAValue | None]) -> None:
        for result in op.results:
            for reader in readers_of(result):
                self._look_again(reader)

    def _removed(self, op: Operation) -> None:
        self._worklist.forget(op)
        for owner in owners_of(op):
            self._look_again(owner)


def apply_rules(
    root: Operation,
    rules: Iterable[Rule],
    *,
    fuel: int | None = None,
    trace: Trace | None = None,
    name: str = "",
    options: object = None,
    once: bool = False,
) -> bool:
    """Applies `rules` below `root`, as `RuleDriver` does; whether anything changed."""
    driver = RuleDriver(root, rules, trace=trace, name=name, options=options, once=once)
    return driver.apply(root, fuel) > 0


@dataclass(frozen=True)
class RulePass(HloPass):
    """A pass that is a list of rules. Options pick rules and bound the number of rewrites."""

    rules: ClassVar[tuple[Rule, ...]] = ()

    only: tuple[str, ...] = ()
    """Names of the rules to apply; all when empty."""
    disable: tuple[str, ...] = ()
    """Names of rules to leave out."""
    fuel: int | None = None
    """At most so many rewrites."""

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        rules: object = cls.__dict__.get("rules", ())
        if not isinstance(rules, (tuple, list)):
            raise TypeError(f"{cls.__name__}.rules is no tuple of rules")
        for each in cast("Sequence[object]", rules):
            if not isinstance(each, Rule):
                name = getattr(each, "__name__", repr(each))
                raise TypeError(
                    f"{cls.__name__}.rules: {name} is no rule; @rule(…) above it makes it one"
                )
            if is_foreign(each.function):
                cls._check_needs(each)
        if "name" in vars(cls) and not cls.rules and cls.run is RulePass.run:
            raise TypeError(
                f"{cls.__name__} has no rules; rules: ClassVar[tuple[Rule, ...]] = (…,) names them"
            )

    @classmethod
    def _check_needs(cls, rule: Rule) -> None:
        """Raises `TypeError` where a rule needs an option that this pass does not have."""
        own = {name for base in cls.__mro__ for name in vars(base).get("__annotations__", ())}
        options = own - {"name", "rules", "exact"}
        for need in rule.needs:
            if need.removeprefix("!") not in options:
                known = ", ".join(sorted(options))
                raise TypeError(
                    f"rule {rule.name} needs {need!r}, which is no option of {cls.__name__} ({known})"
                )

    def selected(self) -> Rules:
        """Rules that the options leave. Raises `HloError` HLO0403 for an unknown name."""
        return self._selected

    @cached_property
    def _selected(self) -> Rules:
        known: Mapping[str, Rule] = {r.name: r for r in self.rules}
        for wanted in (*self.only, *self.disable):
            if wanted not in known:
                raise error(
                    "HLO0403",
                    f"{self.name}: unknown rule {wanted!r}",
                    help=f"rules of {self.name}: {', '.join(known)}",
                )
        return Rules(
            r
            for r in self.rules
            if (not self.only or r.name in self.only)
            and r.name not in self.disable
            and all(map(self._is_met, r.needs))
        )

    def _is_met(self, need: str) -> bool:
        """Whether an option stands as a rule needs it; a pass without the option takes the rule as it is."""
        value = getattr(self, need.removeprefix("!"), None)
        return value is None or bool(value) is not need.startswith("!")

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Applies the selected rules until none matches; fusions lose inputs that nothing reads any more."""
        driver = RuleDriver(module.op, self.selected(), trace=trace, name=self.name)
        if not driver.apply_to(module.candidates(*driver.kinds), self.fuel):
            return False
        remove_unread_inputs(module)
        return True
