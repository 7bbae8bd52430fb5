"""No call of a LAPACK target, whatever its arrays and options, gives a traceback."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from lapack_calls import ALL, CALLS, arrays, custom_call, random_arguments

import mlirhlo
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.element_types import F32, F64, S32
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.interp.custom_calls.lapack_signature import Signature
from mlirhlo.lowering import routines

pytest.importorskip("llvmlite")
if routines.address(f"{routines.LAPACK}dgeqrf") is None:
    pytest.skip("NumPy was built without the libraries", allow_module_level=True)

EIGEN = (
    ("geev", "(R[4], R[4], C[4,4], C[4,4], s32[]) S(T[4,4] a)", ALL),
    ("gees", "(T[4,4], T[4,4], R[4], R[4], s32[], s32[]) S(T[4,4] a)", ""),
)
SHAPE = re.compile(r"\w+\[[\d,]*\](?:\{[\d,]*\})?")
OTHERS = ("f16[4]", "pred[2,5]", "s32[2,2]", "f64[]", "c64[5,5]", "f32[3,3,3]", "u8[0]")
OPTIONS = ("uplo = 81 : ui8", 'mode = "x"', "low = 9 : i32", "side = true", "transposed = true", "")


def changed(rng: random.Random, call: str) -> str:
    """The call with one or two of its arrays left out, changed, or exchanged."""
    shapes = [SHAPE.findall(side) for side in call.split(" S(")]
    for _ in range(rng.randint(1, 2)):
        side = rng.choice(shapes)
        at = rng.randrange(len(side)) if side else 0
        match rng.randrange(4):
            case 0 if side:
                del side[at]
            case 1:
                side.insert(at, rng.choice(OTHERS))
            case 2 if side:
                side[at] = rng.choice(OTHERS)
            case _:
                rng.shuffle(side)
    left = ", ".join(f"{shape} a{k}" for k, shape in enumerate(shapes[1]))
    made = shapes[0][0] if len(shapes[0]) == 1 else f"({', '.join(shapes[0])})"
    return f"{made} S({left})"


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["lapack", "cusolver", "cuhybrid"])
def test_arrays_that_do_not_fit(prefix: str) -> None:
    """Each call runs, or ends in an error with a code."""
    rng, numbers = random.Random(prefix), np.random.default_rng(0)
    refused = 0
    for round_ in range(48):
        name, call, options = (*CALLS, *EIGEN)[round_ % (len(CALLS) + len(EIGEN))]
        text = custom_call(name, changed(rng, call), options or rng.choice(OPTIONS), "f64")
        text = text.replace("R[", "f64[").replace("C[", "c128[")
        if prefix == "cuhybrid":
            text = text.replace("lapack_dgeqp3_ffi", "cuhybrid_geqp3")
            text = text.replace("lapack_dgeev_ffi", "cuhybrid_eig_real")
        elif prefix != "lapack":
            text = text.replace("lapack_d", f"{prefix}_")
        module = mlirhlo.parse(text)
        code = ends_in(module, numbers)
        assert code in ("", "HLO0308", "HLO0350", "HLO0355"), text
        refused += bool(code)
    assert refused > 15


def ends_in(module: mlirhlo.Module, numbers: np.random.Generator) -> str:
    """The code of the error in which compiling and running end, or nothing."""
    try:
        executable = mlirhlo.compile(module, cached=False)
        executable(*random_arguments(module, numbers))
    except HloError as problem:
        return problem.code
    return ""


def shape(element: Any, *sizes: int) -> ArrayShape:
    return ArrayShape(element, sizes)


def test_signature() -> None:
    lu = Signature("x[m,n] -> x[m,n] i[l] i[]")
    a, pivots, info = shape(F64, 2, 5, 3), shape(S32, 2, 3), shape(S32, 2)
    assert lu.fits([a], [a, pivots, info])
    assert not lu.fits([a], [a, pivots])
    assert not lu.fits([a], [a, info, pivots])
    assert not lu.fits([a], [a, shape(S32, 2, 5), info])
    assert not lu.fits([a], [a, shape(F64, 2, 3), info])
    assert not lu.fits([a], [shape(F32, 2, 5, 3), pivots, info])
    assert not lu.fits([shape(F64, 3)], [a, pivots, info])
    assert not lu.fits([shape(S32, 2, 5, 3)], [a, pivots, info])
    less = Signature("x[n,n] -> x[n-1]")
    assert less.fits([shape(F64, 4, 4)], [shape(F64, 3)])
    assert not less.fits([shape(F64, 4, 4)], [shape(F64, 4)])


@pytest.mark.parametrize("element", ["f32", "c64"])
def test_eigenvectors_of_cusolver(element: str) -> None:
    """A v = w v, with v of a real matrix unpacked from pairs; machine code as the interpreter."""
    call = f"({element}[3,5,5], c64[3,5], {element}[3,5,5], {element}[3,5,5], s32[3])"
    text = (
        f'{call} custom-call({element}[3,5,5] a), custom_call_target="cusolver_geev_ffi", '
        "api_version=API_VERSION_TYPED_FFI, backend_config={left = true, right = true}"
    )
    module = mlirhlo.parse(text)
    rng = np.random.default_rng(3)
    a: Any = rng.normal(size=(3, 5, 5)).astype(np.float32)
    if element == "c64":
        a = a + 1j * rng.normal(size=a.shape).astype(np.float32)
    executable = mlirhlo.compile(module)
    assert not executable.callbacks
    for run in (module, executable):
        _, w, left, right, info = arrays(run(a))
        assert not info.any()
        if element == "f32":
            assert w.imag.any()
            left, right = unpacked(w, left), unpacked(w, right)
        np.testing.assert_allclose(a @ right, w[:, None, :] * right, atol=1e-5)
        adjoint = left.conj().swapaxes(-1, -2)
        np.testing.assert_allclose(adjoint @ a, w[..., None] * adjoint, atol=1e-5)


def unpacked(w: Any, packed: Any) -> Any:
    """Complex vectors from real and imaginary parts side by side."""
    result = packed.astype(np.complex64)
    for batch, column in zip(*np.nonzero(w.imag > 0), strict=True):
        pair = packed[batch, :, column] + 1j * packed[batch, :, column + 1]
        result[batch, :, column], result[batch, :, column + 1] = pair, pair.conj()
    return result


def test_hybrid_and_transposed_forms() -> None:
    """Other targets of the same routines: machine code as the interpreter."""
    magma = 'magma = "auto"'
    texts = {
        "cuhybrid_geqp3": ("(f64[6,4], s32[4], f64[4]) custom-call(f64[6,4] a, s32[4] p)", magma),
        "hiphybrid_geqp3": ("(f64[6,4], s32[4], f64[4]) custom-call(f64[6,4] a, s32[4] p)", magma),
        "cusolver_gesvd_ffi": (
            "(f64[4,6], f64[4], f64[4,6], f64[4,4], s32[]) custom-call(f64[4,6] a)",
            "compute_uv = true, full_matrices = false, transposed = true",
        ),
        "cuhybrid_eig_comp": (
            "(c128[4], c128[4,4], c128[4,4], s32[]) custom-call(c128[4,4] a)",
            "left = false, right = true",
        ),
    }
    for target, (call, options) in texts.items():
        module = mlirhlo.parse(
            f'{call}, custom_call_target="{target}", api_version=API_VERSION_TYPED_FFI, '
            f"backend_config={{{options}}}"
        )
        given = random_arguments(module, np.random.default_rng(0))
        executable = mlirhlo.compile(module)
        assert not executable.callbacks, target
        got, want = arrays(executable(*given)), arrays(module(*given))
        if "gesvd" in target:
            np.testing.assert_allclose(got[3] * got[1] @ got[2], given[0], atol=1e-12)
            np.testing.assert_allclose(want[3] * want[1] @ want[2], given[0], atol=1e-12)
        elif "eig" in target:
            for w, _, v, _ in (got, want):
                np.testing.assert_allclose(given[0] @ v, w * v, atol=1e-10)
        else:
            for a, b in zip(got, want, strict=True):
                np.testing.assert_allclose(a, b, atol=1e-12)
