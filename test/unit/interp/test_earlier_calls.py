"""Custom calls of earlier versions of JAX give what their successors give."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from lapack_calls import OF_COMPLEX, arrays, random_arguments

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.interp.custom_calls.lapack_operands import COMPLEX_FORMS, FORMS

ELEMENTS = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}
REAL = {"c64": "f32", "c128": "f64"}

# The scalars that stand before the arrays, results and arrays; then the attributes of today's call
# and its results. T is the element type, R its real part.
CALLS: tuple[tuple[str, str, str, str, str, str], ...] = (
    ("potrf", "1 2 5", "T[2,5,5] s32[2]", "T[2,5,5]", "uplo = 76 : ui8", "T[2,5,5] s32[2]"),
    ("potrf", "0 1 5", "T[5,5] s32[]", "T[5,5]", "uplo = 85 : ui8", "T[5,5] s32[]"),
    ("getrf", "2 6 4", "T[2,6,4] s32[2,4] s32[2]", "T[2,6,4]", "", "T[2,6,4] s32[2,4] s32[2]"),
    ("geqrf", "1 6 4 96", "T[6,4] T[4] s32[] T[96]", "T[6,4]", "", "T[6,4] T[4]"),
    ("orgqr", "1 6 4 3 96", "T[6,4] s32[] T[96]", "T[6,4] T[3]", "", "T[6,4]"),
    (
        "gesdd",
        "1 1 1 6 4 99",
        "T[6,4] R[4] T[6,6] T[4,4] s32[] s32[32] R[99]",
        "T[6,4]",
        "mode = 65 : ui8",
        "T[6,4] R[4] T[6,6] T[4,4] s32[]",
    ),
    (
        "gesdd",
        "0 1 1 4 6 99",
        "T[4,6] R[4] T[4,4] T[4,6] s32[] s32[32] R[99]",
        "T[4,6]",
        "mode = 83 : ui8",
        "T[4,6] R[4] T[4,4] T[4,6] s32[]",
    ),
    (
        "syevd",
        "1 1 5",
        "T[5,5] R[5] s32[] R[57] s32[23]",
        "T[5,5]",
        "mode = 86 : ui8, uplo = 76 : ui8",
        "T[5,5] R[5] s32[]",
    ),
    (
        "gehrd",
        "5 2 4 5 1 42",
        "T[5,5] T[4] s32[] T[42]",
        "T[5,5]",
        "low = 2 : i32, high = 4 : i32",
        "T[5,5] T[4] s32[]",
    ),
    (
        "sytrd",
        "5 0 5 1 64",
        "T[5,5] R[5] R[4] T[4] s32[] T[64]",
        "T[5,5]",
        "uplo = 85 : ui8",
        "T[5,5] R[5] R[4] T[4] s32[]",
    ),
    (
        "trsm",
        "1 0 1 0 5 3 2 0.5",
        "T[2,5,3]",
        "T[2,5,5] T[2,5,3]",
        "side = 76 : ui8, uplo = 85 : ui8, trans_x = 84 : ui8, diag = 78 : ui8",
        "T[2,5,3]",
    ),
    (
        "trsm",
        "0 1 2 1 3 5 1 0.5",
        "T[3,5]",
        "T[5,5] T[3,5]",
        "side = 82 : ui8, uplo = 76 : ui8, trans_x = 67 : ui8, diag = 85 : ui8",
        "T[3,5]",
    ),
)


def module_of(target: str, results: str, operands: list[str], arrays_: str, rest: str) -> str:
    """A module with one call: constants as `type value`, then a parameter for each array."""
    lines: list[str] = []
    for k, operand in enumerate(operands):
        shape, _, value = operand.partition(" ")
        lines.append(f"  c{k} = {shape} constant({value})")
    shapes = arrays_.split()
    lines += [f"  a{k} = {shape} parameter({k})" for k, shape in enumerate(shapes)]
    names = [f"c{k}" for k in range(len(operands))] + [f"a{k}" for k in range(len(shapes))]
    kinds = results.split()
    shape = kinds[0] if len(kinds) == 1 else f"({', '.join(kinds)})"
    call = f'{shape} custom-call({", ".join(names)}), custom_call_target="{target}"'
    return "ENTRY e {\n" + "\n".join(lines) + f"\n  ROOT r = {call}, {rest}\n}}\n"


def fill(text: str, element: str) -> str:
    return text.replace("T[", f"{element}[").replace("R[", f"{REAL.get(element, element)}[")


def scalars_of(name: str, values: str, element: str) -> list[str]:
    forms = COMPLEX_FORMS if element in REAL else FORMS
    found: list[str] = []
    for key, value in zip(forms[name].names, values.split(), strict=True):
        kind = "u8" if key in ("compute_left", "compute_right", "mode", "sort") else "s32"
        if key == "alpha":
            found.append(f"{element}[] ({value}, 0)" if element in REAL else f"{element}[] {value}")
        else:
            found.append(f"{kind}[] {value}")
    return found


def both(
    name: str, scalars: str, results: str, operands: str, options: str, now: str, element: str
) -> tuple[list[Any], list[Any]]:
    """Results of the earlier call and of today's on the same numbers."""
    name = OF_COMPLEX.get(name, name) if element in REAL else name
    prefix = "blas" if name == "trsm" else "lapack"
    earlier = module_of(
        f"{prefix}_{ELEMENTS[element]}{name}",
        fill(results, element),
        scalars_of(name, scalars, element),
        fill(operands, element),
        "api_version=API_VERSION_STATUS_RETURNING",
    )
    today = module_of(
        f"lapack_{ELEMENTS[element]}{name}_ffi",
        fill(now, element),
        [],
        fill(operands, element),
        f"api_version=API_VERSION_TYPED_FFI, backend_config={{{options}}}",
    )
    module = mlirhlo.parse(earlier)
    arguments = random_arguments(module, np.random.default_rng(3))
    return arrays(module(*arguments)), arrays(mlirhlo.parse(today)(*arguments))


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0]}-{call[1].replace(' ', '_')}")
def test_options_as_operands(call: tuple[str, ...], element: str) -> None:
    name, scalars, results, operands, options, now = call
    earlier, today = both(name, scalars, results, operands, options, now, element)
    scale = 0.5 if name == "trsm" else 1
    rest = iter(earlier)
    for value in today:
        np.testing.assert_allclose(next(rest), value * scale, rtol=1e-5, atol=1e-6)
    for workspace in rest:
        assert not workspace.any()


@pytest.mark.parametrize("element", ELEMENTS)
def test_workspaces_before_results(element: str) -> None:
    """geev and gees put workspaces first, and differ for real and complex matrices."""
    is_complex = element in REAL
    work = "T[4,4] R[8]" if is_complex else "T[4,4] T[4,4] T[4,4]"
    complex_ = element if is_complex else {"f32": "c64", "f64": "c128"}[element]
    parts = "T[4]" if is_complex else "T[4] T[4]"
    vectors = f"{complex_}[4,4] {complex_}[4,4] s32[]"
    earlier, today = both(
        "geev",
        "1 4 78 86",
        f"{work} {parts} {vectors}",
        "T[4,4]",
        "compute_left = 78 : ui8, compute_right = 86 : ui8",
        f"{parts} {vectors}",
        element,
    )
    assert len(today) == len(earlier) - len(work.split())
    for ours, theirs in zip(earlier[len(work.split()) :], today, strict=True):
        np.testing.assert_allclose(ours, theirs)
    middle = "R[4] T[4]" if is_complex else "T[4] T[4]"
    earlier, today = both(
        "gees",
        "1 4 86 78",
        f"T[4,4] {middle} T[4,4] s32[] s32[]",
        "T[4,4]",
        "mode = 86 : ui8, sort = 78 : ui8",
        f"T[4,4] T[4,4] {parts} s32[] s32[]",
        element,
    )
    form, vectors_, *values, selected, info = today
    expected = [form, *([np.zeros(4)] if is_complex else []), *values, vectors_, selected, info]
    for ours, theirs in zip(earlier, expected, strict=True):
        np.testing.assert_allclose(ours, theirs)


def test_a_call_without_its_numbers() -> None:
    text = module_of("lapack_spotrf", "f32[4,4] s32[]", [], "f32[4,4]", "sharding={replicated}")
    with pytest.raises(HloError, match=r"takes 3 numbers \(lower batch n\)"):
        mlirhlo.parse(text)(np.eye(4, dtype=np.float32))
    text = module_of(
        "lapack_spotrf", "f32[4,4]", ["s32[] 1"] * 3, "f32[4,4]", "sharding={replicated}"
    )
    with pytest.raises(HloError, match="gives 2 results, but its shape is"):
        mlirhlo.parse(text)(np.eye(4, dtype=np.float32))


def descriptor(kind: int, axes: list[int], is_forward: bool) -> bytes:
    """The table as FlatBuffers lays it out: dimensions, kind, axes, direction."""
    vtable = struct.pack("<7H", 14, 16, 8, 0, 6, 12, 7)
    table = struct.pack("<iHBBII", 14, 0, kind, is_forward, len(axes), 4)
    vector = struct.pack(f"<{len(axes) + 1}I", len(axes), *axes)
    return struct.pack("<IH", 20, 0) + vtable + table + vector


def ducc(kind: int, axes: list[int], is_forward: bool, x: str, result: str, scale: float) -> str:
    data = descriptor(kind, axes, is_forward)
    rank = x.count(",") + 1
    lists = f"s32[{rank}] {{{', '.join('1' * rank)}}}"
    operands = [lists, lists, lists, f"f64[1] {{{scale}}}", lists]
    table = f"u8[{len(data)}] {{{', '.join(map(str, data))}}}"
    text = module_of("dynamic_ducc_fft", result, [table, *operands], x, 'metadata={op_name="f"}')
    # The array is the second operand.
    return text.replace(
        "custom-call(c0, c1, c2, c3, c4, c5, a0)", "custom-call(c0, a0, c1, c2, c3, c4, c5)"
    )


X = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        (ducc(0, [1], True, "c64[4,6]", "c64[4,6]", 1), X + 1j, np.fft.fft(X + 1j)),
        (ducc(0, [0, 1], False, "c64[4,6]", "c64[4,6]", 1 / 24), X + 1j, np.fft.ifft2(X + 1j)),
        (ducc(2, [1], True, "f32[4,6]", "c64[4,4]", 1), X, np.fft.rfft(X)),
        (ducc(2, [0, 1], True, "f32[4,6]", "c64[4,4]", 1), X, np.fft.rfft2(X)),
        (ducc(1, [1], False, "c64[4,6]", "f32[4,11]", 1 / 11), X + 1j, np.fft.irfft(X + 1j, 11)),
        (ducc(1, [0, 1], False, "c64[4,6]", "f32[4,10]", 1 / 40), X + 1j, np.fft.irfft2(X + 1j)),
    ],
    ids=["fft", "ifft2", "rfft", "rfft2", "irfft", "irfft2"],
)
def test_fourier_transforms(text: str, value: Any, expected: Any) -> None:
    found: Any = mlirhlo.parse(text)(value)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_damaged_table() -> None:
    text = ducc(0, [1], True, "c64[4,6]", "c64[4,6]", 1)
    for bad, problem in (
        (text.replace("constant({20, ", "constant({200, "), "the table is damaged"),
        (ducc(3, [1], True, "c64[4,6]", "c64[4,6]", 1), "kind 3 along"),
        (ducc(0, [1], True, "c64[4,6]", "f32[4,6]", 1), "kind 0 along"),
        (ducc(2, [1], True, "c64[4,6]", "c64[4,4]", 1), "kind 2 along"),
        (ducc(0, [2], True, "c64[4,6]", "c64[4,6]", 1), r"along \[2\] has no meaning"),
        (ducc(0, [], True, "c64[4,6]", "c64[4,6]", 1), r"along \[\] has no meaning"),
    ):
        with pytest.raises(HloError, match=problem):
            mlirhlo.parse(bad)(X + 1j)


@pytest.mark.parametrize(
    ("config", "axis"),
    [
        ("", -1),
        (', backend_config={"onednn_softmax_config":{"softmax_axis":1}}', 1),
        (', backend_config={"onednn_softmax_config":{}}', 0),
        (', backend_config={"outer_dimension_partitions":[]}', -1),
    ],
)
@pytest.mark.parametrize("element", ["f32", "bf16", "f16"])
def test_softmax(config: str, axis: int, element: str) -> None:
    text = module_of(
        "__onednn$softmax",
        f"{element}[2,4,3]",
        [],
        f"{element}[2,4,3]",
        f"sharding={{replicated}}{config}",
    )
    module = mlirhlo.parse(text)
    dtype: Any = module.hlo.entry.parameters[0].shape
    x = X.reshape(2, 4, 3).astype(dtype.element_type.dtype)
    powers = np.exp(x.astype(np.float64) - 2)
    expected = powers / powers.sum(axis, keepdims=True)
    found: Any = module(x)
    assert found.dtype == x.dtype
    limit = 1e-6 if element == "f32" else 1e-2
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=limit, atol=limit)


def test_softmax_without_its_axis() -> None:
    config = 'backend_config={"onednn_softmax_config":{"softmax_axis":3}}'
    text = module_of("__onednn$softmax", "f32[4,6]", [], "f32[4,6]", config)
    with pytest.raises(HloError, match="takes an array of floats with a dimension 3"):
        mlirhlo.parse(text)(X)
