"""What one kernel does, by kind of work, and how long a chip takes for it.

A kernel is an instruction of a computation that runs, with all that is fused in it. Bytes, operations and elementary
functions are XLA's counts. Where a chip's description has measured costs, those of the kinds of work are summed; else
the kernel takes as long as the slower of memory and arithmetic (the roofline), beside the time of its launch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import log2, prod

from mlirhlo.analysis.cost.counts import BYTES, FLOPS, TRANSCENDENTALS, Counts
from mlirhlo.debug.cost.chip import Chip
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, leaves

_LANES = ((16, "wide"), (4, "medium"), (0, "thin"))
"""Products by the size of the result's last dimension, which lanes share."""


@dataclass(slots=True)
class Work:
    """What a kernel does."""

    bytes: float = 0.0
    flops: float = 0.0
    transcendentals: float = 0.0
    matrix: dict[str, float] = field(default_factory=dict[str, float])
    """Operations of products, by the element type of the operands."""
    vector: dict[str, float] = field(default_factory=dict[str, float])
    """Other operations, by element type."""
    kinds: dict[str, float] = field(default_factory=dict[str, float])
    """Units of the kinds of work that costs are measured for."""


@dataclass(frozen=True, slots=True)
class Duration:
    """Time of a kernel and what it is bound by."""

    nanoseconds: float
    bound: str
    """`memory`, `compute`, `launch`, `link` or `measured`."""


def kernel_work(
    op: Instruction, inside: Sequence[Instruction], counts: Mapping[Instruction, Counts]
) -> Work:
    """Work of a kernel. `inside`: the fused instructions, or the instruction itself."""
    own = counts.get(op, Counts())
    work = Work(max(own.get(BYTES), 0.0), max(own.get(FLOPS), 0.0), own.get(TRANSCENDENTALS))
    work.transcendentals = max(work.transcendentals, 0.0)
    vector, matrix = defaultdict[str, float](float), defaultdict[str, float](float)
    kinds = defaultdict[str, float](float)
    for inner in inside:
        name = inner.opcode.name
        if inner.opcode.free or inner.opcode.is_trivial:
            continue
        known = counts.get(inner, Counts())
        flops = max(known.get(FLOPS), 0.0)
        element = _element(inner)
        if inner.opcode.contracts:
            matrix[element] += flops
        else:
            vector[element] += flops
        for kind, units in measured_kinds(inner, name, element, flops):
            kinds[kind] += units
    kinds |= {"launch": 1.0, "byte": work.bytes}
    work.matrix, work.vector, work.kinds = dict(matrix), dict(vector), dict(kinds)
    return work


def _element(op: Instruction) -> str:
    """Element type that an instruction computes in: that of its first operand."""
    shapes = [leaf for s in (*op.input_shapes[:1], op.shape) for _, leaf in leaves(s)]
    return next((s.element_type.name for s in shapes if isinstance(s, ArrayShape)), "f32")


def _arrays(*shapes: Shape) -> list[ArrayShape]:
    return [leaf for s in shapes for _, leaf in leaves(s) if isinstance(leaf, ArrayShape)]


def _elements(*shapes: Shape) -> float:
    return float(sum(prod(s.dimensions) for s in _arrays(*shapes)))


def measured_kinds(
    op: Instruction, name: str, element: str, flops: float
) -> list[tuple[str, float]]:
    """Kinds of work of an instruction, with the units of each."""
    elements = _elements(op.shape)
    result = next(iter(_arrays(op.shape)), None)
    if op.opcode.contracts:
        return _product(op, name, element, flops, elements, result)
    work = op.opcode.work
    is_function = op.opcode.elementwise and work and not op.opcode.moves
    names = {element, *(s.element_type.name for s in _arrays(op.shape))}
    is_complex = any(n.startswith("c") for n in names)
    scale = max((s.element_type.byte_size for s in _arrays(op.shape)), default=4) / 4
    if is_function or (is_complex and name == "abs"):
        if is_complex:
            return [("complex-function", elements)]
        is_whole = element[0] in "su" and name == "divide"
        return [("whole-division" if is_whole else work, elements * max(scale, 1))]
    if name == "reduce":
        return _fold(op, elements, result)
    if work == "window":
        return [("window", flops + elements)]
    if name == "sort":
        operand = _arrays(*op.input_shapes)[0]
        rounds = log2(max(max(operand.dimensions, default=2), 2))
        kind = "sort" if len(op.input_shapes) == 1 else "sort-several"
        return [(kind, prod(operand.dimensions) * rounds)]
    if name == "scatter":
        return [("scatter", _elements(op.input_shapes[0]))]
    if name == "dynamic-update-slice":
        return [("move", _elements(op.input_shapes[1]))]
    if op.opcode.library or name == "custom-call":
        return [(name, max(flops, elements))]
    return [(work or _simple(name, names, is_complex), elements)]


def _simple(name: str, names: Set[str], is_complex: bool) -> str:
    """Kind of an instruction that is one or a few machine instructions an element."""
    is_tiny = any(n.startswith(("f8", "f4")) for n in names)
    is_narrow = any(n in ("bf16", "f16") or n.startswith(("s4", "u4", "s2", "u2")) for n in names)
    if name == "convert":
        return "convert-tiny" if is_tiny else "convert-narrow" if is_narrow else "convert"
    if is_tiny or is_narrow:
        return "tiny" if is_tiny else "narrow"
    if is_complex:
        return "complex"
    return "simple-64" if names & {"f64", "s64", "u64"} else "simple"


def _product(
    op: Instruction,
    name: str,
    element: str,
    flops: float,
    elements: float,
    result: ArrayShape | None,
) -> list[tuple[str, float]]:
    if not flops:
        return []
    last = result.dimensions[-1] if result is not None and result.dimensions else 1
    lanes = next(word for least, word in _LANES if last >= least)
    group = element if element in ("f32", "f64") else "narrow"
    kind = "convolution" if name == "convolution" else "dot"
    found = [(f"{kind}-{group}-{lanes}", flops / 2), (f"{kind}-result", elements)]
    return (
        found if kind == "convolution" else [*found, ("dot-operand", _elements(*op.input_shapes))]
    )


def _fold(op: Instruction, elements: float, result: ArrayShape | None) -> list[tuple[str, float]]:
    """A reduction: along rows, across them, or of several operands at once."""
    operand, count = _arrays(*op.input_shapes)[0], len(_arrays(op.shape))
    size = float(prod(operand.dimensions))
    kept = (
        operand.rank > 0
        and result is not None
        and result.dimensions[-1:] == operand.dimensions[-1:]
    )
    if count > 1:
        return [("fold-several", 4 * count * size), ("fold-result", elements)]
    return [("fold-columns" if kept else "fold-rows", size), ("fold-result", elements)]


def duration(work: Work, chip: Chip) -> Duration:
    """How long a chip takes for a kernel."""
    if chip.nanoseconds:
        total = sum(chip.nanoseconds.get(kind, 0.0) * n for kind, n in work.kinds.items())
        return Duration(total, "measured")
    moving = 1e9 * work.bytes / chip.memory_bandwidth
    computing = sum(flops / chip.matrix_rate(t) for t, flops in work.matrix.items())
    computing += sum(flops / chip.vector_rate(t) for t, flops in work.vector.items())
    functions = work.transcendentals * chip.transcendental_operations
    computing = 1e9 * (computing + functions / chip.vector_rate("f32"))
    longest = max(moving, computing)
    if longest < chip.launch_ns:
        return Duration(longest + chip.launch_ns, "launch")
    return Duration(longest + chip.launch_ns, "memory" if moving >= computing else "compute")
