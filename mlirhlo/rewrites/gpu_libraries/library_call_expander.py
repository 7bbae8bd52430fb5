"""`library-call-expander`: calls of cuBLAS, cuDNN, cuSOLVER and CUB as the instructions they were made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import boolean, integers, string
from mlirhlo.dialects.hlo.ops import CustomCallOp
from mlirhlo.interp.custom_calls.gpu.gpu_gemm import dimensions_of
from mlirhlo.interp.custom_calls.options import options_of
from mlirhlo.rewrites.gpu_libraries.gpu_calls import F8, GEMM, GEMM_CONFIG, LT, config_of
from mlirhlo.rewrites.gpu_libraries.library_convolutions import convolution_of_a_library
from mlirhlo.rewrites.gpu_libraries.library_factors import factor_of_a_library
from mlirhlo.rewrites.gpu_libraries.library_results import finished, parts_of, sum_type
from mlirhlo.rewrites.legalize.expander import ExpanderPass, expand_in_place
from mlirhlo.rewrites.legalize.indexed_loops import plain
from mlirhlo.rewrites.linear_algebra.client import Graph, Value
from mlirhlo.rewrites.rules import Rewriter, Rule, rule


def _gelu(x: Value) -> Value:
    inner = (x + x * x * x * 0.044715) * 0.7978845608028654
    return x * 0.5 * (inner.elementwise("tanh") + 1)


def _silu(x: Value) -> Value:
    return x / ((-x).elementwise("exponential") + 1)


_ACTIVATIONS: Mapping[str, Callable[[Value], Value]] = {
    "DEFAULT": lambda x: x,
    "RELU": lambda x: x.maximum(0),
    "GELU": _gelu,
    "SILU": _silu,
}


@rule(CustomCallOp, contract="rounding")
def product_of_a_library(op: CustomCallOp, rewriter: Rewriter) -> None:
    """custom-call(a, b, c, …), __cublas$… => activation(alpha * dot(a, b) + beta * c + bias)"""
    if op.custom_call_target not in (GEMM, LT, F8):
        return
    config = config_of(op, GEMM_CONFIG)
    epilogue = str(config["epilogue"])
    words = epilogue.removesuffix("_AUX").split("_")
    with_bias = words[0] == "BIAS"
    activation = _ACTIVATIONS.get("_".join(words[1:] if with_bias else words) or "DEFAULT")
    is_f8 = op.custom_call_target == F8
    extra = len(op.inputs) - 2 - bool(config["beta"]) - with_bias
    if activation is None or not parts_of(op) or not (2 <= extra <= 4 if is_f8 else extra == 0):
        return

    def build(graph: Graph, lhs: Value, rhs: Value, *rest: Value) -> Value:
        total = _dot(graph, op, lhs, rhs, config)
        return finished(op, graph, _epilogue(op, total, rest, config, activation))

    expand_in_place(op, rewriter, build)


def _dot(
    graph: Graph, op: CustomCallOp, lhs: Value, rhs: Value, config: Mapping[str, Any]
) -> Value:
    dims = dimensions_of(config.get("dot_dimension_numbers", {}))
    properties: dict[str, Attribute] = {
        "lhs_contracting_dims": integers(dims.lhs_contracting),
        "rhs_contracting_dims": integers(dims.rhs_contracting),
    }
    if dims.lhs_batch:
        properties["lhs_batch_dims"] = integers(dims.lhs_batch)
        properties["rhs_batch_dims"] = integers(dims.rhs_batch)
    precision = config.get("precision_config", {}).get("operand_precision", ())
    if any(str(word) != "DEFAULT" for word in precision):
        properties["operand_precision"] = ArrayAttr([string(str(w).lower()) for w in precision])
    sizes = [lhs.sizes[d] for d in dims.lhs_batch]
    for value, batch, summed in (
        (lhs, dims.lhs_batch, dims.lhs_contracting),
        (rhs, dims.rhs_batch, dims.rhs_contracting),
    ):
        sizes += [n for d, n in enumerate(value.sizes) if d not in (*batch, *summed)]
    type_ = sum_type(lhs.type, rhs.type, parts_of(op)[0].element_type)
    product = graph.make("dot", lhs, rhs, shape=plain(type_, sizes), **properties)
    return product.reshape(*parts_of(op)[0].dimensions)


def _epilogue(
    op: CustomCallOp,
    total: Value,
    operands: Sequence[Value],
    config: Mapping[str, Any],
    activation: Callable[[Value], Value],
) -> list[Value]:
    """What stands behind a product: the results but for workspaces."""
    rest, beta, type_ = list(operands), float(config["beta"]), total.type
    matrix = rest.pop(0) if beta else None
    bias = rest.pop() if str(config["epilogue"]).startswith("BIAS") else None
    alpha = complex(config["alpha_real"], config["alpha_imag"])
    if alpha != 1:
        total = total * (alpha if type_.is_complex else alpha.real)
    scale_out = None
    if rest:
        total = total * (rest[0].reshape().convert(type_) * rest[1].reshape().convert(type_))
        if len(rest) > 2 and parts_of(op)[0].element_type.bits == 8:
            scale_out = rest[-1].reshape().convert(type_)
        if matrix is not None and len(rest) > 3:
            matrix = matrix.convert(type_) * rest[2].reshape().convert(type_)
    if matrix is not None:
        total = total + matrix.convert(type_) * beta
    if bias is not None:
        total = total + bias.convert(type_).broadcast_in_dim(total.sizes, (total.rank - 1,))
    before, total = total, activation(total)
    found = [total if scale_out is None else total * scale_out]
    if str(config["epilogue"]).endswith("_AUX"):
        found.append(before)
    if config.get("damax_output"):
        found.append(total.abs().reduce("maximum", range(total.rank)))
    return found


@rule(CustomCallOp)
def system_of_a_library(op: CustomCallOp, rewriter: Rewriter) -> None:
    """custom-call(a, b), __cublas$triangularSolve => triangular-solve(a, b)"""
    if op.custom_call_target != "__cublas$triangularSolve" or not parts_of(op):
        return
    options = options_of(op)

    def build(graph: Graph, a: Value, b: Value) -> Value:
        flags = {
            key: boolean(True)
            for key in ("left_side", "lower", "unit_diagonal")
            if options.get(key, False)
        }
        kind = string(str(options.get("transpose_a", "NO_TRANSPOSE")))
        x = graph.make(
            "triangular-solve", a, b, shape=plain(b.type, b.sizes), transpose_a=kind, **flags
        )
        return finished(op, graph, [x])

    expand_in_place(op, rewriter, build)


_SORTS = (
    "__cub$DeviceRadixSort",
    "__cub$DeviceRadixSortUnassignedScratchSize",
    "__cub$DeviceRadixSortWithoutScratch",
    "xla.gpu.ext.cub_sort_keys",
    "xla.gpu.ext.cub_sort_pairs",
)


@rule(CustomCallOp)
def sort_of_a_library(op: CustomCallOp, rewriter: Rewriter) -> None:
    """custom-call(keys, values), __cub$DeviceRadixSort => sort(keys, values), stable, in the total order"""
    if op.custom_call_target not in _SORTS or not parts_of(op):
        return
    descending = bool(options_of(op).get("descending", False))

    def build(graph: Graph, *values: Value) -> Value:
        direction = "GT" if descending else "LT"
        found = graph.sort(values, values[0].rank - 1, direction=direction, in_total_order=True)
        return finished(op, graph, found)

    expand_in_place(op, rewriter, build)


@dataclass(frozen=True)
class LibraryCallExpanderPass(ExpanderPass):
    """Turns calls of NVIDIA's libraries, which XLA:GPU put into a module, back into instructions.

    Before and after:

        %c = (f32[8,4], s8[4096]) custom-call(%a, %b), custom_call_target="__cublas$lt$matmul", …RELU…
          =>   %d = f32[8,4] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
               %r = f32[8,4] maximum(%d, %zero)

    Products with scales, summand, bias and activation (`__cublas$gemm`, `__cublas$lt$matmul`, `…$f8`),
    convolutions and both gradients (`__cudnn$conv…`), triangular systems, radix sorts. Sums are in the type
    that the library sums in, and are rounded once; workspaces hold zeros. `__cusolver$cholesky`, `LuDecomposition`,
    `cusolver_gesvdj_ffi` and `…gesvdp_ffi` become calls of LAPACK's routines (`lapack-expander`); pivots, `syrk`,
    updated Cholesky factors and `cu_threefry2x32_ffi` instructions. Calls in another form stay.
    Needs: fusions are taken apart (`defuser`), as calls in them stay. Source: XLA:GPU's rewriters and dumps.
    """

    name = "library-call-expander"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (
        product_of_a_library,
        convolution_of_a_library,
        system_of_a_library,
        sort_of_a_library,
        factor_of_a_library,
    )
