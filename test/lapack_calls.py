"""Calls of LAPACK's targets, and arguments for them."""

from __future__ import annotations

from typing import Any

import numpy as np

import mlirhlo

CALLS = (
    ("potrf", "(T[2,5,5], s32[2]) S(T[2,5,5] a)", "uplo = 76 : ui8"),
    ("potrf", "(T[5,5]{0,1}, s32[]) S(T[5,5]{0,1} a)", "uplo = 85 : ui8"),
    ("getrf", "(T[2,6,4], s32[2,4], s32[2]) S(T[2,6,4] a)", ""),
    ("geqrf", "(T[2,4,6], T[2,4]) S(T[2,4,6] a)", ""),
    ("geqp3", "(T[6,4], s32[4], T[4]) S(T[6,4] a, s32[4] p)", ""),
    ("orgqr", "T[2,6,4] S(T[2,6,4] a, T[2,3] t)", ""),
    ("ormqr", "T[6,3] S(T[6,4] a, T[4] t, T[6,3] c)", "left = true, transpose = true"),
    ("syevd", "(T[3,5,5], R[3,5], s32[3]) S(T[3,5,5] a)", "mode = 86 : ui8, uplo = 76 : ui8"),
    ("gesdd", "(T[6,4], R[4], T[6,6], T[4,4], s32[]) S(T[6,4] a)", "mode = 65 : ui8"),
    ("gesdd", "(T[4,6], R[4], T[4,4], T[4,6], s32[]) S(T[4,6] a)", "mode = 83 : ui8"),
    ("gesdd", "(T[6,4], R[4], T[6,6], T[4,4], s32[]) S(T[6,4] a)", "mode = 78 : ui8"),
    ("gehrd", "(T[5,5], T[4], s32[]) S(T[5,5] a)", "low = 1 : i32, high = 5 : i32"),
    ("sytrd", "(T[5,5], R[5], R[4], T[4], s32[]) S(T[5,5] a)", "uplo = 76 : ui8"),
    ("trsm", "T[2,5,3] S(T[2,5,5] a, T[2,5,3] b)", "side = 76 : ui8, uplo = 85 : ui8"),
    ("trsm", "T[3,5] S(T[5,5] a, T[3,5] b)", "side = 82 : ui8, trans_x = 67 : ui8"),
    ("gtsv", "(T[6], T[6], T[6], T[6,2], s32[]) S(T[6] l, T[6] d, T[6] u, T[6,2] b)", ""),
)
"""The call of a target; T is the element type, R its real part."""
OF_COMPLEX = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd"}
ALL = "compute_left = 86 : ui8, compute_right = 86 : ui8"


def custom_call(name: str, call: str, options: str, element: str) -> str:
    """Text of a module."""
    letter = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}[element]
    name = OF_COMPLEX.get(name, name) if element[0] == "c" else name
    real = {"c64": "f32", "c128": "f64"}.get(element, element)
    call = call.replace("T[", f"{element}[").replace("R[", f"{real}[").replace("S(", "custom-call(")
    target = f'custom_call_target="lapack_{letter}{name}_ffi"'
    return f"{call}, {target}, api_version=API_VERSION_TYPED_FFI, backend_config={{{options}}}"


def random_arguments(module: mlirhlo.Module, rng: np.random.Generator) -> list[Any]:
    """Numbers for the parameters; square matrices are positive definite."""
    found: list[Any] = []
    for parameter in module.hlo.entry.parameters:
        shape: Any = parameter.shape
        x: Any = rng.normal(size=shape.dimensions)
        if shape.element_type.is_complex:
            x = x + 1j * rng.normal(size=shape.dimensions)
        if x.ndim > 1 and x.shape[-1] == x.shape[-2]:
            x = x @ x.conj().swapaxes(-1, -2) + 3 * np.eye(x.shape[-1])
        found.append(np.zeros(x.shape, "i4") if shape.element_type.name == "s32" else x)
        found[-1] = found[-1].astype(shape.element_type.dtype)
    return found


def arrays(value: Any) -> list[Any]:
    return [np.asarray(v) for v in (value if isinstance(value, tuple) else (value,))]
