"""Programs of over 1,000 instructions around a few that a wrong pass of `wrong_passes` gets wrong."""

from __future__ import annotations

import random

HEAD = """HloModule big

add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
larger { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }
cond {
  s = (s32[], f32[8,16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[8,16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8,16] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[8,16] sine(x)
@LOOP@
  ROOT t = (s32[], f32[8,16]) tuple(j, @LOOPED@)
}
helper {
  p = f32[8,16] parameter(0)
  q = f32[8,16] parameter(1)
  a = f32[8,16] multiply(p, q)
  ROOT r = f32[8,16] tanh(a)
}
fused {
  p = f32[8,16] parameter(0)
  q = f32[8,16] parameter(1)
  a = f32[8,16] multiply(p, q)
@FUSION@
  ROOT r = f32[8,16] tanh(@FUSED@)
}

ENTRY main {
  x = f32[8,16] parameter(0)
  y = f32[8,16] parameter(1)
  w = f32[16,16] parameter(2)
  zero = f32[] constant(0)
  zeros = s32[] constant(0)
  v0 = f32[8,16] add(x, y)
"""

UNARY = ("sine", "cosine", "tanh", "logistic", "negate")
BINARY = ("maximum", "minimum", "multiply")


def program(
    core: str, seed: int = 1, *, steps: int = 900, loop: bool = False, fusion: bool = False
) -> str:
    """Random instructions on f32[8,16] with `core` in the middle, which reads `@A@` and `@B@` and defines `core`.

    With `loop` or `fusion` the core stands in a loop's body, or in a fusion, and reads `x` there, or `a` and `p`.
    """
    draw = random.Random(seed)
    head = HEAD
    for mark, ended, operands, is_used in (
        ("@LOOP@", "@LOOPED@", ("y", "x"), loop),
        ("@FUSION@", "@FUSED@", ("a", "p"), fusion),
    ):
        inside = core.replace("@A@", operands[0]).replace("@B@", operands[1])
        head = head.replace(mark, f"  {inside}" if is_used else "")
        head = head.replace(ended, "core" if is_used else operands[0])
    lines, last = [head.rstrip("\n")], "v0"
    names = ["x", "y", "v0"]
    for number in range(1, steps + 1):
        name, other = f"v{number}", draw.choice(names[-12:])
        if number == steps // 2 and not loop and not fusion:
            lines.append("  " + core.replace("@A@", last).replace("@B@", other).strip())
            lines.append(f"  {name} = f32[8,16] add(core, {last})")
        elif number % 97 == 0:
            lines.append(f"  in.{name} = (s32[], f32[8,16]) tuple(zeros, {last})")
            lines.append(
                f"  loop.{name} = (s32[], f32[8,16]) while(in.{name}), condition=cond, body=body"
            )
            lines.append(f"  {name} = f32[8,16] get-tuple-element(loop.{name}), index=1")
        elif number % 61 == 0:
            run = "fusion", "kind=kLoop, calls=fused"
            opcode, attributes = run if number == 854 else ("call", "to_apply=helper")
            lines.append(f"  {name} = f32[8,16] {opcode}({last}, {other}), {attributes}")
        elif number % 31 == 0:
            lines.append(
                f"  d.{name} = f32[8,16] dot({last}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
            )
            lines.append(f"  {name} = f32[8,16] sine(d.{name})")
        elif number % 23 == 0:
            lines.append(
                f"  r.{name} = f32[8] reduce({last}, zero), dimensions={{1}}, to_apply=add"
            )
            lines.append(f"  b.{name} = f32[8,16] broadcast(r.{name}), dimensions={{0}}")
            lines.append(f"  {name} = f32[8,16] cosine(b.{name})")
        elif draw.random() < 0.5:
            lines.append(f"  a.{name} = f32[8,16] {draw.choice(BINARY)}({last}, {other})")
            lines.append(f"  {name} = f32[8,16] add(a.{name}, {draw.choice('xy')})")
            if draw.random() < 0.5:
                lines[-1] = lines[-1].replace(f"  {name} =", f"  g.{name} =")
                lines.append(f"  {name} = f32[8,16] sine(g.{name})")
        else:
            lines.append(f"  {name} = f32[8,16] {draw.choice(UNARY)}({last})")
        last = name
        names.append(name)
    lines.append(f"  s = f32[8] reduce({last}, zero), dimensions={{1}}, to_apply=larger")
    lines.append(f"  ROOT out = (f32[8,16], f32[8], f32[8,16]) tuple({last}, s, v{steps // 2})")
    return "\n".join(lines) + "\n}\n"
