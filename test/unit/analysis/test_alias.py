"""Values and buffers: by hand, and against the buffers that XLA:CPU assigned."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from program_shapes import SHAPES
from unit.corpus import repository_texts

from mlirhlo.analysis import dataflow as dataflow_module
from mlirhlo.analysis.alias import aliases
from mlirhlo.analysis.dataflow import Position, dataflow, in_place_pairs
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.formats.hlo_text import parse_module

LOOP = """HloModule m, input_output_alias={ {1}: (1, {}, may-alias) }
body { s = (s32[], f32[8], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  u = f32[2] get-tuple-element(s), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[8] dynamic-update-slice(x, u, i)
  ROOT t = (s32[], f32[8], f32[2]) tuple(next, y, u) }
condition { s.1 = (s32[], f32[8], f32[2]) parameter(0)
  i.1 = s32[] get-tuple-element(s.1), index=0
  n = s32[] constant(5)
  ROOT c = pred[] compare(i.1, n), direction=LT }
ENTRY e {
  zero = s32[] constant(0)
  a = f32[8] parameter(0)
  b = f32[2] parameter(1)
  start = (s32[], f32[8], f32[2]) tuple(zero, a, b)
  w = (s32[], f32[8], f32[2]) while(start), condition=condition, body=body
  sum = f32[8] get-tuple-element(w), index=1
  doubled = f32[8] add(sum, sum)
  last = f32[2] get-tuple-element(w), index=2
  ROOT r = (f32[8], f32[2]) tuple(doubled, last) }
"""


def named(module: HloModule) -> dict[str, Instruction]:
    return {op.instruction_name or "": op for op in module.instructions}


@pytest.fixture
def loop() -> tuple[dict[str, Instruction], HloModule]:
    module = HloModule(parse_module(LOOP))
    return named(module), module


def names(values: object) -> set[str]:
    return {op.instruction_name or "" for op, _ in cast("set[Position]", values)}


def test_values_pass_through_loops(loop: tuple[dict[str, Instruction], HloModule]) -> None:
    ops, module = loop
    flow = dataflow(module)
    assert names(flow.at(ops["sum"])) == {"a", "y"}
    assert names(flow.at(ops["i.1"])) == {"zero", "next"}
    assert names(flow.at(ops["last"])) == {"b"}
    users = {op.instruction_name for op, _, _ in flow.uses((ops["y"], ()))}
    assert {"t", "doubled", "y", "sum"} <= users
    assert "next" not in users


def test_loop_state_shares_memory(loop: tuple[dict[str, Instruction], HloModule]) -> None:
    ops, module = loop
    found = aliases(module)
    assert found.share((ops["a"], ()), (ops["y"], ()))
    assert found.share((ops["zero"], ()), (ops["next"], ()))
    assert found.share((ops["b"], ()), (ops["last"], ()))
    assert not found.share((ops["doubled"], ()), (ops["y"], ()))
    assert not found.share((ops["a"], ()), (ops["b"], ()))


def test_in_place_pairs() -> None:
    module = HloModule(parse_module(LOOP))
    ops = named(module)
    assert in_place_pairs(ops["y"], module.by_name()) == ((0, (), ()),)
    assert in_place_pairs(ops["doubled"], module.by_name()) == ()


def test_every_position_has_values_and_one_buffer_for_all_of_them() -> None:
    for name, text in repository_texts():
        module = HloModule(parse_module(text))
        flow, found = dataflow(module), aliases(module)
        for position, values in flow.sets.items():
            assert values, (name, position)
            assert {found.at(*value) for value in values} == {found.at(*position)}, (name, position)


def test_values_at_too_many_places_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataflow_module, "MOST_PLACES", 10_000)
    module = HloModule(parse_module(SHAPES["whiles_in_a_row"](800)))
    with pytest.raises(HloError, match="10,000 places") as caught:
        dataflow(module)
    assert caught.value.code == "HLO0110"


PROGRAM = """
import jax, jax.numpy as jnp
from jax import lax

def show(f, *args, **options):
    jax.jit(f, **options).lower(*args).compile()

x = jnp.ones((8, 4)); v = jnp.ones(4)
show(lambda x: lax.fori_loop(0, 5, lambda i, c: c.at[i].set(c[i] * 2), x), x)
show(lambda x: lax.scan(lambda c, r: (c + r, jnp.sin(c)), x[0], x), x)
show(lambda p, x: lax.cond(p, lambda y: y + 1, lambda y: jnp.cos(y), x), True, x)
show(lambda x, v: x.at[2].set(v), x, v, donate_argnums=0)
show(lambda x: lax.while_loop(lambda c: c[0].sum() < 100, lambda c: (c[1], c[0] * 2), (x, x + 1)), x)
show(lambda x: lax.sort((x, -x), num_keys=1), x)
show(lambda x: x.at[jnp.array([1, 1, 3])].add(jnp.ones((3, 4))), x)
"""


@pytest.mark.oracle
@pytest.mark.slow
def test_xla_assigned_them_one_buffer(tmp_path: Path) -> None:
    """What must share memory by our analysis has one allocation and offset in XLA's assignment."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {"XLA_FLAGS": f"--xla_dump_to={tmp_path / 'dump'}", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, str(program)], env=environment, check=True, timeout=300)
    compared = 0
    for path in sorted((tmp_path / "dump").glob("*cpu_after_optimizations.txt")):
        assigned = _assignment(Path(str(path)[:-4] + "-buffer-assignment.txt").read_text())
        module = HloModule(parse_module(path.read_text()))
        for buffer in aliases(module).buffers:
            places = {
                key: assigned[key]
                for op, index in buffer
                if (key := (op.instruction_name or "", index)) in assigned
            }
            compared += len(places) > 1
            assert len(set(places.values())) <= 1, (path.name, places)
    assert compared > 10


def _assignment(text: str) -> dict[tuple[str, tuple[int, ...]], tuple[str, str]]:
    """Allocation and offset of every value."""
    found: dict[tuple[str, tuple[int, ...]], tuple[str, str]] = {}
    allocation = ""
    for line in text.splitlines():
        if match := re.match(r"allocation (\d+):", line):
            allocation = match[1]
        elif match := re.match(
            r" value: <\d+ (\S+?)(\{[\d,]*\})? @\d+> \(size=\d+,offset=(\d+)\)", line
        ):
            index = tuple(map(int, re.findall(r"\d+", match[2] or "")))
            found[match[1], index] = (allocation, match[3])
    return found
