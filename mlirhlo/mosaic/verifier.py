"""Constraints of kernels, numbered by operation: what has to hold whatever the target.

`CONSTRAINTS` has a row for each: its number, what it demands, and the check, which gives what is wrong
with an operation, or None. `verify_kernel` raises at the first operation that breaks one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlirhlo.diagnostics import error
from mlirhlo.dialects.tpu.attributes import DotDimensionNumbersAttr
from mlirhlo.dialects.tpu.op_classes import KernelOp
from mlirhlo.dialects.tpu.types import DmaSemaphoreType, SemaphoreType
from mlirhlo.mosaic.attributes import (
    attribute_of,
    case_of,
    dictionaries_of,
    integer_of,
    integers,
    integers_of,
    name_of,
    plain,
)
from mlirhlo.mosaic.target.places import source_place
from mlirhlo.mosaic.target.tiling import element_name, is_memref, shape_in, space_of, width_in_bits

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

Check = Callable[[Any], "str | None"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """One thing that holds of every operation of a name."""

    number: str
    """The operation and a number: `matmul_c1`."""
    operation: str
    demands: str
    check: Check


def verify_kernel(module: ModuleOp) -> None:
    """Checks every operation. Raises `HloError` HLO0730 with the number of the constraint."""
    for op in module.walk():
        for constraint in CONSTRAINTS.get(name_of(op), ()):
            problem = constraint.check(op)
            if problem is not None:
                raise error(
                    "HLO0730",
                    f"{name_of(op)}: {problem} ({constraint.number})",
                    source_place(op),
                    help=constraint.demands,
                )


def _equal_elements(op: Operation) -> str | None:
    base = next((v for v in op.operands if is_memref(v.type)), None)
    values = [v for v in (*op.results, *op.operands[:1]) if str(v.type).startswith("vector")]
    if base is None or not values:
        return None
    found, wanted = element_name(values[0].type), element_name(base.type)
    return None if found == wanted else f"a vector of {found} in a reference of {wanted}"


def _index_count(op: Operation) -> str | None:
    base = next((v for v in op.operands if is_memref(v.type)), None)
    if base is None:
        return None
    at = list(op.operands).index(base) + 1
    indices = [v for v in op.operands[at:] if str(v.type) in ("index", "i32")]
    rank = len(shape_in(base.type))
    return None if len(indices) == rank else f"{len(indices)} indices for {rank} dimensions"


def _no_strides(op: KernelOp) -> str | None:
    strides = integers_of(op, "strides")
    return f"it has the strides {list(strides)}" if strides else None


def _in_vmem(op: Operation) -> str | None:
    base = next((v for v in op.operands if is_memref(v.type)), None)
    stated = base is not None and "memory_space<" in str(base.type)
    if base is None or not stated or space_of(base.type) in ("vmem", "vmem_shared"):
        return None
    return f"the reference is in {space_of(base.type).upper()}"


def _inside(op: Operation) -> str | None:
    """Static indices leave room for the vector."""
    from mlirhlo.mosaic.target.divisible import constant_of

    base = next((v for v in op.operands if is_memref(v.type)), None)
    vectors = [v for v in (*op.results, *op.operands[:1]) if str(v.type).startswith("vector")]
    if base is None or not vectors:
        return None
    shape, sizes = shape_in(base.type), shape_in(vectors[0].type)
    at = list(op.operands).index(base) + 1
    sizes = (1,) * (len(shape) - len(sizes)) + sizes
    for dim, (index, size, total) in enumerate(
        zip(op.operands[at : at + len(shape)], sizes, shape, strict=False)
    ):
        known = constant_of(index)
        if known is None or total < 0:
            continue
        if known < 0 or known + size > total:
            return f"elements {known} to {known + size} of dimension {dim}, which has {total}"
    return None


def _strides_at_least(least: int) -> Check:
    def check(op: KernelOp) -> str | None:
        strides = integers_of(op, "strides") or ()
        found = [stride for stride in strides if stride < least]
        return f"a stride of {found[0]}" if found else None

    return check


def _stride_count(op: KernelOp) -> str | None:
    strides, rank = integers_of(op, "strides") or (), len(shape_in(op.base.type))
    return None if len(strides) == rank else f"{len(strides)} strides for {rank} dimensions"


def _iota_dims(op: KernelOp) -> str | None:
    dims, rank = integers_of(op, "dimensions") or (), len(shape_in(op.results[0].type))
    if len(set(dims)) != len(dims):
        return f"dimension {max(dims, key=dims.count)} is counted twice"
    bad = [dim for dim in dims if not 0 <= dim < rank]
    return f"dimension {bad[0]} of {rank}" if bad else None


def _iota_element(op: KernelOp) -> str | None:
    element = element_name(op.results[0].type)
    return None if element.startswith(("i", "s", "u")) else f"it counts in {element}"


def _concatenate_count(op: KernelOp) -> str | None:
    return None if len(op.operands) >= 2 else f"{len(op.operands)} operands"


def _concatenate_shapes(op: KernelOp) -> str | None:
    dim, result = integer_of(op, "dimension"), shape_in(op.results[0].type)
    if not 0 <= dim < len(result):
        return f"dimension {dim} of {len(result)}"
    total = 0
    for source in op.operands:
        shape = shape_in(source.type)
        if len(shape) != len(result) or any(
            a != b for at, (a, b) in enumerate(zip(shape, result, strict=True)) if at != dim
        ):
            return f"a part of shape {list(shape)} in a result of {list(result)}"
        total += shape[dim]
    return None if total == result[dim] else f"parts of {total} elements in {result[dim]}"


def _permutation(op: KernelOp) -> str | None:
    permutation = integers_of(op, "permutation") or ()
    before, after = shape_in(op.operands[0].type), shape_in(op.results[0].type)
    if sorted(permutation) != list(range(len(before))):
        return f"{list(permutation)} is no permutation of {len(before)} dimensions"
    wanted = tuple(before[dim] for dim in permutation)
    return None if wanted == after else f"the result is {list(after)}, not {list(wanted)}"


def _count(op: Operation) -> str | None:
    from math import prod

    before, after = prod(shape_in(op.operands[0].type)), prod(shape_in(op.results[0].type))
    return None if before == after else f"{before} elements become {after}"


def _rotate_pair(op: KernelOp) -> str | None:
    stated = [name for name in ("stride", "stride_dimension") if attribute_of(op, name) is not None]
    return f"it has {stated[0]} alone" if len(stated) == 1 else None


def _rotate_dims(op: KernelOp) -> str | None:
    rank = len(shape_in(op.operands[0].type))
    for name in ("dimension", "stride_dimension"):
        if attribute_of(op, name) is not None and not 0 <= integer_of(op, name) < rank:
            return f"{name} {integer_of(op, name)} of {rank}"
    return None


def _gather_shapes(op: KernelOp) -> str | None:
    indices, result = shape_in(op.operands[1].type), shape_in(op.results[0].type)
    return None if indices == result else f"indices of {list(indices)} for {list(result)}"


def _bitcast_rows(op: Operation) -> str | None:
    before, after = op.operands[0].type, op.results[0].type
    old, new = width_in_bits(element_name(before)), width_in_bits(element_name(after))
    a, b = shape_in(before), shape_in(after)
    if old == new:
        return None if a == b else f"{list(a)} becomes {list(b)} at one width"
    if len(a) < 2 or len(b) != len(a):
        return "another width needs two dimensions"
    if a[-2] * old != b[-2] * new or (*a[:-2], a[-1]) != (*b[:-2], b[-1]):
        return f"{list(a)} of {old} bits is not {list(b)} of {new}"
    return None


def _matmul_acc(op: KernelOp) -> str | None:
    acc, result = op.operands[2].type, op.results[0].type
    return None if acc == result else f"an accumulator of {acc} for {result}"


def _matmul_bits(op: KernelOp) -> str | None:
    element = element_name(op.results[0].type)
    return None if width_in_bits(element) == 32 else f"it accumulates in {element}"


def _matmul_order(op: KernelOp) -> str | None:
    numbers = attribute_of(op, "dimension_numbers")
    if not isinstance(numbers, DotDimensionNumbersAttr):
        return None
    wanted = numbers.data.wanted_order()
    found = numbers.data.output_order
    return None if found == wanted else f"the output order {list(found)} is not {list(wanted)}"


def _matmul_sizes(op: KernelOp) -> str | None:
    numbers = attribute_of(op, "dimension_numbers")
    if not isinstance(numbers, DotDimensionNumbersAttr):
        return None
    data, lhs, rhs = numbers.data, shape_in(op.operands[0].type), shape_in(op.operands[1].type)
    for left, right in (
        (data.lhs_contracting, data.rhs_contracting),
        (data.lhs_batch, data.rhs_batch),
    ):
        for a, b in zip(left, right, strict=False):
            if a >= len(lhs) or b >= len(rhs) or lhs[a] != rhs[b]:
                return f"dimension {a} of {list(lhs)} against {b} of {list(rhs)}"
    return None


def _matmul_cover(op: KernelOp) -> str | None:
    numbers = attribute_of(op, "dimension_numbers")
    if not isinstance(numbers, DotDimensionNumbersAttr):
        return None
    data = numbers.data
    for side, operand, dims in (
        ("lhs", 0, (*data.lhs_contracting, *data.lhs_non_contracting, *data.lhs_batch)),
        ("rhs", 1, (*data.rhs_contracting, *data.rhs_non_contracting, *data.rhs_batch)),
    ):
        rank = len(shape_in(op.operands[operand].type))
        if sorted(dims) != list(range(rank)):
            return f"{side} has {rank} dimensions, and its numbers name {sorted(dims)}"
    return None


def _reduce_index_rank(op: KernelOp) -> str | None:
    before, after = shape_in(op.operands[0].type), shape_in(op.results[0].type)
    axis = integer_of(op, "axis")
    if len(before) < 2:
        return f"a vector of rank {len(before)}"
    if not 0 <= axis < len(before):
        return f"axis {axis} of {len(before)}"
    wanted = before[:axis] + before[axis + 1 :]
    return None if after == wanted else f"the result is {list(after)}, not {list(wanted)}"


def _reduce_index_kind(op: KernelOp) -> str | None:
    kind = case_of(attribute_of(op, "kind"))
    return None if kind in ("arg_max", "arg_min") else f"'{kind}' has no place"


def _f32(op: KernelOp) -> str | None:
    element = element_name(op.operands[0].type)
    return None if element in ("f32", "bf16") else f"of {element}"


def _weird(op: KernelOp) -> str | None:
    element = element_name(op.results[0].type)
    return None if element == "i1" else f"it gives {element}"


def _multiple(op: KernelOp) -> str | None:
    multiple = integer_of(op, "multiple")
    return None if multiple >= 1 else f"a multiple of {multiple}"


def _promise(op: KernelOp) -> str | None:
    from mlirhlo.mosaic.target.divisible import constant_of

    known, multiple = constant_of(op.operands[0]), integer_of(op, "multiple", 1)
    if known is None or multiple < 1 or known % multiple == 0:
        return None
    return f"{known} is no multiple of {multiple}"


def _squeeze(op: KernelOp) -> str | None:
    before, after = shape_in(op.operands[0].type), shape_in(op.results[0].type)
    at = len(after) - 1
    for size in reversed(before):
        if at >= 0 and size == after[at]:
            at -= 1
        elif size != 1:
            return f"{list(before)} is not {list(after)} with dimensions of one dropped"
    return None if at < 0 else f"{list(after)} has more than {list(before)}"


def _slice(op: KernelOp) -> str | None:
    before, after = shape_in(op.operands[0].type), shape_in(op.results[0].type)
    if len(before) != len(after):
        return f"rank {len(before)} becomes {len(after)}"
    bad = [dim for dim, (a, b) in enumerate(zip(before, after, strict=True)) if 0 <= a < b]
    return f"dimension {bad[0]} grows from {before[bad[0]]} to {after[bad[0]]}" if bad else None


def _same_memory(op: KernelOp) -> str | None:
    before, after = space_of(op.operands[0].type), space_of(op.results[0].type)
    return None if before == after else f"{before.upper()} becomes {after.upper()}"


def _dma_types(op: KernelOp) -> str | None:
    source, target = op.source.type, op.target.type
    if element_name(source) != element_name(target):
        return f"{element_name(source)} is copied to {element_name(target)}"
    a, b = shape_in(source), shape_in(target)
    return None if a == b else f"{list(a)} is copied to {list(b)}"


def _dma_target_semaphore(op: KernelOp) -> str | None:
    return "it has no target semaphore" if op.target_semaphore is None else None


def _dma_source_semaphore(op: KernelOp) -> str | None:
    is_remote = op.device_id is not None or op.core_id is not None
    if is_remote == (op.source_semaphore is not None):
        return None
    return "it is remote, without a source semaphore" if is_remote else "it is local, with one"


def _priority(op: KernelOp) -> str | None:
    priority = integer_of(op, "priority")
    if priority not in (0, 1):
        return f"priority {priority}"
    return "priority 1 of a remote copy" if priority and op.device_id is not None else None


def _is_semaphore(op: KernelOp) -> str | None:
    type_ = op.semaphore.type
    element = getattr(type_, "element_type", None)
    if not isinstance(element, SemaphoreType | DmaSemaphoreType):
        return f"{type_} is no semaphore"
    return None if not shape_in(type_) else f"{list(shape_in(type_))} semaphores"


def _core_type(op: KernelOp) -> str | None:
    function = op.parent_op()
    while function is not None and name_of(function) != "func.func":
        function = function.parent_op()
    core = "" if function is None else case_of(attribute_of(function, "tpu.core_type"))
    return "it runs on a TensorCore" if core in ("", "tc") else None


def _windows(op: Operation) -> str | None:
    bounds = integers_of(op, "iteration_bounds") or ()
    if not bounds:
        return None
    semantics = attribute_of(op, "dimension_semantics")
    count = len(plain(semantics)) if semantics is not None else 0
    return None if count == len(bounds) else f"{count} dimension_semantics for {len(bounds)} bounds"


def _window_shapes(op: Operation) -> str | None:
    bounds = integers_of(op, "iteration_bounds") or ()
    types = [a.type for a in op.regions[0].blocks[0].args] if op.regions[0].blocks else []
    first = len(bounds) + integer_of(op, "scalar_prefetch")
    for at, window in enumerate(dictionaries_of(op, "window_params") or ()):
        if "window_bounds" not in window or first + at >= len(types):
            continue
        type_ = types[first + at]
        block = integers(window["window_bounds"])
        # Dimensions of one may be dropped in the body.
        if is_memref(type_) and _without_ones(shape_in(type_)) != _without_ones(block):
            return f"window {at} is {list(block)}, the reference {list(shape_in(type_))}"
    return None


def _without_ones(shape: tuple[int, ...]) -> list[int]:
    return [size for size in shape if size != 1]


def _rows() -> list[Constraint]:
    rows: list[Constraint] = []

    def demand(names: str, number: int, demands: str, check: Check) -> None:
        for name in names.split():
            short = name.partition(".")[2]
            rows.append(Constraint(f"{short}_c{number}", name, demands, check))

    access = "tpu.vector_load tpu.vector_store tpu.strided_load tpu.strided_store"
    demand(access, 1, "the vector has the reference's element type", _equal_elements)
    demand("tpu.vector_load tpu.vector_store", 2, "the vector is in VMEM", _in_vmem)
    demand(
        "tpu.vector_load tpu.vector_store", 3, "strides are empty: use strided_load", _no_strides
    )
    demand("tpu.vector_load tpu.vector_store", 4, "there is an index a dimension", _index_count)
    demand("tpu.vector_load tpu.vector_store", 5, "known indices stay inside", _inside)
    demand(
        "vector.load vector.store",
        1,
        "the vector has the reference's element type",
        _equal_elements,
    )
    demand("vector.load vector.store", 2, "known indices stay inside", _inside)
    demand("tpu.strided_load", 2, "strides are 0 or more", _strides_at_least(0))
    demand("tpu.strided_store", 2, "strides are 1 or more", _strides_at_least(1))
    demand("tpu.strided_load tpu.strided_store", 3, "there is a stride a dimension", _stride_count)
    demand("tpu.iota", 1, "each dimension is counted once", _iota_dims)
    demand("tpu.iota", 2, "it counts in integers", _iota_element)
    demand("tpu.concatenate", 1, "there are two operands or more", _concatenate_count)
    demand("tpu.concatenate", 2, "parts differ in one dimension only", _concatenate_shapes)
    demand("tpu.transpose vector.transpose", 1, "the result is the permuted shape", _permutation)
    demand("tpu.reshape vector.shape_cast", 1, "the number of elements stays", _count)
    demand("tpu.memref_reshape", 1, "the number of elements stays", _count)
    demand("tpu.dynamic_rotate", 1, "stride and stride_dimension come together", _rotate_pair)
    demand("tpu.dynamic_rotate", 2, "dimensions are those of the vector", _rotate_dims)
    demand("tpu.dynamic_gather", 1, "indices have the shape of the result", _gather_shapes)
    demand("tpu.bitcast tpu.memref_bitcast", 1, "rows times bits stay", _bitcast_rows)
    demand("tpu.matmul", 1, "the accumulator has the type of the result", _matmul_acc)
    demand("tpu.matmul", 2, "it accumulates in 32 bits", _matmul_bits)
    demand("tpu.matmul", 3, "the output is batch, free of lhs, free of rhs", _matmul_order)
    demand("tpu.matmul", 4, "contracted and batched sizes are equal", _matmul_sizes)
    demand("tpu.matmul", 5, "every dimension has one role", _matmul_cover)
    demand("tpu.reduce_index", 1, "the reduced dimension goes", _reduce_index_rank)
    demand("tpu.reduce_index", 2, "the kind is arg_max or arg_min", _reduce_index_kind)
    demand("tpu.reciprocal", 1, "it is of f32, or approximately of bf16", _f32)
    demand("tpu.weird", 1, "it gives a mask", _weird)
    demand("tpu.assume_multiple", 1, "the multiple is 1 or more", _multiple)
    demand("tpu.assume_multiple", 2, "a known value keeps the promise", _promise)
    demand("tpu.memref_squeeze", 1, "only dimensions of one are dropped", _squeeze)
    demand("tpu.memref_slice", 1, "the slice is inside its source", _slice)
    views = "tpu.memref_slice tpu.memref_squeeze tpu.memref_reshape tpu.memref_bitcast"
    demand(views, 2, "a view stays in its memory", _same_memory)
    demand("tpu.enqueue_dma", 1, "both ends have one type", _dma_types)
    demand("tpu.enqueue_dma", 2, "completion is counted at the target", _dma_target_semaphore)
    demand(
        "tpu.enqueue_dma",
        3,
        "a remote copy, and no other, counts at the source",
        _dma_source_semaphore,
    )
    demand("tpu.enqueue_dma", 4, "priority is 0 or 1, of remote copies 0", _priority)
    demand("tpu.sem_signal tpu.sem_wait", 1, "it is of one semaphore", _is_semaphore)
    demand("tpu.core_id tpu.subcore_id", 1, "it is of SparseCores", _core_type)
    demand("func.func", 1, "there is a dimension_semantics a bound", _windows)
    demand(
        "func.func", 2, "windows have the shape of their references, but for ones", _window_shapes
    )
    return rows


def _by_operation() -> Mapping[str, tuple[Constraint, ...]]:
    found: dict[str, tuple[Constraint, ...]] = {}
    for row in _rows():
        found[row.operation] = (*found.get(row.operation, ()), row)
    return found


CONSTRAINTS = _by_operation()
"""The constraints by the name of the operation, in the order they are checked."""
