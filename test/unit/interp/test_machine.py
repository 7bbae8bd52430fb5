"""The simulated machine: meetings, deadlocks, failures, the host's queues, random state."""

# ruff: noqa: E501  # lines of HLO

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import numpy as np
import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.device_counts import machine_for
from mlirhlo.interp.engine import run_module, run_spmd
from mlirhlo.interp.machine import Machine, infeed_box


def test_devices_are_numbered_replicas_first() -> None:
    machine = Machine(2, 3)
    assert [machine.device(r, p) for r in range(2) for p in range(3)] == list(range(6))
    assert machine.place(4) == (1, 1)
    assert machine.describe(4) == "replica 1 partition 1"
    assert Machine(1, 3).describe(2) == "partition 2"
    assert Machine(3, 1).describe(2) == "replica 2"
    assert Machine().describe(0) == "partition 0"


def test_exchange_gives_every_member_all_values_in_order() -> None:
    machine = Machine(1, 4)

    def program(replica: int, partition: int) -> list[object]:
        group = (1, 0) if partition < 2 else (2, 3)
        first = machine.exchange(partition, "k", group, partition, "a")
        second = machine.exchange(partition, "k", (3, 2, 1, 0), partition * 10, "b")
        return [first, second]

    results = machine.run_devices(program)
    assert [r[0] for r in results] == [[1, 0], [1, 0], [2, 3], [2, 3]]
    assert all(r[1] == [30, 20, 10, 0] for r in results)


def test_rounds_of_one_collective_do_not_mix() -> None:
    machine = Machine(1, 3)

    def program(replica: int, partition: int) -> list[object]:
        return [machine.exchange(partition, "k", (0, 1, 2), (r, partition), "x") for r in range(50)]

    for result in machine.run_devices(program):
        assert result == [[(r, p) for p in range(3)] for r in range(50)]


def test_deadlock_names_who_waits_for_what() -> None:
    machine = Machine(1, 3)

    def program(replica: int, partition: int) -> None:
        if partition != 2:
            machine.exchange(partition, "k", (0, 1, 2), None, "all-reduce %sum")

    with pytest.raises(HloError) as caught:
        machine.run_devices(program)
    assert caught.value.code == "HLO0351"
    text = str(caught.value)
    assert "waits in all-reduce %sum for partition 2" in text
    assert "partition 2 is not running" in text


def test_deadlock_of_two_different_collectives() -> None:
    machine = Machine(1, 2)
    with pytest.raises(HloError, match="HLO0351"):
        machine.run_devices(lambda r, p: machine.exchange(p, "a" if p else "b", (0, 1), None, "x"))


def test_an_error_on_one_device_stops_all() -> None:
    machine = Machine(1, 3)

    def program(replica: int, partition: int) -> None:
        if partition == 1:
            raise ValueError("broken")
        machine.exchange(partition, "k", (0, 1, 2), None, "x")

    with pytest.raises(ValueError, match="broken"):
        machine.run_devices(program)
    # The machine is usable afterwards.
    assert (
        machine.run_devices(lambda r, p: machine.exchange(p, "k", (0, 1, 2), p, "x"))
        == [[0, 1, 2]] * 3
    )


def _fails(replica: int, partition: int) -> None:
    raise ValueError("broken")


def _waits_for_ever(machine: Machine) -> Callable[[int, int], object]:
    return lambda r, p: machine.exchange(p, ("all-reduce", p), (0, 1), p, "all-reduce %r")


@pytest.mark.parametrize("kind", ["one device", "several devices", "deadlock"])
def test_an_error_is_gone_once_it_is_handled(kind: str) -> None:
    """What the error's traceback refers to must not wait for a collection of cycles."""
    machine = Machine(1, 1 if kind == "one device" else 2)
    program = _waits_for_ever(machine) if kind == "deadlock" else _fails

    def run() -> None:
        with pytest.raises((ValueError, HloError)):
            machine.run_devices(program)

    run()
    gc.collect()
    gc.disable()
    try:
        run()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_one_device_alone_cannot_meet_others() -> None:
    machine = Machine(1, 2)
    with pytest.raises(HloError, match="partition 1 is not running"):
        machine.exchange(0, "k", (0, 1), None, "all-gather %g")


def test_from_host_is_an_error_when_nothing_was_fed() -> None:
    with pytest.raises(HloError, match="HLO0352"):
        Machine().from_host(infeed_box(0), "infeed %i")


def test_from_host_waits_for_another_thread() -> None:
    machine = Machine(host_timeout_s=10)
    timer = threading.Timer(0.02, lambda: machine.feed(np.float32(3)))
    timer.start()
    assert machine.from_host(infeed_box(0), "infeed %i") == np.float32(3)
    timer.join()


def test_rng_state_moves_on_by_delta() -> None:
    machine = Machine()
    first = machine.advance_rng_state(0, 5)
    assert first == 0x7012395
    assert machine.advance_rng_state(0, 1) == first + 5


def test_run_spmd_checks_the_number_of_devices() -> None:
    module = parse_module(
        "HloModule m, num_partitions=4\nENTRY e { ROOT p = f32[] parameter(0) }\n"
    )
    with pytest.raises(HloError, match="HLO0353"):
        run_spmd(module, [[1.0], [2.0]])
    assert [r[0] for r in run_spmd(module, [[1.0]])] == [1.0] * 4


def test_for_module_finds_manual_computations() -> None:
    module = parse_module(
        """HloModule m, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=2, "b"=3]>}}
ENTRY e {
  p = f32[6] parameter(0)
  l = f32[3] custom-call(p), custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\\"a\\"}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\\"a\\"}>"}
  n = f32[3] negate(l)
  ROOT g = f32[6] custom-call(n), custom_call_target="xla.sdy.LocalToGlobalShape", frontend_attributes={xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{\\"a\\"}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\\"a\\"}>"}
}
"""
    )
    machine = machine_for(module)
    assert machine.partitions == 6
    x = np.arange(6, dtype=np.float32)
    for (result,) in run_spmd(module, [[x]], machine=machine):
        np.testing.assert_array_equal(result, -x)
    with pytest.raises(HloError, match="HLO0353"):
        run_spmd(module, [[x]], machine=Machine())


@pytest.mark.parametrize(
    ("header", "collective", "wanted"),
    [
        ("", "all-reduce(p), replica_groups={{0,3},{1,2}}, to_apply=add", (4, 1)),
        ("", "all-reduce(p), channel_id=1, replica_groups={{0,1,2}}, to_apply=add", (3, 1)),
        (
            "",
            "all-reduce(p), channel_id=1, replica_groups=[2,3]<=[6], use_global_device_ids=true, to_apply=add",
            (1, 6),
        ),
        (
            ", replica_count=2",
            "all-reduce(p), channel_id=1, replica_groups={{0,1,2,3,4,5}}, use_global_device_ids=true, to_apply=add",
            (2, 3),
        ),
        ("", "collective-permute(p), channel_id=1, source_target_pairs={{0,3}}", (1, 4)),
        ("", "collective-permute(p), source_target_pairs={{2,0}}", (3, 1)),
        ("", "all-reduce(p), replica_groups={}, to_apply=add", (1, 1)),
        # What the header says stands, even against the groups.
        (
            ", replica_count=2, num_partitions=2",
            "collective-permute(p), source_target_pairs={{0,7}}",
            (2, 2),
        ),
        (", num_partitions=5", "negate(p)", (1, 5)),
    ],
)
def test_for_module_counts_the_devices_that_collectives_name(
    header: str, collective: str, wanted: tuple[int, int]
) -> None:
    module = parse_module(
        f"HloModule m{header}\nadd {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
        " ROOT c = f32[] add(a, b) }\n"
        f"ENTRY e {{ p = f32[] parameter(0)\n ROOT r = f32[] {collective} }}\n"
    )
    machine = machine_for(module)
    assert (machine.replicas, machine.partitions) == wanted


def test_devices_that_only_the_groups_name_run() -> None:
    module = parse_module(
        "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
        " ROOT c = f32[] add(a, b) }\n"
        "ENTRY e { p = f32[] parameter(0)\n"
        " ROOT r = f32[] all-reduce(p), replica_groups={{0,1},{2,3}}, to_apply=add }\n"
    )
    got = run_spmd(module, [[1.0], [2.0], [4.0], [8.0]])
    assert [float(result) for (result,) in got] == [3, 3, 12, 12]


def test_a_run_from_outside_brings_the_other_devices_along() -> None:
    text = (
        "HloModule m, num_partitions=3\n"
        "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
        "ENTRY e { i = u32[] partition-id()\n f = f32[] convert(i)\n p = f32[] parameter(0)\n"
        " q = f32[] add(f, p)\n"
        " r = f32[] all-reduce(q), channel_id=1, replica_groups={{0,1,2}}, use_global_device_ids=true, to_apply=add\n"
        " ROOT t = (f32[], u32[]) tuple(r, i) }\n"
    )
    total, number = run_module(parse_module(text), [1.0], partition=2)
    assert (float(total), int(number)) == (6.0, 2)
