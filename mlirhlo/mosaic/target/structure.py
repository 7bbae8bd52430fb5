"""How a kernel's module is put together: functions, blocks, and operations that have no lowering."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr

from mlirhlo.dialects.stablehlo.elements import DenseAttr
from mlirhlo.mosaic.attributes import (
    attribute_of,
    case_of,
    dictionaries_of,
    integer_of,
    integers_of,
    name_of,
    plain,
    string_of,
)
from mlirhlo.mosaic.target.memory import mask_of
from mlirhlo.mosaic.target.rules import LOWERING, SPACE, STRUCTURE, SYNC, Question, Refusal, refuses
from mlirhlo.mosaic.target.tiling import is_memref, space_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, Operation

_NOWHERE = {
    "tpu.repeat": "write tpu.concatenate of the vector with itself",
    "tpu.all_reduce": "use vector.multi_reduction and vector.broadcast",
    "tpu.sort": "sort on a SparseCore, or outside of the kernel",
    "tpu.create_mask": "compare tpu.iota with the bounds",
    "tpu.broadcast_in_sublanes": "use vector.broadcast",
    "vector.create_mask": "compare tpu.iota with the bounds",
    "vector.constant_mask": "compare tpu.iota with the bounds",
    "vector.insert_strided_slice": "use tpu.concatenate, or store to scratch memory",
    "vector.insert": "use tpu.concatenate, or store to scratch memory",
    "vector.shuffle": "use tpu.concatenate and vector.extract_strided_slice",
    "vector.reduction": "use vector.multi_reduction on a vector of rank 2",
    "vector.maskedload": "load all of it, and arith.select",
    "vector.maskedstore": "use a masked tpu.vector_store",
    "memref.copy": "load and store, or tpu.enqueue_dma",
    "memref.alloc": "use memref.alloca in a tpu.region, or a scratch operand",
    "tpu.sublane_shuffle": "use tpu.dynamic_gather, or vector.extract_strided_slice",
    "vector.step": "use tpu.iota",
    "tpu.barrier": "barriers of this kind are a SparseCore's; use semaphores",
    "tpu.core_id": "only a SparseCore has it; add a core_parallel dimension to the grid",
    "tpu.subcore_id": "only a SparseCore has it",
    "tpu.fetch_and_add_sync": "only a SparseCore has it",
    "tpu.scan": "only a SparseCore has it",
    "tpu.scan_count": "only a SparseCore has it",
    "tpu.vector_load_idx": "only a SparseCore has it; use tpu.dynamic_gather",
    "tpu.vector_store_idx": "only a SparseCore has it",
    "tpu.enqueue_indirect_dma": "only a SparseCore has it; copy row by row",
    "tpu.wait_indirect_dma": "only a SparseCore has it",
    "ub.poison": "use a constant",
    "cf.br": "use scf.if, scf.for or scf.while",
    "cf.cond_br": "use scf.if, scf.for or scf.while",
    "func.call": "inline the function: all others of the module are index functions",
}
"""What no TensorCore lowers, and what to write instead."""


_MASKED = ("vector.maskedload", "vector.maskedstore")


@refuses(*_NOWHERE)
def nowhere(op: Operation, question: Question) -> Refusal | None:
    """Operations without a lowering on TensorCores; a mask that is one constant is folded before."""
    name = name_of(op)
    if name in _MASKED and mask_of(op) is not None:
        return None
    if name == "vector.constant_mask" and all(
        name_of(use.operation) in _MASKED and mask_of(use.operation) is not None
        for use in op.results[0].uses
    ):
        return None
    return Refusal(LOWERING, "no TensorCore lowers it in a kernel", _NOWHERE[name])


_VIEWS = frozenset(
    {
        "tpu.memref_slice",
        "tpu.memref_squeeze",
        "tpu.memref_reshape",
        "tpu.memref_bitcast",
        "memref.cast",
    }
)
"""Views that the compiler follows when it lays references out; at any other it ends the process."""
_OF_REGISTERS = ("tpu.load", "tpu.store", "tpu.shuffled_load", "tpu.shuffled_store")


def views_are_followed(op: Operation, question: Question) -> Refusal | None:
    """A view of a reference without layout is one that layouts go through."""
    if name_of(op) in _VIEWS or not any(is_memref(result.type) for result in op.results):
        return None
    if not any(is_memref(v.type) and not _is_laid_out(v.type) for v in op.operands):
        return None
    return Refusal(
        LOWERING,
        "no layout is inferred through this view",
        "use tpu.memref_slice, tpu.memref_squeeze, tpu.memref_reshape or tpu.memref_bitcast",
    )


def _is_laid_out(type_: Attribute) -> bool:
    return "#tpu.tiled<" in str(type_)


@refuses(*_OF_REGISTERS)
def registers_come_later(op: Operation, question: Question) -> Refusal | None:
    """Accesses by register are of references that have their layout."""
    if any(is_memref(v.type) and _is_laid_out(v.type) for v in op.operands):
        return None
    return Refusal(LOWERING, "it is of laid out references only", "use tpu.vector_load and _store")


@refuses("arith.constant")
def constants_are_splats(op: Operation, question: Question) -> Refusal | None:
    """A vector constant has one value."""
    value = attribute_of(op, "value")
    if isinstance(value, DenseAttr):
        array = value.array().reshape(-1)
        # By bits: NaN is no number's equal, and 0 is -0's.
        is_splat = array.tobytes() == array[:1].tobytes() * array.size
    else:
        is_splat = not isinstance(value, DenseIntOrFPElementsAttr) or value.is_splat()
    if not is_splat:
        return Refusal(
            STRUCTURE,
            "a constant vector has to be one value everywhere",
            "pass the values as an operand, or compute them from tpu.iota",
        )
    return None


@refuses("tpu.sem_barrier")
def barrier_has_id(op: Operation, question: Question) -> Refusal | None:
    """The barrier semaphore is that of the call's `collective_id`."""
    if question.collective_id is not None:
        return None
    return Refusal(
        SYNC,
        "the barrier semaphore needs a collective_id, and the call has none",
        "give the call a collective_id",
    )


@refuses("tpu.iteration_bound")
def bound_has_grid(op: Operation, question: Question) -> Refusal | None:
    """The size of a dimension of the grid needs a grid."""
    if question.has_grid:
        return None
    return Refusal(STRUCTURE, "the kernel has no grid", "give it iteration_bounds, or a constant")


def entry_of(module: ModuleOp) -> Operation | None:
    """The function that is the kernel: the one with a core type, else `main`."""
    functions: list[Operation] = [op for op in module.body.ops if name_of(op) == "func.func"]
    with_core = [op for op in functions if attribute_of(op, "tpu.core_type") is not None]
    windows = [op for op in with_core if attribute_of(op, "dimension_semantics") is not None]
    # The compiler's own dumps give every function a core type.
    for found in (
        windows,
        with_core,
        [op for op in functions if string_of(op, "sym_name") == "main"],
    ):
        if found:
            return found[0]
    return functions[0] if len(functions) == 1 else None


@refuses("func.func")
def all_cores_take_part(op: Operation, question: Question) -> Refusal | None:
    """A core-parallel dimension has an index for each of a chip's cores."""
    bounds = integers_of(op, "iteration_bounds") or ()
    stated: Any = attribute_of(op, "dimension_semantics")
    words = [case_of(item) for item in getattr(stated, "data", ())]
    cores = question.generation.cores
    for dim, (bound, word) in enumerate(zip(bounds, words, strict=False)):
        if word == "core_parallel" and bound >= 0 and bound != cores:
            return Refusal(
                STRUCTURE,
                f"dimension {dim} of the grid is core_parallel with {bound} steps, and a chip has "
                f"{cores} cores that share one",
                f"give it {cores} steps, or call it parallel",
            )
    return None


@refuses("func.func")
def scratch_is_on_the_core(op: Operation, question: Question) -> Refusal | None:
    """Scratch is in VMEM, SMEM, or semaphores."""
    count = integer_of(op, "scratch_operands")
    arguments = op.regions[0].blocks[0].args if op.regions and op.regions[0].blocks else ()
    for argument in arguments[len(arguments) - count :]:
        if space_of(argument.type) in ("any", "hbm", "host", "cmem"):
            return Refusal(
                SPACE,
                f"scratch {argument.name_hint or argument.index} is in {space_of(argument.type)}",
                "make it one more result of the call, in memory that the kernel sees whole",
            )
    return None


def structure_problems(
    module: ModuleOp, kernel: Operation | None
) -> Iterator[tuple[Operation, Refusal]]:
    """What is wrong with the functions of a module."""
    if kernel is None:
        yield (
            module,
            Refusal(
                STRUCTURE,
                "no function has a core type, and none is called main",
                "give the kernel tpu.core_type = #tpu.core_type<tc>",
            ),
        )
        return
    maps = {
        plain(entry["transform_indices"])
        for entry in dictionaries_of(kernel, "window_params") or ()
        if "transform_indices" in entry
    }
    arguments = len(integers_of(kernel, "iteration_bounds") or ())
    for function in module.body.ops:
        if name_of(function) != "func.func":
            continue
        if function.regions and len(function.regions[0].blocks) > 1:
            yield (
                function,
                Refusal(STRUCTURE, "a function has one block", "use scf.if, scf.for or scf.while"),
            )
        name = string_of(function, "sym_name") or ""
        if function is not kernel and name not in maps:
            inputs = len(function.regions[0].blocks[0].args) if function.regions[0].blocks else 0
            if inputs != arguments or len(maps) == 0:
                yield (
                    function,
                    Refusal(
                        STRUCTURE,
                        f"@{name} is no index function of a window, and there are no subroutines",
                        "inline the function where it is called",
                    ),
                )
