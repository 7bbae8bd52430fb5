"""What a kernel's body stores to, and the blocks that depend on it: those of a step are chosen a step ahead."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from mlirhlo.diagnostics import Diagnostic, Severity
from mlirhlo.mosaic.attributes import case_of, dictionaries_of, integers, plain
from mlirhlo.mosaic.interpreter.problems import place_of

_STORES = {
    "tpu.vector_store": 1,
    "tpu.strided_store": 1,
    "vector.store": 1,
    "memref.store": 1,
}
"""Operations that store, and the number of the operand that is the reference."""


def stores(block: Block) -> dict[SSAValue, Operation]:
    """Arguments of a block that something in it stores to, and the first operation that does so."""
    found: dict[SSAValue, Operation] = {}
    for op in block.walk():
        if op.name == "tpu.enqueue_dma":
            sizes = integers(op.properties["operandSegmentSizes"])
            targets = [op.operands[1 + sizes[1]]]
        elif op.name in _STORES:
            targets = [op.operands[_STORES[op.name]]]
        else:
            continue
        for target in targets:
            value = target
            while isinstance(value.owner, Operation) and value.owner.operands:
                value = value.owner.operands[0]
            found.setdefault(value, op)
    return found


def is_ahead(entry: Mapping[str, Any]) -> bool:
    """Whether the blocks of an entry of `window_params` have two buffers, one for the step after."""
    return "synchronous" not in case_of(entry.get("pipeline_mode"))


def changed(
    index_map: Block, arguments: Sequence[SSAValue], stored: Mapping[SSAValue, Operation], grid: int
) -> SSAValue | None:
    """What an index map reads of what the body, of those arguments after the grid's indices, stores to."""
    for argument, seen in zip(arguments, index_map.args[grid:], strict=False):
        if argument in stored and seen.uses.get_length():
            return argument
    return None


def told(
    main: Operation, functions: Mapping[str, Operation], grid: int, prefetches: int
) -> Iterator[Diagnostic]:
    """A warning (HLO0755) for each operand whose blocks are chosen before the body has changed what chooses them."""
    entries = dictionaries_of(main, "window_params") or ()
    block = main.regions[0].blocks[0]
    stored = stores(block) if prefetches else {}
    if not stored:
        return
    for number, entry in enumerate(entries):
        if "transform_indices" not in entry or not is_ahead(entry):
            continue
        function = functions[plain(entry["transform_indices"])]
        scalars = changed(function.regions[0].blocks[0], block.args[grid:], stored, grid)
        if scalars is None:
            continue
        last = function.regions[0].blocks[0].last_op or function
        name = block.args[grid + prefetches + number].name_hint or f"operand {prefetches + number}"
        yield Diagnostic(
            "HLO0755",
            f"the pipeline reads ahead: the block of {name} is chosen one step before it is needed, by "
            f"{scalars.name_hint or 'scalars'} as it is then, which the body changes",
            place_of(last),
            [("it is changed here", place_of(stored[scalars]))],
            help="pipeline_mode=pl.Buffered(1) chooses it in the step that needs it",
            severity=Severity.WARNING,
        )


__all__ = ["changed", "is_ahead", "stores", "told"]
