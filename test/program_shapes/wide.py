"""Programs that are wide: parameters, readers, operands, elements."""

from __future__ import annotations

from program_shapes.registry import module, shape


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
def readers(count: int) -> str:
    """One constant and one parameter that all instructions read; one result has them all."""
    lines = ["  c = f32[8] constant({1, 2, 3, 4, 5, 6, 7, 8})", "  x = f32[8] parameter(0)"]
    opcodes = ("multiply", "add", "maximum", "subtract")
    lines += [f"  y{n} = f32[8] {opcodes[n % 4]}(c, x)" for n in range(count)]
    shapes = ", ".join(["f32[8]"] * count)
    return module([*lines, f"  r = ({shapes}) tuple({', '.join(f'y{n}' for n in range(count))})"])


@shape
def neutral(count: int) -> str:
    """Products by one, all of which are elements of the result."""
    lines = [
        "  x = f32[8] parameter(0)",
        "  one = f32[] constant(1)",
        "  b = f32[8] broadcast(one), dimensions={}",
    ]
    lines += [f"  y{n} = f32[8] multiply(x, b)" for n in range(count)]
    shapes = ", ".join(["f32[8]"] * count)
    return module([*lines, f"  r = ({shapes}) tuple({', '.join(f'y{n}' for n in range(count))})"])


@shape
def copies(count: int) -> str:
    """Copies of parameters, all of which are elements of the result."""
    lines = [f"  x{n} = f32[8] parameter({n})" for n in range(count // 2)]
    lines += [f"  y{n} = f32[8] copy(x{n})" for n in range(count // 2)]
    shapes = ", ".join(["f32[8]"] * (count // 2))
    return module(
        [*lines, f"  r = ({shapes}) tuple({', '.join(f'y{n}' for n in range(count // 2))})"]
    )


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
def large_constant(count: int) -> str:
    """One constant of many elements."""
    values = ", ".join(f"{n * 0.37 - 5}" for n in range(count))
    lines = [f"  x = f32[{count}] parameter(0)", f"  c = f32[{count}] constant({{{values}}})"]
    return module([*lines, f"  r = f32[{count}] add(x, c)"])
