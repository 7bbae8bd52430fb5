"""Types as the rules see them: element, sizes, bounds; and when two types fit each other.

Sizes and bounds that are not known are `DYNAMIC`.
Two types fit when one value could have both: equal elements (quantized ones by what they express)
and sizes that are equal where both are known. Source: StableHLO's dynamism and bounds, as MLIR's
verifier takes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from xdsl.dialects.builtin import (
    ComplexType,
    IntegerType,
    NoneAttr,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute

from mlirhlo.analysis.shape_inference.base import fits
from mlirhlo.dialects.hlo.element_types import BY_MLIR, Kind
from mlirhlo.dialects.hlo.shapes import UNBOUNDED

DYNAMIC = UNBOUNDED
"""Stands for a size or bound that is not known, here as in types and in the hlo rules."""

PRED, SIGNED, UNSIGNED, FLOAT, COMPLEX, QUANTIZED, PER_AXIS = "PSUFCQA"
"""Letters for the kinds of element types; a string of them is a set of kinds."""

_KINDS = {
    Kind.PRED: PRED,
    Kind.SIGNED: SIGNED,
    Kind.UNSIGNED: UNSIGNED,
    Kind.FLOAT: FLOAT,
    Kind.COMPLEX: COMPLEX,
}
_WORDS = {
    PRED: "bool",
    SIGNED: "signed integer",
    UNSIGNED: "unsigned integer",
    FLOAT: "float",
    COMPLEX: "complex",
    QUANTIZED: "per-tensor quantized",
    PER_AXIS: "per-axis quantized",
}


@dataclass(frozen=True, slots=True)
class Tensor:
    """A ranked tensor type. Compare with `fits_type`, not `==`, unless exact types are meant."""

    element: Attribute
    sizes: tuple[int, ...]
    bounds: tuple[int, ...] = ()
    """One for each dimension, or empty when there are none."""
    encoding: Attribute | None = None
    """The attribute that spells the bounds; kept so that a result can carry one like it."""

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.sizes)

    @property
    def is_static(self) -> bool:
        """Whether every size is known."""
        return DYNAMIC not in self.sizes

    @property
    def count(self) -> int:
        """Number of elements of a static tensor."""
        total = 1
        for size in self.sizes:
            total *= size
        return total

    @property
    def kind(self) -> str:
        """Letter of the element's kind; empty for types StableHLO does not have."""
        return kind_of(self.element)

    def bound(self, dim: int) -> int:
        """Bound of a dimension; `DYNAMIC` where there is none."""
        return self.bounds[dim] if self.bounds else DYNAMIC

    def with_element(self, element: Attribute) -> Tensor:
        """The same shape of another element type."""
        return Tensor(element, self.sizes, self.bounds, self.encoding)

    def with_sizes(self, sizes: Iterable[int], bounds: Iterable[int] = ()) -> Tensor:
        """The same element type in another shape; bounds of nothing are left out."""
        found = tuple(bounds)
        if all(bound == DYNAMIC for bound in found):
            found = ()
        return Tensor(self.element, tuple(sizes), found, self.encoding)

    def __str__(self) -> str:
        sizes = "".join("?x" if size == DYNAMIC else f"{size}x" for size in self.sizes)
        bounds = ""
        if self.bounds:
            shown = ", ".join("?" if b == DYNAMIC else str(b) for b in self.bounds)
            bounds = f", #stablehlo.bounds<{shown}>"
        return f"tensor<{sizes}{self.element}{bounds}>"


@lru_cache(maxsize=1 << 12)
def tensor_of(type_: Attribute) -> Tensor | None:
    """The tensor a type is; None for tokens, tuples and the like."""
    if not isinstance(type_, TensorType):
        return None
    known = cast("TensorType[Attribute]", type_)
    sizes = tuple(size.data for size in known.shape.data)
    encoding = None if isinstance(known.encoding, NoneAttr) else known.encoding
    bounds: tuple[int, ...] = ()
    given = getattr(getattr(encoding, "data", None), "bounds", None)
    if given is not None:
        bounds = tuple(DYNAMIC if b is None or b < 0 else int(b) for b in given)
    return Tensor(known.element_type, sizes, bounds, encoding)


def type_of(tensor: Tensor) -> Attribute:
    """The MLIR type of `tensor`."""
    encoding: Attribute = NoneAttr()
    if tensor.bounds and tensor.encoding is not None:
        like = cast(Any, tensor.encoding)
        shown = tuple(None if b == DYNAMIC else b for b in tensor.bounds)
        encoding = like if like.data.bounds == shown else type(like)(type(like.data)(shown))
    return TensorType(tensor.element, tensor.sizes, encoding)


@lru_cache(maxsize=256)
def kind_of(element: Attribute) -> str:
    """Letter of the kind of an element type."""
    known = BY_MLIR.get(element)
    if known is not None:
        # One-bit integers other than i1 are HLO's; StableHLO has none.
        return "" if known.bits == 1 and known.kind is not Kind.PRED else _KINDS[known.kind]
    if element.name.startswith("quant."):
        return PER_AXIS if len(scales(element)) > 1 or is_per_axis(element) else QUANTIZED
    return ""


def kind_words(kinds: str) -> str:
    """Kinds as messages list them."""
    words = [_WORDS[kind] for kind in kinds if kind not in "SU" or not {"S", "U"} <= set(kinds)]
    if {"S", "U"} <= set(kinds):
        words.insert(1 if kinds.startswith(PRED) else 0, "integer")
    return " or ".join(words)


# ---------------------------------------------------------------- quantized elements


def quantized(element: Attribute, name: str) -> Any:
    """Parameter `name` of a quantized element type; None where it has none.

    `storage_type`, `expressed_type`, `storage_min`, `storage_max`, `scales`, `zero_points`, `axis`.
    """
    data: Any = getattr(element, "data", element)
    value: Any = getattr(data, name, None)
    return value


def is_quantized(element: Attribute) -> bool:
    """Whether elements are quantized, in either granularity."""
    return kind_of(element) in (QUANTIZED, PER_AXIS)


def is_per_axis(element: Attribute) -> bool:
    """Whether scales differ along an axis."""
    return quantized(element, "axis") is not None


def scales(element: Attribute) -> tuple[float, ...]:
    """Scales of a quantized element type."""
    found = quantized(element, "scales")
    return () if found is None else tuple(found)


def expressed(element: Attribute) -> Attribute:
    """What a quantized element stands for; any other element itself."""
    found = quantized(element, "expressed_type") if is_quantized(element) else None
    return element if found is None else cast(Attribute, found)


# ---------------------------------------------------------------- parts of elements


def real_part(element: Attribute) -> Attribute:
    """Type of the parts of a complex type; any other type itself."""
    if isinstance(element, ComplexType):
        parts: Attribute = cast(Any, element).element_type
        return parts
    return element


def is_pred(element: Attribute) -> bool:
    """Whether `element` is i1."""
    return kind_of(element) == PRED


def bits(element: Attribute) -> int:
    """Width of an element; that of its storage for a quantized one."""
    if is_quantized(element):
        return bits(cast(Attribute, quantized(element, "storage_type")))
    known = BY_MLIR.get(element)
    return 0 if known is None else known.bits


def signless(width: int) -> IntegerType:
    """`i32` and the like."""
    return IntegerType(width)


def unsigned(width: int) -> IntegerType:
    """`ui32` and the like."""
    return IntegerType(width, Signedness.UNSIGNED)


# ---------------------------------------------------------------- fitting


def fits_element(a: Attribute, b: Attribute) -> bool:
    """Equal elements; quantized ones fit what they express, and others of the same storage."""
    if a == b:
        return True
    if is_quantized(a) and is_quantized(b):
        parts = ("storage_type", "storage_min", "storage_max")
        if any(quantized(a, part) != quantized(b, part) for part in parts):
            return False
    return expressed(a) == expressed(b)


def fits_sizes(a: Sequence[int], b: Sequence[int]) -> bool:
    """Equal ranks, and equal sizes where both are known."""
    return len(a) == len(b) and all(map(fits, a, b))


def fits_shape(a: Tensor, b: Tensor) -> bool:
    """Sizes fit, and no known size is beyond the other's bound."""
    if not fits_sizes(a.sizes, b.sizes):
        return False
    for mine, yours in ((a, b), (b, a)):
        for size, bound in zip(mine.sizes, yours.bounds, strict=False):
            if DYNAMIC not in (size, bound) and size > bound:
                return False
    return True


def fits_type(a: Attribute, b: Attribute) -> bool:
    """Whether one value could have both types; types other than tensors when they are equal."""
    if a == b:
        return True
    mine, yours = tensor_of(a), tensor_of(b)
    if mine is not None and yours is not None:
        return fits_shape(mine, yours) and fits_element(mine.element, yours.element)
    return False


def fits_types(a: Sequence[Attribute], b: Sequence[Attribute]) -> bool:
    """Whether two lists of types fit one by one."""
    return len(a) == len(b) and all(map(fits_type, a, b))


def same_but_precision(a: Attribute, b: Attribute) -> bool:
    """Equal elements, all floating-point types counting as one."""
    return a == b or (kind_of(a) == FLOAT and kind_of(b) == FLOAT)


def is_promotable(a: Attribute, b: Attribute, *, any_float: bool = False) -> bool:
    """Whether `a` is of the kind of `b` and no wider (StableHLO's `is_promotable`)."""
    kinds = {
        SIGNED: "I",
        UNSIGNED: "I",
        PRED: "I",
        PER_AXIS: QUANTIZED,
    }
    mine, yours = kind_of(a), kind_of(b)
    if kinds.get(mine, mine) != kinds.get(yours, yours) or not mine:
        return False
    if is_quantized(a) and expressed(a) != expressed(b):
        return False
    return (any_float and mine == FLOAT) or bits(a) <= bits(b)


# ---------------------------------------------------------------- merging


def most_specific(tensors: Sequence[Tensor]) -> Tensor | None:
    """What is known of a value that has all these types: sizes, else the smallest bounds. None
    where sizes contradict each other."""
    first = tensors[0]
    sizes: list[int] = []
    bounds: list[int] = []
    for dim in range(first.rank):
        known = {t.sizes[dim] for t in tensors} - {DYNAMIC}
        limits = {t.bound(dim) for t in tensors} - {DYNAMIC}
        if len(known) > 1 or (known and limits and min(limits) < min(known)):
            return None
        sizes.append(known.pop() if known else DYNAMIC)
        bounds.append(min(limits) if limits and sizes[-1] == DYNAMIC else DYNAMIC)
    return _bounded_like(tensors, sizes, bounds)


def least_specific(tensors: Sequence[Tensor]) -> Tensor:
    """What holds whichever of these types a value has: sizes all share, else the largest bounds."""
    sizes: list[int] = []
    bounds: list[int] = []
    for dim in range(tensors[0].rank):
        known = {t.sizes[dim] for t in tensors}
        size = known.pop() if len(known) == 1 else DYNAMIC
        limits = [t.bound(dim) if t.sizes[dim] == DYNAMIC else t.sizes[dim] for t in tensors]
        bounded = size == DYNAMIC and DYNAMIC not in limits
        sizes.append(size)
        bounds.append(max(limits) if bounded else DYNAMIC)
    return _bounded_like(tensors, sizes, bounds)


def _bounded_like(tensors: Sequence[Tensor], sizes: list[int], bounds: list[int]) -> Tensor:
    like = next((t.encoding for t in tensors if t.encoding is not None), None)
    merged = Tensor(tensors[0].element, tuple(sizes), (), like)
    return merged.with_sizes(sizes, bounds)
