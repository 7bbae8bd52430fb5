"""Programs of any size, deep or wide in one way each, for tests of what takes how long."""

from __future__ import annotations

from collections.abc import Callable

ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}\n\n"
SHAPES: dict[str, Callable[[int], str]] = {}
"""The program of a size, by the name of its form."""


def shape(function: Callable[[int], str]) -> Callable[[int], str]:
    """Registers a form of program under the name of its function."""
    SHAPES[function.__name__] = function
    return function


def module(lines: list[str], before: str = "") -> str:
    """A module whose entry has these lines, the last of which is the root."""
    return "\n".join(
        [f"HloModule m\n\n{before}ENTRY e {{", *lines[:-1], f"  ROOT {lines[-1].lstrip()}", "}\n"]
    )


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


@shape
def nested_tuples(count: int) -> str:
    """A value whose type is a tuple of a tuple of a tuple."""
    kind, lines = "f32[]", ["  t0 = f32[] parameter(0)"]
    for n in range(min(count, 190)):
        kind = f"({kind})"
        lines.append(f"  t{n + 1} = {kind} tuple(t{n})")
    lines.append(f"  g0 = {kind} copy(t{min(count, 190)})")
    return module(lines)


@shape
def parameters(count: int) -> str:
    """Parameters, each read once, whose results are the results."""
    lines = [f"  x{n} = f32[8] parameter({n})" for n in range(count // 2)]
    lines += [f"  y{n} = f32[8] tanh(x{n})" for n in range(count // 2)]
    shapes = ", ".join(["f32[8]"] * (count // 2))
    return module(
        [*lines, f"  r = ({shapes}) tuple({', '.join(f'y{n}' for n in range(count // 2))})"]
    )


@shape
def wide_parameter(count: int) -> str:
    """One parameter that is a tuple, elements of which are read."""
    shapes = ", ".join(["f32[8]"] * (count // 2))
    lines = [f"  p = ({shapes}) parameter(0)"]
    lines += [f"  x{n} = f32[8] get-tuple-element(p), index={n}" for n in range(count // 2)]
    lines += [f"  y{n} = f32[8] tanh(x{n})" for n in range(count // 2)]
    return module(
        [*lines, f"  r = ({shapes}) tuple({', '.join(f'y{n}' for n in range(count // 2))})"]
    )


@shape
def wide_loop(count: int) -> str:
    """A loop with a state of many arrays."""
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
    return module(
        [f"  p = ({shapes}) parameter(0)", f"  r = ({shapes}) while(p), condition=c, body=b"],
        before,
    )


@shape
def fan_out(count: int) -> str:
    """One constant that many instructions read."""
    lines = [
        "  x = f32[8] parameter(0)",
        "  c = f32[] constant(2)",
        "  b = f32[8] broadcast(c), dimensions={}",
    ]
    opcodes = ("add", "multiply", "subtract", "divide", "maximum", "minimum", "power")
    previous = "x"
    for n in range(count // 2):
        lines.append(f"  y{n} = f32[8] {opcodes[n % 7]}(b, {previous})")
        lines.append(f"  z{n} = f32[8] sine(y{n})")
        previous = f"z{n}"
    return module(lines)


@shape
def fan_out_apart(count: int) -> str:
    """One constant that many kernels read, each on its own."""
    width = count // 4
    lines = ["  c = f32[] constant(2)"]
    for n in range(width):
        size = f"f32[8,{n + 2}]"
        lines.append(f"  x{n} = {size} parameter({n})")
        lines.append(f"  body{n} = {size} broadcast(c), dimensions={{}}")
        lines.append(f"  a{n} = {size} add(x{n}, body{n})")
        lines.append(f"  t{n} = {size} tanh(a{n})")
    shapes = ", ".join(f"f32[8,{n + 2}]" for n in range(width))
    return module([*lines, f"  r = ({shapes}) tuple({', '.join(f't{n}' for n in range(width))})"])


@shape
def constants(count: int) -> str:
    """Scalar constants, each of another value."""
    lines = [f"  cst{n} = f32[] constant({n})" for n in range(count)]
    shapes = ", ".join(["f32[]"] * count)
    return module([*lines, f"  r = ({shapes}) tuple({', '.join(f'cst{n}' for n in range(count))})"])


@shape
def concatenation(count: int) -> str:
    """One instruction of many operands."""
    lines = ["  x = f32[8] parameter(0)", "  i = s32[] parameter(1)"]
    lines += [f"  y{n} = f32[1] slice(x), slice={{[{n % 8}:{n % 8 + 1}]}}" for n in range(count)]
    names = ", ".join(f"y{n}" for n in range(count))
    return module([*lines, f"  r = f32[{count}] concatenate({names}), dimensions={{0}}"])


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


@shape
def large_constant(count: int) -> str:
    """One constant of many elements."""
    values = ", ".join(f"{n * 0.37 - 5}" for n in range(count))
    lines = [f"  x = f32[{count}] parameter(0)", f"  c = f32[{count}] constant({{{values}}})"]
    return module([*lines, f"  r = f32[{count}] add(x, c)"])
