"""Programs of several devices, compiled ahead of time."""

from __future__ import annotations

import ctypes
import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlirhlo
from mlirhlo.aot import Ahead, compile_ahead, emitted
from mlirhlo.aot.devices import box_words
from mlirhlo.aot.files import write_files
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.element_types import S16
from mlirhlo.dialects.hlo.shapes import ArrayShape, Layout
from mlirhlo.lowering.memory_order import physical_order

from .test_programs import needs_compiler

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"

OWN_ARRAYS = f"""HloModule own, num_partitions=3
{ADD}
ENTRY e {{
  x = f32[2] parameter(0)
  d = u32[] partition-id()
  f = f32[] convert(d)
  b = f32[2] broadcast(f), dimensions={{}}
  s = f32[2] add(x, b)
  ROOT r = f32[2] all-reduce(s), channel_id=1, replica_groups={{{{0,1,2}}}}, use_global_device_ids=true, to_apply=add
}}
"""

WHOLE_ARRAYS = f"""HloModule whole, num_partitions=4
{ADD}
ENTRY e {{
  x = f32[6,5] parameter(0), sharding={{devices=[2,2]<=[4]}}
  l = f32[3,3] custom-call(x), custom_call_target="SPMDFullToShardShape", sharding={{manual}}
  d = u32[] partition-id()
  f = f32[] convert(d)
  b = f32[3,3] broadcast(f), dimensions={{}}
  s = f32[3,3] add(l, b)
  z = f32[] constant(0)
  t = f32[] reduce(s, z), dimensions={{0,1}}, to_apply=add
  a = f32[] all-reduce(t), channel_id=1, replica_groups={{{{0,1,2,3}}}}, use_global_device_ids=true, to_apply=add
  u = f32[3,3] broadcast(a), dimensions={{}}
  v = f32[3,3] multiply(s, u)
  ROOT r = f32[6,5] custom-call(v), custom_call_target="SPMDShardToFullShape", sharding={{devices=[2,2]<=[4]}}
}}
"""

ALONE = "HloModule alone ENTRY e { ROOT p = u32[] partition-id() }"


def library(folder: Path, text: str, **options: Any) -> tuple[Ahead, ctypes.CDLL]:
    ahead = compile_ahead(mlirhlo.parse(text).op, march=("x86-64-v2",), **options)
    write_files(folder, emitted(ahead, ["shared"]))
    return ahead, ctypes.CDLL(str(folder / f"lib{ahead.name}.so"))


def run(ahead: Ahead, loaded: ctypes.CDLL, arguments: list[Any]) -> tuple[int, list[Any]]:
    """The status of a run in this process, and its results."""
    arena = np.zeros(ahead.arena_bytes + 64, np.uint8)
    leaves = ahead.signature.results
    results = [np.zeros(leaf.dimensions, leaf.shape.element_type.dtype) for leaf in leaves]

    def pointers(arrays: list[Any]) -> Any:
        return (ctypes.c_void_p * (len(arrays) + 1))(*(a.ctypes.data for a in arrays))

    start = ctypes.c_void_p(arena.ctypes.data + -arena.ctypes.data % 64)
    function = getattr(loaded, f"{ahead.name}_run")
    return function(pointers(arguments), pointers(results), start, None), results


@needs_compiler
def test_devices_with_arrays_of_their_own(tmp_path: Path) -> None:
    ahead, loaded = library(tmp_path, OWN_ARRAYS)
    assert [leaf.name for leaf in ahead.signature.arguments] == [f"x_device{d}" for d in range(3)]
    header = (tmp_path / "own.h").read_text()
    assert "#define OWN_NUM_PARTITIONS 3" in header
    status, results = run(ahead, loaded, [np.full(2, 10.0**d, np.float32) for d in range(3)])
    assert status == 0
    assert [r.tolist() for r in results] == [[114, 114]] * 3


@needs_compiler
@pytest.mark.parametrize("weights_in_file", [False, True])
def test_whole_arrays_are_cut_and_joined(tmp_path: Path, weights_in_file: bool) -> None:
    constant = "k = f32[512] iota(), iota_dimension=0\n  "
    text = WHOLE_ARRAYS.replace("z = ", f"{constant}z = ") if weights_in_file else WHOLE_ARRAYS
    ahead, loaded = library(tmp_path, text, weights_in_file=weights_in_file)
    x = np.arange(30, dtype=np.float32).reshape(6, 5)
    expected = mlirhlo.compile(mlirhlo.parse(WHOLE_ARRAYS), devices=4)(x)
    for _ in range(3):
        status, (result,) = run(ahead, loaded, [x])
        assert status == 0
        np.testing.assert_array_equal(result, expected)


@needs_compiler
def test_one_device_knows_its_number(tmp_path: Path) -> None:
    status, (result,) = run(*library(tmp_path, ALONE), [])
    assert status == 0
    assert result == 0


def test_collectives_that_stay_with_python() -> None:
    text = """HloModule m, num_partitions=2
    ENTRY e {
      x = f32[2] parameter(0)
      t = token[] after-all()
      s = (f32[2], u32[], token[]) send(x, t), channel_id=1
      d = token[] send-done(s), channel_id=1
      ROOT r = f32[2] add(x, x)
    }"""
    with pytest.raises(HloError, match="runs in Python") as caught:
        compile_ahead(mlirhlo.parse(text).op)
    assert caught.value.code == "HLO0840"


@pytest.mark.parametrize(
    "triple", ["x86_64-pc-windows-msvc", "arm64-apple-darwin", "x86_64-apple-darwin"]
)
def test_devices_need_threads(triple: str) -> None:
    with pytest.raises(HloError, match="threads of Linux") as caught:
        compile_ahead(mlirhlo.parse(OWN_ARRAYS).op, triple=triple)
    assert caught.value.code == "HLO0841"


@needs_compiler
def test_a_system_without_threads(tmp_path: Path) -> None:
    """A device without a thread ends the run of all."""
    ahead = compile_ahead(mlirhlo.parse(OWN_ARRAYS).op, march=("x86-64-v2",))
    write_files(tmp_path, emitted(ahead, ["obj"]))
    (tmp_path / "main.c").write_text("""
#include "own.h"
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *p) {
  (void)t; (void)a; (void)f; (void)p;
  return 11;
}
int main(void) {
  float x[2] = {1, 2}, r[6];
  const int status = own_call(x, x, x, r, r + 2, r + 4, aligned_alloc(64, OWN_ARENA_BYTES), NULL);
  puts(own_error(status));
}
""")
    command = ["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "main.c", "own.o", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    assert done.stdout == "own: the system has no thread for one of the devices\n"


def test_boxes_of_tiles() -> None:
    """Copied by their words, tiles of any layouts are parts of arrays of any layouts."""
    rng = random.Random(2026)
    for _ in range(200):
        rank = rng.randint(1, 4)
        sizes = [rng.randint(1, 5) for _ in range(rank)]
        tile_sizes = [rng.randint(1, size) for size in sizes]
        bounds: list[tuple[int, int]] = []
        for size, most in zip(sizes, tile_sizes, strict=True):
            start = rng.randrange(size)
            bounds.append((start, min(size, start + most)))
        shapes = [
            ArrayShape(S16, tuple(s), layout=Layout(tuple(rng.sample(range(rank), rank))))
            for s in (sizes, tile_sizes)
        ]
        whole = np.arange(np.prod(sizes), dtype=np.int16).reshape(sizes)
        expected = np.full(tile_sizes, -1, np.int16)
        part = whole[tuple(slice(*b) for b in bounds)]
        expected[tuple(slice(n) for n in part.shape)] = part
        stored, result = (_stored(a, s) for a, s in zip((whole, expected), shapes, strict=True))
        tile = np.full_like(result, -1)
        row, rows, count, first, *dims = box_words(shapes[0], shapes[1], tuple(bounds))
        for number in range(rows):
            source, target, rest = first, 0, number
            for at in range(count):
                size, far, near = dims[3 * at : 3 * at + 3]
                rest, index = divmod(rest, size)
                source, target = source + index * far, target + index * near
            tile[target // 2 : (target + row) // 2] = stored[source // 2 : (source + row) // 2]
        np.testing.assert_array_equal(tile, result)


def _stored(array: Any, shape: ArrayShape) -> Any:
    """An array as it lies in memory."""
    return array.transpose(physical_order(shape)).flatten()
