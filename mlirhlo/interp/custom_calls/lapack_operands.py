"""LAPACK routines as JAX called them until 2024: `lapack_<s|d|c|z><routine>`, `blas_<s|d|c|z>trsm`.

What the later `_ffi` targets take as attributes stands in scalar operands before the arrays; results are
followed by workspaces, which are zeros here. Letters are numbers (78 is 'N').
Source: the calls in modules that jaxlib 0.4.13 to 0.4.38 wrote, and LAPACK's documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mlirhlo.dialects.hlo.shapes import ArrayShape, leaves
from mlirhlo.interp.custom_calls import register_custom_call, unfit
from mlirhlo.interp.custom_calls.lapack import run_routine, typed
from mlirhlo.interp.registry import Frame, Value

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.control_flow import CustomCallOp


@dataclass(frozen=True, slots=True)
class Form:
    """How a routine was called."""

    scalars: str
    """Names of the scalar operands; those of options as the routine knows them."""
    results: tuple[int | None, ...]
    """For each result the routine's own, by place, or None for a workspace; more are workspaces."""

    @property
    def names(self) -> list[str]:
        """The scalar operands' names."""
        return self.scalars.split()


FORMS: Mapping[str, Form] = {
    "potrf": Form("lower batch n", (0, 1)),
    "getrf": Form("batch m n", (0, 1, 2)),
    "geqrf": Form("batch m n lwork", (0, 1)),
    "orgqr": Form("batch m n k lwork", (0,)),
    "ungqr": Form("batch m n k lwork", (0,)),
    "gesdd": Form("full_matrices compute_uv batch m n lwork", (0, 1, 2, 3, 4)),
    "syevd": Form("lower batch n", (0, 1, 2)),
    "heevd": Form("lower batch n", (0, 1, 2)),
    "gehrd": Form("n low high lda batch lwork", (0, 1, 2)),
    "sytrd": Form("n lower lda batch lwork", (0, 1, 2, 3, 4)),
    "hetrd": Form("n lower lda batch lwork", (0, 1, 2, 3, 4)),
    "geev": Form("batch n compute_left compute_right", (None, None, None, 0, 1, 2, 3, 4)),
    "gees": Form("batch n mode sort", (0, 2, 3, 1, 4, 5)),
    "trsm": Form("side uplo trans_x diag m n batch alpha", (0,)),
}
"""The calls of real matrices; those of complex ones that differ are in `COMPLEX_FORMS`."""

COMPLEX_FORMS: Mapping[str, Form] = {
    **FORMS,
    "geev": Form("batch n compute_left compute_right", (None, None, 0, 1, 2, 3)),
    "gees": Form("batch n mode sort", (0, None, 2, 1, 3, 4)),
}

_LETTERS = {"side": "RL", "uplo": "UL", "trans_x": "NTC", "diag": "NU"}
"""Options of trsm, which stand there as numbers of a choice."""


def _options(form: Form, scalars: Sequence[Any]) -> dict[str, Any]:
    found = {name: value.item() for name, value in zip(form.names, scalars, strict=True)}
    return {k: _LETTERS[k][int(v)] if k in _LETTERS else v for k, v in found.items()}


def _meaning(routine: str, form: Form) -> Callable[[CustomCallOp, Sequence[Any], Frame], Value]:
    def meaning(op: CustomCallOp, inputs: Sequence[Any], frame: Frame) -> Value:
        count = len(form.names)
        shapes = [shape for _, shape in leaves(op.shape) if isinstance(shape, ArrayShape)]
        if len(inputs) <= count or any(np.ndim(x) for x in inputs[:count]):
            raise unfit(op, f"takes {count} numbers ({form.scalars}) and then arrays")
        if len(shapes) < len(form.results):
            raise unfit(op, f"gives {len(form.results)} results, but its shape is {op.shape}")
        options = _options(form, inputs[:count])
        own = [
            shape for shape, place in zip(shapes, form.results, strict=False) if place is not None
        ]
        arrays = inputs[count:]
        if "alpha" in options:
            arrays = [arrays[0], arrays[1] * inputs[count - 1]]
        results = run_routine(routine, arrays, options, own)
        values: list[Any] = [np.zeros(s.dimensions, s.element_type.dtype) for s in shapes]
        for index, place in enumerate(form.results):
            if place is not None and place < len(results):
                values[index] = typed(results[place], shapes[index])
        return values[0] if isinstance(op.shape, ArrayShape) else tuple(values)

    return meaning


for _forms, _types in ((FORMS, "sd"), (COMPLEX_FORMS, "cz")):
    for _name, _form in _forms.items():
        for _type in _types:
            _library = "blas" if _name == "trsm" else "lapack"
            register_custom_call(f"{_library}_{_type}{_name}", _meaning(_name, _form))
