"""A module as steps on buffers: between HLO and the one function that runs it.

Positions count steps in the order they are written, loops and branches included, so that two buffers
of the arena may share memory when their spans do not meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape


@dataclass(eq=False, slots=True)
class Buffer:
    """Memory for one array."""

    shape: ArrayShape
    size: int
    """Bytes."""
    parameter: int | None = None
    """Number among the leaves of the parameters."""
    result: int | None = None
    """Number among the leaves of the result."""
    literal: Literal | None = None
    """Of constants."""
    workspace: bool = False
    """Whether a kernel uses it within one call, to pack operands in, say."""
    alias: Buffer | None = None
    """Of a result: the parameter whose memory it may be given, by the module's `input_output_alias`."""
    part_of: Buffer | None = None
    """The buffer that it is a part of, at a place that a `Slice` computes."""
    home: Buffer | None = None
    """The buffer whose memory this one has, once buffers share."""
    offset: int = 0
    """In the arena, of all others."""
    first: int = -1
    last: int = -1
    """Positions between which it is in use."""

    @property
    def in_arena(self) -> bool:
        """Whether it is temporary."""
        fixed = self.parameter, self.result, self.literal
        return fixed == (None, None, None) and self.part_of is None

    def move_in(self) -> None:
        """Takes over the place of `home`."""
        home = self.home
        if home is not None and home is not self:
            self.parameter, self.result, self.literal = home.parameter, home.result, home.literal
            self.offset, self.first, self.last = home.offset, home.first, home.last

    def used_at(self, position: int) -> None:
        """Widens its span, and that of what it is a part of."""
        if self.part_of is not None:
            self.part_of.used_at(position)
        if self.first < 0:
            self.first = position
        self.last = max(self.last, position)


@dataclass(frozen=True, slots=True)
class Held:
    """A value that memory does not know, such as an array of dynamic size: Python holds it."""

    slot: int
    """Its number in a run."""


Tree: TypeAlias = "Buffer | Held | tuple[Tree, ...]"
"""Where a value is: of a tuple its elements."""


def leaves(tree: Tree) -> Iterator[Buffer]:
    """Buffers of a value in order."""
    if isinstance(tree, Buffer):
        yield tree
    elif isinstance(tree, tuple):
        for part in tree:
            yield from leaves(part)


def held(tree: Tree) -> Iterator[Held]:
    """What Python holds of a value, in order."""
    if isinstance(tree, Held):
        yield tree
    elif isinstance(tree, tuple):
        for part in tree:
            yield from held(part)


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """An instruction that Python runs, with where its operands are and its result goes."""

    op: Instruction | None
    """None for a move: the operand, a tuple, becomes the result."""
    operands: Sequence[Tree]
    result: Tree
    is_native: bool = False
    """Whether machine code runs it after all: a collective."""
    is_split: bool = False
    """Whether other steps stand between its start and its end."""


@dataclass(slots=True)
class Kernel:
    """Calls a kernel: reads and writes are its arguments in order."""

    name: str
    reads: Sequence[Buffer]
    writes: Sequence[Buffer]


@dataclass(slots=True)
class Copy:
    """Copies bytes."""

    source: Buffer
    target: Buffer


@dataclass(slots=True)
class Slice:
    """Makes `target` a part of `source`: what stands at the sum of the starts."""

    source: Buffer
    target: Buffer
    starts: Sequence[tuple[Buffer | int, int, int]]
    """A number or the i32 that holds it, the greatest one, to which it is clamped, and its unit in bytes."""

    @property
    def reads(self) -> list[Buffer]:
        """What has to be there."""
        return [self.source, *(s for s, _, _ in self.starts if isinstance(s, Buffer))]


@dataclass(slots=True, eq=False)
class Strands:
    """Rounds of a loop that may run at the same time; see `strands.py`."""

    counter: Buffer
    """An i32, which a round finds its number in."""
    first: int
    """What the counter begins with."""
    rounds: int
    count: int = 1
    """How many strands take the rounds, each a range of them."""
    private: Sequence[Buffer] = ()
    """What each strand has for itself, at its offset in the strand's part of `room`."""
    size: int = 0
    """Bytes of a strand's part."""
    room: Buffer | None = None


@dataclass(slots=True)
class While:
    """Runs `body` as long as `test`, after `condition`, holds a true."""

    condition: list[Step]
    test: Buffer
    body: list[Step]
    strands: Strands | None = None


@dataclass(slots=True)
class Repeat:
    """Runs `body` a number of times that is known, once at least."""

    rounds: int
    body: list[Step]


@dataclass(slots=True)
class Branch:
    """Runs one of the lists: by a pred the first when true, else the one of that number.

    A number out of range takes the last one.
    """

    selector: Buffer
    by_pred: bool
    """What the selector holds; its buffer may be that of something else by now."""
    branches: list[list[Step]] = field(default_factory=list["list[Step]"])


@dataclass(slots=True)
class Callback:
    """Calls back into Python, which runs the plan's site of that number."""

    site: int
    reads: Sequence[Buffer]
    writes: Sequence[Buffer]


@dataclass(slots=True)
class Collective(Callback):
    """A collective, or one end of it, that machine code runs: devices publish where `reads` and `writes` are, and
    then copy and fold what the others have published."""

    starts: bool = True
    """Whether this step publishes."""
    ends: bool = True
    """Whether it waits for the others, and moves the data."""
    folds: Sequence[str] = ()
    """By operand, the kernel that folds a block of two arrays."""


Step: TypeAlias = Kernel | Slice | Copy | While | Repeat | Branch | Callback


def all_steps(steps: Sequence[Step]) -> Iterator[Step]:
    """Steps with those inside of loops and branches."""
    stack = [*reversed(steps)]
    while stack:
        step = stack.pop()
        yield step
        if isinstance(step, While):
            stack += reversed(step.body)
            stack += reversed(step.condition)
        elif isinstance(step, Repeat):
            stack += reversed(step.body)
        elif isinstance(step, Branch):
            for branch in reversed(step.branches):
                stack += reversed(branch)


def named(step: Step) -> Sequence[Buffer]:
    """The buffers that a step itself reads and writes, not those inside it."""
    match step:
        case Kernel() | Callback():
            return (*step.reads, *step.writes)
        case Copy():
            return (step.source, step.target)
        case Slice():
            return step.reads
        case While():
            return (step.test,)
        case Repeat():
            return ()
        case Branch():
            return (step.selector,)


def touched(steps: Sequence[Step]) -> Iterator[Buffer]:
    """The buffers that steps read and write, each as often as it is named."""
    for step in all_steps(steps):
        yield from named(step)


_SHORT_BYTES = 32 << 10
"""What straight code moves in a few microseconds; taking turns with other threads costs about one."""


def is_long(steps: Sequence[Step]) -> bool:
    """Whether a run may take more than some ten microseconds, going by the bytes it moves."""
    stack: list[Sequence[Step]] = [steps]
    while stack:
        moved = 0
        for step in stack.pop():
            match step:
                case Kernel():
                    if step.name.startswith(("dot", "convolution", "sort", "reduce_window")):
                        return True
                    moved += sum(b.size for b in (*step.reads, *step.writes))
                case Copy():
                    moved += step.source.size
                case While() | Repeat() | Callback():
                    return True
                case Branch():
                    stack += step.branches
                case Slice():
                    pass
        if moved > _SHORT_BYTES:
            return True
    return False
