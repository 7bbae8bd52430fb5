"""`shardy-xla`: Shardy's marks in HLO become HLO's shardings, and are propagated.

JAX lowers meshes, constraints and manual computations (`shard_map`) as frontend attributes and custom
calls `xla.sdy.*`; XLA's pass of this name reads them back into Shardy. Here they become HLO's own forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.hlo.attributes.annotations import FrontendAttributes, FrontendAttributesAttr
from mlirhlo.dialects.hlo.attributes.base import integer, string
from mlirhlo.dialects.hlo.attributes.mesh import AxisRef, Mesh
from mlirhlo.dialects.hlo.attributes.sharding import (
    DimensionSharding,
    NamedSharding,
    ShardGroup,
    Sharding,
    ShardingAttr,
)
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import CustomCallOp, ParameterOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import Shape, TokenShape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.dialects.sdy import SDY
from mlirhlo.dialects.sdy.attributes import MeshAttr
from mlirhlo.dialects.sdy.values import TensorSharding
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.rules import Rewriter
from mlirhlo.rewrites.spmd.partitions import partitions_of
from mlirhlo.rewrites.spmd.sharding_propagation import ShardingPropagationPass
from mlirhlo.rewrites.stablehlo_to_hlo.mesh import hlo_axes, hlo_mesh

SHARDING = "xla.sdy.sharding"


@dataclass(frozen=True)
class ShardyXlaPass(HloPass):
    """Reads Shardy's marks, as JAX writes them into HLO, and propagates the shardings they say.

    Before and after:

        %r = f32[8] custom-call(%x), custom_call_target="xla.sdy.FuncResultSharding", …   =>   %x
        %l = f32[2] custom-call(%x), custom_call_target="xla.sdy.GlobalToLocalShape", …
          =>   %s = f32[8] custom-call(%x), custom_call_target="Sharding", sharding={devices=[4]<=[4]}
               %l = f32[2] custom-call(%s), custom_call_target="SPMDFullToShardShape", sharding={manual}

    Constraints keep their sharding, with dimensions that Shardy leaves open (`?`); groups become `shard_as`.
    Then it does what `sharding-propagation` does. A module for one partition stays.
    Source: reference of the passes, "ShardingPropagation"; custom calls as jaxlib 0.10.2 writes them.
    """

    name = "shardy-xla"

    num_partitions: int = 0
    """Partitions; 0: as many as the module's header says."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Reads and propagates; whether anything changed."""
        count = partitions_of(module, self.num_partitions)
        if count == 1:
            return False
        changed = _Reader(module).run()
        if module.num_partitions != count:
            module.set("num_partitions", integer(count))
            changed = True
        return ShardingPropagationPass().run(module, trace) or changed


class _Reader:
    """Replaces the marks of one module."""

    def __init__(self, module: HloModule) -> None:
        self.module = module
        self.meshes = _meshes(module)

    def run(self) -> bool:
        """Whether there were any."""
        changed = bool(self.meshes)
        for op in tuple(self.module.instructions):
            entries = _entries(op)
            if isinstance(op, CustomCallOp) and op.custom_call_target.startswith("xla.sdy."):
                self._call(op, op.custom_call_target.removeprefix("xla.sdy."), entries)
                changed = True
            elif SHARDING in entries and not isinstance(op, ParameterOp):
                self._annotation(op, entries)
            changed |= _drop_marks(op, entries)
        if self.meshes:
            found = self.module.frontend_attributes
            kept = {k: v for k, v in (found.entries if found else ()) if k != "xla.sdy.meshes"}
            new = FrontendAttributesAttr(FrontendAttributes.of(kept)) if kept else None
            self.module.set("frontend_attributes", new)
        return changed

    def _annotation(self, op: Instruction, entries: Mapping[str, str]) -> None:
        """A constraint with open dimensions says more than its HLO sharding."""
        given = self._shardings(op, entries[SHARDING])
        if all(d.is_closed for s in given for d in s.dim_shardings):
            return
        parts = [self._sharding(op, s) for s in given]
        whole = Sharding.tuple_of(parts) if isinstance(op.shape, TupleShape) else parts[0]
        op.properties["sharding"] = ShardingAttr(whole)

    def _call(self, op: CustomCallOp, target: str, entries: Mapping[str, str]) -> None:
        match target:
            case "FuncResultSharding" | "PropagationBarrier":
                Rewriter(op).replace_by_value(op, op.inputs[0])
            case "ShardingGroup":
                self._group(op, int(entries["xla.sdy.sharding_group_id"].split(":")[0]))
            case "GlobalToLocalShape":
                self._border(op, entries, "xla.sdy.in_shardings", "SPMDFullToShardShape")
            case "LocalToGlobalShape":
                self._border(op, entries, "xla.sdy.out_shardings", "SPMDShardToFullShape")
            case _:
                raise error(
                    "HLO0481",
                    f"%{op.instruction_name}: no meaning is known for xla.sdy.{target}",
                    help="see --explain HLO0481 for Shardy's custom calls that are read",
                )

    def _group(self, op: CustomCallOp, group: int) -> None:
        for value in op.inputs:
            owner = value.owner
            if isinstance(owner, Instruction) and owner.sharding is not None:
                grouped = replace(owner.sharding, shard_group=ShardGroup(group))
                owner.properties["sharding"] = ShardingAttr(grouped)
        if op.output.first_use is None:
            Rewriter(op).erase(op)

    def _border(self, op: CustomCallOp, entries: Mapping[str, str], key: str, target: str) -> None:
        """One pair of GSPMD's custom calls for each array."""
        shardings = self._shardings(op, entries.get(key, ""))
        manual = _manual_axes(entries.get("xla.sdy.manual_axes", ""))
        shapes = op.shape.elements if isinstance(op.shape, TupleShape) else (op.shape,)
        rewriter = Rewriter(op)
        made: list[Instruction] = []
        values: list[SSAValue] = []
        for value, shape, sharding in zip(op.inputs, shapes, shardings, strict=True):
            if isinstance(shape, TokenShape):
                values.append(value)
                continue
            outside = self._sharding(op, sharding)
            inside = self._sharding(op, sharding, manual)
            into = target == "SPMDFullToShardShape"
            mark = _custom_call("Sharding", value, None, outside if into else inside)
            border = _custom_call(target, mark.output, shape, inside if into else outside)
            made += [mark, border]
            values.append(border.output)
        if isinstance(op.shape, TupleShape):
            made.append(make("tuple", values, op.shape))
            values = [made[-1].output]
        rewriter.replace(op, made, values)

    def _shardings(self, op: Instruction, text: str) -> Sequence[TensorSharding]:
        try:
            found = cast(Any, _attribute(text)).data
        except (ParseError, HloError):
            raise error(
                "HLO0481",
                f"%{op.instruction_name}: cannot read Shardy's sharding {text!r}",
            ) from None
        return getattr(found, "shardings", (found,))

    def _sharding(
        self, op: Instruction, value: TensorSharding, manual: frozenset[str] = frozenset()
    ) -> Sharding:
        """HLO's sharding by mesh axes; those of `manual` axes inside a manual region."""
        if isinstance(value.mesh_or_ref, str):
            mesh = self.meshes.get(value.mesh_or_ref)
        else:
            mesh = hlo_mesh(MeshAttr(value.mesh_or_ref), self.module.op, op)
        if mesh is None:
            raise error(
                "HLO0481",
                f"%{op.instruction_name}: there is no mesh @{value.mesh_or_ref}",
                help="meshes are in the module's frontend attribute xla.sdy.meshes",
            )
        dims: list[DimensionSharding] = []
        for dim in value.dim_shardings:
            axes = tuple(a for a in hlo_axes(dim.axes) if a.name not in manual)
            dims.append(DimensionSharding(axes, dim.is_closed))
        own = tuple(AxisRef(name) for name in mesh.names if name in manual)
        unreduced = tuple(a for a in hlo_axes(value.unreduced_axes) if a.name not in manual)
        named = NamedSharding(mesh, tuple(dims), (), unreduced, own)
        found = Sharding.of_mesh(named)
        return found if any(not d.is_closed for d in dims) else found.to_v2()


def _custom_call(target: str, value: SSAValue, shape: Shape | None, sharding: Sharding) -> Any:
    return make(
        "custom-call",
        (value,),
        shape_of(value.type) if shape is None else shape,
        {"custom_call_target": string(target), "sharding": ShardingAttr(sharding)},
    )


def _entries(op: Instruction) -> dict[str, str]:
    found = op.frontend_attributes
    return dict(found.entries) if found is not None else {}


def _drop_marks(op: Instruction, entries: Mapping[str, str]) -> bool:
    """Shardy's entries of the frontend attributes go: what they said is said by shardings now. Whether any did."""
    if op.parent is None or not any(key.startswith("xla.sdy.") for key in entries):
        return False
    kept = {k: v for k, v in entries.items() if not k.startswith("xla.sdy.")}
    if kept:
        op.properties["frontend_attributes"] = FrontendAttributesAttr(FrontendAttributes.of(kept))
    else:
        del op.properties["frontend_attributes"]
    return True


@cache
def _context() -> Context:
    context = Context()
    context.load_dialect(SDY)
    return context


def _attribute(text: str) -> Attribute:
    return Parser(_context(), text, "<xla.sdy>").parse_attribute()


def _manual_axes(text: str) -> frozenset[str]:
    return frozenset(cast(Any, _attribute(text)).data.value) if text else frozenset()


def _meshes(module: HloModule) -> dict[str, Mesh]:
    """The meshes in the module's frontend attributes, by name."""
    found = module.frontend_attributes
    text = dict(found.entries).get("xla.sdy.meshes", "") if found is not None else ""
    if not text:
        return {}
    text = text.replace('\\"', '"')
    listed = cast(DictionaryAttr, _attribute(text))
    return {name: hlo_mesh(mesh, module.op, module.op) for name, mesh in listed.data.items()}
