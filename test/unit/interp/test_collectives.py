"""Collectives on simulated replicas and partitions."""

# ruff: noqa: E501  # lines of HLO

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.engine import run_spmd
from mlirhlo.interp.machine import Machine

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"


def run(
    body: str,
    inputs: Sequence[Sequence[object]],
    replicas: int = 1,
    partitions: int = 1,
    computations: str = ADD,
) -> list[list[list[float]]]:
    """Outputs as lists on every device; results are checked against their declared shapes."""
    text = f"HloModule m, replica_count={replicas}, num_partitions={partitions}\n{computations}ENTRY e {{\n{body}\n}}\n"
    return [[o.tolist() for o in r] for r in run_spmd(parse_module(text), inputs, check=True)]


def ramp(count: int, size: int = 2) -> list[list[np.ndarray]]:
    """`[10 d, 10 d + 1, …]` on device d."""
    return [[np.arange(size, dtype=np.float32) + 10 * d] for d in range(count)]


def test_all_reduce_across_replicas_keeps_partitions_apart() -> None:
    got = run(
        "p = f32[1] parameter(0)\nROOT r = f32[1] all-reduce(p), replica_groups={}, to_apply=add",
        ramp(4, 1),
        2,
        2,
    )
    assert got == [[[20]], [[40]], [[20]], [[40]]]


@pytest.mark.parametrize(
    ("attributes", "want"),
    [
        ("channel_id=1, replica_groups={{0},{1}}", [10, 10, 50, 50]),
        ("channel_id=1, replica_groups={{0,1}}", [60, 60, 60, 60]),
        ("channel_id=1, replica_groups={{0,3},{1,2}}, use_global_device_ids=true", [30] * 4),
        ("channel_id=1, replica_groups=[2,2]<=[2,2]T(1,0), use_global_device_ids=true", [20, 40, 20, 40]),
        ("channel_id=1, replica_groups=mesh['x'=2,'y'=2] {'y'}, use_global_device_ids=true", [10, 10, 50, 50]),
    ],
)  # fmt: skip
def test_all_reduce_group_modes(attributes: str, want: list[float]) -> None:
    got = run(
        f"p = f32[1] parameter(0)\nROOT r = f32[1] all-reduce(p), {attributes}, to_apply=add",
        ramp(4, 1),
        2,
        2,
    )
    assert [r[0] for r in got] == [[w] for w in want]


def test_all_reduce_of_several_operands_by_any_computation() -> None:
    got = run(
        "p = f32[2] parameter(0)\nq = f32[2] negate(p)\n"
        "ROOT r = (f32[2], f32[2]) all-reduce(p, q), replica_groups={}, to_apply=most",
        ramp(2),
        2,
        computations="most { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }\n",
    )
    assert got == [[[10, 11], [0, -1]]] * 2


def test_all_reduce_start_and_done() -> None:
    got = run(
        "p = f32[2] parameter(0)\n"
        "s = f32[2] all-reduce-start(p), replica_groups={}, to_apply=add\n"
        "ROOT r = f32[2] all-reduce-done(s)",
        ramp(2),
        2,
    )
    assert got == [[[10, 12]]] * 2


def test_all_gather_in_the_order_of_the_group() -> None:
    got = run(
        "p = f32[1] parameter(0)\n"
        "ROOT r = f32[2] all-gather(p), dimensions={0}, replica_groups={{2,0},{1,3}}",
        ramp(4, 1),
        4,
    )
    assert got == [[[20, 0]], [[10, 30]], [[20, 0]], [[10, 30]]]


def test_all_gather_start_with_one_and_two_operands() -> None:
    one = run(
        "p = f32[1] parameter(0)\n"
        "s = (f32[1], f32[2]) all-gather-start(p), dimensions={0}, replica_groups={}\n"
        "ROOT r = f32[2] all-gather-done(s)",
        ramp(2, 1),
        2,
    )
    assert one == [[[0, 10]]] * 2
    two = run(
        "p = f32[1] parameter(0)\nq = f32[1] negate(p)\n"
        "s = ((f32[1], f32[1]), (f32[2], f32[2])) all-gather-start(p, q), dimensions={0}, replica_groups={}\n"
        "ROOT r = (f32[2], f32[2]) all-gather-done(s)",
        ramp(2, 1),
        2,
    )
    assert two == [[[0, 10], [0, -10]]] * 2


def test_reduce_scatter_keeps_the_own_part() -> None:
    got = run(
        "p = f32[2] parameter(0)\n"
        "ROOT r = f32[1] reduce-scatter(p), dimensions={0}, replica_groups={{1,0}}, to_apply=add",
        ramp(2),
        2,
    )
    assert got == [[[12]], [[10]]]


def test_reduce_scatter_of_an_indivisible_dimension() -> None:
    with pytest.raises(HloError, match="HLO0354"):
        run(
            "p = f32[3] parameter(0)\n"
            "ROOT r = f32[1] reduce-scatter(p), dimensions={0}, replica_groups={}, to_apply=add",
            ramp(2, 3),
            2,
        )


def test_all_to_all_array_and_tuple_forms() -> None:
    array = run(
        "p = f32[2] parameter(0)\n"
        "ROOT r = f32[2] all-to-all(p), dimensions={0}, replica_groups={{1,0}}",
        ramp(2),
        2,
    )
    assert array == [[[11, 1]], [[10, 0]]]
    tuples = run(
        "p = f32[2] parameter(0)\nq = f32[2] negate(p)\n"
        "ROOT r = (f32[2], f32[2]) all-to-all(p, q), replica_groups={{0,1}}",
        ramp(2),
        2,
    )
    assert tuples == [[[0, 1], [10, 11]], [[0, -1], [-10, -11]]]


def test_ragged_all_to_all() -> None:
    body = """
  input = f32[4] parameter(0)
  output = f32[4] parameter(1)
  in_offsets = s32[2] parameter(2)
  sizes = s32[2] parameter(3)
  out_offsets = s32[2] parameter(4)
  received = s32[2] parameter(5)
  ROOT r = f32[4] ragged-all-to-all(input, output, in_offsets, sizes, out_offsets, received), replica_groups={{0,1}}"""
    s32 = np.int32
    zero = np.full(4, -1, np.float32)
    first = [
        np.arange(4, dtype=np.float32),
        zero,
        s32([0, 1]),
        s32([1, 3]),
        s32([0, 0]),
        s32([1, 1]),
    ]
    second = [
        np.arange(4, dtype=np.float32) + 10,
        zero,
        s32([0, 1]),
        s32([1, 1]),
        s32([1, 3]),
        s32([3, 1]),
    ]
    got = run(body, [first, second], 2)
    assert got == [[[0, 10, -1, -1]], [[1, 2, 3, 11]]]
    first[3] = s32([1, 4])
    with pytest.raises(HloError, match="HLO0354"):
        run(body, [first, second], 2)


def test_collective_permute_gives_zeros_without_a_source() -> None:
    got = run(
        "p = f32[2] parameter(0)\n"
        "ROOT r = f32[2] collective-permute(p), source_target_pairs={{0,1},{1,2}}",
        ramp(3),
        3,
    )
    assert got == [[[0, 0]], [[0, 1]], [[10, 11]]]


def test_collective_permute_across_partitions_start_done_and_several_operands() -> None:
    got = run(
        "p = f32[2] parameter(0)\nq = f32[2] negate(p)\n"
        "s = ((f32[2], f32[2]), (f32[2], f32[2]), u32[], u32[]) collective-permute-start(p, q), channel_id=3, source_target_pairs={{0,1},{1,0}}\n"
        "ROOT r = (f32[2], f32[2]) collective-permute-done(s)",
        ramp(2),
        1,
        2,
    )
    assert got == [[[10, 11], [-10, -11]], [[0, 1], [0, -1]]]


def test_collective_permute_in_place() -> None:
    body = """
  p = f32[4] parameter(0)
  q = f32[4] negate(p)
  two = s32[] constant(2)
  one = s32[] constant(1)
  from = (s32[]) tuple(two)
  to = (s32[]) tuple(one)
  ROOT r = f32[4] collective-permute(p, q, from, to), source_target_pairs={{0,1}}, slice_sizes={{2}}"""
    got = run(body, ramp(2, 4), 2)
    assert got == [[[0, -1, -2, -3]], [[-10, 2, 3, -13]]]


def test_several_slices_to_several_devices_are_sound_but_have_no_meaning() -> None:
    text = """HloModule m, replica_count=3
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] negate(p)
  zero = s32[] constant(0)
  two = s32[] constant(2)
  low = (s32[]) tuple(zero)
  high = (s32[]) tuple(two)
  both = ((s32[]), (s32[])) tuple(low, high)
  ROOT r = f32[4] collective-permute(p, q, both, both), source_target_pairs={{0,1},{0,2}}, slice_sizes={{2},{2}}
}"""
    module = parse_module(text)
    assert verify_module(module) == []
    inputs = [[np.zeros(4, np.float32)] for _ in range(3)]
    with pytest.raises(HloError, match=r"HLO0354.*source or a target of several pairs"):
        run_spmd(module, inputs, machine=Machine(3, 1))


def test_collective_broadcast_and_reduce() -> None:
    got = run(
        "p = f32[1] parameter(0)\n"
        "b = f32[1] collective-broadcast(p), replica_groups={{1,0},{2}}\n"
        "ROOT t = (f32[1]) tuple(b)",
        ramp(3, 1),
        3,
    )
    assert got == [[[10]], [[10]], [[20]]]


def test_replica_and_partition_id() -> None:
    got = run(
        "r = u32[] replica-id()\np = u32[] partition-id()\nROOT t = (u32[], u32[]) tuple(r, p)",
        [[]],
        2,
        2,
    )
    assert got == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_one_device_is_a_group_of_its_own() -> None:
    got = run(
        "p = f32[2] parameter(0)\n"
        "a = f32[2] all-reduce(p), replica_groups={}, to_apply=add\n"
        "b = f32[2] all-gather(a), dimensions={0}, replica_groups={{0}}\n"
        "c = f32[2] reduce-scatter(b), dimensions={0}, replica_groups={}, to_apply=add\n"
        "d = f32[2] all-to-all(c), dimensions={0}, replica_groups={}\n"
        "ROOT e = f32[2] collective-permute(d), source_target_pairs={{0,0}}",
        ramp(1),
    )
    assert got == [[[0, 1]]]


@pytest.mark.parametrize(
    "groups", ["replica_groups={{0,7}}", "replica_groups={{1}}", "source_target_pairs={{0,7}}"]
)
def test_groups_that_do_not_fit_the_machine(groups: str) -> None:
    opcode = (
        f"collective-permute(p), {groups}"
        if "pairs" in groups
        else f"all-reduce(p), {groups}, to_apply=add"
    )
    with pytest.raises(HloError, match="HLO0353"):
        run(f"p = f32[2] parameter(0)\nROOT r = f32[2] {opcode}", ramp(2), 2)


def test_deadlock_points_at_the_instruction() -> None:
    body = """
  p = f32[2] parameter(0)
  r = u32[] replica-id()
  zero = u32[] constant(0)
  first = pred[] compare(r, zero), direction=EQ
  ROOT c = f32[2] conditional(first, p, p), true_computation=meet, false_computation=leave"""
    computations = (
        ADD
        + "meet { p = f32[2] parameter(0) ROOT r = f32[2] all-reduce(p), replica_groups={}, to_apply=add }\n"
        + "leave { ROOT p = f32[2] parameter(0) }\n"
    )
    with pytest.raises(HloError) as caught:
        run(body, ramp(2), 2, computations=computations)
    assert caught.value.code == "HLO0351"
    place = caught.value.diagnostics[0].place
    assert place is not None
    assert place.line > 0


def test_collectives_inside_a_loop_and_an_async_computation() -> None:
    computations = (
        ADD
        + """go { s = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }
step { s = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[2] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[2] all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add
  ROOT t = (s32[], f32[2]) tuple(j, y) }
wrapped { x = f32[2] parameter(0)
  ROOT y = f32[1] reduce-scatter(x), replica_groups={{0,1}}, dimensions={0}, to_apply=add }
"""
    )
    body = """
  p = f32[2] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[2]) tuple(zero, p)
  w = (s32[], f32[2]) while(s), condition=go, body=step
  x = f32[2] get-tuple-element(w), index=1
  a = ((f32[2]), f32[1], u32[]) async-start(x), calls=wrapped
  ROOT d = f32[1] async-done(a), calls=wrapped"""
    # Partitions of one replica only meet in the loop when the ids are global; here they are replicas 0 and 1.
    assert run(body, ramp(2), 2, computations=computations) == [[[80]], [[96]]]


def test_machines_can_be_larger_than_the_header_says() -> None:
    module = parse_module(
        f"HloModule m\n{ADD}ENTRY e {{ p = f32[1] parameter(0) ROOT r = f32[1] all-reduce(p), replica_groups={{}}, to_apply=add }}\n"
    )
    got = run_spmd(module, ramp(3, 1), machine=Machine(3, 1))
    assert [r[0].tolist() for r in got] == [[30.0]] * 3
