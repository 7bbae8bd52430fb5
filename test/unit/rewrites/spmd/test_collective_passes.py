"""The passes over collectives: each changes what it is about, and every device computes the same."""

from __future__ import annotations

import numpy as np
import pytest
from support import SEED

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.formats.hlo_text import PrintOptions, parse_module, print_module
from mlirhlo.interp import run_spmd
from mlirhlo.interp.machine import Machine
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

HEAD = """HloModule m, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b)
}

ENTRY main {
  x = f32[8,6] parameter(0)
  y = f32[8,6] parameter(1)
  here = partition-id()
  number = s32[] convert(here)
  two = s32[] constant(2)
  none = s32[] constant(0)
  start = s32[] multiply(number, two)
"""
ALL = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true"
PAIRS = "channel_id=2, replica_groups={{0,1},{2,3}}, use_global_device_ids=true"
ACROSS = "channel_id=3, replica_groups={{0,2},{1,3}}, use_global_device_ids=true"
SUM = f"{ALL}, to_apply=add"


def ran(lines: str, pipeline: str) -> tuple[str, str, bool]:
    """The opcodes of the entry before and after; results compared on four devices."""
    text = HEAD + "".join(f"  {line.strip()}\n" for line in lines.strip().split("\n")) + "}\n"
    module = parse_module(text.replace("partition-id()", "u32[] partition-id()"))
    before = [op.opcode.name for op in HloModule(module).entry.instructions]
    random = np.random.default_rng(SEED)
    inputs = [[random.normal(size=(8, 6)).astype(np.float32) for _ in "xy"] for _ in range(4)]
    wanted = run_spmd(module, inputs, machine=Machine(1, 4), check=True)
    result = run_pipeline(module, parse_pipeline(f"{pipeline},dce"))
    assert verify_module(module) == []
    again = parse_module(print_module(module, PrintOptions(large_constants=True)))
    got = run_spmd(again, inputs, machine=Machine(1, 4), check=True)
    for a, b in zip(got, wanted, strict=True):
        for found, want in zip(a, b, strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    after = [op.opcode.name for op in HloModule(module).entry.instructions]
    assert all(isinstance(p.shape, ArrayShape) for p in HloModule(module).entry.parameters)
    return " ".join(before), " ".join(after), result.changed


TWO_SUMS = f"""
    p = f32[8,6] all-reduce(x), {SUM}
    q = f32[8,6] all-reduce(y), {SUM}
    ROOT r = (f32[8,6], f32[8,6]) tuple(p, q)"""
CASES = {
    "all-reduce-combiner": (TWO_SUMS, 2, 1, "all-reduce"),
    "all-reduce-combiner chain": (
        f"""p = f32[8,6] all-reduce(x), {SUM}
        n = f32[8,6] negate(p)
        q = f32[8,6] all-reduce(n), {SUM}
        s = f32[8,6] all-reduce(y), {SUM}
        ROOT r = (f32[8,6], f32[8,6]) tuple(q, s)""",
        3,
        2,
        "all-reduce",
    ),
    "all-gather-combiner": (
        f"""p = f32[32,6] all-gather(x), {ALL}, dimensions={{0}}
        n = f32[32,6] negate(p)
        z = f32[8,6] sine(y)
        q = f32[32,6] all-gather(z), {ALL}, dimensions={{0}}
        ROOT r = (f32[32,6], f32[32,6]) tuple(n, q)""",
        2,
        1,
        "all-gather",
    ),
    "reduce-scatter-combiner": (
        f"""p = f32[2,6] reduce-scatter(x), {SUM}, dimensions={{0}}
        q = f32[2,6] reduce-scatter(y), {SUM}, dimensions={{0}}
        ROOT r = (f32[2,6], f32[2,6]) tuple(p, q)""",
        2,
        1,
        "reduce-scatter",
    ),
    "collective-permute-combiner": (
        """p = f32[8,6] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2},{2,0}}
        q = f32[8,6] collective-permute(y), channel_id=1, source_target_pairs={{0,1},{1,2},{2,0}}
        ROOT r = (f32[8,6], f32[8,6]) tuple(p, q)""",
        2,
        1,
        "collective-permute",
    ),
    "all-reduce-reassociate": (
        f"""p = f32[8,6] all-reduce(x), {SUM}
        q = f32[8,6] all-reduce(y), {SUM}
        ROOT r = f32[8,6] add(p, q)""",
        2,
        1,
        "all-reduce",
    ),
    "reduce-scatter-reassociate": (
        f"""p = f32[2,6] reduce-scatter(x), {SUM}, dimensions={{0}}
        q = f32[2,6] reduce-scatter(y), {SUM}, dimensions={{0}}
        ROOT r = f32[2,6] add(p, q)""",
        2,
        1,
        "reduce-scatter",
    ),
    "reduce-scatter-creator": (
        f"""p = f32[8,6] all-reduce(x), {SUM}
        ROOT r = f32[2,6] dynamic-slice(p, start, none), dynamic_slice_sizes={{2,6}}""",
        1,
        0,
        "all-reduce",
    ),
    "all-gather-dynamic-slice-simplifier": (
        f"""u = f32[2,6] slice(x), slice={{[0:2], [0:6]}}
        p = f32[8,6] all-gather(u), {ALL}, dimensions={{0}}
        ROOT r = f32[2,6] dynamic-slice(p, start, none), dynamic_slice_sizes={{2,6}}""",
        1,
        0,
        "all-gather",
    ),
    "all-gather-optimizer": (
        f"""p = f32[32,6] all-gather(x), {ALL}, dimensions={{0}}
        q = f32[32,6] all-gather(y), {ALL}, dimensions={{0}}
        ROOT r = pred[32,6] compare(p, q), direction=LT""",
        2,
        1,
        "all-gather",
    ),
    "all-gather-bcast-reorder": (
        f"""b = f32[5,8,6] broadcast(x), dimensions={{1,2}}
        ROOT r = f32[5,32,6] all-gather(b), {ALL}, dimensions={{1}}""",
        1,
        1,
        "all-gather",
    ),
    "all-gather-remove-degenerate-dims": (
        f"""b = f32[8,1,6] reshape(x)
        ROOT r = f32[32,1,6] all-gather(b), {ALL}, dimensions={{0}}""",
        1,
        1,
        "all-gather",
    ),
    "all-reduce-simplifier": (
        """p = f32[8,6] all-reduce(x), channel_id=1, replica_groups={{0},{1},{2},{3}}, use_global_device_ids=true, to_apply=add
        ROOT r = f32[8,6] negate(p)""",
        1,
        0,
        "all-reduce",
    ),
    "all-reduce-folder": (
        f"""p = f32[8,6] all-reduce(x), {PAIRS}, to_apply=max
        ROOT r = f32[8,6] all-reduce(p), {ACROSS}, to_apply=max""",
        2,
        1,
        "all-reduce",
    ),
    "all_gather_decomposer": (
        f"ROOT p = f32[8,24] all-gather(x), {ALL}, dimensions={{1}}",
        1,
        0,
        "all-gather",
    ),
    "reduce-scatter-decomposer": (
        f"ROOT p = f32[4,6] reduce-scatter(x), {ACROSS}, to_apply=add, dimensions={{0}}",
        1,
        0,
        "reduce-scatter",
    ),
    "all-reduce-decomposer": (f"ROOT p = f32[8,6] all-reduce(x), {SUM}", 1, 0, "all-reduce"),
    "all_to_all_decomposer": (
        "ROOT p = f32[8,6] all-to-all(x), channel_id=1, replica_groups={{3,2,1,0}}, dimensions={0}",
        0,
        4,
        "slice",
    ),
    "all-gather-cse": (
        f"""p = f32[32,6] all-gather(x), {ALL}, dimensions={{0}}
        o = f32[8,6] opt-barrier(x)
        q = f32[32,6] all-gather(o), {ALL}, dimensions={{0}}
        ROOT r = f32[32,6] add(p, q)""",
        2,
        1,
        "all-gather",
    ),
    "all-reduce-contiguous": (
        f"ROOT r = (f32[8,6], f32[8,6]) all-reduce(x, y), {SUM}",
        0,
        1,
        "concatenate",
    ),
    "async-collective-creator": (TWO_SUMS, 0, 2, "all-reduce-start"),
}
ELSEWHERE = {"all-reduce-promotion", "convert-async-collectives-to-sync"}
"""Passes over other types and over schedules; their cases are in `listed_cases.py` and lit."""
STAY = {
    "all-gather-cse": f"""p = f32[32,6] all-gather(x), {ALL}, dimensions={{0}}
        q = f32[32,6] all-gather(y), {ALL}, dimensions={{0}}
        ROOT r = f32[32,6] add(p, q)""",
    "all-reduce-contiguous": TWO_SUMS,
    "async-collective-creator": "ROOT r = f32[8,6] add(x, y)",
    "all-reduce-combiner": TWO_SUMS.replace("to_apply=add", "to_apply=max", 1),
    "all-gather-combiner": f"""p = f32[32,6] all-gather(x), {ALL}, dimensions={{0}}
        q = f32[8,24] all-gather(y), {ALL}, dimensions={{1}}
        ROOT r = (f32[32,6], f32[8,24]) tuple(p, q)""",
    "reduce-scatter-combiner": f"""p = f32[2,6] reduce-scatter(x), {SUM}, dimensions={{0}}
        q = f32[4,6] reduce-scatter(y), {PAIRS}, dimensions={{0}}, to_apply=add
        ROOT r = (f32[2,6], f32[4,6]) tuple(p, q)""",
    "collective-permute-combiner": """p = f32[8,6] collective-permute(x), channel_id=1, source_target_pairs={{0,1}}
        q = f32[8,6] collective-permute(y), channel_id=2, source_target_pairs={{1,0}}
        ROOT r = (f32[8,6], f32[8,6]) tuple(p, q)""",
    "all-reduce-reassociate": f"""p = f32[8,6] all-reduce(x), {SUM}
        q = f32[8,6] all-reduce(y), {SUM}
        ROOT r = f32[8,6] maximum(p, q)""",
    "reduce-scatter-reassociate": f"""p = f32[2,6] reduce-scatter(x), {SUM}, dimensions={{0}}
        q = f32[2,6] reduce-scatter(y), {SUM}, dimensions={{0}}
        s = f32[2,6] add(p, q)
        ROOT r = f32[2,6] add(s, p)""",
    "reduce-scatter-creator": f"""p = f32[8,6] all-reduce(x), {SUM}
        ROOT r = f32[2,6] dynamic-slice(p, number, none), dynamic_slice_sizes={{2,6}}""",
    "all-gather-dynamic-slice-simplifier": f"""u = f32[2,6] slice(x), slice={{[0:2], [0:6]}}
        p = f32[8,6] all-gather(u), {ALL}, dimensions={{0}}
        ROOT r = f32[2,6] dynamic-slice(p, two, none), dynamic_slice_sizes={{2,6}}""",
    "all-gather-optimizer": f"""p = f32[32,6] all-gather(x), {ALL}, dimensions={{0}}
        ROOT r = f32[32,6] add(p, p)""",
    "all-gather-bcast-reorder": f"ROOT p = f32[32,6] all-gather(x), {ALL}, dimensions={{0}}",
    "all-gather-remove-degenerate-dims": f"ROOT p = f32[32,6] all-gather(x), {ALL}, dimensions={{0}}",
    "all-reduce-simplifier": f"ROOT p = f32[8,6] all-reduce(x), {PAIRS}, to_apply=add",
    "all-reduce-folder": f"""p = f32[8,6] all-reduce(x), {PAIRS}, to_apply=add
        ROOT r = f32[8,6] all-reduce(p), {PAIRS}, to_apply=add""",
    "all_gather_decomposer": "ROOT p = f32[8,6] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add",
    "reduce-scatter-decomposer": f"ROOT p = f32[32,6] all-gather(x), {ALL}, dimensions={{0}}",
    "all-reduce-decomposer": f"s = f32[3,5] slice(x), slice={{[0:3], [0:5]}}\nROOT p = f32[3,5] all-reduce(s), {SUM}",
    "all_to_all_decomposer": f"ROOT p = f32[32,6] all-gather(x), {ALL}, dimensions={{0}}",
}


@pytest.mark.parametrize("name", CASES)
def test_changes(name: str) -> None:
    lines, before, after, opcode = CASES[name]
    old, new, changed = ran(lines, name.split(" ")[0])
    assert changed
    assert old.split(" ").count(opcode) == before
    assert new.split(" ").count(opcode) == after


@pytest.mark.parametrize("name", STAY)
def test_stays(name: str) -> None:
    text = HEAD.replace("partition-id()", "u32[] partition-id()")
    lines = "".join(f"  {line.strip()}\n" for line in STAY[name].strip().split("\n"))
    module = parse_module(text + lines + "}\n")
    before = print_module(module)
    assert not run_pipeline(module, parse_pipeline(name)).changed
    assert print_module(module) == before


def test_every_pass_has_both() -> None:
    from mlirhlo.rewrites.registry import _BUILTIN  # pyright: ignore[reportPrivateUsage]

    named = {name for name, target in _BUILTIN.items() if target.startswith("collectives.")}
    assert {name.split(" ")[0] for name in CASES} == named - ELSEWHERE == set(STAY)


def test_thresholds() -> None:
    module = parse_module(
        HEAD.replace("partition-id()", "u32[] partition-id()") + TWO_SUMS + "\n}\n"
    )
    passes = "all-reduce-combiner{combine-threshold-in-bytes=300}"
    assert not run_pipeline(module, parse_pipeline(passes)).changed
    passes = "all-reduce-combiner{combine-threshold-count=1}"
    assert not run_pipeline(module, parse_pipeline(passes)).changed


REPLICAS = HEAD.replace("num_partitions=4", "replica_count=2, num_partitions=2").replace(
    "  here = partition-id()\n  number = s32[] convert(here)\n",
    """  replica = u32[] replica-id()
  one_of = u32[] constant(2)
  first = u32[] multiply(replica, one_of)
  partition = u32[] partition-id()
  device = u32[] add(first, partition)
  number = s32[] convert(device)
""",
)
"""Two replicas of two partitions each; `number` is the device's, `start` that of its tile of two."""

MODES = {
    "replicas": "replica_groups={{1,0}}",
    "replicas with their partitions": "channel_id=1, replica_groups={{1,0}}",
    "each replica with its partitions": "channel_id=1, replica_groups={{0},{1}}",
    "devices": "channel_id=1, replica_groups={{3,0,1,2}}, use_global_device_ids=true",
    "pairs of devices": "channel_id=1, replica_groups={{3,0},{1,2}}, use_global_device_ids=true",
}
"""Who meets, by what the ids of groups are."""
COUNTS = (2, 4, 2, 4, 2)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "all_gather_decomposer",
            "ROOT p = f32[{many},6] all-gather(x), {groups}, dimensions={{0}}",
        ),
        (
            "reduce-scatter-decomposer",
            "ROOT p = f32[{few},6] reduce-scatter(x), {groups}, dimensions={{0}}, to_apply=add",
        ),
        ("all-reduce-decomposer", "ROOT p = f32[8,6] all-reduce(x), {groups}, to_apply=add"),
        (
            "reduce-scatter-reassociate",
            """p = f32[{few},6] reduce-scatter(x), {groups}, dimensions={{0}}, to_apply=add
            q = f32[{few},6] reduce-scatter(y), {groups}, dimensions={{0}}, to_apply=add
            ROOT r = f32[{few},6] add(p, q)""",
        ),
    ],
)
def test_every_mode(mode: str, name: str, line: str) -> None:
    count = COUNTS[list(MODES).index(mode)]
    lines = line.format(many=8 * count, few=8 // count, groups=MODES[mode])
    assert on_replicas(lines, name)


@pytest.mark.parametrize(
    ("name", "lines", "changes"),
    [
        (
            "reduce-scatter-creator",
            """p = f32[8,6] all-reduce(x), channel_id=1, replica_groups={{0,1}}, to_apply=add
            ROOT r = f32[2,6] dynamic-slice(p, start, none), dynamic_slice_sizes={2,6}""",
            True,
        ),
        (  # the tile is that of the device, but only replicas meet
            "reduce-scatter-creator",
            """p = f32[8,6] all-reduce(x), replica_groups={{0,1}}, to_apply=add
            ROOT r = f32[2,6] dynamic-slice(p, start, none), dynamic_slice_sizes={2,6}""",
            False,
        ),
        (
            "all-gather-dynamic-slice-simplifier",
            """u = f32[2,6] slice(x), slice={[0:2], [0:6]}
            p = f32[8,6] all-gather(u), channel_id=1, replica_groups={{0,1}}, dimensions={0}
            ROOT r = f32[2,6] dynamic-slice(p, start, none), dynamic_slice_sizes={2,6}""",
            True,
        ),
        (
            "all-reduce-folder",
            """p = f32[8,6] all-reduce(x), channel_id=1, replica_groups={{0},{1}}, to_apply=add
            ROOT r = f32[8,6] all-reduce(p), channel_id=2, replica_groups={{0,1}}, to_apply=add""",
            False,
        ),
        (
            "all-reduce-simplifier",
            """p = f32[8,6] all-reduce(x), replica_groups={{0,1}}, to_apply=max
            q = f32[8,6] all-reduce(p), replica_groups={{0,1}}, to_apply=add
            ROOT r = f32[8,6] all-reduce(q), replica_groups={{0,1}}, to_apply=max""",
            True,
        ),
        (  # replicas have the same, their partitions have not
            "all-reduce-simplifier",
            """p = f32[8,6] all-reduce(x), replica_groups={{0,1}}, to_apply=max
            ROOT q = f32[8,6] all-reduce(p), channel_id=1, replica_groups={{0,1}}, to_apply=add""",
            False,
        ),
    ],
)
def test_replicas_and_partitions(name: str, lines: str, changes: bool) -> None:
    assert on_replicas(lines, name) == changes


def on_replicas(lines: str, pipeline: str) -> bool:
    """Whether a pass changes something; results compared on two replicas of two partitions."""
    text = REPLICAS + "".join(f"  {line.strip()}\n" for line in lines.strip().split("\n")) + "}\n"
    module = parse_module(text)
    assert verify_module(module) == []
    random = np.random.default_rng(SEED)
    inputs = [[random.normal(size=(8, 6)).astype(np.float32) for _ in "xy"] for _ in range(4)]
    wanted = run_spmd(module, inputs, machine=Machine(2, 2), check=True)
    changed = run_pipeline(module, parse_pipeline(pipeline)).changed
    assert verify_module(module) == []
    got = run_spmd(module, inputs, machine=Machine(2, 2), check=True)
    for a, b in zip(got, wanted, strict=True):
        for found, want in zip(a, b, strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    return changed
