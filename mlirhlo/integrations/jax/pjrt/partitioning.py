"""Programs for several devices: the program of each of them."""

# JAX, llvmlite and the structs of ctypes have no types that pyright knows.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportPrivateUsage=false, reportUnknownLambdaType=false
# pyright: reportMissingTypeArgument=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.attributes.header import Booleans, BooleansAttr
from mlirhlo.dialects.hlo.attributes.sharding import Sharding, ShardingKind
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.formats.proto import encode_module
from mlirhlo.formats.proto.shardings import sharding_bytes
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.dialects.hlo.ops.base import Instruction
    from mlirhlo.formats.proto.compile_options_pb2 import ExecutableBuildOptionsProto

_PROPAGATION = (
    "allow_spmd_sharding_propagation_to_parameters",
    "allow_spmd_sharding_propagation_to_output",
)
_BEFORE = "flatten-call-graph,call-inliner,zero_sized_hlo_elimination,shardy-xla"


def of_one_device(module: ModuleOp, build: ExecutableBuildOptionsProto) -> bytes:
    """Makes a module with shardings the program of one partition, in place; its HloModuleProto, which says how
    parameters and results are divided."""
    replicas, partitions = max(build.num_replicas, 1), max(build.num_partitions, 1)
    view = HloModule(module)
    view.set("replica_count", integer(replicas) if replicas > 1 else None)
    view.set("num_partitions", integer(partitions) if partitions > 1 else None)
    for name in _PROPAGATION:
        flags = tuple(getattr(build, name))
        view.set(name, BooleansAttr(Booleans(flags)) if any(flags) else None)
    shardings: Sequence[Sharding] = ()
    if partitions > 1:
        run_pipeline(module, parse_pipeline(_BEFORE))
        entry = HloModule(module).entry
        parameters = sorted(entry.parameters, key=lambda op: op.parameter_number)
        shardings = [_sharding(entry.root), *map(_sharding, parameters)]
        run_pipeline(module, parse_pipeline("spmd-partitioning"))
    proto = encode_module(module)
    if shardings:
        proto.spmd_output_sharding.ParseFromString(_bytes(shardings[0]))
        for one in shardings[1:]:
            proto.spmd_parameters_shardings.add().ParseFromString(_bytes(one))
    return proto.SerializeToString()


def _sharding(op: Instruction) -> Sharding:
    """An instruction's sharding; whole on every device where it says none."""
    if op.sharding is not None and op.shape != TupleShape(()):
        return op.sharding
    whole = Sharding(ShardingKind.REPLICATED)
    if isinstance(op.shape, TupleShape) and op.shape.elements:
        return Sharding(ShardingKind.TUPLE, elements=(whole,) * len(op.shape.elements))
    return whole


def _bytes(sharding: Sharding) -> bytes:
    return sharding_bytes(sharding, lambda metadata: b"")
