"""Identity elements against the interpreter: of every opcode that has one, in every element type."""

from __future__ import annotations

import numpy as np
import pytest

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES, Kind, PrimitiveType
from mlirhlo.dialects.hlo.identities import identity_element
from mlirhlo.dialects.hlo.table import OPCODES
from mlirhlo.interp.numerics import work_dtype
from mlirhlo.interp.ops.elementwise import function

ROWS = [row for row in OPCODES.values() if row.identity is not None]
TYPES = [type_ for type_ in PRIMITIVE_TYPES.values() if type_.is_array]


def values(type_: PrimitiveType) -> np.ndarray:
    """Every value of a small type; ends, zeros and NaN of the others."""
    if type_.kind is Kind.PRED:
        return np.array([False, True])
    if type_.bits <= 8:
        count = 1 << type_.bits
        if type_.is_float:
            return np.arange(count, dtype=np.uint8).view(type_.dtype)
        least = -(count // 2) if type_.is_signed else 0
        return np.arange(least, least + count).astype(type_.dtype)
    if type_.is_integer:
        info = np.iinfo(type_.dtype)
        return np.array([info.min, info.max, 0, 1, 77], type_.dtype)
    floats = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan])
    if type_.is_complex:
        parts = floats[:4]
        return (parts[:, None] + 0 * parts).astype(type_.dtype).ravel()
    return floats.astype(type_.dtype)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_leaves_the_other_operand(row) -> None:
    tried = 0
    for type_ in TYPES:
        accepts = (
            type_.is_integer or type_.kind is Kind.PRED or row.name not in ("and", "or", "xor")
        )
        element = identity_element(row, type_)
        if element is None or not accepts:
            continue
        every = values(type_)
        identity = np.full(every.shape, element).astype(type_.dtype)
        work = work_dtype(type_)
        apply = function(row.name, type_)
        for x, y in ((identity, every), (every, identity)):
            got, expected = np.asarray(apply(x.astype(work), y.astype(work))), every
            got = got.astype(type_.dtype)
            bits = got.tobytes() == expected.tobytes()
            assert bits or np.array_equal(
                got.astype(np.complex128), expected.astype(np.complex128), equal_nan=True
            ), (type_.name, element)
        tried += 1
    assert tried >= 11


def test_what_has_none() -> None:
    assert identity_element(OPCODES["subtract"], PRIMITIVE_TYPES["f32"]) is None
    assert identity_element(OPCODES["add"], PRIMITIVE_TYPES["f8e8m0fnu"]) is None
    assert identity_element(OPCODES["maximum"], PRIMITIVE_TYPES["c64"]) is None
