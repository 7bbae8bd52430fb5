"""A kernel around the lines of standard input: `kernel.py - [VERSION [TARGET]]`."""

import sys

version, target = [*sys.argv[2:], "8.0", "sm_90a"][:2] if len(sys.argv) < 4 else sys.argv[2:4]
print(f""".version {version}
.target {target}
.address_size 64
.global .b32 variable;
.visible .entry kernel(.param .u64 parameter) {{
.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<99>; .reg .b64 %rd<9>; .reg .f32 %f<99>; .reg .f64 %fd<9>;
{sys.stdin.read()}ret;
}}""")
