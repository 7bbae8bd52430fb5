"""Calls of cuDNN's norms: how arrays are laid before them, their configuration and memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.ops import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape, default_layout
from mlirhlo.rewrites.algsimp.common import Builder, array, sized
from mlirhlo.rewrites.gpu_libraries.gpu_calls import NORM_CONFIG, make_call, number
from mlirhlo.rewrites.gpu_libraries.gpu_calls import element as element_of
from mlirhlo.rewrites.legalize.expander import Callees
from mlirhlo.rewrites.rules import Rewriter

NORM = "__cudnn$norm"


@dataclass(frozen=True, slots=True)
class Rows:
    """An array as the library takes it: what is not normed in one dimension, the normed ones behind it."""

    given: tuple[int, ...]
    """Sizes of the array."""
    order: tuple[int, ...]
    """Its dimensions, the normed ones last."""
    sizes: tuple[int, ...]
    """Sizes for the library: four at least."""

    @staticmethod
    def of(shape: ArrayShape, inner: Sequence[int]) -> Rows:
        """For an array whose dimensions `inner` are normed."""
        outer = [k for k in range(shape.rank) if k not in inner]
        rows = math.prod(shape.dimensions[k] for k in outer)
        sizes = [rows, *(shape.dimensions[k] for k in inner)]
        sizes += [1] * (4 - len(sizes))
        return Rows(shape.dimensions, (*outer, *inner), tuple(sizes))

    @property
    def _is_in_order(self) -> bool:
        return self.order == tuple(range(len(self.order)))

    def there(self, b: Builder, value: SSAValue) -> Instruction:
        """An array of as many dimensions, but for those of size 1, as the library takes it."""
        turned: SSAValue | Instruction = value
        if not self._is_in_order:
            if array(value).dimensions != self.given:
                turned = b.reshape(value, sized(array(value), self.given))
            turned = b.transpose(turned, self.order)
        return b.reshape(turned, sized(array(value), self.sizes))

    def back(self, b: Builder, found: Instruction) -> Instruction:
        """What the library gives, in the dimensions of the array."""
        back: Instruction = b.reshape(
            found, sized(array(found), [self.given[k] for k in self.order])
        )
        if not self._is_in_order:
            back = b.transpose(back, [self.order.index(k) for k in range(len(self.order))])
        return back


@runtime_checkable
class _ForGeneration(Protocol):
    """A pass for GPUs of one generation."""

    @property
    def major(self) -> int: ...


def workspace(rewriter: Rewriter, rows: int) -> int:
    """Bytes that a kernel may work in; they depend on the architecture."""
    options = rewriter.options
    pass_ = options.expander if isinstance(options, Callees) else None
    major = pass_.major if isinstance(pass_, _ForGeneration) else 9
    return 2 * 32 * (128 if major == 8 else 144) * 260 + 2 * rows * 4 + 64


def norm_config(epsilon: float, kind: str, asked: int) -> Mapping[str, Any]:
    """The backend configuration of a call that asks for so many bytes to work in."""
    return {
        "epsilon": number(epsilon),
        "algorithm": {
            "algo_id": "0",
            "math_type": "TENSOR_OP_MATH",
            "tuning_knobs": {},
            "is_cudnn_frontend": True,
            "workspace_size": str(asked),
        },
        "kind": kind,
    }


def norm_call(
    b: Builder,
    operands: Sequence[SSAValue | Instruction],
    parts: Sequence[ArrayShape],
    room: int,
    config: Mapping[str, Any],
) -> Instruction:
    """A call that gives `parts`, and behind them `room` bytes it worked in."""
    scratch = sized(ArrayShape(PRIMITIVE_TYPES["u8"], ()), (room,))
    call = make_call(NORM, operands, TupleShape((*parts, scratch)), NORM_CONFIG, config)
    b.made.append(call)
    return call


def part_of(b: Builder, call: Instruction, index: int) -> Instruction:
    """One result of a call."""
    part = element_of(call, index, cast(TupleShape, call.shape).elements[index])
    b.made.append(part)
    return part


def is_row_major(shape: ArrayShape) -> bool:
    """Whether a static array is row-major, as the library takes and gives them."""
    return not shape.is_dynamic and shape.layout in (None, default_layout(shape.rank))
