"""Rules and passes from outside of the project: what they do wrong is told as theirs.

Their rules run under an `Author`, which checks what they build and replace, knows which rule wrote which
instruction, and stops rules that undo each other. Our own rules run without.
"""

from __future__ import annotations

import inspect
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import fields
from dataclasses import replace as with_fields
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any, cast

from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from mlirhlo.analysis.effects import SideEffects
from mlirhlo.analysis.shape_inference import ConstraintError, check_declared
from mlirhlo.diagnostics import Diagnostic, HloError, Place, error
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import Shape, compatible
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.importing import LATE
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rewriter import InstructionT, Rewriter

with LATE:
    from mlirhlo.analysis import verifier


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from mlirhlo.rewrites.rule import Rule

MAX_GENERATION = 1000
"""Rewrites in a row of which each matches what the one before it wrote; more of them never end."""

LIMIT_S = 15
"""Processor time that a file of passes may take to be imported, and a rule for one instruction."""

_OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep


def is_foreign(definition: type | FunctionType | Callable[..., Any]) -> bool:
    """Whether a class or function is none of this project's."""
    return not f"{definition.__module__}.".startswith("mlirhlo.")


def place_of(definition: type | Callable[..., Any]) -> Place:
    """The file and line of a class or function."""
    try:
        return Place(inspect.getfile(definition), inspect.getsourcelines(definition)[1])
    except (OSError, TypeError):  # typed in, or changed since
        code = getattr(definition, "__code__", None)
        if code is not None:
            return Place(code.co_filename, code.co_firstlineno)
        return Place(definition.__module__, what=definition.__name__)


def _running_place(rule: Rule) -> Place:
    """The line of the author's code that is running; the rule's own where none is."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_OURS) and not name.startswith("<"):
            return Place(name, frame.f_lineno)
        if frame.f_code is Author.rewrite.__code__:
            break
        frame = frame.f_back
    return place_of(rule.function)


class Author:
    """Watches the rules of one driver: which one runs, what it wrote, whether it ever ends."""

    def __init__(self, pass_name: str, trace: Trace) -> None:
        self._pass_name, self._trace = pass_name, trace
        self._rule: Rule | None = None
        self._generations: dict[Operation, int] = {}
        self._generation = 0
        self._touched: list[Instruction] = []
        self._last: deque[Rule] = deque(maxlen=64)

    def watched(self, rules: Iterable[Rule]) -> list[Rule]:
        """The same rules, run by this author."""

        def run(rule: Rule) -> Callable[[Any, Rewriter], None]:
            return lambda op, rewriter: self.rewrite(rule, op, rewriter)

        return [with_fields(each, function=run(each)) for each in rules]

    def rewrite(self, rule: Rule, op: Instruction, rewriter: Rewriter) -> None:
        """Tries `rule`. Raises what it raises, with its name, and `HloError`: HLO0416, HLO0417."""
        self._rule, self._touched = rule, [op]
        self._generation = self._generations.get(op, 0) + 1
        try:
            with limited(self._too_long):
                rule.function(op, rewriter)
            for each in self._touched:
                if message := _attribute_fault(each):
                    raise self.wrong(message)
        except ConstraintError as problem:
            raise self.wrong(str(problem)) from problem
        except Exception as problem:
            if not isinstance(problem, HloError):
                problem.add_note(f"in {self.named(rule)}")
            raise
        finally:
            self._rule = None
        if rewriter.has_done_action:
            self._last.append(rule)
            if op.parent is not None:
                self._generations[op] = self._generation
            if self._generation > MAX_GENERATION:
                raise self._endless()

    def named(self, rule: Rule) -> str:
        """The rule and its pass."""
        return f"rule '{rule.name}' of pass '{self._pass_name}'" if self._pass_name else rule.name

    def wrong(self, message: str) -> HloError:
        """The error HLO0416 of the rule that is running, at its line."""
        rule = self._rule
        assert rule is not None
        place = _running_place(rule)
        return error("HLO0416", f"{self.named(rule)}: {message}", place, rule.equation)

    def _too_long(self) -> None:
        raise self.wrong(f"does not end: {LIMIT_S} s on one instruction")

    def _endless(self) -> HloError:
        names = dict.fromkeys(self._last)
        shown = ", ".join(f"'{rule.name}'" for rule in names)
        first = next(iter(names))
        message = (
            f"pass '{self._pass_name}': stopped after {MAX_GENERATION} rewrites in a row of what"
            f" {'rule' if len(names) == 1 else 'rules'} {shown} wrote"
        )
        notes = [(f"{rule.name}: {rule.equation}", place_of(rule.function)) for rule in names]
        advice = (
            "let a rule match only what no rule writes; the option fuel=N stops after N rewrites"
        )
        return HloError(
            Diagnostic("HLO0417", message, place_of(first.function), tuple(notes), advice)
        )

    def wrote(self, op: Operation) -> None:
        """An instruction was inserted or changed."""
        if self._rule is not None and isinstance(op, Instruction):
            self._trace.written_by[op] = self._rule.name, place_of(self._rule.function)
            self._touched.append(op)

    def inserted(self, op: Operation | Block) -> None:
        """As a listener of insertions."""
        if isinstance(op, Instruction):
            self._generations[op] = self._generation
            self.wrote(op)

    def removed(self, op: Operation) -> None:
        """As a listener of removals."""
        self._generations.pop(op, None)
        self._trace.written_by.pop(op, None)


class CheckedRewriter(Rewriter):
    """A rewriter that refuses, as HLO0416, what would leave an invalid module."""

    def __init__(
        self, author: Author, op: Operation, effects: Callable[[], SideEffects], options: object
    ) -> None:
        super().__init__(op, effects, options)
        self._author = author
        self.operation_insertion_handler.append(author.inserted)
        self.operation_modification_handler.append(author.wrote)
        self.operation_removal_handler.append(author.removed)

    def build(
        self,
        cls: type[InstructionT],
        *operands: SSAValue | Instruction,
        shape: Shape | None = None,
        **properties: Attribute | int | str | Sequence[int],
    ) -> InstructionT:
        """As of `Rewriter`; errors name the rule."""
        name = getattr(cls, "__name__", str(cls))
        if not (isinstance(cls, type) and issubclass(cls, Instruction)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise self._author.wrong(f"build: expects a class of instructions, got {name}")
        for index, operand in enumerate(operands):
            if not isinstance(operand, SSAValue | Instruction):  # pyright: ignore[reportUnnecessaryIsInstance]
                got = type(operand).__name__
                raise self._author.wrong(f"build {name}: operand {index} is a {got}, not a value")
        try:
            new_op = super().build(cls, *operands, shape=shape, **properties)
        except HloError:
            raise
        except Exception as problem:
            message = f"build {name}: {str(problem) or type(problem).__name__}"
            raise self._author.wrong(message) from problem
        if fault := _attribute_fault(new_op):
            raise self._author.wrong(f"build {fault}")
        return new_op

    def replace(
        self,
        op: Operation,
        new_ops: Operation | Sequence[Operation],
        new_results: Sequence[SSAValue | None] | None = None,
        safe_erase: bool = True,
    ) -> None:
        """As of `Rewriter`, where the replacement fits."""
        new = _operations(new_ops)
        message: str | None = f"expects instructions, got {new_ops!r:.40}"
        if new is None or (message := _misfit(op, new, new_results)):
            raise self._author.wrong(f"replace {_name(op)}: {message}")
        super().replace(op, new, new_results, safe_erase)

    def erase(self, op: Operation, safe_erase: bool = True) -> None:
        """As of `Rewriter`, where nothing reads the instruction."""
        for result in op.results:
            if (use := result.first_use) is not None:
                raise self._author.wrong(f"erase {_name(op)}: {_name(use.operation)} reads it")
        super().erase(op, safe_erase)


def _name(op: object) -> str:
    if isinstance(op, Instruction):
        named = op.instruction_name
        return f"%{named}" if named else f"a new {op.opcode.name}"
    return "the root of a computation" if isinstance(op, Operation) else type(op).__name__


def _operations(given: object) -> tuple[Operation, ...] | None:
    """The operations that an author handed over; None where it is something else."""
    parts = cast("Sequence[object]", given if isinstance(given, list | tuple) else (given,))
    found = tuple(part for part in parts if isinstance(part, Operation))
    return found if len(found) == len(parts) else None


def _misfit(
    op: Operation, new: Sequence[Operation], results: Sequence[SSAValue | None] | None
) -> str | None:
    """Why instructions and values cannot stand for `op`."""
    if op.parent is None:
        return "it is in no computation any more"
    known = set(new)
    for each in new:
        if message := _fault(each):
            return message
        if each.parent is not None:
            return f"{_name(each)} is in the module already; use replace_by_value"
        for operand in each.operands:
            owner = operand.owner
            if isinstance(owner, Operation) and owner.parent is None and owner not in known:
                return f"{_name(each)} reads {_name(owner)}, which is in no computation: pass both"
    values = results if results is not None else new[-1].results if new else ()
    if len(values) != len(op.results):
        return f"{len(values)} values for {len(op.results)}"
    for old, value in zip(op.results, values, strict=True):
        if value is None:
            continue
        if value is old:
            return "it would stand for itself"
        if not isinstance(value, SSAValue):  # pyright: ignore[reportUnnecessaryIsInstance]
            return f"expects a value, got {type(value).__name__}"
        was, now = shape_of(old.type), shape_of(value.type)
        if not compatible(was, now):
            return f"its shape is {was}, that of the replacement {now}"
        if isinstance(value.owner, Operation) and value.owner not in known:
            if value.owner.parent is not op.parent:
                return f"{_name(value.owner)} is in no computation with it"
    return None


_FIELDS = frozenset(field.name for field in fields(Operation)) | {"text_source"}
"""What an instruction holds as an object; its attributes are in `properties`."""


def _attribute_fault(op: Instruction) -> str | None:
    """Which attribute an instruction has been given that its opcode has not, or not of this kind."""
    for name in vars(op).keys() - _FIELDS:
        advice = f"attributes are set in op.properties[{name!r}], where the opcode has them"
        return (
            f"{_name(op)}: {type(op).__name__} has no attribute {name!r} that can be set; {advice}"
        )
    known = op.property_order
    for name in op.properties:
        if name not in known and op.opcode.name != "parameter":
            has = (
                ", ".join(spec.property_name for spec in op.opcode.attributes) or "none of its own"
            )
            return f"{_name(op)}: {op.opcode.name} has no attribute {name!r} (it has: {has})"
    try:
        op.verify_()
    except VerifyException as problem:
        return f"{_name(op)}: {problem}"
    return None


def _fault(op: Operation) -> str | None:
    """What is wrong with a new instruction by itself."""
    if isinstance(op, Instruction) and (message := _attribute_fault(op)):
        return message
    if not isinstance(op, Instruction) or op.calling_keys:
        return None
    try:
        check_declared(op.opcode.name, op.shape, op.input_shapes, op.properties, {})
    except Exception as problem:  # noqa: BLE001  properties may hold anything
        return f"{_name(op)}: {str(problem) or type(problem).__name__}"
    return None


@contextmanager
def limited(act: Callable[[], None], seconds: float | None = None) -> Generator[None]:
    """Calls `act`, which may raise, when code of an author's has run for so much processor time.

    Only the main thread can be interrupted; elsewhere nothing happens.
    """
    if (
        not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return
    outer = signal.signal(signal.SIGVTALRM, lambda number, frame: act())
    left, _ = signal.setitimer(signal.ITIMER_VIRTUAL, seconds or LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, left)
        signal.signal(signal.SIGVTALRM, outer)


def run_foreign(pass_: HloPass, run: Callable[[], object]) -> bool:
    """What a pass from outside reports. Raises `HloError` HLO0415, and what it raises."""
    cls = type(pass_)
    try:
        changed = run()
    except TypeError as problem:  # of another number of parameters
        if _last_foreign(problem) is None:
            raise _failed(cls, pass_.name, str(problem)) from problem
        raise
    if not isinstance(changed, bool):
        got = "None" if changed is None else type(changed).__name__
        raise _failed(cls, pass_.name, f"run returns {got}, not whether it changed the module")
    return changed


def verify_foreign(pass_: ModulePass, module: ModuleOp, trace: Trace) -> None:
    """Raises `HloError` where a pass from outside leaves an invalid module: HLO0512, HLO0415 for attributes."""
    try:
        for op in module.walk():
            if isinstance(op, Instruction) and (fault := _attribute_fault(op)):
                raise _failed(type(pass_), pass_.name, fault)
        problems = verifier.verify_module(module, authors=trace.written_by)
    except HloError:
        raise
    except Exception as problem:
        message = f"what it leaves cannot be verified: {type(problem).__name__}: {problem}"
        raise _failed(type(pass_), pass_.name, message) from problem
    if problems:
        message = f"the module is not valid any more after {pass_.name}"
        raise HloError(Diagnostic("HLO0512", message, place_of(type(pass_))), *problems)


def _failed(cls: type, name: str, message: str) -> HloError:
    return error("HLO0415", f"pass '{name}': {message}", place_of(cls))


def _last_foreign(problem: BaseException) -> FrameType | None:
    """The last frame of the traceback that is of the author's code."""
    trace, found = problem.__traceback__, None
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith(_OURS):
            found = trace.tb_frame
        trace = trace.tb_next
    return found
