"""Programs compiled ahead of time in the builds of others: CMake, pkg-config, a clean environment of Python."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest

import mlirhlo
from mlirhlo.aot import compile_ahead, emitted, write_files

pytestmark = pytest.mark.slow


def needs(*tools: str) -> pytest.MarkDecorator:
    missing = [tool for tool in tools if not shutil.which(tool)]
    return pytest.mark.skipif(bool(missing), reason=f"no {', '.join(missing)}")


def write(folder: Path, name: str, kind: str, factor: float, **options: object) -> None:
    """`NAME(x, weights) = tanh(x + weights)·factor`, with constants of 4 KiB."""
    values = ", ".join(str(n / 1000) for n in range(1024))
    text = f"""HloModule {name}
ENTRY e {{
  x = f32[1024] parameter(0)
  c = f32[1024] constant({{{values}}})
  s = f32[1024] add(x, c)
  t = f32[1024] tanh(s)
  f = f32[] constant({factor})
  b = f32[1024] broadcast(f), dimensions={{}}
  ROOT r = f32[1024] multiply(t, b)
}}
"""
    march = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
    ahead = compile_ahead(mlirhlo.parse(text).op, name, march=march, **options)  # type: ignore[arg-type]
    write_files(folder, emitted(ahead, [kind], version="1.2"))


MAIN = """
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "first.h"
#include "second.h"

template <class Program>
static bool right(float x, float factor, Program &program) {
  for (size_t i = 0; i < 1024; ++i) program.arg_x(i) = x;
  for (int round = 0; round < 20; ++round)
    if (!program.Run()) return false;
  for (size_t i = 0; i < 1024; ++i)
    if (std::fabs(program.result0(i) - factor * std::tanh(x + i / 1000.0f)) > 1e-5f * factor) return false;
  return true;
}

int main(int, char **argv) {
  mlirhlo_aot::Second early;
  if (early.Run() || early.error_msg().empty()) return 1;
  if (!early.LoadWeights(argv[1])) return 2;
  bool fine[8] = {};
  std::vector<std::thread> threads;
  for (int n = 0; n < 8; ++n)
    threads.emplace_back([n, &fine] {
      mlirhlo_aot::First first;
      mlirhlo_aot::Second second;
      fine[n] = right(n, 2, first) && right(-n, 3, second);
    });
  for (auto &thread : threads) thread.join();
  for (bool one : fine)
    if (!one) return 3;
  const char *variant = first_variant();
  std::puts(std::strncmp(variant, "x86-64-v", 8) == 0 && variant == std::string(variant) ? "fine" : variant);
}
"""

CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(two CXX)
find_package(first 1.1 CONFIG REQUIRED)
find_package(second CONFIG REQUIRED)
find_package(second CONFIG REQUIRED)
find_package(Threads REQUIRED)
add_executable(two main.cc)
target_link_libraries(two PRIVATE first::first second::second Threads::Threads)
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    write(folder, "first", "static", 2)
    write(folder, "second", "shared", 3, weights_in_file=True)
    (folder / "main.cc").write_text(MAIN)
    (folder / "CMakeLists.txt").write_text(CMAKE)
    return folder


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.returncode} {done.stdout} {done.stderr}"
    return done.stdout


@needs("cmake", "c++")
def test_cmake_finds_an_archive_and_a_library(programs: Path, tmp_path: Path) -> None:
    generator = ("-G", "Ninja") if shutil.which("ninja") else ()
    run(
        "cmake", *generator, "-S", programs, "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={programs}", cwd=tmp_path
    )  # fmt: skip
    run("cmake", "--build", tmp_path, cwd=tmp_path)
    assert run(tmp_path / "two", programs / "second.weights", cwd=tmp_path) == "fine\n"
    asked = CMAKE.replace("first 1.1", "first 2.0")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "CMakeLists.txt").write_text(asked)
    command = ["cmake", "-S", "other", "-B", "b", f"-DCMAKE_PREFIX_PATH={programs}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "2.0" in done.stderr


@needs("pkg-config", "c++")
def test_pkg_config_says_how_to_link(programs: Path, tmp_path: Path) -> None:
    pkg_config = ("env", f"PKG_CONFIG_PATH={programs}", "pkg-config")
    flags = run(*pkg_config, "--cflags", "--libs", "first", "second", cwd=tmp_path)
    command = ["c++", programs / "main.cc", *flags.split(), f"-Wl,-rpath,{programs}", "-pthread"]
    run(*command, "-o", "two", cwd=tmp_path)
    assert run(tmp_path / "two", programs / "second.weights", cwd=tmp_path) == "fine\n"
    assert run(*pkg_config, "--modversion", "first", cwd=tmp_path) == "1.2\n"


WHEELS = """
import importlib.util, sys, threading
import numpy as np, embedded, mapped
assert not any(importlib.util.find_spec(m) for m in ("mlirhlo", "xdsl", "llvmlite"))
x = np.linspace(-2, 2, 1024, dtype=np.float32)
expected = np.tanh(x + np.arange(1024, dtype=np.float32) / 1000)
fine = []
def work():
    pairs = [(embedded.run(x) / 2, mapped.run(x) / 3) for _ in range(20)]
    fine.append(np.allclose(pairs, expected, atol=1e-5))
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads], [t.join() for t in threads]
print(fine == [True] * 4, mapped.variant()[:8])
"""


@needs("cc")
def test_wheels_in_an_environment_with_numpy_alone(tmp_path: Path) -> None:
    write(tmp_path, "embedded", "wheel", 2)
    write(tmp_path, "mapped", "wheel", 3, weights_in_file=True)
    has_pip = importlib.util.find_spec("pip") is not None
    venv.create(tmp_path / "env", with_pip=not has_pip, symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    (packages,) = (tmp_path / "env").glob("lib/python*/site-packages")
    for source in Path(np.__file__).parent.parent.glob("numpy*"):
        (packages / source.name).symlink_to(source)
    pip = (sys.executable, "-m", "pip", "--python", python) if has_pip else (python, "-m", "pip")
    run(*pip, "install", "-q", "--no-index", *tmp_path.glob("*.whl"), cwd=tmp_path)
    assert run(python, "-c", WHEELS, cwd=tmp_path) == "True x86-64-v\n"
