"""Operations of the nvvm and gpu dialects that are one instruction, as text of PTX."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import llvm as xllvm
from xdsl.dialects.builtin import i1, i32, i64
from xdsl.ir import Operation, SSAValue

from mlirhlo.dialects.tpu.op_classes import groups
from mlirhlo.dialects.tpu.table import ROWS
from mlirhlo.lowering.gpu.nvvm import KernelLowering
from mlirhlo.lowering.gpu.nvvm_inline import assembly
from mlirhlo.lowering.loops_to_llvm.arith import intrinsic
from mlirhlo.mosaic.attributes import case_of, integer_of

Instruction = Callable[[KernelLowering, Operation], None]


def _parts(to: KernelLowering, op: Operation) -> dict[str, list[SSAValue]]:
    row = ROWS[op.name]
    found = groups(op, row, row.operands, tuple(op.operands))
    return {name: [to.values[v] for v in values] for name, values in found.items()}


def _emit(
    to: KernelLowering,
    op: Operation,
    text: str,
    operands: Sequence[SSAValue],
    predicate: Sequence[SSAValue] = (),
) -> None:
    """One instruction; where it has a predicate, for the threads where that holds."""
    types = [to.convert(r.type) for r in op.results]
    guard = f"@${len(types) + len(operands)} " if predicate else ""
    made = assembly(to, f"{guard}{text};", [*operands, *predicate], types)
    to.values.update(zip(op.results, made, strict=True))


def _text(text: str) -> Instruction:
    return lambda to, op: _emit(to, op, text, [])


def _case(op: Operation, name: str) -> str:
    return str(op.properties[name]).rpartition(" ")[2].rstrip(">")


def _init(to: KernelLowering, op: Operation) -> None:
    p = _parts(to, op)
    _emit(to, op, "mbarrier.init.shared::cta.b64 [$0], $1", p["addr"] + p["count"], p["predicate"])


def _expect(to: KernelLowering, op: Operation) -> None:
    p = _parts(to, op)
    target, to_ = ("$0", 1) if op.results else ("_", 0)
    text = f"mbarrier.arrive.expect_tx.shared::cta.b64 {target}, [${to_}], ${to_ + 1}"
    _emit(to, op, text, p["addr"] + p["txcount"], p["predicate"])


def _arrive(to: KernelLowering, op: Operation) -> None:
    p = _parts(to, op)
    target, to_ = ("$0", 1) if op.results else ("_", 0)
    count = f", ${to_ + 1}" if p["count"] else ""
    completes = "" if op.name == "nvvm.mbarrier.arrive" else ".noComplete"
    text = f"mbarrier.arrive{completes}.shared::cta.b64 {target}, [${to_}]{count}"
    _emit(to, op, text, p["addr"] + p["count"])


def _wait(to: KernelLowering, op: Operation) -> None:
    text = (
        "{ .reg .pred p; again_${:uid}: mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1, $2; "
        "@!p bra again_${:uid}; }"
    )
    assembly(to, text, [to.values[v] for v in op.operands])


def _load_box(to: KernelLowering, op: Operation) -> None:
    p = _parts(to, op)
    rank, mask = len(p["coordinates"]), p["multicastMask"]
    box = ", ".join(f"${n + 3}" for n in range(rank))
    cast_ = ".multicast::cluster" if mask else ""
    text = (
        f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{cast_} "
        f"[$0], [$1, {{{box}}}], [$2]" + (f", ${rank + 3}" if mask else "")
    )
    operands = p["dstMem"] + p["tmaDescriptor"] + p["mbar"] + p["coordinates"] + mask
    _emit(to, op, text, operands, p["predicate"])


def _store_box(to: KernelLowering, op: Operation) -> None:
    p = _parts(to, op)
    rank = len(p["coordinates"])
    box = ", ".join(f"${n + 2}" for n in range(rank))
    text = f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [$0, {{{box}}}], [$1]"
    _emit(to, op, text, p["tmaDescriptor"] + p["srcMem"] + p["coordinates"], p["predicate"])


def _wait_group(to: KernelLowering, op: Operation) -> None:
    read = ".read" if "read" in op.properties else ""
    _emit(to, op, f"cp.async.bulk.wait_group{read} {integer_of(op, 'group')}", [])


def _wait_products(to: KernelLowering, op: Operation) -> None:
    _emit(to, op, f"wgmma.wait_group.sync.aligned {integer_of(op, 'group')}", [])


def _proxy(to: KernelLowering, op: Operation) -> None:
    kind = case_of(op.properties["kind"])
    space = op.properties.get("space")
    if kind == "async.shared":
        kind = f"async.shared::{'cta' if space is None else case_of(space)}"
    _emit(to, op, f"fence.proxy.{kind}", [])


def _registers(to: KernelLowering, op: Operation) -> None:
    action = "inc" if _case(op, "action") == "increase" else "dec"
    _emit(to, op, f"setmaxnreg.{action}.sync.aligned.u32 {integer_of(op, 'regCount')}", [])


def _elect(to: KernelLowering, op: Operation) -> None:
    text = "{ .reg .pred p; elect.sync _|p, -1; selp.b32 $0, 1, 0, p; }"
    (number,) = assembly(to, text, [], [i32])
    to.values[op.results[0]] = to.truncate(number, i1)


def _shuffle(to: KernelLowering, op: Operation) -> None:
    kind, type_ = _case(op, "kind"), op.results[0].type
    operands = [to.values[v] for v in op.operands]
    name = f"llvm.nvvm.shfl.sync.{kind}.{'i32' if type_ == i32 else 'f32'}"
    to.values[op.results[0]] = intrinsic(to, name, operands, type_)


def _special(name: str) -> Instruction:
    def lower(to: KernelLowering, op: Operation) -> None:
        dim = _case(op, "dimension")
        (number,) = assembly(to, f"mov.u32 $0, %{name}.{dim};", [], [i32], has_effects=False)
        to.values[op.results[0]] = to.emit(xllvm.ZExtOp, [number], i64)

    return lower


# ---------------------------------------------------------------- tensor memory


def _blocks(op: Operation) -> str:
    """`cta_group::1` or `cta_group::2`: how many blocks an instruction is of."""
    return f"cta_group::{case_of(op.properties.get('group'), 'cta_1')[-1]}"


def _allocate(to: KernelLowering, op: Operation) -> None:
    p = _parts(to, op)
    text = f"tcgen05.alloc.{_blocks(op)}.sync.aligned.shared::cta.b32 [$0], $1"
    _emit(to, op, text, p["addr"] + p["nCols"])


def _release(to: KernelLowering, op: Operation) -> None:
    p = _parts(to, op)
    (address,) = p["addr"]
    if isinstance(address.type, xllvm.LLVMPointerType):
        address = to.emit(xllvm.PtrToIntOp, [address], i32)
    text = f"tcgen05.dealloc.{_blocks(op)}.sync.aligned.b32 $0, $1"
    _emit(to, op, text, [address, *p["nCols"]])


def _relinquish(to: KernelLowering, op: Operation) -> None:
    _emit(to, op, f"tcgen05.relinquish_alloc_permit.{_blocks(op)}.sync.aligned", [])


def _fence_of_tensors(to: KernelLowering, op: Operation) -> None:
    _emit(to, op, f"tcgen05.fence::{case_of(op.properties['kind'])}_thread_sync", [])


def _commit(to: KernelLowering, op: Operation) -> None:
    p = _parts(to, op)
    cast_, mask = (".multicast::cluster", ", $1") if p["multicastMask"] else ("", "")
    text = f"tcgen05.commit.{_blocks(op)}.mbarrier::arrive::one.shared::cluster{cast_}.b64 [$0]"
    _emit(to, op, text + mask, p["addr"] + p["multicastMask"])


def _wait_tensors(to: KernelLowering, op: Operation) -> None:
    kind = {"load": "ld", "store": "st"}[case_of(op.properties["kind"])]
    _emit(to, op, f"tcgen05.wait::{kind}.sync.aligned", [])


INSTRUCTIONS: Mapping[str, Instruction] = {
    "gpu.cluster_block_id": _special("cluster_ctaid"),
    "gpu.cluster_dim_blocks": _special("cluster_nctaid"),
    "gpu.cluster_id": _special("clusterid"),
    "gpu.cluster_dim": _special("nclusterid"),
    "nvvm.cluster.arrive": _text("barrier.cluster.arrive.release.aligned"),
    "nvvm.cluster.arrive.relaxed": _text("barrier.cluster.arrive.relaxed.aligned"),
    "nvvm.cluster.wait": _text("barrier.cluster.wait.acquire.aligned"),
    "nvvm.cp.async.bulk.commit.group": _text("cp.async.bulk.commit_group"),
    "nvvm.cp.async.bulk.tensor.global.shared.cta": _store_box,
    "nvvm.cp.async.bulk.tensor.shared.cluster.global": _load_box,
    "nvvm.cp.async.bulk.wait_group": _wait_group,
    "nvvm.elect.sync": _elect,
    "nvvm.fence.mbarrier.init": _text("fence.mbarrier_init.release.cluster"),
    "nvvm.fence.proxy": _proxy,
    "nvvm.mbarrier.arrive": _arrive,
    "nvvm.mbarrier.arrive.expect_tx": _expect,
    "nvvm.mbarrier.arrive.nocomplete": _arrive,
    "nvvm.mbarrier.init": _init,
    "nvvm.mbarrier.try_wait.parity": _wait,
    "nvvm.setmaxregister": _registers,
    "nvvm.shfl.sync": _shuffle,
    "nvvm.tcgen05.alloc": _allocate,
    "nvvm.tcgen05.commit": _commit,
    "nvvm.tcgen05.dealloc": _release,
    "nvvm.tcgen05.fence": _fence_of_tensors,
    "nvvm.tcgen05.relinquish_alloc_permit": _relinquish,
    "nvvm.tcgen05.wait": _wait_tensors,
    "nvvm.wgmma.commit.group.sync.aligned": _text("wgmma.commit_group.sync.aligned"),
    "nvvm.wgmma.fence.aligned": _text("wgmma.fence.sync.aligned"),
    "nvvm.wgmma.wait.group.sync.aligned": _wait_products,
}
"""What writes each operation."""
