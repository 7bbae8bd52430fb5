"""Kernels of every version of the stable form are read as the newest."""

from __future__ import annotations

import numpy as np
import pytest

from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic.decode import read_kernel, write_stable
from mlirhlo.mosaic.forms import render
from mlirhlo.mosaic.interpreter import Kernel

VECTOR, MEMORY = "vector<16x128xf32>", "memref<16x128xf32, #tpu.memory_space<vmem>>"
WORDS, PLACES = "vector<16x128xi32>", "memref<16x128xi32, #tpu.memory_space<vmem>>"
COUNTER = "memref<!tpu.semaphore, #tpu.memory_space<semaphore_mem>>"
TYPES = f"{MEMORY}, {PLACES}, {COUNTER}"
ARG_MAX = "#tpu.reduction_kind<arg_max>"


def stable(version: int, body: str, core: str = "tc") -> bytes:
    """A kernel of references %a, %y, a semaphore %s, a number %n, and the vector %v that is in %a."""
    function = f'sym_name = "main", tpu.core_type = #tpu.core_type<{core}>'
    return f""""builtin.module"() ({{
  "stable_mosaic.func.func"() ({{
  ^bb0(%a: {MEMORY}, %y: {PLACES}, %s: {COUNTER}):
    %n = "stable_mosaic.arith.constant"() {{value = 1 : i32}} : () -> i32
    %c = "stable_mosaic.arith.constant"() {{value = 0 : index}} : () -> index
    %v = "stable_mosaic.vector.load"(%a, %c, %c) : ({MEMORY}, index, index) -> {VECTOR}
    {body}
    "stable_mosaic.func.return"() : () -> ()
  }}) {{{function}, function_type = ({TYPES}) -> (), scratch_operands = 1 : i64}} : () -> ()
}}) {{stable_mosaic.version = {version} : i64}} : () -> ()""".encode()


def op(name: str, operands: str, attributes: str, types: str) -> str:
    """An operation in the stable form that gives %r."""
    return f'%r = "stable_mosaic.{name}"({operands}) {{{attributes}}} : {types}'


def generic(data: bytes) -> str:
    return render(read_kernel(data), "generic").decode()


@pytest.mark.parametrize(("version", "segments"), [(14, None), (15, "1, 0, 0"), (20, "1, 0, 0, 0")])
def test_strides_of_casts(version: int, segments: str | None) -> None:
    said = "" if segments is None else f"operandSegmentSizes = array<i32: {segments}>"
    data = stable(version, op("tpu.reinterpret_cast", "%a", said, f"({MEMORY}) -> {MEMORY}"))
    assert "operandSegmentSizes = array<i32: 1, 0, 0, 0>" in generic(data)
    written = render(read_kernel(data), "stable").decode()
    assert "operandSegmentSizes = array<i32: 1, 0, 0>" in written
    assert "stable_mosaic.version = 15" in written
    again = generic(write_stable(read_kernel(data)))
    assert again.replace("version = 15", f"version = {version}") == generic(data)


@pytest.mark.parametrize(("version", "said"), [(16, ""), (17, ", dimension = 1 : i64")])
def test_dimensions_of_scans(version: int, said: str) -> None:
    kind = "kind = #tpu.reduction_kind<sum>"
    data = stable(version, op("tpu.scan", "%v", kind + said, f"({VECTOR}) -> {VECTOR}"))
    assert "dimension = 1 : i64" in generic(data)
    assert "dimension" not in render(read_kernel(data), "stable").decode()


def test_what_old_versions_cannot_say() -> None:
    said = "kind = #tpu.reduction_kind<sum>, dimension = 0 : i64"
    data = stable(17, op("tpu.scan", "%v", said, f"({VECTOR}) -> {VECTOR}"))
    with pytest.raises(HloError, match="dimension 0") as caught:
        render(read_kernel(data), "stable")
    assert caught.value.code == "HLO0714"


@pytest.mark.parametrize(("version", "kind"), [(17, "max"), (18, "maxf")])
def test_kinds_of_reductions(version: int, kind: str) -> None:
    said = f"kind = #tpu.reduction_kind<{kind}>, dimensions = array<i64: 0>"
    data = stable(version, op("tpu.reduce", "%v", said, f"({VECTOR}) -> vector<1x128xf32>"))
    assert "#tpu.reduction_kind<maxf>" in generic(data)


@pytest.mark.parametrize(("version", "shape"), [(19, "128"), (20, "1x128")])
def test_places_of_extrema(version: int, shape: str) -> None:
    """The reduced dimension went, and stays from version 20 on."""
    row, lines = f"vector<{shape}xi32>", "vector<1x128xi32>"
    body = "\n".join(
        [
            op(
                "tpu.reduce_index",
                "%v",
                f"axis = 0 : i32, kind = {ARG_MAX}",
                f"({VECTOR}) -> {row}",
            ),
            op("vector.shape_cast", "%r", "", f"({row}) -> {lines}").replace("%r =", "%q ="),
            op("vector.broadcast", "%q", "", f"({lines}) -> {WORDS}").replace("%r =", "%w ="),
            f'"stable_mosaic.vector.store"(%w, %y, %c, %c) : ({WORDS}, {PLACES}, index, index) -> ()',
        ]
    )
    x = np.random.default_rng(0).normal(size=(16, 128)).astype(np.float32)
    kernel = Kernel(read_kernel(stable(version, body)))
    (got,) = kernel.run([x], [((16, 128), np.dtype(np.int32))])
    assert np.array_equal(got, np.broadcast_to(x.argmax(0), (16, 128)))


@pytest.mark.parametrize(
    ("core", "segments"), [("tc", "1, 1, 0, 1, 0"), ("sc_vector_subcore", "1, 1, 0, 1, 1")]
)
def test_subcores_have_numbers_of_their_own(core: str, segments: str) -> None:
    said = "operandSegmentSizes = array<i32: 1, 1, 0, 1>"
    signal = op("tpu.sem_signal", "%s, %n, %n", said, f"({COUNTER}, i32, i32) -> ()")
    text = generic(stable(13, signal.removeprefix("%r = "), core))
    assert f"operandSegmentSizes = array<i32: {segments}>" in text
    assert ("arith.divui" in text) == ("arith.remui" in text) == (core != "tc")


def test_versions_nobody_knows() -> None:
    with pytest.raises(HloError, match="version 21") as caught:
        read_kernel(stable(21, ""))
    assert caught.value.code == "HLO0700"


def test_dumps_with_newer_names() -> None:
    """libtpu 0.0.52 calls the dialect xir."""
    memory = "memref<8x128xf32, #xir.memory_space<vmem>>"
    counter = "memref<!xir.dma_semaphore, #xir.memory_space<semaphore_mem>>"
    text = f"""module @k {{
  func.func @main(%x: {memory}, %y: {memory}, %s: {counter}) attributes {{
      scratch_operands = 1 : i64, xir.core_type = #xir.core_type<tc>}} {{
    xir.enqueue_transfer source(%x : {memory}) target(%y : {memory}) target_semaphore(%s : {counter})
    xir.wait_dma2 semaphore(%s : {counter}) src(%x : {memory}) dst(%y : {memory})
    return
  }}
}}
"""
    x = np.ones((8, 128), np.float32)
    (got,) = Kernel(read_kernel(text.encode())).run([x], [((8, 128), np.dtype(np.float32))])
    assert np.array_equal(got, x)
