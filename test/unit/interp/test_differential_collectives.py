"""Collectives in random group modes against XLA:CPU with four devices."""

from __future__ import annotations

import numpy as np
import pytest
from xla_devices import run_cases
from xla_execution import SEED, SIZE

from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.machine import run_spmd

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
pytest.importorskip("jaxlib")

COMPUTATIONS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
most { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
"""


def groups_of(rng: np.random.Generator, count: int, *, equal: bool) -> list[list[int]]:
    """A random division of `count` ids, into groups of one size when `equal`."""
    ids = rng.permutation(count).tolist()
    sizes = [s for s in range(1, count + 1) if count % s == 0]
    size = int(rng.choice(sizes))
    if not equal and count > 2 and rng.random() < 0.5:
        return [ids[:1], ids[1:]]
    return [ids[k : k + size] for k in range(0, count, size)]


def case(rng: np.random.Generator) -> tuple[str, list[list[np.ndarray]], int, int]:
    """A module with a few collectives, and inputs for its devices."""
    replicas, partitions = [(4, 1), (1, 4), (2, 2)][int(rng.integers(3))]
    lines, shapes = ["p = f32[4,4] parameter(0)"], []

    def channel(number: int) -> str:
        return f"channel_id={number}, "

    for number in range(1, 5):
        opcode = ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute"][
            int(rng.integers(5))
        ]
        flag = opcode in ("all-reduce", "all-gather", "reduce-scatter")
        mode = int(rng.integers(3)) if flag else int(rng.integers(2))
        if partitions == 1 and mode == 1 and not flag:
            mode = 0
        count = {0: replicas, 1: replicas if flag else partitions, 2: replicas * partitions}[mode]
        text = "" if mode == 0 else channel(number)
        factor = partitions if flag and mode == 1 else 1
        groups = groups_of(rng, count, equal=opcode != "all-reduce")
        size = len(groups[0]) * factor
        listed = "{" + ",".join("{" + ",".join(map(str, g)) + "}" for g in groups) + "}"
        text += f"replica_groups={listed}"
        if mode == 2:
            text += ", use_global_device_ids=true"
        dim = int(rng.integers(2))
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
            targets = rng.permutation(count).tolist()
            pairs = [f"{{{s},{t}}}" for s, t in enumerate(targets) if rng.random() < 0.8]
            if not pairs:
                continue
            text = (
                ("" if mode == 0 else channel(number))
                + "source_target_pairs={"
                + ",".join(pairs)
                + "}"
            )
        if opcode in ("all-reduce", "reduce-scatter"):
            text += f", to_apply={['add', 'most'][int(rng.integers(2))]}"
        result = f"f32[{shape[0]},{shape[1]}]"
        lines.append(f"r{len(shapes)} = {result} {opcode}(p), {text}")
        shapes.append(result)
    names = ", ".join(f"r{k}" for k in range(len(shapes)))
    lines.append(f"ROOT t = ({', '.join(shapes)}) tuple({names})")
    head = f"HloModule m, replica_count={replicas}, num_partitions={partitions}\n"
    text = head + COMPUTATIONS + "ENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"
    inputs = [[rng.integers(-50, 50, (4, 4)).astype(np.float32)] for _ in range(4)]
    return text, inputs, replicas, partitions


def test_collectives_agree_with_xla() -> None:
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    cases = [case(rng) for _ in range(30 * SIZE)]
    answers = run_cases(cases)
    compared = 0
    for (text, inputs, _, _), answer in zip(cases, answers, strict=True):
        if isinstance(answer, str):
            continue
        compared += 1
        ours = run_spmd(parse_module(text), inputs, check=True)
        for mine, theirs in zip(ours, answer, strict=True):
            for a, b in zip(mine, theirs, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=text)
    print(f"{compared} of {len(cases)} programs compared")
    assert compared > len(cases) // 2, [a for a in answers if isinstance(a, str)][:3]
