"""Kinds of work of a kernel, for which a chip's description may have measured costs.

Machine code works on vectors of the innermost dimensions that every instruction of a kernel runs through alike, so that
a row of three elements costs what a row of sixteen does: units are elements of whole vectors. What an elementwise
opcode costs depends on it and on the element type: `sine-f32`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import ceil, log2, prod

from mlirhlo.analysis.cost.counts import FLOPS, Counts
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import BroadcastOp, ConvolutionOp, ReduceOp, SortOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, leaves

_LANES = 16
"""Elements of 32 bits in a vector."""
_GROUPS = {"bf16": "half", "f16": "half", "f32": "f32", "f64": "f64"}

FIXED = ("launch", "library", "row", "row-instruction")
"""Kinds that neither memory nor arithmetic hides."""

Kinds = dict[str, float]


def part_of(kind: str) -> str:
    """`launch`, `memory` or `compute`: a kernel takes the first, and the longer of the others."""
    return "launch" if kind in FIXED else "memory" if kind.startswith("byte-") else "compute"


def work_kinds(
    inside: Sequence[Instruction], counts: Mapping[Instruction, Counts], moved: Mapping[str, float]
) -> Kinds:
    """Units of each kind of work. `inside`: the instructions of a kernel; `moved`: its bytes, by cache."""
    kinds = defaultdict[str, float](float, moved, launch=1.0)
    working = [op for op in inside if not op.opcode.free]
    axes = min((_axes_alike(op) for op in working), default=1 << 30)
    rows = 1.0
    for op in working:
        shape = _widest(op)
        if shape is None or not shape.element_count:
            continue
        row = prod(_sizes(shape)[-axes:])
        elements = shape.element_count / row * _padded(row, shape)
        if axes < len(_sizes(shape)):
            rows = max(rows, shape.element_count / row)
        for kind, units in _kinds(op, shape, elements, counts.get(op, Counts())).items():
            kinds[kind] += units
    kinds["row"] = rows
    kinds["row-instruction"] = rows * len(working)
    return {kind: units for kind, units in kinds.items() if units}


def _arrays(*shapes: Shape) -> list[ArrayShape]:
    return [leaf for s in shapes for _, leaf in leaves(s) if isinstance(leaf, ArrayShape)]


def _widest(op: Instruction) -> ArrayShape | None:
    """The array that an instruction's loops run over: what a reduction reads, an update, else the largest result."""
    name, inputs = op.opcode.name, op.input_shapes
    over = (
        inputs[:1]
        if name == "reduce"
        else inputs[1:2]
        if name == "dynamic-update-slice"
        else (op.shape,)
    )
    shapes = _arrays(*over)
    return max(shapes, key=lambda s: s.element_count, default=None)


def _sizes(shape: ArrayShape) -> Sequence[int]:
    """Dimensions without those of one element, over which no loop runs."""
    return [size for size in shape.dimensions if size != 1]


def _padded(row: float, shape: ArrayShape) -> float:
    """Elements of the vectors that a row takes."""
    lanes = max(_LANES * 4 // max(shape.element_type.byte_size, 4), 1)
    return ceil(row / lanes) * lanes


def _axes_alike(op: Instruction) -> int:
    """Innermost dimensions that an instruction runs through as if they were one."""
    if isinstance(op, BroadcastOp):
        return _alike(set(op.dimensions), _arrays(op.shape)[0], _elements(*op.input_shapes))
    if isinstance(op, ReduceOp):
        return _alike(set(op.dimensions), _arrays(*op.input_shapes)[0], 2)
    if op.opcode.elementwise or op.opcode.keeps_bytes or op.opcode.name == "fusion":
        return 1 << 30
    if op.opcode.name == "iota":
        return 1
    return 1 if op.opcode.moves or op.opcode.contracts or op.opcode.work else 1 << 30


def _alike(named: set[int], shape: ArrayShape, elements: float) -> int:
    """Innermost dimensions that are all named, or all not."""
    is_named = [d in named for d, size in enumerate(shape.dimensions) if size != 1]
    if elements <= 1 or len(set(is_named)) <= 1:
        return 1 << 30
    return next(k for k, flag in enumerate(reversed(is_named)) if flag != is_named[-1])


def _elements(*shapes: Shape) -> float:
    return float(sum(s.element_count for s in _arrays(*shapes)))


def _group(element: str) -> str:
    """Element types that cost alike."""
    if element in _GROUPS or element.startswith("c"):
        return _GROUPS.get(element, "complex")
    type_ = PRIMITIVE_TYPES[element]
    if element[0] == "f":
        return "tiny"
    return "s64" if type_.bits == 64 else "s4" if type_.bits < 8 and element != "pred" else "s32"


def _element(op: Instruction) -> str:
    """Element type that an instruction computes in: that of its last operand, which no predicate is."""
    shapes = _arrays(*op.input_shapes[-1:], op.shape)
    return shapes[0].element_type.name if shapes else "f32"


def _kinds(op: Instruction, shape: ArrayShape, elements: float, counts: Counts) -> Kinds:
    """Kinds of one instruction. `elements`: of the vectors that hold its widest array."""
    name, group = op.opcode.name, _group(_element(op))
    flops = max(counts.get(FLOPS), 0.0)
    if op.opcode.contracts:
        return _product(op, group, flops, shape) if flops else {}
    if name in _OTHERS:
        return _OTHERS[name](op, group, elements)
    if name == "convert":
        result = _group(shape.element_type.name)
        return {f"convert-{group}-{result}" if group != result else f"convert-{group}": elements}
    if op.opcode.elementwise:
        is_plain = op.opcode.is_plain and group != "complex"
        return {f"{'plain' if is_plain else name}-{group}": elements}
    if op.opcode.work == "window":
        return {"window": flops + elements, f"{name}-row": shape.element_count / _last(shape)}
    if op.opcode.library:
        return {name: max(flops, elements), "library": 1.0}
    if op.opcode.is_trivial and name != "iota":
        return {}
    return {name: elements, f"{name}-row": shape.element_count / _last(shape)}


def _last(shape: ArrayShape) -> int:
    """Size of the innermost dimension that a loop runs over."""
    return next(reversed(_sizes(shape)), 1)


def _product(op: Instruction, group: str, flops: float, shape: ArrayShape) -> Kinds:
    """Vectors hold columns of the result, or of what is summed where that is less work."""
    kind, columns = op.opcode.name, _last(shape)
    others = shape.element_count / columns
    summed = flops / 2 / shape.element_count
    by_columns = others * summed * _padded(columns, shape)
    if kind == "convolution":
        return _convolution(op, group, flops, shape)
    is_thin = columns < _LANES // 2
    by_sums = others * columns * _padded(summed, shape)
    return {
        f"dot-{group}{'-thin' if is_thin else ''}": min(by_columns, by_sums)
        if is_thin
        else by_columns,
        "dot-result": others * _padded(columns, shape),
        "dot-operand": _elements(*op.input_shapes),
        "dot-row": others,
    }


def _convolution(op: Instruction, group: str, flops: float, shape: ArrayShape) -> Kinds:
    """Vectors hold output features, where these are the innermost dimension and of one group."""
    assert isinstance(op, ConvolutionOp)
    labels = op.dim_labels
    assert labels is not None
    features = shape.dimensions[labels.output_feature_dimension]
    kernel = _arrays(op.input_shapes[1])[0]
    pixels = shape.element_count / features
    taps = prod(kernel.dimensions[d] for d in labels.kernel_spatial_dimensions)
    summed = flops / 2 / features
    grouped = max(op.feature_group_count, op.batch_group_count) > 1
    if grouped or labels.output_feature_dimension != shape.rank - 1:
        return {
            "convolution-scalar": flops / 2,
            "convolution-row": pixels,
            "convolution-tap": pixels * taps,
        }
    return {
        f"convolution-{group}": summed * _padded(features, shape),
        "convolution-row": pixels,
        "convolution-tap": pixels * taps,
        "convolution-step": summed,
    }


def _fold(op: Instruction, group: str, elements: float) -> Kinds:
    """A reduction: along rows, across them, or of several operands at once."""
    operand, results = _arrays(*op.input_shapes)[0], _arrays(op.shape)
    if len(results) > 1:
        return {"fold-several": len(results) * elements, "fold-row": results[0].element_count}
    assert isinstance(op, ReduceOp)
    is_kept = operand.rank - 1 not in op.dimensions
    if is_kept:
        return {f"fold-columns-{group}": elements}
    return {f"fold-rows-{group}": elements, "fold-row": results[0].element_count}


def _sort(op: Instruction, group: str, elements: float) -> Kinds:
    assert isinstance(op, SortOp)
    operand = _arrays(*op.input_shapes)[0]
    length = prod(operand.dimensions[d] for d in op.dimensions)
    kind = f"sort-{group}" if len(op.input_shapes) == 1 else "sort-several"
    count = operand.element_count
    # A network sorts short rows: its comparators grow with the square of the logarithm.
    return {kind: count * log2(max(length, 2)), "sort-row": count / max(length, 1)}


def _scatter(op: Instruction, group: str, elements: float) -> Kinds:
    inputs = _arrays(*op.input_shapes)
    updates = sum(s.element_count for s in inputs[-len(inputs) // 3 :])
    indices = inputs[len(inputs) // 3]
    return {
        "scatter": float(updates),
        "scatter-row": float(indices.element_count),
        "scatter-copy": float(sum(s.element_count for s in _arrays(op.shape))),
    }


def _update(op: Instruction, group: str, elements: float) -> Kinds:
    return {op.opcode.name: _elements(op.input_shapes[1])}


def _solve(op: Instruction, group: str, elements: float) -> Kinds:
    """A factorisation or a solution: cubic work, and steps that wait for each other."""
    name, matrix = op.opcode.name, _arrays(*op.input_shapes)[0]
    size = _last(matrix)
    steps = matrix.element_count / max(size, 1)
    return {name: elements * size, f"{name}-step": steps, f"{name}-row": elements}


_OTHERS: Mapping[str, Callable[[Instruction, str, float], Kinds]] = {
    "reduce": _fold,
    "sort": _sort,
    "scatter": _scatter,
    "dynamic-update-slice": _update,
    "cholesky": _solve,
    "triangular-solve": _solve,
}
"""Opcodes whose work is not that of their result's elements."""
