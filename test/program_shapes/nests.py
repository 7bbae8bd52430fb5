"""Computations that call each other, and types in types."""

from __future__ import annotations

from program_shapes.registry import ADD, module, shape


def _nest(count: int, each: int, line: str, type: str = "f32[]") -> str:
    """Computations, each of which calls the one before by a line with its number in it."""
    pieces = [f"fn0 {{\n  a = {type} parameter(0)\n  ROOT r = {type} tanh(a)\n}}\n\n"]
    levels = count // each
    for n in range(1, levels):
        called = line.format(n - 1)
        pieces.append(
            f"fn{n} {{\n  a = {type} parameter(0)\n  s = {type} sine(a)\n  ROOT r = {type} {called}\n}}\n\n"
        )
    return module(
        [f"  s = {type} parameter(0)", f"  r = {type} {line.format(levels - 1)}"], "".join(pieces)
    )


@shape
def nested_calls(count: int) -> str:
    """Functions that call functions."""
    return _nest(count, 3, "call(s), to_apply=fn{}")


@shape
def nested_maps(count: int) -> str:
    """Maps whose functions are maps."""
    return _nest(count, 3, "map(s), dimensions={{}}, to_apply=fn{}")


@shape
def nested_fusions(count: int) -> str:
    """Fusions in fusions."""
    return _nest(count, 3, "fusion(s), kind=kLoop, calls=fn{}")


@shape
def nested_async(count: int) -> str:
    """Calls in other threads that make such calls."""
    pieces = ["fn0 {\n  a = f32[] parameter(0)\n  ROOT r = f32[] tanh(a)\n}\n\n"]
    levels = count // 4
    call = (
        "  s = ((f32[]), f32[], u32[]) call-start(a), to_apply=fn{}\n"
        "  ROOT d = f32[] call-done(s)\n"
    )
    for n in range(1, levels):
        pieces.append(f"fn{n} {{\n  a = f32[] parameter(0)\n{call.format(n - 1)}}}\n\n")
    return (
        "HloModule m\n\n"
        + "".join(pieces)
        + f"ENTRY e {{\n  a = f32[] parameter(0)\n{call.format(levels - 1)}}}\n"
    )


@shape
def nested_conditionals(count: int) -> str:
    """Conditionals in branches of conditionals."""
    pieces = ["fn0 {\n  a = f32[] parameter(0)\n  ROOT r = f32[] tanh(a)\n}\n\n"]
    levels = count // 5
    branch = "other {\n  a = f32[] parameter(0)\n  ROOT r = f32[] sine(a)\n}\n\n"
    for n in range(1, levels):
        pieces.append(
            f"fn{n} {{\n  a = f32[] parameter(0)\n  z = f32[] constant(0)\n"
            "  p = pred[] compare(a, z), direction=LT\n"
            f"  ROOT r = f32[] conditional(p, a, a), true_computation=fn{n - 1}, false_computation=other\n}}\n\n"
        )
    lines = [
        "  a = f32[] parameter(0)",
        "  p = pred[] parameter(1)",
        f"  r = f32[] conditional(p, a, a), true_computation=fn{levels - 1}, false_computation=other",
    ]
    return module(lines, branch + "".join(pieces))


@shape
def nested_reducers(count: int) -> str:
    """Reductions by functions that reduce."""
    pieces = [ADD]
    levels = count // 6
    for n in range(levels):
        inner = f"fn{n - 1}" if n else "add"
        pieces.append(
            f"fn{n} {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
            "  c = f32[1] broadcast(b), dimensions={}\n"
            f"  ROOT r = f32[] reduce(c, a), dimensions={{0}}, to_apply={inner}\n}}\n\n"
        )
    lines = [
        "  x = f32[1] parameter(0)",
        "  z = f32[] parameter(1)",
        f"  r = f32[] reduce(x, z), dimensions={{0}}, to_apply=fn{levels - 1}",
    ]
    return module(lines, "".join(pieces))


@shape
def nested_tuples(count: int) -> str:
    """A value whose type is a tuple of a tuple of a tuple."""
    kind, lines = "f32[]", ["  t0 = f32[] parameter(0)"]
    for n in range(min(count, 190)):
        kind = f"({kind})"
        lines.append(f"  t{n + 1} = {kind} tuple(t{n})")
    lines.append(f"  g0 = {kind} copy(t{min(count, 190)})")
    return module(lines)
