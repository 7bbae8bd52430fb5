"""Collectives as machine code, against the interpreter: random groups, types, shapes and reducers."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp import run_spmd
from mlirhlo.interp.custom_calls import CUSTOM_CALLS, register_custom_call
from mlirhlo.interp.machine import Machine
from mlirhlo.runtime.compiler import compile_module
from mlirhlo.runtime.executable import Executable

FLOATS = ["f32", "f64", "bf16", "f16", "f8e4m3fn", "f8e5m2"]
INTEGERS = ["s8", "u8", "s32", "u32", "s64"]


def devices_of(text: str) -> tuple[int, int]:
    module = HloModule(parse_module(text))
    return module.replica_count, module.num_partitions


def compiled(text: str) -> Executable:
    return compile_module(parse_module(text), cached=False)


def run_native(executable: Executable, machine: Machine, inputs: list[list[Any]]) -> list[Any]:
    return machine.run_devices(
        lambda r, p: executable.run_on(machine, r, p, inputs[machine.device(r, p)])
    )


def flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple) else [result]


def check(text: str, inputs: list[list[Any]], *, native: bool = True) -> None:
    """Three runs, each the interpreter's results bit for bit."""
    wanted = run_spmd(parse_module(text), inputs)
    executable = compiled(text)
    for _ in range(3):
        found = run_native(executable, Machine(*devices_of(text)), inputs)
        for want, got in zip(wanted, found, strict=True):
            for x, y in zip(want, flat(got), strict=True):
                assert x.dtype == y.dtype
                equal = (x == y) | ((x != x) & (y != y))
                assert np.all(equal), (text, x, y)
    assert not native or not executable.callbacks, executable.callbacks


def values(rng: np.random.Generator, element: str, shape: tuple[int, ...]) -> Any:
    dtype = PRIMITIVE_TYPES[element].dtype
    if element == "pred":
        return rng.integers(0, 2, shape).astype(bool)
    if element in INTEGERS:
        return rng.integers(0, 100, shape).astype(dtype)
    drawn = rng.standard_normal(shape) * 4
    if element.startswith("c"):
        return (drawn + 1j * rng.standard_normal(shape)).astype(dtype)
    drawn[rng.random(shape) < 0.05] = np.nan
    return drawn.astype(dtype)


def reducer(name: str, element: str, kind: str) -> str:
    if kind == "odd":  # a computation of several instructions
        one = {"pred": "true", "c64": "(1, 0)"}.get(element, "1")
        body = f"m = {element}[] multiply(a, b)  c = {element}[] constant({one})  ROOT r = {element}[] add(m, c)"
    else:
        body = f"ROOT r = {element}[] {kind}(a, b)"
    return f"{name} {{ a = {element}[] parameter(0)  b = {element}[] parameter(1)  {body} }}\n"


def draw_groups(rng: random.Random, count: int, *, even: bool) -> list[list[int]]:
    ids = list(range(count))
    rng.shuffle(ids)
    if even:
        size = rng.choice([n for n in range(1, count + 1) if count % n == 0])
        return [ids[k : k + size] for k in range(0, count, size)]
    groups: list[list[int]] = []
    while ids:
        size = rng.randint(1, len(ids))
        groups.append(ids[:size])
        ids = ids[size:]
    return groups


def spelled(groups: list[list[int]]) -> str:
    return "{" + ",".join("{" + ",".join(map(str, g)) + "}" for g in groups) + "}"


MACHINES = ((1, 2), (1, 4), (2, 1), (2, 2), (3, 1), (1, 6))
"""Replicas and partitions."""


def draw(seed: int, machines: Sequence[tuple[int, int]] = MACHINES) -> tuple[str, list[list[Any]]]:
    """A module of one collective, and inputs."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    replicas, partitions = rng.choice(machines)
    devices = replicas * partitions
    opcode = rng.choice(
        [
            "all-reduce",
            "reduce-scatter",
            "all-gather",
            "all-to-all",
            "tuple",
            "permute",
            "broadcast",
        ]
    )
    flagged = opcode in ("all-reduce", "reduce-scatter", "all-gather")
    mode = rng.choice(
        ["replica", "partition", "both", "flat"] if flagged else ["replica", "partition"]
    )
    if mode == "partition" and flagged:
        mode = "flat"
    count = {"replica": replicas, "both": replicas, "partition": partitions, "flat": devices}[mode]
    groups = draw_groups(rng, count, even=opcode != "all-reduce")
    size = len(groups[0]) * (partitions if mode == "both" else 1)
    channel = "" if mode == "replica" else ", channel_id=3"
    if flagged and mode != "replica":
        channel += f", use_global_device_ids={'true' if mode == 'flat' else 'false'}"
    kind = rng.choice(["add", "multiply", "minimum", "maximum", "odd"])
    element = rng.choice([*FLOATS, *INTEGERS, "c64"])
    if kind in ("minimum", "maximum") and element == "c64":
        element = "f32"
    if rng.random() < 0.2:
        kind, element = rng.choice(["and", "or", "xor"]), rng.choice(["pred", "s32", "u8"])
    rank = rng.randint(1, 3)
    dims = [rng.randint(1, 5) for _ in range(rank)]
    dim = rng.randrange(rank)
    dims[dim] *= size
    if rng.random() < 0.3:
        dims[rng.randrange(rank)] *= 997 if opcode == "all-reduce" else 30
    shape = f"{element}[{','.join(map(str, dims))}]"
    attributes = f"replica_groups={spelled(groups)}{channel}"
    head = f"HloModule m, replica_count={replicas}, num_partitions={partitions}\n"
    operands = 1
    if opcode == "all-reduce":
        operands = rng.choice([1, 1, 2])
        shapes = ", ".join([shape] * operands)
        result = shape if operands == 1 else f"({shapes})"
        given = ", ".join(f"x{k}" for k in range(operands))
        line = f"{result} all-reduce({given}), to_apply=f, {attributes}"
    elif opcode == "reduce-scatter":
        less = [n // size if d == dim else n for d, n in enumerate(dims)]
        out = f"{element}[{','.join(map(str, less))}]"
        line = f"{out} reduce-scatter(x0), to_apply=f, dimensions={{{dim}}}, {attributes}"
    elif opcode == "all-gather":
        more = [n * size if d == dim else n for d, n in enumerate(dims)]
        out = f"{element}[{','.join(map(str, more))}]"
        line = f"{out} all-gather(x0), dimensions={{{dim}}}, {attributes}"
    elif opcode == "all-to-all":
        line = f"{shape} all-to-all(x0), dimensions={{{dim}}}, {attributes}"
    elif opcode == "tuple":
        operands = size
        given = ", ".join(f"x{k}" for k in range(operands))
        line = f"({', '.join([shape] * size)}) all-to-all({given}), {attributes}"
    elif opcode == "permute":
        sources, targets = ([*range(count)] for _ in range(2))
        rng.shuffle(targets)
        pairs = [*zip(sources, targets, strict=True)][: rng.randint(0, count)]
        listed = ",".join(f"{{{s},{t}}}" for s, t in pairs)
        line = f"{shape} collective-permute(x0), source_target_pairs={{{listed}}}{channel}"
    else:
        kept = groups[: rng.randint(1, len(groups))]
        line = f"{shape} collective-broadcast(x0), replica_groups={spelled(kept)}{channel}"
    parameters = "\n".join(f"  x{k} = {shape} parameter({k})" for k in range(operands))
    text = f"{head}{reducer('f', element, kind)}ENTRY e {{\n{parameters}\n  ROOT r = {line}\n}}\n"
    inputs = [
        [values(numbers, element, tuple(dims)) for _ in range(operands)] for _ in range(devices)
    ]
    return text, inputs


@pytest.mark.parametrize("seed", range(24))
def test_equals_the_interpreter(seed: int) -> None:
    check(*draw(seed))


SUM = "sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }\n"
HEAD = "HloModule m, num_partitions=2\n" + SUM
ALL = "channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true"


def drawn(*sizes: int) -> list[list[Any]]:
    rng = np.random.default_rng(3)
    return [[rng.standard_normal(n, dtype=np.float32) for n in sizes] for _ in range(2)]


def test_large_arrays_are_shared_out_and_streamed() -> None:
    n = (5 << 20) // 4 + 3
    check(
        f"{HEAD}ENTRY e {{ x = f32[{n}] parameter(0)  ROOT r = f32[{n}] all-reduce(x), to_apply=sum, {ALL} }}",
        drawn(n),
    )


def test_pairs_of_start_and_done() -> None:
    text = f"""{HEAD}
inner {{ p = f32[8] parameter(0)  ROOT g = f32[16] all-gather(p), dimensions={{0}}, {ALL} }}
ENTRY e {{
  x = f32[8] parameter(0)
  a = f32[8] all-reduce-start(x), to_apply=sum, {ALL}
  g = (f32[8], f32[16]) all-gather-start(x), dimensions={{0}}, {ALL.replace("=1", "=2")}
  p = (f32[8], f32[8], u32[], u32[]) collective-permute-start(x), source_target_pairs={{{{1,0}}}}, channel_id=3
  w = ((f32[8]), f32[16]) async-start(x), calls=inner
  y = f32[8] multiply(x, x)
  wd = f32[16] async-done(w), calls=inner
  pd = f32[8] collective-permute-done(p)
  gd = f32[16] all-gather-done(g)
  ad = f32[8] all-reduce-done(a)
  ROOT t = (f32[8], f32[16], f32[8], f32[16], f32[8]) tuple(ad, gd, pd, wd, y)
}}"""
    check(text, drawn(8))


def test_many_rounds_in_a_loop() -> None:
    text = f"""{HEAD}
body {{
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  r = f32[4] all-reduce(v), to_apply=sum, {ALL}
  h = f32[] constant(0.4)
  hb = f32[4] broadcast(h), dimensions={{}}
  w = f32[4] multiply(r, hb)
  ROOT t = (s32[], f32[4]) tuple(n, w)
}}
condition {{
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = s32[] constant(100)
  ROOT c = pred[] compare(i, k), direction=LT
}}
ENTRY e {{
  x = f32[4] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[4]) tuple(z, x)
  w = (s32[], f32[4]) while(t), condition=condition, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1
}}"""
    check(text, drawn(4))


def test_a_channel_of_several_instructions() -> None:
    """Small and large operands, and a pair with work between, take turns in one group."""
    text = f"""{HEAD}
body {{
  s = (s32[], f32[4], f32[9000]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[4] get-tuple-element(s), index=1
  w = f32[9000] get-tuple-element(s), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  h = f32[] constant(0.4)
  hs = f32[4] broadcast(h), dimensions={{}}
  hl = f32[9000] broadcast(h), dimensions={{}}
  a = f32[4] all-reduce(v), to_apply=sum, {ALL}
  am = f32[4] multiply(a, hs)
  b = f32[4] all-reduce(am), to_apply=sum, CHANNEL
  bm = f32[4] multiply(b, hs)
  l = f32[9000] all-reduce(w), to_apply=sum, {ALL}
  lm = f32[9000] multiply(l, hl)
  c = f32[4] all-reduce-start(bm), to_apply=sum, CHANNEL
  x = f32[4] multiply(bm, bm)
  d = f32[4] all-reduce-done(c)
  dm = f32[4] multiply(d, hs)
  e = f32[4] add(dm, x)
  ROOT t = (s32[], f32[4], f32[9000]) tuple(n, e, lm)
}}
condition {{
  s = (s32[], f32[4], f32[9000]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = s32[] constant(60)
  ROOT c = pred[] compare(i, k), direction=LT
}}
ENTRY e {{
  x = f32[4] parameter(0)
  y = f32[9000] parameter(1)
  z = s32[] constant(0)
  t = (s32[], f32[4], f32[9000]) tuple(z, x, y)
  w = (s32[], f32[4], f32[9000]) while(t), condition=condition, body=body
  q = f32[4] get-tuple-element(w), index=1
  r = f32[9000] get-tuple-element(w), index=2
  ROOT o = (f32[4], f32[9000]) tuple(q, r)
}}"""
    for channel in (ALL, ALL.replace("=1", "=2")):
        check(text.replace("CHANNEL", channel), drawn(4, 9000))


def test_work_between_start_and_done_waits_for_nobody() -> None:
    """A device does its work though the other one has not started."""
    worked = threading.Event()

    def gate(op: Any, inputs: Any, frame: Any) -> Any:
        if op.instruction_name == "between" and frame.partition == 0:
            worked.set()
        if op.instruction_name == "before" and frame.partition == 1 and not worked.wait(60):
            raise ValueError("the other device waits in its start")
        return inputs[0]

    register_custom_call("test.gate", gate)
    text = f"""{HEAD.replace("m, ", "m, is_scheduled=true, ")}
ENTRY e {{
  x = f32[4] parameter(0)
  before = f32[4] custom-call(x), custom_call_target="test.gate", custom_call_has_side_effect=true
  s = f32[4] all-reduce-start(before), to_apply=sum, {ALL}
  between = f32[4] custom-call(x), custom_call_target="test.gate", custom_call_has_side_effect=true
  d = f32[4] all-reduce-done(s)
  ROOT r = f32[4] subtract(d, between)
}}"""
    inputs = drawn(4)
    try:
        found = run_native(compiled(text), Machine(1, 2), inputs)
    finally:
        del CUSTOM_CALLS["test.gate"]
    total = inputs[0][0] + inputs[1][0]
    for device in range(2):
        np.testing.assert_array_equal(found[device], total - inputs[device][0])


LOPSIDED = f"""{HEAD}
some {{ x = f32[4] parameter(0)  ROOT r = f32[4] all-reduce(x), to_apply=sum, {ALL} }}
none {{ x = f32[4] parameter(0)  ROOT r = f32[4] negate(x) }}
ENTRY e {{
  x = f32[4] parameter(0)
  i = u32[] partition-id()
  z = u32[] constant(0)
  c = pred[] compare(i, z), direction=EQ
  ROOT r = f32[4] conditional(c, x, x), true_computation=some, false_computation=none
}}"""


def test_a_device_that_never_comes_ends_the_run() -> None:
    executable = compiled(LOPSIDED)
    for _ in range(2):
        with pytest.raises(
            HloError, match=r"HLO0351.*partition 0 waits in all-reduce %r for partition 1"
        ):
            run_native(executable, Machine(1, 2), drawn(4))


def test_an_error_elsewhere_ends_the_waiting() -> None:
    executable, machine = compiled(LOPSIDED), Machine(1, 2)

    def program(replica: int, partition: int) -> Any:
        if partition:
            raise ValueError("of another device")
        return executable.run_on(machine, replica, partition, drawn(4)[0])

    with pytest.raises(ValueError, match="of another device"):
        machine.run_devices(program)


def test_two_runs_at_once() -> None:
    text = f"{HEAD}ENTRY e {{ x = f32[64] parameter(0)  ROOT r = f32[64] all-reduce(x), to_apply=sum, {ALL} }}"
    executable, inputs = compiled(text), drawn(64)
    want = inputs[0][0] + inputs[1][0]
    wrong: list[Any] = []

    def many() -> None:
        for _ in range(20):
            wrong.extend(
                x for x in run_native(executable, Machine(1, 2), inputs) if (x != want).any()
            )

    threads = [threading.Thread(target=many) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_groups_that_do_not_fit_are_told() -> None:
    text = f"{HEAD}ENTRY e {{ x = f32[8] parameter(0)  ROOT r = f32[24] all-gather(x), dimensions={{0}}, {ALL} }}"
    with pytest.raises(HloError, match=r"HLO0354"):
        run_native(compiled(text), Machine(1, 2), drawn(8))
    text = f"{HEAD}ENTRY e {{ x = f32[8] parameter(0)  ROOT r = f32[8] all-reduce(x), to_apply=sum, {ALL} }}"
    with pytest.raises(HloError, match=r"HLO0353"):
        run_native(compiled(text), Machine(1, 1), drawn(8)[:1])


def ragged(
    seed: int, *, element: str = "s32", sizes: list[int] | None = None, count: int = 0
) -> tuple[str, list[list[Any]]]:
    """A ragged all-to-all of two slices for each of `count` or of two or three devices, with gaps between them."""
    rng = np.random.default_rng(seed)
    updates, most = 2, 5
    count = count or int(rng.integers(2, 4))
    group = ",".join(map(str, range(count)))
    slices, room = count * updates, count * updates * most
    text = f"""HloModule m, num_partitions={count}
ENTRY e {{
  x = f32[{room},3,2] parameter(0)  o = f32[{room},3,2] parameter(1)
  a = {element}[{slices}] parameter(2)  s = {element}[{slices}] parameter(3)
  t = {element}[{slices}] parameter(4)  r = {element}[{slices}] parameter(5)
  ROOT y = f32[{room},3,2] ragged-all-to-all(x, o, a, s, t, r), channel_id=1, replica_groups={{{{{group}}}}}
}}"""
    dtype = PRIMITIVE_TYPES[element].dtype
    inputs: list[list[Any]] = []
    for device in range(count):
        rows = [rng.standard_normal((room, 3, 2), dtype=np.float32) for _ in range(2)]
        sent = rng.integers(0, most + 1, slices) if sizes is None else np.array(sizes[:slices])
        # Sender d's slices lie in the receiver's output from d * updates * most on.
        to = [(device * updates + k % updates) * most for k in range(slices)]
        starts = np.arange(slices) * most
        numbers = [starts, sent, np.array(to), sent]
        inputs.append([*rows, *(n.astype(dtype) for n in numbers)])
    return text, inputs


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("element", ["s32", "s64"])
def test_ragged_rows_go_where_the_sender_says(seed: int, element: str) -> None:
    check(*ragged(seed, element=element))


@pytest.mark.parametrize("bad", [-1, 61, 2**31 - 1])
def test_ragged_rows_out_of_bounds_are_told(bad: int) -> None:
    text, inputs = ragged(0, sizes=[1, 2, 3, 4, 5, bad])
    inputs[-1][3][-1] = bad
    with pytest.raises(HloError, match=r"HLO0354.*out of bounds"):
        run_spmd(parse_module(text), inputs)
    executable, machine = compiled(text), Machine(*devices_of(text))
    for _ in range(2):
        with pytest.raises(HloError, match=r"HLO0354.*out of bounds"):
            run_native(executable, machine, inputs)
        with pytest.raises(HloError, match=r"HLO0354.*out of bounds"):
            executable.run_devices(machine, inputs)
    text, inputs = ragged(0)
    for want, got in zip(
        run_spmd(parse_module(text), inputs),
        compiled(text).run_devices(machine, inputs),
        strict=True,
    ):
        np.testing.assert_array_equal(want[0], got)
