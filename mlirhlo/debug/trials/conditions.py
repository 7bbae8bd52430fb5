"""Conditions on modules: results differ, a diagnostic, a crash, slower than, or what a command says."""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from mlirhlo.debug.trials import rounding
from mlirhlo.debug.trials.modules import fake_arguments as fake_arguments
from mlirhlo.debug.trials.modules import load_module as load_module
from mlirhlo.debug.trials.modules import verify as verify
from mlirhlo.debug.trials.sides import Side
from mlirhlo.diagnostics import HloError, error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.debug.fuzz import checks
    from mlirhlo.rewrites import registry


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

Array: TypeAlias = np.ndarray[Any, Any]
Kind: TypeAlias = Literal["differs", "diagnostic", "crashes", "slower", "command", "finding"]
KINDS: tuple[Kind, ...] = ("differs", "diagnostic", "crashes", "slower", "command", "finding")
DEFECTS = frozenset(
    {"HLO0415", "HLO0512", "HLO0413", "HLO0412", "HLO0433", "HLO0434", "HLO0441", "HLO0901"}
)
"""Codes that say that a compiler or a pass is at fault, not the module."""
REPEATS = 3
"""Runs of each side whose fastest counts for `slower`."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What is asked of a module."""

    kind: Kind
    sides: tuple[str, ...] = ("Interpreter",)
    """The tested side, and what it is compared with."""
    code: str = ""
    """Of `diagnostic`."""
    factor: float = 2.0
    """Of `slower`: the tested side takes this many times as long."""
    command: str = ""
    """Of `command`: it ends with 0 for the file that it is given. Of `finding`: a check of `hlo-fuzz`, which finds
    something."""
    seeds: tuple[int, ...] = (42,)
    """Of fake inputs; the first has small numbers, each further one numbers of all magnitudes."""
    load_passes: tuple[str, ...] = ()
    """Python files with passes."""

    def checked(self) -> Condition:
        """The condition itself. Raises `HloError` for sides and commands that cannot be."""
        load_passes(self.load_passes)
        for text in self.sides:
            Side.parse(text).pipeline()
        if self.kind == "command" and not shlex.split(self.command):
            raise error("HLO0860", "the condition is a command, and no command is given")
        return self

    def as_json(self) -> dict[str, Any]:
        """Plain data, for other processes."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Condition:
        """The inverse of `as_json`."""
        return Condition(**fields_of(data))


def fields_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a dataclass as JSON brings them, its tuples as tuples."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a condition holds, and why; two modules fail alike when their causes are equal."""

    holds: bool
    cause: str = ""
    detail: str = field(default="", compare=False)


def evaluate(text: str, condition: Mapping[str, Any], name: str = "module.hlo") -> dict[str, Any]:
    """The verdict on a module's text as plain data; what worker processes run."""
    try:
        return asdict(judge(text, Condition.from_json(condition), name))
    except MemoryError:
        raise
    except Exception as problem:  # noqa: BLE001  a module that makes us fail is an answer, too
        return asdict(Verdict(False, _signature(problem), traceback.format_exc()))


def judge(text: str, condition: Condition, name: str = "module.hlo") -> Verdict:
    """The verdict on a module's text. A module that does not verify meets no condition but a command's
    and a diagnostic's."""
    load_passes(condition.load_passes)
    if condition.kind == "command":
        return _commanded(text, condition.command, name)
    if condition.kind == "finding":
        found = checks.check(text, condition.command)
        if found is None:
            return Verdict(False)
        return Verdict(True, f"{found.culprit}: {found.cause}", found.detail)
    try:
        module = load_module(text, name)
        if condition.kind == "diagnostic":
            return _diagnosed(module, condition)
        verify(module, name)
    except HloError as problem:
        code = problem.code
        return Verdict(
            condition.kind == "diagnostic" and code == condition.code, code, str(problem)
        )
    if condition.kind == "crashes":
        return _crashed(text, condition, name)
    arguments = [
        fake_arguments(module, seed, large=k > 0) for k, seed in enumerate(condition.seeds)
    ]
    if condition.kind == "slower":
        return _slower(text, condition, name, arguments[0])
    for inputs in arguments:
        verdict = _differs(text, condition, name, inputs)
        if verdict.holds:
            return verdict
    return Verdict(False)


_LOADED: set[str] = set()


def load_passes(paths: Sequence[str]) -> None:
    """Loads files of passes, each once a process."""
    for path in paths:
        if path not in _LOADED:
            registry.load_pass_file(path)
            _LOADED.add(path)


# ---------------------------------------------------------------- kinds


def _commanded(text: str, command: str, name: str) -> Verdict:
    with tempfile.TemporaryDirectory(prefix="hlo-try-") as folder:
        path = os.path.join(folder, os.path.basename(name))
        with open(path, "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
        words = shlex.split(command)
        words = [w.replace("{}", path) for w in words] if "{}" in command else [*words, path]
        null = subprocess.DEVNULL
        try:
            code = subprocess.run(
                words, stdin=null, stdout=null, stderr=null, check=False
            ).returncode
        except OSError as problem:
            return Verdict(False, f"cannot start '{words[0]}': {problem.strerror}")
    return Verdict(code == 0, f"exit {code}")


def _diagnosed(module: ModuleOp, condition: Condition) -> Verdict:
    verify(module, "module.hlo")
    side = Side.parse(condition.sides[0])
    side.run(module, fake_arguments(module, condition.seeds[0]))
    return Verdict(False)


def _crashed(text: str, condition: Condition, name: str) -> Verdict:
    """Any exception without a code; the worker that dies of it is the other way to crash."""
    side = Side.parse(condition.sides[0])
    module = load_module(text, name)
    try:
        side.run(module, fake_arguments(module, condition.seeds[0]))
    except Exception as problem:  # noqa: BLE001  the question is whether there is any
        holds, detail = failure_of(problem, condition)
        return Verdict(holds, _signature(problem), detail)
    return Verdict(False)


def failure_of(problem: Exception, condition: Condition) -> tuple[bool, str]:
    """Whether an exception is what a condition looks for, and what to say of it."""
    if condition.kind == "crashes":
        is_defect = not isinstance(problem, HloError) or problem.code in DEFECTS
        return is_defect, f"{_signature(problem)}: {problem}".split("\n")[0]
    if condition.kind == "diagnostic" and isinstance(problem, HloError):
        return problem.code == condition.code, str(problem)
    return False, str(problem)


def _signature(problem: BaseException) -> str:
    """An exception without what varies from module to module."""
    inner: BaseException = problem
    while inner.__cause__ is not None:
        inner = inner.__cause__
    last = traceback.extract_tb(inner.__traceback__)[-1]
    code = f" {problem.code}" if isinstance(problem, HloError) else ""
    where = f"{os.path.basename(last.filename)}:{last.lineno}"
    return f"{type(inner).__name__}{code} at {where}"


def _slower(text: str, condition: Condition, name: str, inputs: Sequence[Any]) -> Verdict:
    tested, reference = (_fastest(text, side, name, inputs) for side in condition.sides[:2])
    return Verdict(
        tested > condition.factor * reference and tested > 1e-4,
        "slower",
        f"{condition.sides[0]} takes {tested:.4g} s, {condition.sides[1]} {reference:.4g} s",
    )


def _fastest(text: str, side: str, name: str, inputs: Sequence[Any]) -> float:
    times: list[float] = []
    for _ in range(REPEATS):
        module = load_module(text, name)
        start = time.perf_counter()
        Side.parse(side).run(module, inputs)
        times.append(time.perf_counter() - start)
    return min(times)


def _differs(text: str, condition: Condition, name: str, inputs: Sequence[Any]) -> Verdict:
    results: list[list[Array] | str] = []
    for side in condition.sides[:2]:
        try:
            results.append(Side.parse(side).run(load_module(text, name), inputs))
        except HloError as problem:
            results.append(f"{side}: {problem.code}")
    tested, reference = results
    if isinstance(reference, str):
        return Verdict(False, reference)
    if isinstance(tested, str):
        return Verdict(True, tested)
    module = load_module(text, name)
    found = difference(reference, tested, lambda: rounding.movements(module, inputs, reference))
    return Verdict(bool(found), "results differ" if found else "", found)


def difference(
    expected: Sequence[Array],
    actual: Sequence[Array],
    movements: Callable[[], Sequence[rounding.Movement]],
) -> str:
    """How results differ by more than rounding explains; empty if they do not.

    `movements()` is how far each may move; it is called only for results that are not the same, bit by bit.
    """
    shapes = [[(str(a.dtype), a.shape) for a in side] for side in (expected, actual)]
    if shapes[0] != shapes[1]:
        return f"results are {_listed(shapes[1])}, expected {_listed(shapes[0])}"
    wrong = [k for k, a in enumerate(expected) if not rounding.same(a, actual[k])]
    if not wrong:
        return ""
    allowed = movements()
    wrong = [k for k in wrong if not allowed[k].allows(expected[k], actual[k])]
    return "\n".join(f"result {k}: {_described(expected[k], actual[k])}" for k in wrong)


def _listed(shapes: Sequence[tuple[str, tuple[int, ...]]]) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for dtype, shape in shapes[:4]) or "none"


def _described(expected: Array, actual: Array) -> str:
    wide: Any = np.complex128 if expected.dtype.kind == "c" else np.float64
    a, b = expected.astype(wide).reshape(-1), actual.astype(wide).reshape(-1)
    with np.errstate(all="ignore"):
        far = np.where(np.isfinite(a - b), np.abs(a - b), np.inf)
        far = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, far)
    at = int(np.argmax(far))
    index = ",".join(str(int(i)) for i in np.unravel_index(at, expected.shape))
    count = int((far > 0).sum())
    got, want = actual.reshape(-1)[at], expected.reshape(-1)[at]
    return f"{count} of {a.size} elements differ, most at [{index}]: {got}, expected {want}"


__all__ = ["KINDS", "Condition", "Verdict", "difference", "evaluate", "judge"]
