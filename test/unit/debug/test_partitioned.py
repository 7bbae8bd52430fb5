"""Sharded modules run as their partitions: whole arrays in, whole arrays out."""

from __future__ import annotations

import pytest
from support import SEED

from mlirhlo.debug import replay
from mlirhlo.debug.fuzz import partitioning as spmd
from mlirhlo.debug.fuzz.generators.choices import Seeded
from mlirhlo.debug.fuzz.generators.sharded import program
from mlirhlo.debug.partitioned import Partitioned
from mlirhlo.debug.replay import Inputs
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.values import arrays_of


@pytest.mark.parametrize("opcode", ["add", "sort", "reduce", "dynamic-slice", "while"])
def test_whole_in_and_whole_out(opcode: str) -> None:
    for number in range(6):
        given = program(Seeded(SEED + number), opcode)
        if spmd.refusal(given.text, given.inputs) is not None:
            continue
        module = parse_module(given.text)
        partitioned = Partitioned.of(module)
        if partitioned is None:
            continue
        whole = Inputs([given.inputs], 1, given.partitions)
        wanted = [arrays_of(v) for v in replay.run(module, whole)]
        tiles = replay.run(partitioned.module, partitioned.cut(whole))
        for got, want in zip(partitioned.joined(tiles), wanted, strict=True):
            for a, b in zip(arrays_of(got), want, strict=True):
                spmd.check(a, b, None, 0, (1e-6, given.off))


@pytest.mark.parametrize("header", ["", ", num_partitions=2"])
def test_nothing_to_partition(header: str) -> None:
    sharding = "" if header else ", sharding={devices=[2]<=[2]}"
    text = f"HloModule m{header}\nENTRY e {{\n  ROOT x = f32[4] parameter(0){sharding}\n}}\n"
    assert Partitioned.of(parse_module(text)) is None
