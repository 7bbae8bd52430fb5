"""Functions of a kernel, prepared once and run as often as the grid has steps.

Every value of a function has a slot; an operation becomes its meaning with the slots it reads and
writes. Regions of structured operations share the slots of their function.
"""

# Lambdas that numpy takes have parameters of no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from mlirhlo.diagnostics import HloError, error
from mlirhlo.importing import LATE
from mlirhlo.mosaic.attributes import name_of, string_of
from mlirhlo.mosaic.interpreter.poison import follow, yielded
from mlirhlo.mosaic.interpreter.problems import place_of, unfit, unknown
from mlirhlo.mosaic.interpreter.registry import MEANINGS, RegionRun, Run

with LATE:
    from mlirhlo.mosaic.interpreter.ops import branches


if TYPE_CHECKING:
    from mlirhlo.mosaic.interpreter.core import Core
    from mlirhlo.mosaic.timeline.figures import Chip

FAMILIES = (
    "arith",
    "math",
    "control_flow",
    "vector",
    "vector_shape",
    "memref",
    "tpu_memory",
    "tpu_registers",
    "tpu_vector",
    "tpu_packing",
    "tpu_matmul",
    "tpu_mxu",
    "tpu_dma",
    "tpu_misc",
)
"""The modules with meanings."""

_YIELDS = frozenset(
    {"scf.yield", "scf.condition", "scf.reduce", "func.return", "tpu.yield", "vector.yield"}
)
_MALFORMED = (ValueError, IndexError, TypeError, KeyError, AttributeError)
"""What operands or attributes of a wrong kind raise: nothing verifies a kernel before it runs."""

Step: TypeAlias = "tuple[Run, tuple[int, ...], int | tuple[int, ...], Operation]"


def load_meanings() -> None:
    """Imports the families, so that all meanings are registered."""
    for family in FAMILIES:
        import_module(f"mlirhlo.mosaic.interpreter.ops.{family}")


@dataclass(slots=True, eq=False)
class Frame:
    """One call of a function."""

    core: Core
    env: list[Any]


@dataclass(slots=True, eq=False)
class _Jump:
    """A `cf.br`, or one way of a conditional branch."""

    block: Block
    operands: tuple[int, ...]


@dataclass(slots=True, eq=False)
class _Code:
    """A prepared block."""

    arguments: tuple[int, ...]
    steps: list[Step] = field(default_factory=list[Step])
    results: tuple[int, ...] = ()
    """Slots that the terminator yields."""
    end: Operation | None = None
    """The terminator."""
    choose: Callable[[Frame], _Jump] | None = None
    """Where a branch goes; None when the terminator yields."""


class Function:
    """A prepared function; called with the core and its arguments, gives its results."""

    def __init__(self, op: Operation, kernel: Functions) -> None:
        self._kernel = kernel
        self._chip = kernel.chip
        self._slots: dict[SSAValue, int] = {}
        self._constants: dict[int, Any] = {}
        """By slot; they are there when a call begins."""
        self._run = self.region(op.regions[0])
        self._start = [self._constants.get(slot) for slot in range(len(self._slots))]

    def __call__(self, core: Core, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Runs the function on numpy scalars and references."""
        return self._run(Frame(core, self._start.copy()), arguments)

    def function(self, name: str) -> Callable[[Core, tuple[Any, ...]], tuple[Any, ...]]:
        """Another function, prepared at its first call."""
        kernel = self._kernel
        return lambda core, arguments: kernel[name](core, arguments)  # noqa: PLW0108  (functions may call each other)

    def _slot(self, value: SSAValue) -> int:
        return self._slots.setdefault(value, len(self._slots))

    def region(self, region: Region) -> RegionRun:
        """The prepared region. Raises `HloError` HLO0701 for operations without a meaning."""
        codes = {block: self._block(block) for block in region.blocks}
        entry = codes[region.blocks[0]] if codes else _Code(())
        if len(codes) > 1:
            return _graph(entry, codes)

        def run(frame: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
            env = frame.env
            for slot, value in zip(entry.arguments, arguments, strict=False):
                env[slot] = value
            _perform(entry.steps, frame)
            if frame.core.poison and entry.end is not None:
                yielded(frame, entry.end)
            return tuple([env[slot] for slot in entry.results])

        return run

    def _block(self, block: Block) -> _Code:
        code = _Code(tuple(self._slot(argument) for argument in block.args))
        for op in block.ops:
            name = name_of(op)
            operands = tuple(self._slot(value) for value in op.operands)
            if name in _YIELDS:
                code.results, code.end = operands, op
            elif name == "cf.br":
                jump, code.end = _Jump(op.successors[0], operands), op
                code.choose = lambda _frame, jump=jump: jump
            elif name in ("cf.cond_br", "cf.switch"):
                ways, code.end = branches.chooser(op), op
                jumps = [
                    _Jump(block, tuple(operands[i] for i in taken)) for block, taken in ways.ways
                ]
                slot = operands[0]
                code.choose = lambda frame, pick=ways.pick, jumps=jumps, slot=slot: jumps[
                    pick(frame.env[slot])
                ]
            else:
                step = self._step(op, name, operands)
                if name == "arith.constant" and self._chip is None:
                    self._constants[self._slot(op.results[0])] = step[0](None)
                else:
                    code.steps.append(step)
        if self._chip is not None:
            from mlirhlo.mosaic.timeline.blocks import timed

            code.steps = timed(code.steps, self._chip)
        return code

    def _step(self, op: Operation, name: str, operands: tuple[int, ...]) -> Step:
        prepare = MEANINGS.get(name)
        if prepare is None:
            raise unknown(op)
        try:
            run = prepare(op, self)
        except _MALFORMED as problem:
            raise unfit(op, f"it is not as it should be: {problem}") from problem
        slots = tuple(self._slot(value) for value in op.results)
        return run, operands, slots[0] if len(slots) == 1 else slots, op


def _perform(steps: Sequence[Step], frame: Frame) -> None:
    env, poison = frame.env, frame.core.poison
    for run, operands, results, op in steps:
        try:
            value = run(frame, *[env[slot] for slot in operands])
            if poison:
                follow(frame, op, [env[slot] for slot in operands], value)
        except HloError as problem:
            raise problem.at(place_of(op)) from None
        except (*_MALFORMED, OverflowError, ZeroDivisionError) as problem:
            raise error(
                "HLO0702",
                f"{name_of(op)} cannot be computed: {problem}",
                place_of(op),
                help="check the kernel's shapes and types; the module may have been changed",
            ) from problem
        if isinstance(results, int):
            env[results] = value
        elif results:
            for slot, part in zip(results, value, strict=True):
                env[slot] = part


def _graph(entry: _Code, codes: dict[Block, _Code]) -> RegionRun:
    """A region of several blocks: follows branches until a terminator yields."""

    def run(frame: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        env, code = frame.env, entry
        while True:
            for slot, value in zip(code.arguments, arguments, strict=True):
                env[slot] = value
            _perform(code.steps, frame)
            if frame.core.poison and code.end is not None:
                yielded(frame, code.end)
            if code.choose is None:
                return tuple([env[slot] for slot in code.results])
            jump = code.choose(frame)
            arguments = tuple([env[slot] for slot in jump.operands])
            code = codes[jump.block]

    return run


class Functions:
    """The functions of a kernel's module by their names; with a chip, running them takes its time."""

    def __init__(self, module: ModuleOp, chip: Chip | None = None) -> None:
        load_meanings()
        self.chip = chip
        self.ops: dict[str, Operation] = {
            string_of(op, "sym_name") or "": op
            for op in module.body.ops
            if name_of(op) == "func.func"
        }
        self._prepared: dict[str, Function] = {}

    def __getitem__(self, name: str) -> Function:
        """The function. Raises `HloError` HLO0700 when there is none of that name, HLO0701 for
        operations in it without a meaning.
        """
        found = self._prepared.get(name)
        if found is None:
            if name not in self.ops:
                raise error("HLO0700", f"the kernel has no function @{name}")
            found = self._prepared[name] = Function(self.ops[name], self)
        return found
