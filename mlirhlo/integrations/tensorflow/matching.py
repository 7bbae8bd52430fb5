"""Which inputs of a TensorFlow function became parameters of its program.

The compiler takes the inputs in order, and leaves out those whose values it needs while compiling
(shapes, axes, numbers of classes). It does not say which these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.shapes import ArrayShape

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.shapes import Shape

Kind: TypeAlias = "tuple[str, tuple[int | None, ...] | None]"
"""TensorFlow's name of an element type, and a shape."""

_TYPES = {
    "bool": "pred", "complex64": "c64", "complex128": "c128", "bfloat16": "bf16",
    "float16": "f16", "float32": "f32", "float64": "f64",
    "int4": "s4", "int8": "s8", "int16": "s16", "int32": "s32", "int64": "s64",
    "uint4": "u4", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float8_e5m2": "f8e5m2", "float8_e4m3fn": "f8e4m3fn",
    "qint8": "s8", "quint8": "u8", "qint32": "s32",
}  # fmt: skip


def parameters_for(shapes: Sequence[Shape], inputs: Sequence[Kind]) -> tuple[int, ...]:
    """For each parameter the number of its input; some inputs are none.

    Raises `HloError` HLO0603 when there is no way to say, or more than one.
    """
    earliest, latest = _first_fit(shapes, inputs), _first_fit(shapes[::-1], inputs[::-1])
    if earliest is None or latest is None:
        raise error(
            "HLO0603",
            f"the program's parameters {', '.join(map(str, shapes))} are not among the function's"
            f" inputs {', '.join(map(str, inputs))}",
        )
    backwards = tuple(len(inputs) - 1 - number for number in reversed(latest))
    if earliest != backwards:
        raise error(
            "HLO0603",
            f"some of the {len(inputs)} inputs were compiled into the program, and their types do"
            " not say which",
            help="give shapes and axes as Python values and not as tensors",
        )
    return earliest


def _first_fit(shapes: Sequence[Shape], inputs: Sequence[Kind]) -> tuple[int, ...] | None:
    """Each parameter at the earliest input left; None when one finds none."""
    found: list[int] = []
    number = 0
    for shape in shapes:
        while number < len(inputs) and not _fits(shape, inputs[number]):
            number += 1
        if number == len(inputs):
            return None
        found.append(number)
        number += 1
    return tuple(found)


def _fits(shape: Shape, kind: Kind) -> bool:
    name, sizes = kind
    if not isinstance(shape, ArrayShape) or _TYPES.get(name) != str(shape.element_type):
        return False
    if sizes is None:
        return True
    return len(sizes) == len(shape.dimensions) and all(
        size is None or size == own for size, own in zip(sizes, shape.dimensions, strict=True)
    )
