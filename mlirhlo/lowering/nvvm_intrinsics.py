"""Intrinsics of LLVM's target for NVIDIA's GPUs that generated code may call, and their signatures.

Each row is tested: LLVM knows the name with these types, and writes PTX for it.
Source: LLVM's NVPTX usage guide, `IntrinsicsNVVM.td`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_SHARED = "ptr addrspace(3)"
_SPECIAL = ("tid", "ctaid", "ntid", "nctaid")


def _struct(element: str, count: int) -> str:
    return "{ " + ", ".join([element] * count) + " }"


NVVM: Mapping[str, tuple[str, Sequence[str]]] = {
    **{f"llvm.nvvm.read.ptx.sreg.{name}.{dim}": ("i32", ()) for name in _SPECIAL for dim in "xyz"},
    "llvm.nvvm.read.ptx.sreg.laneid": ("i32", ()),
    "llvm.nvvm.barrier.cta.sync.aligned.all": ("void", ("i32",)),
    "llvm.nvvm.barrier.cta.sync.aligned.count": ("void", ("i32", "i32")),
    "llvm.nvvm.bar.warp.sync": ("void", ("i32",)),
    **{
        f"llvm.nvvm.shfl.sync.{mode}.{kind}": (type_, ("i32", type_, "i32", "i32"))
        for mode in ("bfly", "up", "down", "idx")
        for kind, type_ in (("i32", "i32"), ("f32", "float"))
    },
    **{
        f"llvm.nvvm.redux.sync.{name}": ("i32", ("i32", "i32"))
        for name in ("add", "min", "max", "umin", "umax", "and", "or", "xor")
    },
    "llvm.nvvm.barrier.cluster.arrive.aligned": ("void", ()),
    "llvm.nvvm.barrier.cluster.wait.aligned": ("void", ()),
    "llvm.nvvm.mapa.shared.cluster": ("ptr addrspace(7)", (_SHARED, "i32")),
    "llvm.nvvm.match.any.sync.i32": ("i32", ("i32", "i32")),
    "llvm.nvvm.vote.ballot.sync": ("i32", ("i32", "i1")),
    "llvm.nvvm.membar.gl": ("void", ()),
    "llvm.nvvm.nanosleep": ("void", ("i32",)),
    "llvm.nvvm.membar.cta": ("void", ()),
    "llvm.nvvm.div.full": ("float", ("float", "float")),
    "llvm.nvvm.ex2.approx.f": ("float", ("float",)),
    "llvm.nvvm.ex2.approx.ftz.f": ("float", ("float",)),
    **{
        f"llvm.nvvm.cp.async.{level}.shared.global.{size}{kind}": (
            "void",
            ("ptr addrspace(3)", "ptr addrspace(1)", *more),
        )
        for level, size in (("cg", 16), ("ca", 8), ("ca", 4))
        for kind, more in (("", ()), (".s", ("i32",)))
    },
    "llvm.nvvm.cp.async.commit.group": ("void", ()),
    "llvm.nvvm.cp.async.wait.group": ("void", ("i32",)),
    "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3": (
        _struct("i32", 4),
        ("ptr addrspace(3)",),
    ),
    "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3": (
        _struct("i32", 4),
        ("ptr addrspace(3)",),
    ),
    **{
        f"llvm.nvvm.mma.{name}": (_struct("float", 4), (*[factor] * 6, *["float"] * 4))
        for name, factor in (
            ("m16n8k16.row.col.bf16", "i32"),
            ("m16n8k16.row.col.f32.f32", "<2 x half>"),
            ("m16n8k8.row.col.tf32", "i32"),
            ("m16n8k32.row.col.f32.e4m3.e4m3.f32", "i32"),
            ("m16n8k32.row.col.f32.e5m2.e5m2.f32", "i32"),
        )
    },
    **{
        f"llvm.nvvm.mma.m16n8k32.row.col.{kind}": (_struct("i32", 4), ["i32"] * 10)
        for kind in ("s8", "u8")
    },
    "llvm.nvvm.mma.m8n8k4.row.col.f64": (_struct("double", 2), ["double"] * 4),
    **{
        f"llvm.nvvm.wgmma.{name}.sync.aligned": ("void", operands)
        for name, operands in (("fence", ()), ("commit_group", ()), ("wait_group", ("i64",)))
    },
    "llvm.nvvm.fence.mbarrier_init.release.cluster": ("void", ()),
    "llvm.nvvm.mbarrier.init.shared": ("void", (_SHARED, "i32")),
    **{
        f"llvm.nvvm.mbarrier.{name}.scope.cta.space.cta": (result, (_SHARED, "i32"))
        for name, result in (
            ("arrive", "i64"),
            ("arrive.expect.tx", "i64"),
            ("try.wait.parity", "i1"),
        )
    },
    **{
        f"llvm.nvvm.cp.async.bulk.tensor.g2s.tile.{rank}d": (
            "void",
            ("ptr addrspace(7)", _SHARED, "ptr", *["i32"] * rank, "i16", "i64", "i1", "i1", "i32"),
        )
        for rank in range(1, 6)
    },
}
"""Types of the result and of the operands, in LLVM's spelling, by name."""
