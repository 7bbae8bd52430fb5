"""Building functions of the llvm dialect by hand: the code around kernels that no loops describe.

    m = LlvmBuilder()
    m.external("free", [POINTER])
    f = m.function("sum", [POINTER, i64], i64)
    data, count = f.arguments
    with f.loop(0, 0) as loop:
        index, total = loop.values
        loop.leave_unless(index.cmp("ult", count), total)
        loop.next(index + 1, total + data.item(i64, index))
    f.call("free", data)
    f.ret(*loop.results)
    text = print_llvm(m.module())

Values have operators; numbers beside them are constants of their type. Jumps end the current block, and code goes on
in a block that `place` puts behind it. Numbers wrap; `>>` and `//` take them as unsigned.
"""

from mlirhlo.lowering.llvm_builder.function import POINTER, LlvmFunction, Loop, Value, array_of
from mlirhlo.lowering.llvm_builder.module import LlvmBuilder

__all__ = ["POINTER", "LlvmBuilder", "LlvmFunction", "Loop", "Value", "array_of"]
