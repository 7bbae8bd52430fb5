"""Programs in which one construct follows itself: branches, asynchronous pairs, diamonds."""

from __future__ import annotations

from program_shapes.registry import module, shape


@shape
def conditionals_in_a_row(count: int) -> str:
    """Conditionals, each of which takes the result of the one before."""
    pieces, lines = [], ["  p = pred[] parameter(0)", "  x0 = f32[8] parameter(1)"]
    for n in range(count // 5):
        pieces += [
            f"{name}{n} {{\n  a = f32[8] parameter(0)\n  ROOT r = f32[8] {opcode}(a)\n}}\n\n"
            for name, opcode in (("yes", "tanh"), ("no", "sine"))
        ]
        lines.append(
            f"  x{n + 1} = f32[8] conditional(p, x{n}, x{n}), true_computation=yes{n}, false_computation=no{n}"
        )
    return module(lines, "".join(pieces))


@shape
def async_in_a_row(count: int) -> str:
    """Asynchronous calls, each of which takes the result of the one before."""
    pieces, lines = [], ["  x0 = f32[8] parameter(0)"]
    for n in range(count // 4):
        pieces.append(f"fun{n} {{\n  a = f32[8] parameter(0)\n  ROOT r = f32[8] tanh(a)\n}}\n\n")
        lines.append(f"  start{n} = ((f32[8]), f32[8], u32[]) call-start(x{n}), to_apply=fun{n}")
        lines.append(f"  x{n + 1} = f32[8] call-done(start{n})")
    return module(lines, "".join(pieces))


@shape
def async_updates(count: int) -> str:
    """One asynchronous call that is updated many times."""
    before = "fun {\n  a = f32[8] parameter(0)\n  ROOT r = f32[8] tanh(a)\n}\n\n"
    kind = "((f32[8]), f32[8], u32[])"
    lines = ["  x = f32[8] parameter(0)", f"  start0 = {kind} call-start(x), to_apply=fun"]
    lines += [f"  start{n} = {kind} call-update(start{n - 1})" for n in range(1, count)]
    return module([*lines, f"  r = f32[8] call-done(start{max(count, 1) - 1})"], before)


@shape
def async_at_once(count: int) -> str:
    """Asynchronous collectives that all run at the same time."""
    width = count // 3
    lines = [f"  x{n} = f32[8] parameter({n})" for n in range(width)]
    lines += [
        f"  start{n} = (f32[8], f32[8]) collective-permute-start(x{n}), source_target_pairs={{{{0,0}}}}"
        for n in range(width)
    ]
    lines += [f"  d{n} = f32[8] collective-permute-done(start{n})" for n in range(width)]
    shapes = ", ".join(["f32[8]"] * width)
    return module([*lines, f"  r = ({shapes}) tuple({', '.join(f'd{n}' for n in range(width))})"])


@shape
def copies_in_a_row(count: int) -> str:
    """Asynchronous copies, each of the result of the one before."""
    lines = ["  x0 = f32[8] parameter(0)"]
    for n in range(count // 2):
        lines.append(f"  start{n} = (f32[8], f32[8], u32[]) copy-start(x{n})")
        lines.append(f"  x{n + 1} = f32[8] copy-done(start{n})")
    return module(lines)


@shape
def diamonds(count: int) -> str:
    """Two ways from each value to the next one."""
    lines = ["  x0 = f32[8] parameter(0)"]
    for n in range(count // 3):
        lines.append(f"  a{n} = f32[8] sine(x{n})")
        lines.append(f"  b{n} = f32[8] tanh(x{n})")
        lines.append(f"  x{n + 1} = f32[8] add(a{n}, b{n})")
    return module(lines)


@shape
def tuples_in_a_row(count: int) -> str:
    """Wide tuples, each made of the elements of the one before, in another order."""
    width = max(int(count**0.5), 2)
    kind = f"({', '.join(['f32[8]'] * width)})"
    lines = [f"  t0 = {kind} parameter(0)"]
    for n in range(count // (width + 1)):
        lines += [f"  e{n}.{k} = f32[8] get-tuple-element(t{n}), index={k}" for k in range(width)]
        names = ", ".join(f"e{n}.{(k + 1) % width}" for k in range(width))
        lines.append(f"  t{n + 1} = {kind} tuple({names})")
    return module(lines)


@shape
def maps_in_a_row(count: int) -> str:
    """Maps, each of the result of the one before by a function of its own."""
    pieces, lines = [], ["  x0 = f32[8] parameter(0)"]
    for n in range(count // 3):
        pieces.append(f"fun{n} {{\n  a = f32[] parameter(0)\n  ROOT r = f32[] tanh(a)\n}}\n\n")
        lines.append(f"  x{n + 1} = f32[8] map(x{n}), dimensions={{0}}, to_apply=fun{n}")
    return module(lines, "".join(pieces))


@shape
def comparators(count: int) -> str:
    """Sorts, each by a comparator of its own."""
    pieces, lines = [], ["  x0 = f32[8] parameter(0)"]
    for n in range(count // 4):
        pieces.append(
            f"fun{n} {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
            f"  ROOT r = pred[] compare(a, b), direction={('LT', 'GT')[n % 2]}\n}}\n\n"
        )
        lines.append(f"  x{n + 1} = f32[8] sort(x{n}), dimensions={{0}}, to_apply=fun{n}")
    return module(lines, "".join(pieces))
