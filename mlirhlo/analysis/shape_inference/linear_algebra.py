"""Shapes of batch normalisation, factorisations, solvers and transforms."""

from __future__ import annotations

from mlirhlo.analysis.shape_inference.base import (
    Given,
    checks,
    dimension,
    fits,
    infers,
    plain,
    same_type,
)
from mlirhlo.dialects.hlo.element_types import PrimitiveType
from mlirhlo.dialects.hlo.shapes import UNBOUNDED, ArrayShape, Shape, TupleShape, array

_BATCH_NORM = {
    "c1": "the operands are arrays",
    "c2": "feature_index is a dimension of the operand",
    "c3": "the element types are floating point",
    "c4": "the element types of all operands are floating point, of any precision",
    "c5": "the other operands have rank 1",
    "c6": "the other operands have the size of the feature dimension",
}


def _feature(
    given: Given, vectors: dict[int, str], lenient: tuple[int, ...] = ()
) -> tuple[ArrayShape, ArrayShape]:
    """The operand and a vector of its feature dimension; `vectors` names the rank-1 operands, of
    which XLA does not hold the `lenient` ones to their rank."""
    x = given.array(0, f"operand of {given.opcode}")
    index = given.int("feature_index")
    if index < 0:  # c2
        raise given.error(
            2,
            f"Expected feature_index of {given.opcode} to be a non-negative number, got {index}.",
            attribute="feature_index",
        )
    if index >= x.rank:  # c2
        raise given.error(
            2,
            f"Expected feature_index of {given.opcode} to be smaller than the rank of operand_shape;"
            f" got feature_index {index}, and rank {x.rank}.",
            attribute="feature_index",
        )
    if not x.element_type.is_float:  # c3
        raise given.error(
            3,
            f"The operand to {given.opcode} must have a floating point element type, but the shape"
            f" is {x.element_type.name.upper()}.",
            operand=0,
        )
    for operand, what in vectors.items():
        vector = given.array(operand, f"{what} of {given.opcode}")
        if vector.rank == 0 or (vector.rank > 1 and operand not in lenient):  # c5
            raise given.error(
                5,
                f"{what.capitalize()} input of {given.opcode} must have rank 1, but has rank"
                f" {vector.rank}.",
                operand=operand,
            )
        if not same_type(vector.element_type, x.element_type):  # c4
            raise given.error(
                4,
                f"The inputs should have the same element type for {given.opcode}, but {what} is"
                f" {vector.element_type.name.upper()} and the operand is"
                f" {x.element_type.name.upper()}.",
                operand=operand,
            )
        if not fits(vector.dimensions[0], x.dimensions[index]):  # c6
            raise given.error(
                6,
                f"The size of {what} should be compatible with feature count, but the size of {what}"
                f" is {vector.dimensions[0]} and the feature count is {x.dimensions[index]}.",
                operand=operand,
            )
    size, dynamic = dimension(x, index)
    return x, array(x.element_type, (size,), (dynamic,))


@infers("batch-norm-training", **_BATCH_NORM)
def batch_norm_training(given: Given) -> Shape:
    """(operand, mean, variance)."""
    x, vector = _feature(given, {1: "scale factor", 2: "offset factor"})
    return TupleShape((x, vector, vector))


@infers("batch-norm-inference", **_BATCH_NORM)
def batch_norm_inference(given: Given) -> Shape:
    """The operand's shape."""
    names = {1: "scale factor", 2: "offset factor", 3: "mean", 4: "variance"}
    return _feature(given, names, lenient=(3, 4))[0]


@checks("batch-norm-inference", c7="mean and variance have rank 1")
def check_batch_norm_inference(given: Given) -> None:
    """What inference lets pass: the rank of mean and variance."""
    for operand, what in ((3, "mean"), (4, "variance")):
        shape = given.array(operand, what)
        if shape.rank != 1:  # batch-norm-inference_c7
            raise given.error(7, f"{what} must have rank 1, but is {plain(shape)}", operand=operand)


@infers(
    "batch-norm-grad",
    **_BATCH_NORM,
    c7="output_grad has the operand's sizes",
)
def batch_norm_grad(given: Given) -> Shape:
    """(gradient of the operand, of scale, of offset)."""
    x, vector = _feature(given, {1: "scale factor", 2: "mean", 3: "variance"})
    grad = given.array(4, "output_grad of batch-norm-grad")
    if not grad.element_type.is_float:  # batch-norm-grad_c3
        raise given.error(
            3,
            "The output_grad to batch-norm-grad must have a floating point element type, but the"
            f" shape is {grad.element_type.name.upper()}.",
            operand=4,
        )
    if x.rank != grad.rank:  # batch-norm-grad_c7
        raise given.error(
            7,
            "Expected operand_shape of batch-norm-grad to have the same rank as output_grad_shape;"
            f" got rank(operand_shape) {x.rank}, and rank(output_grad_shape) {grad.rank}.",
            operand=4,
        )
    for dim, (a, b) in enumerate(zip(x.dimensions, grad.dimensions, strict=True)):
        if not fits(a, b):  # batch-norm-grad_c7
            raise given.error(
                7,
                "The bounds of operand shape should be compatible with output_grad's, but the bound"
                f" of operand_shape at dimension {dim} is {a} and the bound of output_grad_shape is"
                f" {b}.",
                operand=4,
            )
    return TupleShape((x, vector, vector))


@infers(
    "cholesky",
    c1="the operand is an array",
    c2="the element type is floating point or complex",
    c3="the rank is at least 2",
    c4="the two minor dimensions have one size",
)
def cholesky(given: Given) -> Shape:
    """The operand's shape."""
    x = given.array(0, "operand of Cholesky")
    if not (x.element_type.is_float or x.element_type.is_complex):  # cholesky_c2
        raise given.error(
            2,
            "Expected element type in shape to be floating or complex for Cholesky; got"
            f" {x.element_type.name.upper()}.",
            operand=0,
        )
    if x.rank < 2:  # cholesky_c3
        raise given.error(
            3, f"The 'a' argument to Cholesky must have rank >= 2, got shape {plain(x)}", operand=0
        )
    if not fits(x.dimensions[-1], x.dimensions[-2]):  # cholesky_c4
        raise given.error(
            4,
            f"The two minor dimensions of 'a' must have compatible size, got {plain(x)}.",
            operand=0,
        )
    return x


@infers(
    "triangular-solve",
    c1="the operands are arrays",
    c2="the element types are equal, and floating point or complex",
    c3="a has rank 2 or more",
    c4="a and b have one rank",
    c5="the two minor dimensions of a have one size",
    c6="the dimension that a and b share has one size",
    c7="batch dimensions have equal sizes",
    c8="transpose_a says how a is taken",
)
def triangular_solve(given: Given) -> Shape:
    """b's shape."""
    a = given.array(0, "'a' of TriangularSolve")
    b = given.array(1, "'b' of TriangularSolve")
    type_ = a.element_type
    if type_ is not b.element_type or not (type_.is_float or type_.is_complex):
        raise given.error(  # triangular-solve_c2
            2,
            "Expected element types in shape to be floating or complex and identical for"
            f" TriangularSolve; got {type_.name.upper()} and {b.element_type.name.upper()}.",
            operand=1,
        )
    if a.rank < 2:  # triangular-solve_c3
        raise given.error(
            3,
            f"The 'a' argument to TriangularSolve must have rank >= 2, got shape {plain(a)}",
            operand=0,
        )
    if a.rank != b.rank:  # triangular-solve_c4
        raise given.error(
            4,
            f"Arguments to triangular solve must have equal rank; got {plain(b)} and {plain(a)}.",
            operand=1,
        )
    if not fits(a.dimensions[-1], a.dimensions[-2]):  # triangular-solve_c5
        raise given.error(
            5,
            f"The two minor dimensions of 'a' must have equal size, got {plain(a)}.",
            operand=0,
        )
    if not fits(a.dimensions[-1], b.dimensions[-2 if given.bool("left_side") else -1]):
        raise given.error(  # triangular-solve_c6
            6,
            "The shared dimension of 'a' and 'b' does not match, got shapes"
            f" {plain(a)} and {plain(b)}",
            operand=1,
        )
    if a.dimensions[:-2] != b.dimensions[:-2]:  # triangular-solve_c7
        raise given.error(
            7,
            "The leading batch dimensions of the arguments to triangular solve must be equal; got"
            f" {plain(b)} and {plain(a)}.",
            operand=1,
        )
    if given.str("transpose_a") not in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
        raise given.error(  # triangular-solve_c8
            8,
            f"Invalid transpose option value for triangular solve: {given.str('transpose_a')!r}.",
            attribute="transpose_a",
        )
    return b


@infers(
    "fft",
    c1="the operand is an array",
    c2="one to three dimensions are transformed",
    c3="the operand has as many dimensions",
    c4="the element type is complex; for RFFT f32 or f64",
    c5="RFFT: the last dimensions have the sizes of fft_length",
    c6="IRFFT: all but one of the last dimensions have the sizes of fft_length",
    c7="IRFFT: the last dimension has fft_length / 2 + 1 elements",
)
def fft(given: Given) -> Shape:
    """The operand's shape; RFFT halves the last dimension, IRFFT restores it."""
    x = given.array(0, "operand of FFT")
    kind, lengths = given.str("fft_type"), given.ints("fft_length")
    rank = len(lengths)
    if not 1 <= rank <= 3:  # fft_c2
        raise given.error(2, f"FFT only supports ranks 1-3; got {rank}.", attribute="fft_length")
    if x.rank < rank:  # fft_c3
        raise given.error(
            3,
            f"FFT of rank {rank} requires input of at least same rank; got input of rank {x.rank}",
            operand=0,
        )
    found = x.element_type.name.upper()
    if kind == "RFFT":
        wide = x.element_type.complex
        if wide is None:  # fft_c4
            raise given.error(4, f"RFFT requires F32 or F64 input type, found {found}.", operand=0)
        for place, length in enumerate(lengths):
            dim = x.rank - rank + place
            if not fits(x.dimensions[dim], length):  # fft_c5
                raise given.error(
                    5,
                    f"RFFT requires innermost dimensions match fft_length but dimension {dim} is"
                    f" {x.dimensions[dim]} and should be {length}.",
                    attribute="fft_length",
                )
        if lengths[-1] == 0:
            return ArrayShape(wide, x.dimensions, x.dynamic, x.layout)
        return _resized(x, wide, lengths[-1] // 2 + 1)
    if not x.element_type.is_complex:  # fft_c4
        name = "FFT" if kind in ("FFT", "IFFT") else kind
        raise given.error(4, f"{name} requires complex input type, found {found}.", operand=0)
    if kind != "IRFFT":
        return x
    for place, length in enumerate(lengths[:-1]):
        dim = x.rank - rank + place
        if x.dimensions[dim] != length:  # fft_c6
            raise given.error(
                6,
                "IRFFT requires all but one innermost dimensions match fft_length, but dimension"
                f" {dim} is {x.dimensions[dim]} and should be {length}.",
                attribute="fft_length",
            )
    half = lengths[-1] // 2 + 1
    # An empty transform takes 0 or 1 elements.
    if not fits(x.dimensions[-1], half) and (x.dimensions[-1], lengths[-1]) != (0, 0):
        raise given.error(  # fft_c7
            7,
            f"IRFFT requires innermost dimension matches fft_length/2+1, but dimension {x.rank - 1}"
            f" is {x.dimensions[-1]} and should be {half}.",
            attribute="fft_length",
        )
    return _resized(x, x.element_type.real, lengths[-1])


def _resized(x: ArrayShape, element_type: PrimitiveType, last: int) -> ArrayShape:
    """`x` with another last size, which is known if it was not; a bound stays one."""
    flags = x.dynamic
    if x.dimensions[-1] == UNBOUNDED:
        flags = (*flags[:-1], False)
    return ArrayShape(
        element_type, (*x.dimensions[:-1], last), flags if any(flags) else (), x.layout
    )
