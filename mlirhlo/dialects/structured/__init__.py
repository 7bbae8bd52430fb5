"""The structured dialect: kernels as ops over iteration spaces, index maps and scalar bodies.

One `structured.kernel` stands for one instruction or fusion. Its tensors are row-major: dimensions stand in the
order of memory, and layouts are gone. An op reads its inputs through affine maps from its iteration space; its
bodies are regions of HLO instructions on scalars (tensors of rank 0) that end in `structured.yield`:

    structured.kernel @scaled_sum(%x: tensor<4x8xf32>, %y: tensor<8xf32>) -> tensor<4x8xf32> {
      %r = structured.map ins(%x, %y : tensor<4x8xf32>, tensor<8xf32>)
          maps [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>] -> tensor<4x8xf32> {
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = hlo.add %a, %b : tensor<f32>
        structured.yield %s : tensor<f32>
      }
      structured.return %r : tensor<4x8xf32>
    }

A kernel also holds `hlo.constant` for arrays whose values are known. Nothing here knows a target: how a kernel
is computed is said by attributes that passes set or a person writes.
"""

from xdsl.ir import Dialect

from mlirhlo.dialects.structured.base import StructuredOp, element_types, identity_map, sizes_of
from mlirhlo.dialects.structured.dense import AssembleOp, ContractOp, FoldOp, MapOp
from mlirhlo.dialects.structured.indexed import GatherOp, ScatterOp, SelectAndScatterOp
from mlirhlo.dialects.structured.kernel import IndexOp, KernelOp, ReturnOp, YieldOp
from mlirhlo.dialects.structured.ordered import ScanOp, SortOp, TopKOp
from mlirhlo.dialects.structured.routines import LibraryOp, RandomBitsOp

STRUCTURED = Dialect(
    "structured",
    [
        AssembleOp,
        ContractOp,
        FoldOp,
        GatherOp,
        IndexOp,
        KernelOp,
        LibraryOp,
        MapOp,
        RandomBitsOp,
        ReturnOp,
        ScanOp,
        ScatterOp,
        SelectAndScatterOp,
        SortOp,
        TopKOp,
        YieldOp,
    ],
)

__all__ = [
    "STRUCTURED",
    "AssembleOp",
    "ContractOp",
    "FoldOp",
    "GatherOp",
    "IndexOp",
    "KernelOp",
    "LibraryOp",
    "MapOp",
    "RandomBitsOp",
    "ReturnOp",
    "ScanOp",
    "ScatterOp",
    "SelectAndScatterOp",
    "SortOp",
    "StructuredOp",
    "TopKOp",
    "YieldOp",
    "element_types",
    "identity_map",
    "sizes_of",
]
