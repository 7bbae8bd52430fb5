"""Passes and pipelines on random modules: what they leave verifies, prints as itself, and computes the same.

The interpreter runs the module before and after on the same inputs. Passes that are exact keep every bit. The others
may round otherwise: a result may move as far as it does when every inexact number of the run moves by a few units in
the last place, and a margin.
"""

from __future__ import annotations

import inspect
import random
import signal
import sys
import traceback
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.debug.fuzz.generators.instructions import GENERATORS
from mlirhlo.debug.fuzz.generators.modules import Module
from mlirhlo.debug.trials import rounding
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.formats.hlo_text import PrintOptions, parse_module, print_module
from mlirhlo.interp import run_module
from mlirhlo.rewrites.cloning import clone_module
from mlirhlo.rewrites.passes import HloPass
from mlirhlo.rewrites.pipeline import PipelinePass, parse_pipeline, run_pipeline
from mlirhlo.rewrites.pipelines import pipelines_of
from mlirhlo.rewrites.registry import list_passes
from mlirhlo.rewrites.rules import RulePass

Array: TypeAlias = "np.ndarray[Any, Any]"
PLATFORMS = ("cpu", "gpu", "tpu")
VARIANTS = (
    *("algsimp{is-layout-sensitive=true}", "algsimp{executing-on-cpu=true}"),
    *(
        "computation-deduplicator{mark-fusion-duplications=true}",
        "constant_folding{aggressive=true}",
    ),
    *("cse{is-layout-sensitive=true}", "fusion{moves=true}", "priority-fusion{moves=true}"),
    *("layout-assignment{target=cpu}", "layout-assignment{target=tpu}"),
    *("call-inliner{single-call-site=true}", "while-loop-unroller{rounds=2}"),
    *("fusion{multi-output=true}", "gather_expander{simple-only=true}"),
)
"""Passes with options that make others of them."""
OTHER_TYPES = frozenset({"element-type-converter", "despecializer"})
"""Passes that compute in other element types on purpose."""
LONG = PrintOptions(large_constants=True)
SECONDS = 30
ALIKE = 4
"""Cases of one module."""


@dataclass(frozen=True, slots=True)
class Case:
    """A module and what is run on it."""

    text: str
    inputs: Sequence[Any]
    pipeline: str
    """Passes with commas, or a platform."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, and where."""

    culprit: str
    """The pass that made it."""
    cause: str
    """One line, the same for all failures of a kind."""
    detail: str = ""


@lru_cache(maxsize=1024)
def passes_of(pipeline: str) -> Sequence[ModulePass]:
    """What is run: passes with commas, or those of a platform."""
    return pipelines_of(pipeline) if pipeline in PLATFORMS else parse_pipeline(pipeline)


@cache
def pass_names() -> tuple[str, ...]:
    """Passes from HLO to HLO that keep what is computed, and variants of them."""
    known = list_passes(loaded=False)
    names = [
        name
        for name, info in known.items()
        if name not in OTHER_TYPES and issubclass(info.factory(), HloPass)
    ]
    return (*names, *VARIANTS)


def make_case(seed: int, number: int, pipelines: Sequence[str] = ()) -> Case:
    """Case `number` of a seed; of any pipeline, or of one of those named. `ALIKE` cases share a module."""
    choose = random.Random(f"{seed}:{number}")
    module, special = _module(seed, number // ALIKE)
    names = [n for n in pass_names() if is_exact(passes_of(n))] if special else pass_names()
    pipeline = choose.choices(("one", "several", *PLATFORMS), (6, 4, *(3, 3, 3)))[0]
    if pipelines:
        pipeline = choose.choice(pipelines)
    elif pipeline == "one" or special:
        pipeline = choose.choice(names)
    elif pipeline == "several":
        pipeline = ",".join(choose.choices(names, k=choose.randint(2, 6)))
    return Case(module.text, module.inputs, pipeline)


@lru_cache(maxsize=1)
def _module(seed: int, number: int) -> tuple[Module, bool]:
    """A module, and whether its numbers are special ones, which only exact passes keep."""
    choose = random.Random(f"module {seed}:{number}")
    special = choose.random() < 0.2
    text = f"{seed}:{number}"
    return Module(text, special=special, steps=choose.choice((3, 10, 20))), special


def is_exact(passes: Iterable[ModulePass]) -> bool:
    """Whether every bit stays."""
    return all(
        is_exact(p.passes) if isinstance(p, PipelinePass) else getattr(p, "exact", True)
        for p in passes
    )


def opcodes_named(passes: Iterable[ModulePass]) -> list[list[str]]:
    """Opcodes that passes are about, in groups that should meet: those that the code of a rule names, and those that
    the file of a pass without rules does."""
    groups: list[list[str]] = []
    for pass_ in passes:
        if isinstance(pass_, PipelinePass):
            groups.extend(opcodes_named(pass_.passes))
        elif isinstance(pass_, RulePass):
            for rule in pass_.selected():
                own = {c.opcode.name for c in rule.ops if hasattr(c, "opcode")}
                groups.append(sorted((own | _named_by(rule.function)) & GENERATORS.keys()))
        else:
            functions = [f for f in vars(type(pass_)).values() if isinstance(f, FunctionType)]
            scopes = [
                vars(sys.modules[type(pass_).__module__]),
                *(f.__globals__ for f in functions),
            ]
            named = {name for scope in scopes for name in _opcodes(scope.values())}
            groups.append(sorted(named & GENERATORS.keys()))
    return [group for group in groups if group]


def _opcodes(values: Iterable[object]) -> set[str]:
    """Opcodes of the classes of instructions among values."""
    return {
        v.opcode.name
        for v in values
        if isinstance(v, type) and issubclass(v, Instruction) and hasattr(v, "opcode")
    }


def _named_by(function: object) -> set[str]:
    """Opcodes whose classes a function names, with the functions beside it that it calls."""
    opcodes, seen = set[str](), set[object]()
    stack = [inspect.unwrap(function)] if callable(function) else []
    while stack:
        called = stack.pop()
        if not isinstance(called, FunctionType) or called in seen:
            continue
        seen.add(called)
        names = set[str]()
        codes = [called.__code__]
        while codes:
            code = codes.pop()
            names.update(code.co_names)
            codes += [c for c in code.co_consts if isinstance(c, CodeType)]
        values = [called.__globals__[name] for name in names if name in called.__globals__]
        opcodes |= _opcodes(values)
        stack += [v for v in values if getattr(v, "__module__", "") == called.__module__]
    return opcodes


# ---------------------------------------------------------------- judging


def judge(text: str, inputs: Sequence[Any], pipeline: str) -> Failure | None:
    """What is wrong with a pipeline on a module; None if nothing is. Raises as `Reference` does."""
    return reference_of(text, inputs).judge(pipeline)


def reference_of(text: str, inputs: Sequence[Any]) -> Reference:
    """What a module computes; the last one asked about is kept."""
    if _LAST and _LAST[0].source == text:
        return _LAST[0]
    _LAST[:] = [Reference(text, inputs)]
    return _LAST[0]


_LAST: list[Reference] = []


def _attempt(
    module: ModuleOp, passes: Sequence[ModulePass], reference: Reference
) -> Failure | None:
    try:
        says_so = run_pipeline(module, passes).changed
    except Exception as problem:  # noqa: BLE001  # the point of the tool
        return Failure("", cause(problem), traceback.format_exc())
    if print_module(module, LONG) == reference.text:
        return None  # what is the same computes the same
    if not says_so:
        return Failure("", "changed the module and says it did not")
    _ = (
        reference.results
    )  # raises where the module itself does not run, which is no failure of a pass
    return _checked(module, reference, is_exact(passes))


def _checked(module: ModuleOp, reference: Reference, exact: bool) -> Failure | None:
    """What is wrong with a module that passes have left."""
    try:
        if wrong := verify_module(module):
            return Failure(
                "", f"verifier: {wrong[0].code} {_constraint(str(wrong[0]))}", str(wrong[0])
            )
        printed = print_module(module, LONG)
        again = parse_module(printed, "printed.hlo")
        if (second := print_module(again, LONG)) != printed:
            lines = zip(printed.splitlines(), second.splitlines(), strict=False)
            first = next((f"{a}\n{b}" for a, b in lines if a != b), "")
            return Failure("", "the print is not read as itself", first)
        results = run_module(module, reference.inputs, check=True)
    except Exception as problem:  # noqa: BLE001
        return Failure("", f"afterwards: {cause(problem)}", traceback.format_exc())
    difference = reference.difference(results, exact)
    return Failure("", "values differ", difference) if difference else None


class _Watch:
    """Looks at the module after each pass, and remembers the first failure."""

    def __init__(self, reference: Reference) -> None:
        self.reference, self.exact = reference, True
        self.failure: Failure | None = None
        self.running: list[str] = []
        self.text = reference.text

    def started(self, pipeline: str, passes: Sequence[ModulePass], module: ModuleOp) -> None:
        """Nothing to do."""

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """Remembers which pass runs."""
        self.running.append(pass_.name)

    def after(self, pass_: ModulePass, module: ModuleOp, changed: bool, seconds: float) -> None:
        """Checks what an innermost pass has left."""
        self.running.pop()
        if isinstance(pass_, PipelinePass) or self.failure is not None:
            return
        text = print_module(module, LONG)
        if text != self.text and not changed:
            self.failure = Failure(pass_.name, "changed the module and says it did not")
        self.text = text
        if not changed:
            return
        self.exact = self.exact and is_exact([pass_])
        failure = _checked(module, self.reference, self.exact)
        if failure is not None:
            self.failure = Failure(pass_.name, failure.cause, failure.detail)


def _by_pass(
    module: ModuleOp, passes: Sequence[ModulePass], reference: Reference, failure: Failure
) -> Failure:
    """The failure of the first pass that left something wrong."""
    watch = _Watch(reference)
    try:
        run_pipeline(module, passes, (watch,))
    except Exception as problem:  # noqa: BLE001
        if watch.failure is None:
            return Failure(watch.running[-1], cause(problem), traceback.format_exc())
    return watch.failure or Failure("all together", failure.cause, failure.detail)


def _constraint(message: str) -> str:
    """`[add_c3]` of a diagnostic."""
    first = message.split("\n", 1)[0]
    return first[first.rfind("[") :] if first.endswith("]") else first.split(": ", 1)[-1]


@contextmanager
def bounded() -> Generator[None]:
    """Raises `TimeoutError` once within it, when it has taken `SECONDS` of CPU time."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def cause(problem: BaseException) -> str:
    """An exception without what varies from case to case."""
    if isinstance(problem, TimeoutError):
        return f"takes more than {SECONDS} s"
    last = traceback.extract_tb(problem.__traceback__)[-1]
    code = f" {problem.code}" if isinstance(problem, HloError) else ""
    return (
        f"{type(problem).__name__}{code} at {Path(last.filename).name}:{last.lineno} in {last.name}"
    )


# ---------------------------------------------------------------- values


class Reference:
    """What a module computes before passes, and how far each result may move."""

    def __init__(self, text: str, inputs: Sequence[Any]) -> None:
        """Raises `HloError` for a module that is not read, and `ValueError` for one that does not verify."""
        self.source, self.inputs = text, inputs
        self.module = module = parse_module(text, "case.hlo")
        if wrong := verify_module(module):
            raise ValueError(f"the module does not verify: {wrong[0]}")
        self.text = print_module(module, LONG)

    @cached_property
    def results(self) -> list[Array]:
        """Of the module itself; passes that change nothing need none. Raises `HloError`."""
        return [np.asarray(r) for r in run_module(self.module, self.inputs, check=True)]

    def judge(self, pipeline: str) -> Failure | None:
        """What is wrong with a pipeline on the module; None if nothing is."""
        passes = passes_of(pipeline)
        with bounded():
            failure = _attempt(clone_module(self.module), passes, self)
        with bounded():
            return failure and _by_pass(clone_module(self.module), passes, self, failure)

    def difference(self, got: Sequence[Any], exact: bool) -> str:
        """How results differ; empty if they do not."""
        arrays = [np.asarray(g) for g in got]
        if [(a.dtype, a.shape) for a in arrays] != [(a.dtype, a.shape) for a in self.results]:
            return "other shapes"
        wrong = [k for k, a in enumerate(self.results) if not rounding.same(a, arrays[k])]
        if wrong and not exact:
            moved = rounding.movements(self.module, self.inputs, self.results)
            wrong = [
                k
                for k in wrong
                if not rounding.within(self.results[k], arrays[k], moved[k].furthest)
            ]
        return "\n".join(
            f"result {k}: {self.results[k].tolist()} before,\n          {arrays[k].tolist()} after"
            for k in wrong
        )


def outcome(
    seed: int, pipelines: Sequence[str], number: int
) -> tuple[int, Case, Failure | str | None]:
    """A case and its failure, or why its module cannot be used."""
    case = make_case(seed, number, pipelines)
    try:
        return number, case, judge(case.text, case.inputs, case.pipeline)
    except (HloError, ValueError, TimeoutError) as problem:
        return number, case, str(problem)
