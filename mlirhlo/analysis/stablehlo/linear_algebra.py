"""Rules of dot products, normalisation, decompositions and Fourier transforms."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import ComplexType

from mlirhlo.analysis.shape_inference.base import fits
from mlirhlo.analysis.stablehlo.base import (
    Given,
    Results,
    check_range,
    check_unique,
    checks,
    infers,
)
from mlirhlo.analysis.stablehlo.quantization import check_product, per_axis
from mlirhlo.analysis.stablehlo.tensors import (
    COMPLEX,
    DYNAMIC,
    FLOAT,
    Tensor,
    bits,
    fits_element,
    fits_sizes,
    is_quantized,
    quantized,
    real_part,
)
from mlirhlo.dialects.stablehlo.attributes import DotAlgorithm, DotDimensionNumbers

PRECISION = "precision_config is empty or has an entry for each side"


def check_precision(given: Given, number: int) -> None:
    """Raises constraint `number` where there are more than two precisions."""
    count = len(given.array("precision_config"))
    if count > 2:
        raise given.error(
            number, f"precision_config has {count} entries", attribute="precision_config"
        )


@infers(
    "dot_general",
    c1="both sides have as many batching dimensions",
    c2="both sides have as many contracting dimensions",
    c3="the dimensions of lhs are unique",
    c4="the dimensions of rhs are unique",
    c5="batching dimensions of lhs are dimensions of lhs",
    c6="contracting dimensions of lhs are dimensions of lhs",
    c7="batching dimensions of rhs are dimensions of rhs",
    c8="contracting dimensions of rhs are dimensions of rhs",
    c9="batching dimensions have the same sizes on both sides",
    c10="contracting dimensions have the same sizes on both sides",
    c11=PRECISION,
    c12="the result has the sizes of batching dimensions, then the others of lhs, then of rhs",
    c13="unless quantized, both sides have one element type",
    c14="rhs is quantized where anything is, and lhs just when the result is",
    c15="zero points of rhs are 0 where they stand along an axis",
    c16="rhs is not quantized along a contracting dimension",
    c17="both sides have one storage type",
    c18="lhs, rhs and result have one expressed type",
    c19="the result is quantized as a whole where rhs is",
    c20="unquantized lhs and result have the element type that rhs expresses",
    c21="with an algorithm, precision_config is DEFAULT",
    c22="the algorithm has at least one component of lhs",
    c23="the algorithm has at least one component of rhs",
    c24="the algorithm has at least one primitive operation",
    result=(12, 12),
)
def _dot_general(given: Given) -> Results:
    lhs, rhs = given.tensor(0), given.tensor(1)
    check_precision(given, 11)
    numbers: DotDimensionNumbers = given.data("dot_dimension_numbers")
    sides = (
        (numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions),
        (numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions),
    )
    for at, number, what in ((0, 1, "batching"), (1, 2, "contracting")):  # c1, c2
        if len(sides[0][at]) != len(sides[1][at]):
            raise given.error(
                number,
                f"lhs has {len(sides[0][at])} {what} dimensions, rhs {len(sides[1][at])}",
                attribute="dot_dimension_numbers",
            )
    for side, number, name in ((0, 3, "lhs"), (1, 4, "rhs")):  # c3, c4
        check_unique(given, (*sides[side][0], *sides[side][1]), number, f"dimensions of {name}")
    for side, at, number in ((0, 0, 5), (0, 1, 6), (1, 0, 7), (1, 1, 8)):  # c5 to c8
        name = f"{('lhs', 'rhs')[side]}_{('batching', 'contracting')[at]}_dimensions"
        check_range(given, sides[side][at], (lhs, rhs)[side].rank, number, name, "dimensions")
    for at, number, what in ((0, 9, "batching"), (1, 10, "contracting")):  # c9, c10
        for mine, yours in zip(sides[0][at], sides[1][at], strict=True):
            a, b = lhs.sizes[mine], rhs.sizes[yours]
            if not fits(a, b):
                raise given.error(
                    number, f"{what} dimensions {mine} and {yours} have {a} and {b} elements"
                )
    # What is known of a batching dimension on either side is known of the result.
    sizes = [
        rhs.sizes[yours] if lhs.sizes[mine] == DYNAMIC else lhs.sizes[mine]
        for mine, yours in zip(sides[0][0], sides[1][0], strict=True)
    ]
    for tensor, taken in ((lhs, sides[0]), (rhs, sides[1])):
        sizes += [s for dim, s in enumerate(tensor.sizes) if dim not in (*taken[0], *taken[1])]
    element = given.result().element if given.declared else lhs.element
    return (lhs.with_sizes(sizes).with_element(element),)


@checks("dot_general")
def _check_dot_general(given: Given) -> None:
    lhs, rhs, result = given.tensor(0), given.tensor(1), given.result()
    numbers: DotDimensionNumbers = given.data("dot_dimension_numbers")
    algorithm: DotAlgorithm | None = given.data("algorithm")
    precisions = [getattr(p, "data", "DEFAULT") for p in given.array("precision_config")]
    if algorithm is not None:
        if any(precision != "DEFAULT" for precision in precisions):  # c21
            raise given.error(
                21, "precision_config is not DEFAULT beside an algorithm", attribute="algorithm"
            )
        for number, key in (
            (22, "lhs_component_count"),
            (23, "rhs_component_count"),
            (24, "num_primitive_operations"),
        ):  # c22 to c24
            if getattr(algorithm, key) < 1:
                raise given.error(
                    number, f"{key} is {getattr(algorithm, key)}", attribute="algorithm"
                )
        if not _is_known(algorithm):
            raise given.error(
                "i8", f"no hardware has the algorithm {algorithm}", attribute="algorithm"
            )
    if not any(is_quantized(t.element) for t in (lhs, rhs, result)):
        # XLA multiplies elements of two precisions, and JAX writes such programs.
        if algorithm is None and (lhs.kind in "FC" or rhs.kind in "FC") and lhs.kind != rhs.kind:
            raise given.error(
                13, f"element types differ: {lhs.element} and {rhs.element}", operand=1
            )
        return
    axis = per_axis(rhs)
    zero_points = quantized(rhs.element, "zero_points") or ()
    # The text of the specification asks it of all; StableHLO's own tests have one of -128.
    if axis is not None and any(zero_points):  # c15
        raise given.error(15, f"zero points of rhs are not 0: {tuple(zero_points)}", operand=1)
    if axis is not None and axis in numbers.rhs_contracting_dimensions:  # c16
        raise given.error(16, f"rhs is quantized along contracting dimension {axis}", operand=1)
    check_product(given, lhs, rhs, result, (14, 17, 18, 19, 20))


_ALGORITHMS = {
    ("f16", "f16", 1), ("f16", "f32", 1), ("bf16", "bf16", 1), ("bf16", "f32", 1),
    ("bf16", "f32", 3), ("bf16", "f32", 6), ("bf16", "f32", 9), ("tf32", "f32", 1),
    ("tf32", "f32", 3), ("f32", "f32", 1), ("f64", "f64", 1),
}  # fmt: skip
"""Precision and accumulation type, and number of primitive operations, of what MLIR knows."""


def _is_known(algorithm: DotAlgorithm) -> bool:
    """Whether some hardware has it: the list is that of MLIR's verifier."""
    lhs, rhs = str(algorithm.lhs_precision_type), str(algorithm.rhs_precision_type)
    accumulation, count = str(algorithm.accumulation_type), algorithm.num_primitive_operations
    if (algorithm.lhs_component_count, algorithm.rhs_component_count) != (1, 1):
        return False
    if lhs.startswith("f8") and rhs.startswith("f8"):
        return (accumulation, count) == ("f32", 1) and "f8E8M0FNU" not in (lhs, rhs)
    if algorithm.allow_imprecise_accumulation or lhs != rhs:
        return False
    return (lhs, accumulation, count) in _ALGORITHMS


@infers(
    "dot",
    c1="both sides are vectors or matrices",
    c2="the last dimension of lhs has the size of the first of rhs",
    c3=PRECISION,
    c4="the result has the other dimensions of both sides",
    result=(4, 4),
)
def _dot(given: Given) -> Results:
    lhs, rhs = given.tensor(0), given.tensor(1)
    check_precision(given, 3)
    if lhs.rank not in (1, 2) or rhs.rank not in (1, 2):  # c1
        raise given.error(1, f"both sides have rank 1 or 2, not {lhs} and {rhs}")
    if not fits(lhs.sizes[-1], rhs.sizes[0]):  # c2
        raise given.error(
            2, f"contracted dimensions have {lhs.sizes[-1]} and {rhs.sizes[0]} elements"
        )
    element = given.result().element if given.declared else lhs.element
    return (Tensor(element, (*lhs.sizes[:-1], *rhs.sizes[1:])),)


@infers(
    "batch_norm_training",
    c1="feature_index is a dimension of the operand",
    c2="operand, scale, offset and results have one element type",
    c3="scale has an element for each feature",
    c4="offset has an element for each feature",
    c5="batch_mean has an element for each feature",
    c6="batch_var has an element for each feature",
    c7="operand and output have one type",
    result=(7, 2, 5, 2, 6, 2),
)
def _batch_norm_training(given: Given) -> Results:
    operand, features = _normalised(given, (0,), ((1, 3), (2, 4)))
    return (operand, features, features)


@infers(
    "batch_norm_inference",
    c1="feature_index is a dimension of the operand",
    c2="operand, scale, offset, mean, variance and result have one element type",
    c3="scale has an element for each feature",
    c4="offset has an element for each feature",
    c5="mean has an element for each feature",
    c6="variance has an element for each feature",
    c7="operand and result have one type",
    result=(7, 2),
)
def _batch_norm_inference(given: Given) -> Results:
    return _normalised(given, (0,), ((1, 3), (2, 4), (3, 5), (4, 6)))[:1]


@infers(
    "batch_norm_grad",
    c1="feature_index is a dimension of the operand",
    c2="all operands and results have one element type",
    c3="operand, grad_output and grad_operand have one shape",
    c4="scale, mean, variance, grad_scale and grad_offset have one shape",
    c5="scale has an element for each feature",
    result=(3, 2, 4, 2),
)
def _batch_norm_grad(given: Given) -> Results:
    operand, output = given.tensor(0), given.tensor(4)
    if not fits_sizes(operand.sizes, output.sizes):  # c3
        raise given.error(3, f"shapes differ: {operand} and {output}", operand=4)
    scale = given.tensor(1)
    for index in (2, 3):  # c4
        if not fits_sizes(scale.sizes, given.tensor(index).sizes):
            raise given.error(4, f"shapes differ: {scale} and {given.tensor(index)}", operand=index)
    operand, features = _normalised(given, (0, 4), ((1, 5), (2, 5), (3, 5)))
    return (operand, features, features)


def _normalised(
    given: Given, whole: tuple[int, ...], vectors: tuple[tuple[int, int], ...]
) -> tuple[Tensor, Tensor]:
    operand, feature = given.tensor(0), given.int("feature_index")
    check_range(given, [feature], operand.rank, 1, "feature_index", "dimensions")  # c1
    for index in (*whole, *(index for index, _ in vectors)):  # c2
        other = given.tensor(index)
        if not fits_element(operand.element, other.element):
            raise given.error(
                2, f"element types differ: {operand.element} and {other.element}", operand=index
            )
    for index, number in vectors:
        vector = given.tensor(index)
        if not fits(vector.sizes[0], operand.sizes[feature]):
            raise given.error(
                number,
                f"{vector} has not one element for each of {operand.sizes[feature]} features",
                operand=index,
            )
    return operand, operand.with_sizes([operand.sizes[feature]], [operand.bound(feature)])


@infers(
    "cholesky",
    c1="operand and result have one type",
    c2="the operand has at least two dimensions",
    c3="the last two dimensions have one size",
)
def _cholesky(given: Given) -> Results:
    operand = given.tensor(0)
    if operand.rank < 2:  # c2
        raise given.error(2, f"the operand has rank {operand.rank}", operand=0)
    if not fits(operand.sizes[-2], operand.sizes[-1]):  # c3
        raise given.error(3, f"the matrices of {operand} are not square", operand=0)
    return (operand,)


@infers(
    "triangular_solve",
    c1="a and b have one element type",
    c2="a and b have one rank, at least 2",
    c3="a has square matrices that suit those of b; their batches are equal",
    c4="b and result have one type",
    result=(4, 4),
)
def _triangular_solve(given: Given) -> Results:
    a, b = given.tensor(0), given.tensor(1)
    if not fits_element(a.element, b.element):  # c1
        raise given.error(1, f"element types differ: {a.element} and {b.element}", operand=1)
    if a.rank < 2 or a.rank != b.rank:  # c2
        raise given.error(2, f"ranks are {a.rank} and {b.rank}", operand=0)
    if not fits(a.sizes[-2], a.sizes[-1]):  # c3
        raise given.error(3, f"the matrices of {a} are not square", operand=0)
    shared = b.sizes[-2] if given.bool("left_side") else b.sizes[-1]
    if not fits(a.sizes[-1], shared):  # c3
        raise given.error(3, f"the matrices of {a} and {b} do not multiply", operand=1)
    if not fits_sizes(a.sizes[:-2], b.sizes[:-2]):  # c3
        raise given.error(3, f"batches differ: {a} and {b}", operand=1)
    if given.str("transpose_a") == "TRANSPOSE_INVALID":
        raise given.error("i6", "transpose_a is TRANSPOSE_INVALID", attribute="transpose_a")
    return (b,)


@infers(
    "fft",
    c1="fft_length has at most as many entries as the operand dimensions",
    c2="elements are complex, but float for the operand of RFFT and the result of IRFFT",
    c3="fft_length has one to three entries",
    c4="the last dimensions of the real side are fft_length",
    c5="only the last dimension changes: to half and one for RFFT, and back for IRFFT",
    result=(5, 2),
)
def _fft(given: Given) -> Results:
    operand, lengths = given.tensor(0), given.ints("fft_length")
    kind = given.str("fft_type")
    if not 1 <= len(lengths) <= 3:  # c3
        raise given.error(3, f"fft_length has {len(lengths)} entries", attribute="fft_length")
    wanted = FLOAT if kind == "RFFT" else COMPLEX
    if operand.kind != wanted or (wanted == FLOAT and bits(operand.element) < 32):  # c2
        raise given.error(
            2,
            f"{kind} takes {'f32 or f64' if wanted == FLOAT else 'complex'} elements, not {operand}",
        )
    if operand.rank < len(lengths):  # c1
        raise given.error(1, f"fft_length has {len(lengths)} entries for rank {operand.rank}")
    if kind not in ("RFFT", "IRFFT"):
        return (operand,)
    last, sizes = lengths[-1], list(operand.sizes)
    tail = sizes[len(sizes) - len(lengths) :]
    compared = tail if kind == "RFFT" else tail[:-1]
    if not all(map(fits, compared, lengths)):  # c4
        raise given.error(4, f"fft_length {lengths} is not at the end of {operand}", operand=0)
    halved = last // 2 + 1 if last else 0
    if kind == "RFFT":
        sizes[-1] = halved
        element: Any = ComplexType(cast(Any, operand.element))
    else:
        if not fits(sizes[-1], halved):  # c5
            raise given.error(5, f"the last dimension has {sizes[-1]} elements, not {halved}")
        sizes[-1] = last
        element = real_part(operand.element)
    bounds = [*(operand.bound(dim) for dim in range(operand.rank - 1)), DYNAMIC]
    return (operand.with_sizes(sizes, bounds).with_element(element),)
