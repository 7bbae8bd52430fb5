"""Programs of many computations."""

from __future__ import annotations

from program_shapes.registry import ADD, module, shape


@shape
def computations(count: int) -> str:
    """Small functions, each called once."""
    pieces, lines = [], ["  x0 = f32[8] parameter(0)"]
    for n in range(count // 3):
        pieces.append(f"fun{n} {{\n  a = f32[8] parameter(0)\n  ROOT r = f32[8] tanh(a)\n}}\n\n")
        lines.append(f"  x{n + 1} = f32[8] call(x{n}), to_apply=fun{n}")
    return module(lines, "".join(pieces))


@shape
def reducers(count: int) -> str:
    """Reductions, each by a function of its own."""
    pieces, lines = [], ["  x = f32[8] parameter(0)", "  z0 = f32[] constant(0)"]
    for n in range(count // 4):
        pieces.append(ADD.replace("add {", f"fun{n} {{"))
        lines.append(f"  z{n + 1} = f32[] reduce(x, z{n}), dimensions={{0}}, to_apply=fun{n}")
    return module(lines, "".join(pieces))


@shape
def fusions(count: int) -> str:
    """Fusions, each of a function of its own."""
    pieces, lines = [], ["  x0 = f32[8] parameter(0)"]
    for n in range(count // 4):
        pieces.append(
            f"fun{n} {{\n  a = f32[8] parameter(0)\n  b = f32[8] sine(a)\n  ROOT r = f32[8] tanh(b)\n}}\n\n"
        )
        lines.append(f"  x{n + 1} = f32[8] fusion(x{n}), kind=kLoop, calls=fun{n}")
    return module(lines, "".join(pieces))


@shape
def branches(count: int) -> str:
    """A conditional of many branches."""
    pieces, lines = [], ["  x = f32[8] parameter(0)", "  i = s32[] parameter(1)"]
    width = count // 3
    for n in range(width):
        opcode = ("tanh", "sine", "abs")[n % 3]
        pieces.append(
            f"fun{n} {{\n  a = f32[8] parameter(0)\n  ROOT r = f32[8] {opcode}(a)\n}}\n\n"
        )
    names, operands = ", ".join(f"fun{n}" for n in range(width)), ", ".join(["x"] * width)
    lines.append(f"  r = f32[8] conditional(i, {operands}), branch_computations={{{names}}}")
    return module(lines, "".join(pieces))


@shape
def shared_function(count: int) -> str:
    """One function that is called many times."""
    lines = ["  x0 = f32[8] parameter(0)"]
    lines += [f"  x{n + 1} = f32[8] call(x{n}), to_apply=f" for n in range(count)]
    return module(lines, "f {\n  a = f32[8] parameter(0)\n  ROOT r = f32[8] tanh(a)\n}\n\n")
