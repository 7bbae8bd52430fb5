"""Programs as people have them: a network with metadata, and a tangle without."""

from __future__ import annotations

import random


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
