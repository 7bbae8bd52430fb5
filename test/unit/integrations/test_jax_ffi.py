"""Targets of `jax.ffi` in C++ on this platform: attributes, states, scratch and errors of handlers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

jax = pytest.importorskip("jax")

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no compiler for C++"),
]

HANDLERS = r"""
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;

static ffi::Error Scale(float scale, int64_t offset, std::string_view what, ffi::Span<const int32_t> more, bool flag,
                        ffi::Dictionary inner, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  if (what == "fail") return ffi::Error::InvalidArgument("told to fail");
  float added = offset + (flag ? 100 : 0) + *inner.get<int64_t>("deep");
  for (auto m : more) added += m;
  for (size_t i = 0; i < x.element_count(); i++) y->typed_data()[i] = scale * x.typed_data()[i] + added;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(scale, Scale, ffi::Ffi::Bind()
    .Attr<float>("scale").Attr<int64_t>("offset").Attr<std::string_view>("what")
    .Attr<ffi::Span<const int32_t>>("more").Attr<bool>("flag").Attr<ffi::Dictionary>("inner")
    .Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

static ffi::Error Rows(ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {  // first element of each row
  for (int64_t i = 0; i < x.dimensions()[0]; i++) y->typed_data()[i] = x.typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(rows, Rows, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

struct State { int64_t count; static ffi::TypeId id; };
ffi::TypeId State::id = {};
extern "C" void* state_id() { return &State::id; }
static ffi::ErrorOr<std::unique_ptr<State>> Start() { return std::make_unique<State>(State{40}); }
static ffi::Error Count(State* state, ffi::ScratchAllocator scratch, ffi::Result<ffi::AnyBuffer> y) {
  auto memory = scratch.Allocate(64, 64);
  if (!memory.has_value() || reinterpret_cast<uintptr_t>(*memory) % 64) return ffi::Error::Internal("no scratch");
  y->typed_data<int32_t>()[0] = ++state->count;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(start, Start, ffi::Ffi::BindInstantiate());
XLA_FFI_DEFINE_HANDLER_SYMBOL(count, Count,
    ffi::Ffi::Bind().Ctx<ffi::State<State>>().Ctx<ffi::ScratchAllocator>().Ret<ffi::AnyBuffer>());
"""

PROGRAM = """
import ctypes, sys
import jax, jax.numpy as jnp, numpy as np
lib = ctypes.CDLL(sys.argv[1])
capsule = jax.ffi.pycapsule
jax.ffi.register_ffi_target("scale", capsule(lib.scale), platform="cpu")
jax.ffi.register_ffi_target("rows", capsule(lib.rows), platform="cpu")
x = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
like = jax.ShapeDtypeStruct(x.shape, x.dtype)

@jax.jit
def scaled(x, what="run"):
    call = jax.ffi.ffi_call("scale", like)
    attributes = dict(scale=np.float32(2), offset=np.int64(3), more=np.array([1, 2], np.int32), flag=True)
    return call(x, what=what, inner={"deep": np.int64(1000)}, **attributes)

print(scaled(x).tolist())
try:
    jax.jit(lambda x: jax.ffi.ffi_call("scale", like)(x, scale=np.float32(2), offset=np.int64(3), what="fail",
            more=np.array([], np.int32), flag=False, inner={"deep": np.int64(0)}))(x)
except Exception as problem:
    print("told to fail" in str(problem))
first = jax.ffi.ffi_call("rows", jax.ShapeDtypeStruct((2,), x.dtype), input_layouts=[(1, 0)])
print(jax.jit(first)(x).tolist())
if "cpu" in jax.config.jax_platforms:
    sys.exit()  # XLA wants states in another way
lib.state_id.restype = ctypes.c_void_p
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
jax.ffi.register_ffi_type("State", {"type_id": new(lib.state_id(), None, None)}, platform="cpu")
stages = {"instantiate": capsule(lib.start), "execute": capsule(lib.count)}
jax.ffi.register_ffi_target("count", stages, platform="cpu")
counted = jax.jit(lambda: jax.ffi.ffi_call("count", jax.ShapeDtypeStruct((1,), np.int32))())
print([int(counted()[0]) for _ in range(3)])
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ffi")
    (folder / "handlers.cc").write_text(HANDLERS)
    flags = ["-w", "-std=c++17", "-shared", "-fPIC", "-I", jax.ffi.include_dir()]
    made = folder / "handlers.so"
    subprocess.run(["g++", *flags, str(folder / "handlers.cc"), "-o", str(made)], check=True)
    return made


def lines_of(platform: str, library: Path) -> list[str]:
    env = {**os.environ, "JAX_PLATFORMS": platform, "JAX_ENABLE_X64": "1"}
    command = [sys.executable, "-c", PROGRAM, str(library)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


@pytest.mark.parametrize("platform", ["mlirhlo", "mlirhlo_interpreter"])
def test_handlers_give_what_they_give_on_xla(platform: str, library: Path) -> None:
    found = lines_of(platform, library)
    assert found[1:] == ["True", "[0.0, 3.0]", "[41, 42, 43]"]
    assert found[:3] == lines_of("cpu", library)
