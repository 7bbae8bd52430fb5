"""Modules of any size for tests of what has to be quick or end: networks, tangles, and `SHAPES` that grow one way."""

from __future__ import annotations

import random
from collections.abc import Callable


def layered_module(layers: int) -> str:
    """A network as JAX writes one: about 52 instructions a layer, with op_names and source lines."""
    lines = ["HloModule layered", "", "ENTRY main {", "  x.0 = f32[32,64] parameter(0)"]
    last, number = "x.0", 1
    for layer in range(layers):
        lines.append(f"  w.{layer} = f32[64,64] parameter({number})")
        number += 1
        scope = f"jit(f)/layer_{layer}"
        for part in ("attention", "mlp"):
            at = f'metadata={{op_name="{scope}/{part}/dot_general" source_file="model.py" source_line={layer + 10}}}'
            start = f"{part}.{layer}"
            lines.append(
                f"  {start}.d = f32[32,64] dot({last}, w.{layer}), lhs_contracting_dims={{1}},"
                f" rhs_contracting_dims={{0}}, {at}"
            )
            before = f"{start}.d"
            for step in range(24):
                at = f'metadata={{op_name="{scope}/{part}/add" source_file="model.py" source_line={step}}}'
                lines.append(f"  {start}.a{step} = f32[32,64] add({before}, {last}), {at}")
                before = f"{start}.a{step}"
            last = before
    lines += [f"  ROOT out = f32[32,64] negate({last})", "}"]
    return "\n".join(lines)


def flat_module(instructions: int, seed: int = 1) -> str:
    """Elementwise instructions without metadata, most of which read what is near."""
    draw = random.Random(seed)
    lines = ["HloModule flat", "", "ENTRY main {", "  p = f32[8] parameter(0)"]
    names = ["p"]
    for number in range(instructions):
        opcode = draw.choice(("add", "multiply", "subtract", "maximum"))
        left, right = draw.choice(names[-40:]), draw.choice(names[-6:])
        name = f"{opcode}.{number}"
        root = "ROOT " if number == instructions - 1 else ""
        lines.append(f"  {root}{name} = f32[8] {opcode}({left}, {right})")
        names.append(name)
    return "\n".join([*lines, "}"])


# Shapes of programs: what grows with `count` is what the function's name says.


def _module(*computations: list[str]) -> str:
    return "\n\n".join(["HloModule large", *("\n".join(lines) for lines in computations)])


def deep_chain(count: int) -> str:
    """Elementwise instructions, each of which reads the one before it."""
    lines = ["ENTRY main {", "  x0 = f32[8] parameter(0)", "  y = f32[8] parameter(1)"]
    return _module([*lines, *_chain("x0", "y", "f32[8]", count), "}"])


def _chain(first: str, other: str, shape: str, count: int) -> list[str]:
    opcodes = ("multiply", "add", "maximum", "subtract")
    lines: list[str] = []
    last = first
    for n in range(1, count + 1):
        root = "ROOT " if n == count else ""
        lines.append(f"  {root}x{n} = {shape} {opcodes[n % 4]}({last}, {other})")
        last = f"x{n}"
    return lines


def deep_fusion(count: int) -> str:
    """One fusion of a chain."""
    head = ["fused {", "  x0 = f32[8] parameter(0)", "  y = f32[8] parameter(1)"]
    entry = ["ENTRY main {", "  p = f32[8] parameter(0)", "  q = f32[8] parameter(1)"]
    entry.append("  ROOT r = f32[8] fusion(p, q), kind=kLoop, calls=fused")
    return _module([*head, *_chain("x0", "y", "f32[8]", count), "}"], [*entry, "}"])


def deep_reducer(count: int) -> str:
    """A reduction by a sum with a chain behind it."""
    head = ["reducer {", "  a = f32[] parameter(0)", "  b = f32[] parameter(1)"]
    head += ["  z = f32[] constant(0)", "  x0 = f32[] add(a, b)"]
    chain = [
        f"  {'ROOT ' if n == count else ''}x{n} = f32[] {'maximum' if n % 2 else 'add'}(x{n - 1}, z)"
        for n in range(1, count + 1)
    ]
    entry = ["ENTRY main {", "  p = f32[4,8] parameter(0)", "  zero = f32[] constant(0)"]
    entry.append("  ROOT r = f32[4] reduce(p, zero), dimensions={1}, to_apply=reducer")
    return _module([*head, *chain, "}"], [*entry, "}"])


def deep_comparator(count: int) -> str:
    """A sort by what a chain makes of both keys."""
    head = ["compare {", "  a0 = f32[] parameter(0)", "  b0 = f32[] parameter(1)"]
    head.append("  one = f32[] constant(1)")
    for n in range(1, count + 1):
        head += [f"  {side}{n} = f32[] add({side}{n - 1}, one)" for side in "ab"]
    head += [f"  ROOT less = pred[] compare(a{count}, b{count}), direction=LT", "}"]
    entry = ["ENTRY main {", "  p = f32[8] parameter(0)"]
    entry.append("  ROOT r = f32[8] sort(p), dimensions={0}, to_apply=compare")
    return _module(head, [*entry, "}"])


def wide_fan_out(count: int) -> str:
    """One constant and one parameter that all instructions read; one result has them all."""
    lines = ["ENTRY main {", "  c = f32[8] constant({1, 2, 3, 4, 5, 6, 7, 8})"]
    lines.append("  x = f32[8] parameter(0)")
    opcodes = ("multiply", "add", "maximum", "subtract")
    lines += [f"  y{n} = f32[8] {opcodes[n % 4]}(c, x)" for n in range(count)]
    return _module([*lines, *_tuple("r", [f"y{n}" for n in range(count)]), "}"])


def _tuple(name: str, parts: list[str]) -> list[str]:
    shapes = ", ".join(["f32[8]"] * len(parts))
    return [f"  ROOT {name} = ({shapes}) tuple({', '.join(parts)})"]


def wide_parameters(count: int) -> str:
    """So many parameters, each with an instruction of its own, and results."""
    lines = ["ENTRY main {", *(f"  x{n} = f32[8] parameter({n})" for n in range(count))]
    lines += [f"  y{n} = f32[8] negate(x{n})" for n in range(count)]
    return _module([*lines, *_tuple("r", [f"y{n}" for n in range(count)]), "}"])


def wide_tuple(count: int) -> str:
    """One parameter and one result, tuples of so many arrays."""
    shape = "(" + ", ".join(["f32[8]"] * count) + ")"
    lines = ["ENTRY main {", f"  t = {shape} parameter(0)"]
    lines += [f"  x{n} = f32[8] get-tuple-element(t), index={n}" for n in range(count)]
    lines += [f"  y{n} = f32[8] negate(x{n})" for n in range(count)]
    return _module([*lines, *_tuple("r", [f"y{n}" for n in range(count)]), "}"])


def nested_calls(count: int) -> str:
    """Computations that call each other."""
    computations = [["fn0 {", "  a0 = f32[8] parameter(0)", "  ROOT r0 = f32[8] negate(a0)", "}"]]
    for n in range(1, count + 1):
        call = f"  ROOT r{n} = f32[8] call(a{n}), to_apply=fn{n - 1}"
        computations.append([f"fn{n} {{", f"  a{n} = f32[8] parameter(0)", call, "}"])
    computations[-1][0] = f"ENTRY fn{count} {{"
    return _module(*computations)


_TURN = """cond {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  k = s32[] constant(1)
  ROOT c = pred[] compare(i, k), direction=LT
}"""
_BODY = """  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[8] get-tuple-element(p), index=1
  k = s32[] constant(1)
  j = s32[] add(i, k)"""


def nested_whiles(count: int) -> str:
    """Loops, each of one turn, inside each other."""
    computations = [_TURN.split("\n")]
    last = "  ROOT t = (s32[], f32[8]) tuple(j, y)"
    for n in range(count):
        lines = [f"b{n} {{", *_BODY.split("\n")]
        if n:
            lines += ["  z = s32[] constant(0)", "  q = (s32[], f32[8]) tuple(z, x)"]
            lines.append(f"  w = (s32[], f32[8]) while(q), condition=cond, body=b{n - 1}")
            lines.append("  y = f32[8] get-tuple-element(w), index=1")
        else:
            lines.append("  y = f32[8] add(x, x)")
        computations.append([*lines, last, "}"])
    entry = ["ENTRY main {", "  x = f32[8] parameter(0)", "  z = s32[] constant(0)"]
    entry += ["  q = (s32[], f32[8]) tuple(z, x)"]
    entry += [f"  w = (s32[], f32[8]) while(q), condition=cond, body=b{count - 1}"]
    entry += ["  ROOT y = f32[8] get-tuple-element(w), index=1", "}"]
    return _module(*computations, entry)


def nested_conditionals(count: int) -> str:
    """Branches inside each other; each level chooses by its own element of the argument."""
    shape = "(s32[], f32[8])"
    computations = [["leaf {", f"  p = {shape} parameter(0)"]]
    computations[0] += ["  ROOT x = f32[8] get-tuple-element(p), index=1", "}"]
    for n in range(count):
        inner = f"level{n - 1}" if n else "leaf"
        lines = [f"level{n} {{", f"  p = {shape} parameter(0)"]
        lines += ["  i = s32[] get-tuple-element(p), index=0"]
        lines += ["  k = s32[] constant(1)", "  j = s32[] subtract(i, k)"]
        lines += ["  x = f32[8] get-tuple-element(p), index=1", "  y = f32[8] negate(x)"]
        lines += [f"  q = {shape} tuple(j, y)"]
        lines += ["  b = pred[] compare(i, k), direction=LT"]
        lines += [
            f"  ROOT r = f32[8] conditional(b, p, q), true_computation=leaf, false_computation={inner}"
        ]
        computations.append([*lines, "}"])
    entry = ["ENTRY main {", "  i = s32[] parameter(0)", "  x = f32[8] parameter(1)"]
    entry += [f"  p = {shape} tuple(i, x)"]
    entry += [f"  ROOT r = f32[8] call(p), to_apply=level{count - 1}", "}"]
    return _module(*computations, entry)


def nested_fusions(count: int) -> str:
    """Fusions inside each other."""
    computations = [["fn0 {", "  a0 = f32[8] parameter(0)", "  ROOT r0 = f32[8] negate(a0)", "}"]]
    for n in range(1, count + 1):
        lines = [f"fn{n} {{", f"  a{n} = f32[8] parameter(0)"]
        lines.append(f"  ROOT r{n} = f32[8] fusion(a{n}), kind=kLoop, calls=fn{n - 1}")
        computations.append([*lines, "}"])
    computations[-1][0] = f"ENTRY fn{count} {{"
    return _module(*computations)


def nested_tuples(count: int) -> str:
    """A tuple of a tuple of a tuple, made and taken apart again."""
    lines, shape, last = ["ENTRY main {", "  x = f32[8] parameter(0)"], "f32[8]", "x"
    shapes = [shape]
    for n in range(count):
        shape = f"({shape})"
        shapes.append(shape)
        lines.append(f"  t{n} = {shape} tuple({last})")
        last = f"t{n}"
    for n in range(count):
        lines.append(f"  g{n} = {shapes[-2 - n]} get-tuple-element({last}), index=0")
        last = f"g{n}"
    return _module([*lines, f"  ROOT r = f32[8] negate({last})", "}"])


def many_computations(count: int) -> str:
    """Small computations that the entry calls one after the other."""
    computations: list[list[str]] = []
    lines = ["ENTRY main {", "  x0 = f32[8] parameter(0)"]
    for n in range(count):
        computations.append([f"fn{n} {{", "  a = f32[8] parameter(0)"])
        computations[-1] += [f"  ROOT r = f32[8] {('negate', 'abs', 'floor')[n % 3]}(a)", "}"]
        lines.append(
            f"  {'ROOT ' if n == count - 1 else ''}x{n + 1} = f32[8] call(x{n}), to_apply=fn{n}"
        )
    return _module(*computations, [*lines, "}"])


def many_reducers(count: int) -> str:
    """Reductions, each with a reducer of its own."""
    computations: list[list[str]] = []
    lines = ["ENTRY main {", "  x = f32[8] parameter(0)", "  zero = f32[] constant(0)"]
    for n in range(count):
        computations.append([f"add{n} {{", "  a = f32[] parameter(0)", "  b = f32[] parameter(1)"])
        computations[-1] += ["  ROOT r = f32[] add(a, b)", "}"]
        lines.append(f"  sum{n} = f32[] reduce(x, zero), dimensions={{0}}, to_apply=add{n}")
    shapes = ", ".join(["f32[]"] * count)
    lines.append(f"  ROOT r = ({shapes}) tuple({', '.join(f'sum{n}' for n in range(count))})")
    return _module(*computations, [*lines, "}"])


def updates_in_a_row(count: int) -> str:
    """Each element of an array written after the one before it."""
    lines = ["ENTRY main {", "  x0 = f32[1000] parameter(0)", "  u = f32[1] parameter(1)"]
    for n in range(count):
        lines.append(f"  k{n} = s32[] constant({n % 1000})")
        root = "ROOT " if n == count - 1 else ""
        lines.append(f"  {root}x{n + 1} = f32[1000] dynamic-update-slice(x{n}, u, k{n})")
    return _module([*lines, "}"])


def many_loops(count: int) -> str:
    """Loops one after the other, each with a body of its own."""
    computations = [_TURN.split("\n")]
    lines = ["ENTRY main {", "  x0 = f32[8] parameter(0)", "  z = s32[] constant(0)"]
    for n in range(count):
        computations.append([f"b{n} {{", *_BODY.split("\n"), "  y = f32[8] add(x, x)"])
        computations[-1].extend(["  ROOT t = (s32[], f32[8]) tuple(j, y)", "}"])
        lines.append(f"  q{n} = (s32[], f32[8]) tuple(z, x{n})")
        lines.append(f"  w{n} = (s32[], f32[8]) while(q{n}), condition=cond, body=b{n}")
        root = "ROOT " if n == count - 1 else ""
        lines.append(f"  {root}x{n + 1} = f32[8] get-tuple-element(w{n}), index=1")
    return _module(*computations, [*lines, "}"])


SHAPES: dict[str, Callable[[int], str]] = {
    shape.__name__: shape
    for shape in (
        deep_chain,
        deep_comparator,
        deep_fusion,
        deep_reducer,
        many_computations,
        many_loops,
        many_reducers,
        nested_calls,
        nested_conditionals,
        nested_fusions,
        nested_tuples,
        nested_whiles,
        updates_in_a_row,
        wide_fan_out,
        wide_parameters,
        wide_tuple,
    )
}
"""All shapes by name: HLO text of a module that grows in one way."""
