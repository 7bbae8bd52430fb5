"""A kernel with one planted fault, and the same kernel without it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PROLOGUE = """
.reg .pred %p<8>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<8>; .reg .b16 %h<4>;
.shared .align 1024 .b8 tile[1024]; .shared .align 8 .b64 bar;
ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
mad.lo.u32 %r4, %r2, %r3, %r1;
mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2;
mov.u32 %r5, tile; shl.b32 %r6, %r1, 2; add.u32 %r7, %r5, %r6;
"""


@dataclass(frozen=True)
class Fault:
    """A kernel body in two forms: the faulty lines, and the lines that replace them in the clean one."""

    name: str
    code: str
    body: str
    """`@@` marks the faulty part."""
    bad: str
    good: str
    grid: Any = 1
    block: Any = 64
    options: dict[str, Any] = field(default_factory=dict)
    places: int = 1
    """How many instructions the message names."""

    def text(self, *, faulty: bool) -> str:
        """The kernel."""
        body = self.body.replace("@@", self.bad if faulty else self.good)
        return f".visible .entry k(.param .u64 x)\n{{{PROLOGUE}\n{body}\nret;\n}}"


NEXT = "xor.b32 %r8, %r1, 32; shl.b32 %r8, %r8, 2; add.u32 %r8, %r5, %r8;"
"""Address of the element 32 threads away, in %r8."""
