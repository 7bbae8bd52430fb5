"""Calls of `mosaic_gpu_v2` in programs for GPUs: launched between the kernels of instructions around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import DATA
from unit.mosaic_gpu.gpu_kernels import CASES

import mlirhlo
from mlirhlo.cli.hlo_opt import main as hlo_opt
from mlirhlo.diagnostics import HloError
from mlirhlo.mosaic.decode import read_kernel
from mlirhlo.mosaic.gpu import imported

FOLDER = DATA / "mosaic" / "gpu" / "jax"
SHORT = ("add_one.mlir", "add_one.wg.bc", "cluster_copy.lane.bc", "total.lane.bc")
LONG = tuple(
    path.name
    for path in sorted(FOLDER.iterdir())
    if path.suffix in (".bc", ".mlir") and path.name not in (*SHORT, "persistent_matmul.lane.bc")
)
"""Not the kernel in which the simulator finds a fault."""


def bytes_of(file: str) -> bytes:
    data: bytes = (FOLDER / file).read_bytes()
    return data


def call_of(body: bytes, results: int = 1) -> tuple[str, list[str], list[str]]:
    """The end of an instruction that calls a kernel, the types of its operands and those of its results."""
    kernel = imported(read_kernel(body), results=results)
    names = {"float32": "f32", "float16": "f16"}

    def type_of(one: Any) -> str:
        order = ",".join(str(dim) for dim in reversed(range(len(one.shape))))
        return f"{names[np.dtype(one.dtype).name]}[{','.join(map(str, one.shape))}]{{{order}}}"

    config = "".join(f"\\{byte:02X}" for byte in body)
    call = f'custom_call_target="mosaic_gpu_v2", backend_config={{module = "{config}"}}'
    return call, list(map(type_of, kernel.inputs)), list(map(type_of, kernel.results))


def compiled_for_gpu(text: str, gpu: str = "h100") -> Any:
    return mlirhlo.compile(mlirhlo.parse(text), platform="cuda", gpu=gpu)


def both(text: str, *arguments: Any, gpu: str = "h100") -> tuple[Any, Any]:
    """The results on a simulated GPU, with no finding, and by the interpreter."""
    compiled = compiled_for_gpu(text, gpu)
    found = compiled(*arguments)
    assert not compiled.findings
    return found, mlirhlo.run(mlirhlo.parse(text), *arguments)


def around(body: bytes, results: int = 1) -> str:
    """A program that computes a kernel's operands, and more of its results."""
    call, operands, types = call_of(body, results)
    lines = ["HloModule around\nENTRY main {"]
    for number, type_ in enumerate(operands):
        lines.append(f"  p{number} = {type_} parameter({number})")
        lines.append(f"  x{number} = {type_} negate(p{number})")
    args = ", ".join(f"x{number}" for number in range(len(operands)))
    whole = types[0] if results == 1 else f"({', '.join(types)})"
    lines.append(f"  kernel = {whole} custom-call({args}), {call}")
    for number, type_ in enumerate(types):
        part = "kernel"
        if results > 1:
            part = f"part{number}"
            lines.append(f"  {part} = {type_} get-tuple-element(kernel), index={number}")
        lines.append(f"  t{number} = {type_} tanh({part})")
        lines.append(f"  r{number} = {type_} add(t{number}, {part})")
    args = ", ".join(f"r{number}" for number in range(results))
    lines.append(f"  ROOT root = ({', '.join(types)}) tuple({args})\n}}")
    return "\n".join(lines)


@pytest.mark.one_case_in(3)
@pytest.mark.parametrize(
    "file", [*SHORT, *(pytest.param(name, marks=pytest.mark.slow) for name in LONG)]
)
def test_kernels_have_instructions_around_them(file: str) -> None:
    random = np.random.default_rng(1)
    kernel = imported(read_kernel(bytes_of(file)))
    arguments = [random.standard_normal(one.shape).astype(one.dtype) for one in kernel.inputs]
    (found,), (expected,) = both(around(bytes_of(file)), *arguments, gpu=kernel.default_gpu)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cluster_sums", "tensor_sums"])
def test_kernels_of_the_language_do_too(name: str) -> None:
    """Blocks of a cluster that read one another's memory; two results, from tensor memory."""
    case = CASES[name]()
    kernel = case.call.lower(*case.arrays)
    text = around(kernel.as_text().encode(), len(kernel.results))
    for found, expected in zip(*both(text, *case.arrays, gpu=case.gpu), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_every_operand_and_result_is_laid_out_as_the_kernel_takes_it() -> None:
    """Rows of two warp groups, of columns: the kernel copies a row-major array."""
    text = (DATA / "mosaic" / "gpu" / "two_warp_groups.hlo").read_text()
    head, _, rest = text.partition("ENTRY")
    rest = rest.replace("{1,0} parameter", "{0,1} parameter")
    rest = rest.replace("f32[4,128]{1,0} custom-call", "f32[4,128]{0,1} custom-call")
    text = head.replace(
        "{(f32[4,128]{1,0})->f32[4,128]{1,0}}", "{(f32[4,128]{0,1})->f32[4,128]{0,1}}"
    )
    x = np.random.default_rng(2).standard_normal((4, 128)).astype(np.float32)
    found, expected = both(text + "ENTRY" + rest, x)
    assert np.array_equal(found, expected)
    assert np.array_equal(found, x)


def test_kernels_run_in_loops_and_of_equal_calls_one_is_compiled() -> None:
    add, (type_,), _ = call_of(bytes_of("add_one.wg.bc"))
    text = f"""HloModule loop
body {{
  state = (s32[], {type_}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  x = {type_} get-tuple-element(state), index=1
  y = {type_} custom-call(x), {add}
  z = {type_} custom-call(y), {add}
  one = s32[] constant(1)
  m = s32[] add(n, one)
  ROOT r = (s32[], {type_}) tuple(m, z)
}}
condition {{
  state = (s32[], {type_}) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  three = s32[] constant(3)
  ROOT less = pred[] compare(n, three), direction=LT
}}
ENTRY main {{
  x = {type_} parameter(0)
  zero = s32[] constant(0)
  start = (s32[], {type_}) tuple(zero, x)
  loop = (s32[], {type_}) while(start), condition=condition, body=body
  ROOT r = {type_} get-tuple-element(loop), index=1
}}
"""
    x = np.arange(1024, dtype=np.float32)
    compiled = compiled_for_gpu(text)
    assert np.array_equal(compiled(x), x + 6)
    assert not compiled.findings
    assert sum("custom_call" in name for name in compiled.program.ptx) == 1


@pytest.mark.parametrize("is_read_after", [False, True])
def test_results_take_the_memory_of_operands(is_read_after: bool) -> None:
    add, (type_,), _ = call_of(bytes_of("add_one.wg.bc"))
    after = "x" if is_read_after else "y"
    text = f"""HloModule alias
ENTRY main {{
  p = {type_} parameter(0)
  x = {type_} negate(p)
  y = {type_} custom-call(x), {add}, output_to_operand_aliasing={{{{}}: (0, {{}})}}
  ROOT r = {type_} multiply(y, {after})
}}
"""
    x = np.arange(1024, dtype=np.float32)
    found, expected = both(text, x)
    assert np.array_equal(found, expected)
    assert np.array_equal(found, (1 - x) * (-x if is_read_after else 1 - x))


def interpreted(text: str) -> Any:
    return mlirhlo.run(mlirhlo.parse(text), np.zeros(512, np.float32))


@pytest.mark.parametrize("run", [compiled_for_gpu, interpreted])
def test_operands_that_do_not_fit_are_told(run: Any) -> None:
    text = around(bytes_of("add_one.wg.bc")).replace("f32[1024]", "f32[512]")
    with pytest.raises(HloError) as caught:
        run(text)
    (problem,) = caught.value.diagnostics
    assert problem.code == "HLO0355"
    assert problem.place is not None


def test_a_device_without_what_a_kernel_uses_is_told() -> None:
    text = around(bytes_of("add_one.wg.bc"))
    with pytest.raises(HloError) as caught:
        compiled_for_gpu(text, "a100")
    (problem,) = caught.value.diagnostics
    assert problem.code == "HLO0758"
    assert problem.place is not None


STAGED = ("add_one.mlir", "add_one.wg.bc", "cluster_copy.lane.bc", "tensor_matmul.wg.bc")


@pytest.mark.parametrize("file", STAGED)
def test_stages_print_the_kernels_and_go_on_from_print(file: str, tmp_path: Path) -> None:
    program, stage, out = (tmp_path / name for name in ("p.hlo", "stage.mlir", "out.ptx"))
    program.write_text(around(bytes_of(file)))
    gpu = imported(read_kernel(bytes_of(file))).default_gpu

    def printed(name: str, source: Path, target: Path) -> str:
        options = ["--platform=gpu", f"--gpu={gpu}", f"--stage={name}", str(source)]
        assert not hlo_opt([*options, "-o", str(target)])
        return target.read_text()

    expected = printed("ptx", program, out)
    assert "@kernels::@custom_call" in printed("gpu", program, stage)
    assert printed("ptx", stage, out) == expected
    printed("nvvm", program, stage)
    assert printed("ptx", stage, out) == expected
