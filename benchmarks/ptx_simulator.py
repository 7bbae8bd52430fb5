"""How fast the PTX simulator runs: instructions of threads a second on one core, by kind of kernel.

python benchmarks/ptx_simulator.py
python benchmarks/ptx_simulator.py --repeat 5 --no-checks
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlirhlo.simulator import Machine

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"
PROLOGUE = """
.visible .entry k(.param .u64 x, .param .u64 y)
{
.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .f32 %f<16>;
.shared .align 4 .f32 tile[256];
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 256, %r1;
ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
mad.wide.u32 %rd3, %r3, 4, %rd1; mad.wide.u32 %rd4, %r3, 4, %rd2;
"""


@dataclass(frozen=True)
class Kernel:
    """A kernel of 256 threads a block, one element a thread."""

    name: str
    body: str


KERNELS = (
    Kernel(
        "integer and float arithmetic in a loop",
        """
mov.u32 %r4, 0; mov.f32 %f1, 0f3F800000; mov.u32 %r5, %r3;
L: mul.f32 %f2, %f1, 0f3F7FFFFE; add.f32 %f1, %f2, 0f33800000; mad.lo.u32 %r5, %r5, 1664525, 1013904223;
shr.u32 %r6, %r5, 16; xor.b32 %r5, %r5, %r6; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 64; @%p1 bra L;
cvt.rn.f32.u32 %f3, %r5; add.f32 %f1, %f1, %f3; st.global.f32 [%rd4], %f1;""",
    ),
    Kernel(
        "fused multiply-add in a loop",
        """
mov.u32 %r4, 0; ld.global.f32 %f1, [%rd3];
L: fma.rn.f32 %f1, %f1, 0f3F7FFFFE, 0f33800000; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 64; @%p1 bra L;
st.global.f32 [%rd4], %f1;""",
    ),
    Kernel(
        "elementwise, a load and a store a thread",
        """
ld.global.f32 %f1, [%rd3]; mul.f32 %f2, %f1, %f1; ex2.approx.ftz.f32 %f3, %f2; st.global.f32 [%rd4], %f3;""",
    ),
    Kernel(
        "sum of a block by shuffles and shared memory",
        "ld.global.f32 %f1, [%rd3];"
        + "".join(
            f"shfl.sync.bfly.b32 %r7, %f1, {step}, 31, -1; mov.b32 %f2, %r7; add.f32 %f1, %f1, %f2;"
            for step in (16, 8, 4, 2, 1)
        )
        + """
shl.b32 %r8, %r1, 2; mov.u32 %r9, tile; add.u32 %r8, %r8, %r9; st.shared.f32 [%r8], %f1; bar.sync 0;
ld.shared.f32 %f3, [tile+128]; add.f32 %f1, %f1, %f3; st.global.f32 [%rd4], %f1;""",
    ),
    Kernel(
        "a branch that splits warps",
        """
mov.u32 %r4, 0; and.b32 %r5, %r1, 7;
L: add.u32 %r4, %r4, 1; setp.le.u32 %p1, %r4, %r5; @%p1 bra L; cvt.rn.f32.u32 %f1, %r4; st.global.f32 [%rd4], %f1;""",
    ),
)


def measure(kernel: Kernel, blocks: int, repeat: int, *, checks: bool) -> float:
    """Millions of instructions of threads a second of processor time; the best of some runs."""
    machine = Machine(checks=checks)
    program = machine.load(f"{HEAD}{PROLOGUE}{kernel.body}\nret;\n}}")
    count = blocks * 256
    addresses = [machine.allocate(count * 4, name) for name in ("x", "y")]
    machine.write(addresses[0], np.random.default_rng(0).normal(size=count).astype(np.float32))
    best = 0.0
    for _ in range(repeat):
        start = time.process_time()
        report = machine.launch(program, "k", blocks, 256, addresses)
        best = max(best, report.figures.thread_instructions / (time.process_time() - start) / 1e6)
    return best


def main(argv: Sequence[str] | None = None) -> int:
    """Prints one line a kernel."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--blocks", type=int, default=512, help="blocks of 256 threads [512]")
    parser.add_argument("--repeat", type=int, default=3, help="runs, of which the best counts [3]")
    parser.add_argument(
        "--checks",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="races and figures too",
    )
    options = parser.parse_args(argv)
    print("million instructions of threads a second, one core")
    for kernel in KERNELS:
        rate = measure(kernel, options.blocks, options.repeat, checks=options.checks)
        print(f"{rate:8.1f}  {kernel.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
