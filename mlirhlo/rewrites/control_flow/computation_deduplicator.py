"""`computation-deduplicator`: computations that are the same become one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, SymbolRefAttr
from xdsl.ir import Attribute

from mlirhlo.analysis.call_graph import call_graph_of, callees_first
from mlirhlo.dialects.hlo.attributes.annotations import Metadata, MetadataAttr
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import AsyncStartOp, ComputationOp, FusionOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.order import instruction_list
from mlirhlo.dialects.hlo.table import PROVENANCE
from mlirhlo.rewrites.computations import rename_callees
from mlirhlo.rewrites.passes import HloPass, Trace


def computation_key(
    computation: ComputationOp, names: Mapping[str, Hashable] | None = None
) -> Hashable:
    """Equal for computations of the same instructions in the same order.

    `names`: what stands for called computations; their names by default.
    """
    numbers: dict[object, int] = {}
    rows: list[Hashable] = []
    for op in computation.instructions:
        numbers[op.output] = len(numbers)
        properties = tuple(
            (key, _named(value, names))
            for key, value in op.properties.items()
            if key not in PROVENANCE
        )
        operands = tuple(numbers[v] for v in op.operands)
        rows.append((type(op), op.output.type, operands, frozenset(properties)))
    return tuple(rows), numbers[computation.root.output], computation.thread


def _named(value: Attribute, names: Mapping[str, Hashable] | None) -> Hashable:
    if names is None:
        return value
    if isinstance(value, SymbolRefAttr):
        name = value.root_reference.data
        return names.get(name, name)
    if isinstance(value, ArrayAttr):
        return tuple(_named(part, names) for part in cast("ArrayAttr[Attribute]", value))
    return value


def same_computation(
    one: ComputationOp, other: ComputationOp, computations: Mapping[str, ComputationOp]
) -> bool:
    """Whether two computations do the same, those they call included."""
    if list(map(type, instruction_list(one))) != list(map(type, instruction_list(other))):
        return False
    numbers: dict[Hashable, Hashable] = {}
    names: dict[str, Hashable] = {}

    def callees(name: str) -> Iterator[str]:
        for op in computations[name].instructions:
            yield from (called for called in op.called_computations if called in computations)

    for computation in (one, other):
        for name in callees_first(computation.computation_name, callees, names.__contains__):
            key = computation_key(computations[name], names)
            names[name] = numbers.setdefault(key, len(numbers))
    return names[one.computation_name] == names[other.computation_name]


@dataclass(frozen=True)
class ComputationDeduplicatorPass(HloPass):
    """Lets all instructions that call the same computation under different names call one.

    Before and after:

        %f { …add… }  %g { …add… }   reduce(…), to_apply=%f   reduce(…), to_apply=%g
          =>   reduce(…), to_apply=%f   reduce(…), to_apply=%f

    The first one met stays, callees being met before callers; the others go. Computations of
    fusions and of asynchronous starts stay, since each has one caller.
    Source: reference of the passes, "Other simplifiers", `computation-deduplicator`.
    """

    name = "computation-deduplicator"

    mark_fusion_duplications: bool = False
    """Merges nothing, but names in the metadata of fusions, as `deduplicated_name`, the computation that is the
    same as theirs."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Merges or marks; whether any two were the same."""
        del trace
        fusions = module.candidates(FusionOp)
        owners = () if self.mark_fusion_duplications else module.candidates(FusionOp, AsyncStartOp)
        owned = {name for op in owners for name in op.called_computations}
        # Few have the opcodes of another: only those are described.
        alike: dict[Hashable, list[ComputationOp]] = {}
        for computation in module.computations:
            if computation.is_entry is None and computation.computation_name not in owned:
                opcodes = tuple(map(type, instruction_list(computation)))
                alike.setdefault((opcodes, computation.thread), []).append(computation)
        asked = {computation for found in alike.values() if len(found) > 1 for computation in found}
        if not asked:
            return False
        kept: dict[Hashable, str] = {}
        instead: dict[str, str] = {}
        for computation in module.known(call_graph_of).post_order():
            name = computation.computation_name
            if computation not in asked:
                continue
            key = computation_key(computation, instead)
            first = kept.setdefault(key, name)
            if first != name:
                instead[name] = first
        if not instead:
            return False
        if self.mark_fusion_duplications:
            marked = [op for op in fusions if _mark(op, instead)]
            return bool(marked)
        rename_callees(module.instructions, instead)
        for computation in tuple(module.computations):
            if computation.computation_name in instead:
                computation.detach()
                computation.erase(safe_erase=False)
        return True


def _mark(fusion: Instruction, instead: Mapping[str, str]) -> bool:
    """Writes the computation that is the same into the fusion's metadata; whether there is any."""
    (name,) = fusion.called_computations
    if name not in instead:
        return False
    old = fusion.properties.get("metadata")
    data = old.data if isinstance(old, MetadataAttr) else Metadata()
    fusion.properties["metadata"] = MetadataAttr(replace(data, deduplicated_name=instead[name]))
    return True
