"""Programs compiled ahead of time, in processes that have no Python."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

import mlirhlo
from mlirhlo.aot import Ahead, compile_ahead, emitted, write_files
from mlirhlo.aot.targets import available_triples
from mlirhlo.cli import hlo_aot
from mlirhlo.diagnostics import HloError
from mlirhlo.formats import load
from mlirhlo.formats.proto import encode_module
from mlirhlo.formats.vhlo import serialize_artifact
from mlirhlo.rewrites.stablehlo_to_hlo import convert_to_hlo

needs_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler")

MLP = """HloModule mlp
ENTRY e {
  x = f32[4,64] parameter(0)
  w = f32[64,32] parameter(1)
  c = f32[512] iota(), iota_dimension=0
  k = f32[32] constant({0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15})
  b = f32[4,32] broadcast(k), dimensions={1}
  d = f32[4,32] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[4,32] add(d, b)
  t = f32[4,32] tanh(s)
  ROOT r = (f32[4,32], f32[512]) tuple(t, c)
}
"""

SUMS = """HloModule sums
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[512,4096] parameter(0)
  y = f32[512,4096] exponential(x)
  z = f32[] constant(0)
  ROOT r = f32[512] reduce(y, z), dimensions={1}, to_apply=add
}
"""


def ahead_of(text: str, name: str, march: str = "x86-64-v2,x86-64-v3", **options: bool) -> Ahead:
    return compile_ahead(mlirhlo.parse(text).op, name, march=march.split(","), **options)


def built(folder: Path, source: str, *programs: Ahead) -> str:
    """What a C++ main prints that is linked with programs."""
    libraries: list[str] = []
    for program in programs:
        write_files(folder, emitted(program, ["obj"]))
        libraries += [f"{program.name}.o", *program.libraries]
    (folder / "main.cc").write_text(source)
    command = ["g++", "-std=c++14", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread"]
    subprocess.run([*command, "main.cc", *libraries, "-o", "main"], cwd=folder, check=True)
    done = subprocess.run(
        ["./main"], cwd=folder, env={}, capture_output=True, text=True, check=True
    )
    return done.stdout


@needs_compiler
@pytest.mark.slow
def test_two_programs_on_threads_of_the_process_and_of_a_pool(tmp_path: Path) -> None:
    source = """
#include "mlp.h"
#include "sums.h"
#include <cstdio>
#include <thread>
#include <vector>
static int jobs = 0;
static void run(void *, void (*task)(void *, int64_t), void *job, int64_t count) {
  ++jobs;
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < count; ++i) threads.emplace_back(task, job, i);
  for (auto &thread : threads) thread.join();
}
static bool right() {
  mlirhlo_aot::Sums sums;
  for (size_t i = 0; i < 512 * 4096; ++i) sums.arg_x_data()[i] = 0;
  bool fine = sums.Run() && sums.result0(17) == 4096 && sums.result0(511) == 4096;
  mlirhlo_thread_pool pool = {nullptr, run, 3};
  sums.set_thread_pool(&pool);
  sums.result0(3) = 0;
  return fine && sums.Run() && sums.result0(3) == 4096;
}
int main() {
  sums_set_threads(2);
  std::printf("%d", right());
  std::printf(" %d", jobs > 0);
  mlirhlo_aot::Mlp mlp;
  for (size_t i = 0; i < mlp.arg0_count(); ++i) mlp.arg0_data()[i] = 0;
  for (size_t i = 0; i < mlp.arg_w_count(); ++i) mlp.arg_w_data()[i] = 1;
  bool ran = mlp.Run();
  std::printf(" %d %.4f %.0f", ran, mlp.result0(1, 1), mlp.result1(511));
  mlp.set_arg_w_data(nullptr);
  ran = mlp.Run();
  std::printf(" %d %s", ran, mlp.error_msg().c_str());
}
"""
    said = built(tmp_path, source, ahead_of(MLP, "mlp"), ahead_of(SUMS, "sums"))
    assert said == "1 1 1 0.7616 511 0 mlp: argument 'w' is null"


@needs_compiler
@pytest.mark.slow
def test_weights_in_a_file(tmp_path: Path) -> None:
    big = ", ".join(str(n) for n in range(1000))
    text = (
        f"ENTRY e {{ c = f32[1000] constant({{{big}}}) x = f32[1000] parameter(0) "
        "ROOT r = f32[1000] add(c, x) }"
    )
    program = ahead_of(text, "w", weights_in_file=True)
    assert len(program.weights) == 64 + 4000
    source = """
#include "w.h"
#include <cstdio>
int main() {
  mlirhlo_aot::W w;
  for (size_t i = 0; i < 1000; ++i) w.arg_x(i) = 1;
  bool early = w.Run();
  bool missing = w.LoadWeights("none");
  bool loaded = w.LoadWeights("w.weights") && w.LoadWeights("w.weights");
  bool ran = w.Run();
  std::printf("%d %d %d %d %.0f", early, missing, loaded, ran, w.result0(999));
}
"""
    assert built(tmp_path, source, program) == "0 0 1 1 1000"


@pytest.mark.parametrize("march", ["x86-64-v2", "x86-64-v3,x86-64-v4", "native"])
def test_the_same_bytes_twice(march: str) -> None:
    first, second = ahead_of(MLP, "mlp", march), ahead_of(MLP, "mlp", march)
    assert first == second
    assert len(first.object) < 50 << 10


@pytest.mark.slow
@pytest.mark.parametrize("triple", available_triples())
def test_every_target_has_an_object(triple: str) -> None:
    assert compile_ahead(mlirhlo.parse(SUMS).op, "sums", triple=triple).object


@needs_compiler
@pytest.mark.slow
def test_a_wheel_needs_numpy_alone(tmp_path: Path) -> None:
    import subprocess
    import sys

    ((file, data),) = emitted(ahead_of(MLP, "mlp"), ["wheel"], version="1.2").items()
    assert file == "mlp-1.2-py3-none-linux_x86_64.whl"
    (tmp_path / file).write_bytes(data)
    with zipfile.ZipFile(tmp_path / file) as archive:
        archive.extractall(tmp_path)
    x, w = np.full((4, 64), 0.01, np.float32), np.ones((64, 32), np.float32)
    code = (
        "import sys, numpy as np, mlp; t, c = mlp.run(np.full((4, 64), .01, 'f4'), w=np.ones((64, 32))); "
        "assert not any(m.startswith(('mlirhlo', 'xdsl', 'llvmlite')) for m in sys.modules); "
        "print(float(t[1, 3]), c[-1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    wanted = float(mlirhlo.parse(MLP)(x, w)[0][1, 3])
    value, last = done.stdout.split()
    assert abs(float(value) - wanted) < 1e-6
    assert last == "511.0"


def test_an_instruction_in_python_is_named() -> None:
    module = mlirhlo.parse('ENTRY e { ROOT p = f32[2] custom-call(), custom_call_target="mine" }')
    with pytest.raises(HloError, match=r"HLO0840.*%p = custom-call\(mine\)"):
        compile_ahead(module.op, "p")


def test_nothing_is_left_where_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with pytest.raises(HloError, match="HLO0503"):
        write_files(tmp_path, {"a": b"1", "b": b"2"})
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


STABLEHLO = """module @dense {
  func.func public @main(%x: tensor<2x3xf32>, %w: tensor<2x3xf32>) -> (tensor<2x3xf32>) {
    %0 = stablehlo.add %x, %w : tensor<2x3xf32>
    %1 = stablehlo.tanh %0 : tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
}
"""


def test_every_form_of_a_program_is_one_object(tmp_path: Path) -> None:
    forms: dict[str, bytes] = {"mlir": STABLEHLO.encode()}
    program = load(forms["mlir"]).module
    forms["bc"] = serialize_artifact(program)
    forms["pb"] = encode_module(convert_to_hlo(program)).SerializeToString()
    objects: set[bytes] = set()
    for name, data in forms.items():
        (tmp_path / f"dense.{name}").write_bytes(data)
        out = tmp_path / name
        assert hlo_aot.main([str(tmp_path / f"dense.{name}"), f"--output={out}"]) == 0
        objects.add((out / "dense.o").read_bytes())
    assert len(objects) == 1


@pytest.mark.oracle
@needs_compiler
@pytest.mark.slow
def test_what_jax_exports(tmp_path: Path) -> None:
    import jax
    import jax.numpy as jnp

    def dense(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.tanh(x @ w)

    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((2, 3), (3, 4))]
    (tmp_path / "dense.bin").write_bytes(jax.export.export(jax.jit(dense))(*shapes).serialize())
    assert hlo_aot.main([str(tmp_path / "dense.bin"), f"--output={tmp_path}"]) == 0
    header = (tmp_path / "dense.h").read_text()
    assert "#define DENSE_ARGUMENT_1_BYTES 48 /* w: f32[3,4]{1,0} */" in header
