"""Programs that are deep: each instruction reads the one before."""

from __future__ import annotations

from program_shapes.registry import ADD, module, shape


@shape
def chain(count: int) -> str:
    """Elementwise instructions, each of which reads the one before."""
    lines = ["  x0 = f32[8] parameter(0)", "  y = f32[8] parameter(1)"]
    for n in range(count):
        lines.append(f"  x{n + 1} = f32[8] {('add', 'maximum', 'multiply')[n % 3]}(x{n}, y)")
    return module(lines)


@shape
def unary_chain(count: int) -> str:
    """Elementwise instructions of one operand."""
    lines = ["  x0 = f32[8] parameter(0)"]
    for n in range(count):
        lines.append(f"  x{n + 1} = f32[8] {('negate', 'sine', 'tanh')[n % 3]}(x{n})")
    return module(lines)


@shape
def movement_chain(count: int) -> str:
    """Moves of data, each of which reads the one before."""
    lines = ["  x0 = f32[4,6] parameter(0)"]
    moves = (
        "f32[6,4] transpose({}), dimensions={{1,0}}",
        "f32[24] reshape({})",
        "f32[24] reverse({}), dimensions={{0}}",
        "f32[4,6] reshape({})",
        "f32[4,6] copy({})",
        "f16[4,6] convert({})",
        "f32[4,6] convert({})",
    )
    for n in range(count):
        lines.append(f"  x{n + 1} = {moves[n % len(moves)].format(f'x{n}')}")
    return module(lines)


@shape
def reduce_chain(count: int) -> str:
    """Reductions and broadcasts of their results in turns."""
    lines = ["  x0 = f32[4,8] parameter(0)", "  z = f32[] constant(0)"]
    for n in range(count // 2):
        lines.append(f"  sum{n} = f32[4] reduce(x{n}, z), dimensions={{1}}, to_apply=add")
        lines.append(f"  x{n + 1} = f32[4,8] broadcast(sum{n}), dimensions={{0}}")
    return module(lines, ADD)


@shape
def dot_chain(count: int) -> str:
    """Products of matrices."""
    lines = ["  x0 = f32[8,8] parameter(0)", "  y = f32[8,8] parameter(1)"]
    for n in range(count):
        lines.append(
            f"  x{n + 1} = f32[8,8] dot(x{n}, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        )
    return module(lines)


@shape
def updates(count: int) -> str:
    """Updates in a row of one array, each at an index of its own."""
    lines = ["  x0 = f32[1000] parameter(0)", "  u = f32[1] parameter(1)"]
    for n in range(count // 2):
        lines.append(f"  k{n} = s32[] constant({n})")
        lines.append(f"  x{n + 1} = f32[1000] dynamic-update-slice(x{n}, u, k{n})")
    return module(lines)


@shape
def tuple_chain(count: int) -> str:
    """Tuples that are built and taken apart."""
    lines = ["  x0 = f32[8] parameter(0)", "  y = f32[8] parameter(1)"]
    for n in range(count // 3):
        lines.append(f"  a{n} = f32[8] add(x{n}, y)")
        lines.append(f"  t{n} = (f32[8], f32[8]) tuple(a{n}, y)")
        lines.append(f"  x{n + 1} = f32[8] get-tuple-element(t{n}), index=0")
    return module(lines)


@shape
def sharing_chain(count: int) -> str:
    """Each instruction reads the one before twice: 2^n paths."""
    lines = ["  x0 = f32[8] parameter(0)"]
    for n in range(count):
        lines.append(f"  x{n + 1} = f32[8] {('add', 'multiply')[n % 2]}(x{n}, x{n})")
    return module(lines)


@shape
def all_reduce_chain(count: int) -> str:
    """Collectives in a row."""
    lines = ["  x0 = f32[8] parameter(0)"]
    for n in range(count // 2):
        lines.append(f"  r{n} = f32[8] all-reduce(x{n}), replica_groups={{}}, to_apply=add")
        lines.append(f"  x{n + 1} = f32[8] tanh(r{n})")
    return module(lines, ADD)


@shape
def control_chain(count: int) -> str:
    """Instructions that wait for each other without reading results."""
    lines = ["  x = f32[8] parameter(0)", "  x0 = f32[8] negate(x)"]
    for n in range(count):
        lines.append(
            f"  x{n + 1} = f32[8] {('abs', 'sine')[n % 2]}(x), control-predecessors={{x{n}}}"
        )
    return module(lines)


def _scalars(count: int, last: str) -> str:
    steps = ["  x0 = f32[] add(a, b)", "  z = f32[] constant(0.5)"]
    steps += [
        f"  x{n + 1} = f32[] {('add', 'maximum', 'multiply')[n % 3]}(x{n}, z)" for n in range(count)
    ]
    return (
        "f {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
        + "\n".join(steps)
        + f"\n  ROOT {last}\n}}\n\n"
    )


@shape
def chain_in_reducer(count: int) -> str:
    """A function of a reduction that is a long chain."""
    before = _scalars(count, f"r = f32[] add(x{count}, b)")
    lines = ["  x = f32[8] parameter(0)", "  z = f32[] constant(0)"]
    return module([*lines, "  r = f32[] reduce(x, z), dimensions={0}, to_apply=f"], before)


@shape
def chain_in_comparator(count: int) -> str:
    """A comparator of a sort that is a long chain."""
    before = _scalars(count, f"r = pred[] compare(x{count}, b), direction=LT")
    return module(
        ["  x = f32[8] parameter(0)", "  r = f32[8] sort(x), dimensions={0}, to_apply=f"], before
    )


@shape
def chain_in_fusion(count: int) -> str:
    """A fusion that is a long chain."""
    lines = "".join(
        f"  x{n + 1} = f32[8] {('add', 'maximum', 'multiply')[n % 3]}(x{n}, y)\n"
        for n in range(count)
    )
    inputs = "  x0 = f32[8] parameter(0)\n  y = f32[8] parameter(1)\n"
    before = f"f {{\n{inputs}{lines}  ROOT r = f32[8] negate(x{count})\n}}\n\n"
    return module(
        [
            "  x = f32[8] parameter(0)",
            "  y = f32[8] parameter(1)",
            "  r = f32[8] fusion(x, y), kind=kLoop, calls=f",
        ],
        before,
    )
