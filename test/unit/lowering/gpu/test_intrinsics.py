"""LLVM knows every NVVM intrinsic that generated code may call, by name and signature."""

from __future__ import annotations

import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.lowering.gpu.devices import device
from mlirhlo.lowering.gpu.ptx import TRIPLE, to_ptx
from mlirhlo.lowering.nvvm_intrinsics import NVVM

# Operands that have to be constants.
IMMEDIATE = {
    "llvm.nvvm.cp.async.wait.group": {0},
    "llvm.nvvm.wgmma.wait_group.sync.aligned": {0},
    **{
        f"llvm.nvvm.cp.async.bulk.tensor.g2s.tile.{rank}d": {rank + 5, rank + 6, rank + 7}
        for rank in range(1, 6)
    },
}


def caller(number, name):
    result, operands = NVVM[name]
    fixed = IMMEDIATE.get(name, ())
    arguments = ", ".join(
        f"{type_} {0 if at in fixed else f'%a{at}'}" for at, type_ in enumerate(operands)
    )
    parameters = ", ".join(
        [*(f"{type_} %a{at}" for at, type_ in enumerate(operands)), "ptr addrspace(1) %p"]
    )
    keep = "" if result == "void" else f"store {result} %r, ptr addrspace(1) %p\n"
    return (
        f"define void @f{number}({parameters}) {{\n"
        f"{'' if result == 'void' else '%r = '}call {result} @{name}({arguments})\n{keep}ret void\n}}\n"
        f"declare {result} @{name}({', '.join(operands)})\n"
    )


def test_all_are_selected():
    text = f'target triple = "{TRIPLE}"\n' + "".join(map(caller, range(len(NVVM)), NVVM))
    ptx = to_ptx(text, device("h100"), optimize=False)
    # What is no intrinsic would be a function outside.
    assert ".extern" not in ptx
    assert "call.uni" not in ptx


@pytest.mark.parametrize(
    "text",
    [
        "define void @f( {",
        # No instruction does this: LLVM ends the process.
        (
            "declare float @llvm.pow.f32(float, float)\ndefine float @f(float %x) {\n"
            "%y = call float @llvm.pow.f32(float %x, float %x)\nret float %y\n}"
        ),
    ],
)
def test_refused_code_leaves_the_process_alone(text):
    with pytest.raises(HloError, match="HLO0803"):
        to_ptx(text, device("h100"))
    assert ".entry k" in to_ptx("define ptx_kernel void @k() {\nret void\n}", device("h100"))
