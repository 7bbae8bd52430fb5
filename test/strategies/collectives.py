"""Programs of collectives in all group modes, for four devices."""

from __future__ import annotations

import numpy as np
from xla_devices import Case

from mlirhlo.debug.fuzz.generators.choices import Choices

OPCODES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
IDS = ("partition-id", "replica-id")
"""These stand in every program."""

COMPUTATIONS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
most { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
"""


def groups_of(c: Choices, count: int, *, equal: bool) -> list[list[int]]:
    """A random division of `count` ids, into groups of one size when `equal`."""
    ids = c.permutation(count)
    sizes = [s for s in range(1, count + 1) if count % s == 0]
    size = c.pick(sizes)
    if not equal and count > 2 and c.chance(50):
        return [ids[:1], ids[1:]]
    return [ids[k : k + size] for k in range(0, count, size)]


def program(c: Choices) -> Case:
    """A module with a few collectives, and inputs for its devices."""
    replicas, partitions = c.pick([(4, 1), (1, 4), (2, 2)])
    lines, shapes = ["p = f32[4,4] parameter(0)"], []

    def channel(number: int) -> str:
        return f"channel_id={number}, "

    for number in range(1, 5):
        opcode = c.pick(OPCODES)
        flag = opcode in ("all-reduce", "all-gather", "reduce-scatter")
        mode = c.integer(0, 2) if flag else c.integer(0, 1)
        if partitions == 1 and mode == 1 and not flag:
            mode = 0
        count = {0: replicas, 1: replicas if flag else partitions, 2: replicas * partitions}[mode]
        text = "" if mode == 0 else channel(number)
        factor = partitions if flag and mode == 1 else 1
        groups = groups_of(c, count, equal=opcode != "all-reduce")
        size = len(groups[0]) * factor
        listed = "{" + ",".join("{" + ",".join(map(str, g)) + "}" for g in groups) + "}"
        text += f"replica_groups={listed}"
        if mode == 2:
            text += ", use_global_device_ids=true"
        dim = c.integer(0, 1)
        shape = [4, 4]
        if opcode == "all-gather":
            shape[dim] *= size
            text += f", dimensions={{{dim}}}"
        elif opcode == "reduce-scatter":
            if size not in (1, 2, 4):
                continue
            shape[dim] //= size
            text += f", dimensions={{{dim}}}"
        elif opcode == "all-to-all":
            text += f", dimensions={{{dim}}}"
        elif opcode == "collective-permute":
            targets = c.permutation(count)
            pairs = [f"{{{s},{t}}}" for s, t in enumerate(targets) if c.chance(80)]
            if not pairs:
                continue
            text = (
                ("" if mode == 0 else channel(number))
                + "source_target_pairs={"
                + ",".join(pairs)
                + "}"
            )
        if opcode in ("all-reduce", "reduce-scatter"):
            text += f", to_apply={c.pick(['add', 'most'])}"
        result = f"f32[{shape[0]},{shape[1]}]"
        lines.append(f"r{len(shapes)} = {result} {opcode}(p), {text}")
        shapes.append(result)
    for opcode in IDS:
        lines.append(f"r{len(shapes)} = u32[] {opcode}()")
        shapes.append("u32[]")
    names = ", ".join(f"r{k}" for k in range(len(shapes)))
    lines.append(f"ROOT t = ({', '.join(shapes)}) tuple({names})")
    head = f"HloModule m, replica_count={replicas}, num_partitions={partitions}\n"
    text = head + COMPUTATIONS + "ENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"
    inputs = [[c.arranged(np.arange(-8, 8, dtype=np.float32), (4, 4))] for _ in range(4)]
    return text, inputs, replicas, partitions
