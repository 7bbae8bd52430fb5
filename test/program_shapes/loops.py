"""Loops in a row, in each other, and with a wide state."""

from __future__ import annotations

from program_shapes.registry import module, shape


@shape
def whiles_in_a_row(count: int) -> str:
    """Loops, each of which goes on with the state of the one before."""
    lines = [
        "  x = f32[4] parameter(0)",
        "  z = s32[] constant(0)",
        "  w0 = (s32[], f32[4]) tuple(z, x)",
    ]
    pieces = []
    for n in range(count // 8):
        pieces.append(_condition(f"cst{n}") + _body(f"body{n}", ["  y = f32[4] add(x, x)"]))
        lines.append(f"  w{n + 1} = (s32[], f32[4]) while(w{n}), condition=cst{n}, body=body{n}")
    return module(lines, "".join(pieces))


def _condition(name: str) -> str:
    return (
        f"{name} {{\n  p = (s32[], f32[4]) parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n"
        "  k = s32[] constant(1)\n  ROOT c = pred[] compare(i, k), direction=LT\n}\n\n"
    )


def _body(name: str, lines: list[str]) -> str:
    return "\n".join(
        [
            f"{name} {{",
            "  p = (s32[], f32[4]) parameter(0)",
            "  i = s32[] get-tuple-element(p), index=0",
            "  x = f32[4] get-tuple-element(p), index=1",
            "  k = s32[] constant(1)",
            *lines,
            "  j = s32[] add(i, k)",
            "  ROOT t = (s32[], f32[4]) tuple(j, y)",
            "}\n\n",
        ]
    )


@shape
def nested_whiles(count: int) -> str:
    """Loops in loops, of one round each."""
    pieces = [_condition("cond"), _body("body0", ["  y = f32[4] add(x, x)"])]
    for n in range(1, count // 8):
        inner = [
            "  z = s32[] constant(0)",
            "  q = (s32[], f32[4]) tuple(z, x)",
            f"  w = (s32[], f32[4]) while(q), condition=cond, body=body{n - 1}",
            "  y = f32[4] get-tuple-element(w), index=1",
        ]
        pieces.append(_body(f"body{n}", inner))
    lines = [
        "  z = s32[] constant(0)",
        "  x = f32[4] parameter(0)",
        "  q = (s32[], f32[4]) tuple(z, x)",
        f"  w = (s32[], f32[4]) while(q), condition=cond, body=body{max(count // 8, 1) - 1}",
        "  y = f32[4] get-tuple-element(w), index=1",
    ]
    return module(lines, "".join(pieces))


@shape
def wide_loop(count: int) -> str:
    """A loop of one round with a state of many arrays."""
    width = count // 4
    shapes = ", ".join(["s32[]", *["f32[8]"] * width])
    state = f"  p = ({shapes}) parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  k = s32[] constant(1)\n"
    cond = f"c {{\n{state}  ROOT r = pred[] compare(i, k), direction=LT\n}}\n\n"
    body = [f"  x{n} = f32[8] get-tuple-element(p), index={n + 1}" for n in range(width)]
    body += [f"  y{n} = f32[8] tanh(x{n})" for n in range(width)]
    items = ", ".join(["j", *(f"y{n}" for n in range(width))])
    before = (
        cond
        + f"b {{\n{state}  j = s32[] add(i, k)\n"
        + "\n".join(body)
        + f"\n  ROOT t = ({shapes}) tuple({items})\n}}\n\n"
    )
    entry = [
        "  p = (" + shapes.removeprefix("s32[], ") + ") parameter(0)",
        "  z = s32[] constant(0)",
    ]
    entry += [f"  x{n} = f32[8] get-tuple-element(p), index={n}" for n in range(width)]
    entry.append(f"  s = ({shapes}) tuple({', '.join(['z', *(f'x{n}' for n in range(width))])})")
    return module([*entry, f"  r = ({shapes}) while(s), condition=c, body=b"], before)
