"""Initial values that are not neutral, and arrays without elements: machine code against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import mlirhlo

REDUCERS = {
    "add": "f32[] add(a, b)",
    "second": "f32[] copy(b)",
    "mixed": "f32[] add(f32[] multiply(a, b), f32[] constant(3))",
    "maximum": "f32[] maximum(a, b)",
}
HEAD = "".join(
    f"{name} {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = {body} }}\n"
    for name, body in REDUCERS.items()
)
REDUCES = (
    ("1", "0", ""), ("0", "0", ""), ("1,3", "0", "3"), ("3,1", "1", "3"), ("3,0", "1", "3"),
    ("1,1,2", "0,1", "2"), ("0,3", "1", "0"), ("2,3", "", "2,3"), ("4,2", "0", "2"),
)  # fmt: skip
WINDOWS = (
    ("3", "size=1", "3"), ("3", "size=1 stride=2", "2"), ("1", "size=1 pad=1_1", "3"), ("", "", ""),
    ("0,2", "size=1x1", "0,2"), ("1", "size=2 pad=1_1", "2"), ("1,3", "size=4x1 pad=3_3x0_0", "4,3"),
)  # fmt: skip
LOOKUP = "collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1"
PUT = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
EMPTY = (
    ("c64[1,1]", "c64[1,1] fft(x), fft_type=FFT, fft_length={0}"),
    ("c64[3,0]", "c64[3,0] fft(x), fft_type=IFFT, fft_length={0}"),
    ("f32[3,0]", "c64[3,0] fft(x), fft_type=RFFT, fft_length={0}"),
    ("c64[0,3]", "f32[0,4] fft(x), fft_type=IRFFT, fft_length={4}"),
    ("f32[0,4]", f"f32[2,0,4] gather(x, j), offset_dims={{1,2}}, {LOOKUP}, slice_sizes={{0,4}}"),
    ("f32[3,4]", f"f32[2,3,0] gather(x, j), offset_dims={{1,2}}, {LOOKUP}, slice_sizes={{3,0}}"),
    ("f32[0,4]", f"f32[0,4] scatter(x, j, u), {PUT}, to_apply=add"),
    ("f32[0]", "f32[0] sort(x), dimensions={0}, to_apply=less"),
    ("f32[2,0]", "f32[2,2] dot(x, o), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ("f32[0]", "f32[3] pad(x, k), padding=1_2_2"),
    ("f32[2]", "f32[0] pad(x, k), padding=-1_-1"),
    ("f32[0,0]", "f32[0,0] cholesky(x), lower=true"),
    ("f32[0,4]", "f32[2,0] reshape(x)"),
    (
        "f32[0,3]",
        "(f32[0,3], f32[3], f32[3]) batch-norm-training(x, s, s), epsilon=0.1, feature_index=1",
    ),
)


def leaves(value: object) -> list[np.ndarray]:
    """The arrays of a result, tuples flattened."""
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in leaves(part)]
    return [np.asarray(value)]


def both_ways(entry: str, *inputs: np.ndarray) -> None:
    """Asserts that machine code gives what the interpreter gives, NaN included."""
    less = "less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }\n"
    module = mlirhlo.parse(f"HloModule m\n{HEAD}{less}ENTRY e {{\n{entry}}}\n")
    expected, actual = leaves(module(*inputs)), leaves(mlirhlo.compile(module)(*inputs))
    for number, (a, b) in enumerate(zip(expected, actual, strict=True)):
        np.testing.assert_array_equal(a, b, err_msg=f"result {number}")


def entry_of(results: list[tuple[str, str]], before: str) -> str:
    lines = [f" r{n} = {shape} {rest}" for n, (shape, rest) in enumerate(results)]
    shapes = ", ".join(shape for shape, _ in results)
    names = ", ".join(f"r{n}" for n in range(len(results)))
    return "\n".join([before, *lines, f" ROOT all = ({shapes}) tuple({names})", ""])


@pytest.mark.one_case_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("start", ["0", "7", "nan", "-inf"])
def test_initial_values_count_once(start: str) -> None:
    """Whatever the initial value is, also where one element or none is combined with it."""
    shapes = sorted({shape for shape, *_ in (*REDUCES, *WINDOWS)})
    before = "\n".join(
        [f" k = f32[] constant({start})"]
        + [f" x{n} = f32[{shape}] parameter({n})" for n, shape in enumerate(shapes)]
    )
    results: list[tuple[str, str]] = []
    for name in REDUCERS:
        for shape, dims, result in REDUCES:
            x = f"x{shapes.index(shape)}"
            text = f"reduce({x}, k), dimensions={{{dims}}}, to_apply={name}"
            results.append((f"f32[{result}]", text))
        for shape, window, result in WINDOWS:
            x = f"x{shapes.index(shape)}"
            text = f"reduce-window({x}, k), window={{{window}}}, to_apply={name}"
            results.append((f"f32[{result}]", text))
    sizes = [tuple(map(int, shape.split(","))) if shape else () for shape in shapes]
    inputs = [np.arange(np.prod(s, dtype=int), dtype=np.float32).reshape(s) + 1 for s in sizes]
    both_ways(entry_of(results, before), *inputs)


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(("shape", "line"), EMPTY, ids=[line.split("(")[0] for _, line in EMPTY])
def test_arrays_without_elements(shape: str, line: str) -> None:
    element, _, sizes = shape[:-1].partition("[")
    dimensions = tuple(map(int, sizes.split(",")))
    before = (
        f" x = {shape} parameter(0)\n k = f32[] constant(5)\n j = s32[2] constant({{0, 1}})\n"
        " u = f32[2,4] constant({{1, 2, 3, 4}, {1, 2, 3, 4}})\n s = f32[3] constant({1, 2, 3})\n"
        " o = f32[0,2] constant({})\n"
    )
    data = np.ones(dimensions, np.complex64 if element == "c64" else np.float32)
    cut = line.index(") ") + 1 if line[0] == "(" else line.index(" ")
    result, rest = line[:cut], line[cut + 1 :]
    both_ways(f"{before} r = {result} {rest}\n ROOT all = ({result}, f32[]) tuple(r, k)\n", data)


def test_elements_beyond_the_size_may_come_into_use() -> None:
    """Elementwise ops on a bounded array work on all of it: a later size may be larger."""
    both_ways(
        """ x = f32[5] parameter(0)
 three = s32[] constant(3)
 five = s32[] constant(5)
 k = f32[] constant(0)
 y = f32[<=5] set-dimension-size(x, three), dimensions={0}
 n = f32[<=5] negate(y)
 a = f32[<=5] add(n, y)
 z = f32[<=5] set-dimension-size(n, five), dimensions={0}
 s = f32[] reduce(z, k), dimensions={0}, to_apply=add
 t = f32[] reduce(a, k), dimensions={0}, to_apply=add
 ROOT r = (f32[], f32[]) tuple(s, t)
""",
        np.arange(5, dtype=np.float32) + 1,
    )
