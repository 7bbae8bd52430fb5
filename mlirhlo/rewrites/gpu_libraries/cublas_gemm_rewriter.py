"""`cublas-gemm-rewriter`: dots, and what is done to their results, as calls of cuBLAS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import isclose, pi, sqrt
from typing import ClassVar

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.aliasing import (
    OutputOperandAlias,
    OutputOperandAliases,
    OutputOperandAliasesAttr,
)
from mlirhlo.dialects.hlo.build import make
from mlirhlo.dialects.hlo.element_types import PRIMITIVE_TYPES
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import (
    AddOp,
    BroadcastOp,
    CustomCallOp,
    DotOp,
    Instruction,
    MaximumOp,
    MultiplyOp,
    ParameterOp,
    TanhOp,
    TransposeOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape
from mlirhlo.rewrites.algsimp.common import array, element, is_all, made_by, sized, splat_of
from mlirhlo.rewrites.cloning import clone_instruction
from mlirhlo.rewrites.computations import module_of
from mlirhlo.rewrites.gpu_libraries.cublas_calls import (
    call_of,
    config_of_dot,
    is_product,
    is_tiny,
    through,
    uses,
)
from mlirhlo.rewrites.gpu_libraries.cublas_f8_rules import (
    dot_of_scaled_f8,
    f8_of_f8_gemm,
    scale_of_f8_gemm,
)
from mlirhlo.rewrites.gpu_libraries.gpu_calls import (
    F8,
    GEMM,
    GEMM_CONFIG,
    LT,
    config_of,
    make_call,
    number,
    put,
    with_config,
)
from mlirhlo.rewrites.gpu_libraries.gpu_calls import element as element_of
from mlirhlo.rewrites.legalize.expander import Callees, ExpanderPass
from mlirhlo.rewrites.passes import Trace
from mlirhlo.rewrites.rules import Rewriter, Rule, Rules, rule

_TYPES = ("f16", "bf16", "f32", "f64", "c64", "c128")
_EPILOGUES = ("f8e4m3fn", "f8e5m2", "f16", "bf16", "f32", "f64")
_WORKSPACE = 32 << 20
"""Bytes that cuBLAS gets on Hopper."""


# ---------------------------------------------------------------- the product


@rule(DotOp, contract="rounding")
def dot_by_cublas(op: DotOp, rewriter: Rewriter) -> None:
    """dot(a, b) => custom-call(a, b), __cublas$lt$matmul or __cublas$gemm"""
    options = _options(rewriter)
    if not is_product(op) or op.algorithm != "unset":
        return
    if is_tiny(op, options.size_threshold):
        return
    if any(made_by(v, TransposeOp) is not None and array(v).rank == 2 for v in op.inputs):
        return  # transposes are to be folded first
    call = make_call(
        LT if options.enable_cublaslt else GEMM,
        op.inputs,
        op.shape,
        GEMM_CONFIG,
        config_of_dot(op, op.inputs, len(op.lhs_batch_dims)),
    )
    put(rewriter, op, call)


# ---------------------------------------------------------------- what follows it


def _settle(
    rewriter: Rewriter, op: Instruction, call: Instruction, between: Instruction | None
) -> None:
    """Lets a new call, sliced as the old one was, stand for `op`."""
    if between is None:
        put(rewriter, op, call)
    else:
        again = clone_instruction(between, {between.inputs[0]: call.output})
        put(rewriter, op, call, again)


@rule(MultiplyOp, contract="rounding")
def constant_times_gemm(op: MultiplyOp, rewriter: Rewriter) -> None:
    """gemm(a, b) * c => gemm(a, b), alpha = alpha * c"""
    for value, factor in (op.inputs, op.inputs[::-1]):
        call = call_of(value, GEMM, LT, F8)
        if call is None or uses(value) != 1 or made_by(factor, BroadcastOp) is None:
            continue
        scale = splat_of(factor)
        config = config_of(call, GEMM_CONFIG)
        if scale is None or config["beta"] or config["epilogue"] != "DEFAULT":
            continue
        if element(op).name == "s32":
            return
        alpha = complex(config["alpha_real"], config["alpha_imag"]) * complex(scale)
        fields = {"alpha_real": number(alpha.real), "alpha_imag": number(alpha.imag)}
        properties = with_config(call, GEMM_CONFIG, **fields)
        put(rewriter, op, make("custom-call", call.inputs, op.shape, properties))
        return


@rule(AddOp, contract="rounding")
def gemm_plus_vector(op: AddOp, rewriter: Rewriter) -> None:
    """gemm(a, b) + broadcast(v) => gemm(a, b, v), epilogue BIAS"""
    for value, other in (op.inputs, op.inputs[::-1]):
        found, spread = through(value, LT, F8), made_by(other, BroadcastOp)
        if found is None or spread is None or uses(value) != 1:
            continue
        call, between = found
        shape, vector = array(value), spread.operand
        config = config_of(call, GEMM_CONFIG)
        if config["epilogue"] != "DEFAULT" or uses(call.output) != 1:
            continue
        if shape.element_type.name not in _EPILOGUES or spread.dimensions != (shape.rank - 1,):
            continue
        if not _is_default(value) or array(vector).dimensions[0] != array(call).dimensions[-1]:
            continue
        if call.custom_call_target == F8 and element(vector).name not in ("f16", "bf16"):
            continue  # the library has no other biases there
        properties = with_config(call, GEMM_CONFIG, epilogue="BIAS")
        new = make("custom-call", [*call.inputs, vector], call.shape, properties)
        _settle(rewriter, op, new, between)
        return


def _is_default(value: SSAValue) -> bool:
    layout = array(value).layout
    return layout is None or layout.minor_to_major == tuple(range(array(value).rank))[::-1]


@rule(AddOp, contract="rounding")
def gemm_plus_matrix(op: AddOp, rewriter: Rewriter) -> None:
    """gemm(a, b) + c => gemm(a, b, c), beta = 1"""
    for value, other in (op.inputs, op.inputs[::-1]):
        found = through(value, GEMM, LT, F8)
        if found is None or uses(value) != 1 or made_by(other, BroadcastOp) is not None:
            continue
        call, between = found
        config = config_of(call, GEMM_CONFIG)
        if config["beta"] or config["epilogue"] not in ("DEFAULT", "BIAS"):
            continue
        if between is not None or uses(call.output) != 1 or element(op).name == "s32":
            continue
        # The older library writes its result over the matrix.
        is_free = _may_be_overwritten(other)
        if call.custom_call_target == GEMM and not is_free:
            continue
        properties = with_config(call, GEMM_CONFIG, beta=1)
        if is_free:
            alias = OutputOperandAlias((), 2)
            properties["output_to_operand_aliasing"] = OutputOperandAliasesAttr(
                OutputOperandAliases((alias,))
            )
        operands = [*call.inputs[:2], other, *call.inputs[2:]]
        put(rewriter, op, make("custom-call", operands, op.shape, properties))
        return


def _may_be_overwritten(value: SSAValue) -> bool:
    owner = value.owner
    if uses(value) != 1:
        return False
    if not isinstance(owner, ParameterOp):
        return True
    module = module_of(owner)
    aliases = module.input_output_alias
    if owner.parent_op() is not module.entry or aliases is None:
        return False
    return any(
        a.parameter_number == owner.parameter_number and not a.parameter_index
        for a in aliases.entries
    )


@rule(MaximumOp, contract="rounding")
def relu_of_gemm(op: MaximumOp, rewriter: Rewriter) -> None:
    """max(gemm(a, b), 0) => gemm(a, b), epilogue RELU or BIAS_RELU"""
    for value, zeros in (op.inputs, op.inputs[::-1]):
        found = through(value, LT, F8)
        if found is None or uses(value) != 1 or made_by(zeros, BroadcastOp) is None:
            continue
        call, between = found
        epilogue = {"DEFAULT": "RELU", "BIAS": "BIAS_RELU"}.get(
            str(config_of(call, GEMM_CONFIG)["epilogue"])
        )
        if epilogue is None or not is_all(zeros, 0) or uses(call.output) != 1:
            continue
        if element(op).name not in _EPILOGUES:
            continue
        properties = with_config(call, GEMM_CONFIG, epilogue=epilogue)
        _settle(rewriter, op, make("custom-call", call.inputs, call.shape, properties), between)
        return


@rule(MultiplyOp, contract="rounding")
def gelu_of_gemm(op: MultiplyOp, rewriter: Rewriter) -> None:
    """g * 0.5 * (1 + tanh(0.798 * (g + 0.0447 * g * g * g))), g = gemm(a, b) => gemm(a, b), epilogue GELU"""
    for value, cdf in (op.inputs, op.inputs[::-1]):
        found = through(value, LT, F8)
        if found is None or not _is_normal_cdf(cdf, value):
            continue
        call, between = found
        users = uses(value) if between is None else uses(value) + uses(call.output) - 1
        base = {"DEFAULT": "GELU", "BIAS": "BIAS_GELU"}.get(
            str(config_of(call, GEMM_CONFIG)["epilogue"])
        )
        if base is None or element(op).name not in _EPILOGUES:
            continue
        if users == 4:
            properties = with_config(call, GEMM_CONFIG, epilogue=base)
            new = make("custom-call", call.inputs, call.shape, properties)
            _settle(rewriter, op, new, between)
        elif between is None:
            # What was there before the activation is wanted too.
            properties = with_config(call, GEMM_CONFIG, epilogue=f"{base}_AUX")
            new = make("custom-call", call.inputs, TupleShape((call.shape,) * 2), properties)
            before, after = element_of(new, 1, call.shape), element_of(new, 0, call.shape)
            rewriter.replace(call, (new, before))
            put(rewriter, op, after)
        return


def _is_normal_cdf(cdf: SSAValue, x: SSAValue) -> bool:
    """0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x³))), each part read once."""

    def pair(
        value: SSAValue | None, cls: type[Instruction], wanted: Callable[[SSAValue], bool]
    ) -> SSAValue | None:
        """The other operand of a commutative instruction of which one is as wanted."""
        owner = None if value is None else made_by(value, cls)
        if owner is None or uses(owner.output) != 1:
            return None
        one, other = owner.inputs
        return other if wanted(one) else one if wanted(other) else None

    def near(number: float) -> Callable[[SSAValue], bool]:
        def test(value: SSAValue) -> bool:
            found = splat_of(value)
            # 128 units of the narrowest type that occurs here.
            close = {"f16": 0.125, "bf16": 0.5}.get(element(value).name, 1e-5)
            return isinstance(found, float) and isclose(found, number, rel_tol=close)

        return test

    def same(value: SSAValue) -> bool:
        return value is x

    one = pair(cdf, MultiplyOp, lambda v: is_all(v, 0.5))
    tanh = pair(one, AddOp, lambda v: is_all(v, 1))
    owner = None if tanh is None else made_by(tanh, TanhOp)
    inner = pair(None if owner is None else owner.operand, MultiplyOp, near(sqrt(2 / pi)))
    cubic = pair(inner, AddOp, same)
    cube = pair(cubic, MultiplyOp, near(0.044715))
    return pair(pair(cube, MultiplyOp, same), MultiplyOp, same) is x


# ---------------------------------------------------------------- memory to work in


@rule(CustomCallOp)
def gemm_with_workspace(op: CustomCallOp, rewriter: Rewriter) -> None:
    """gemm(a, b) => get-tuple-element(gemm(a, b)), index=0, with memory for the library beside it"""
    target = op.custom_call_target
    if target not in (GEMM, LT, F8):
        return
    parts = op.shape.elements if isinstance(op.shape, TupleShape) else (op.shape,)
    last = parts[-1]
    if len(parts) > 1 and isinstance(last, ArrayShape) and last.element_type.name == "s8":
        return
    size = _options(rewriter).workspace_bytes
    if target == GEMM:  # at most all operands in another order
        size = min(size, sum(array(v).element_count * element(v).byte_size for v in op.inputs))
    scratch = sized(ArrayShape(PRIMITIVE_TYPES["s8"], ()), (size,))
    whole = TupleShape((*parts, scratch))
    properties = {k: v for k, v in op.properties.items() if k != "sharding"}
    aliasing = op.output_to_operand_aliasing
    if aliasing is not None:
        entries = tuple(replace(e, output_index=e.output_index or (0,)) for e in aliasing.entries)
        properties["output_to_operand_aliasing"] = OutputOperandAliasesAttr(
            OutputOperandAliases(entries)
        )
    new = make("custom-call", op.inputs, whole, properties)
    if isinstance(op.shape, ArrayShape):
        put(rewriter, op, new, element_of(new, 0, op.shape))
        return
    found = [element_of(new, k, part) for k, part in enumerate(parts)]
    put(rewriter, op, new, *found, make("tuple", found, op.shape, {}))


def _options(rewriter: Rewriter) -> CublasGemmRewriterPass:
    given = rewriter.options
    pass_ = given.expander if isinstance(given, Callees) else None
    return pass_ if isinstance(pass_, CublasGemmRewriterPass) else CublasGemmRewriterPass()


@dataclass(frozen=True)
class CublasGemmRewriterPass(ExpanderPass):
    """Hands dots to cuBLAS, with scale, added matrix or vector, and activation in one call.

    Before and after:

        %d = f32[64,256] dot(%x, %y), …   %m = f32[64,256] maximum(add(%d, broadcast(%b)), broadcast(0))
          =>   %c = (f32[64,256], s8[33554432]) custom-call(%x, %y, %b), custom_call_target="__cublas$lt$matmul",
               backend_config={"gemm_backend_config":{"epilogue":"BIAS_RELU", …}}

    `__cublas$lt$matmul`, without cublasLt `__cublas$gemm`, and `__cublas$lt$matmul$f8` for scaled products of
    f8, padded to multiples of 16. What moves elements between the scaling of an f8 operand and its dot moves the f8
    then; the greatest magnitude of what becomes an f8 result is a second result of the call. Small dots, dots of
    transposes and dots with an algorithm stay. Sums are rounded once, at the end. Source: XLA:GPU's pass and its
    dumps.
    """

    name = "cublas-gemm-rewriter"
    exact: ClassVar[bool] = False
    rules: ClassVar[tuple[Rule, ...]] = (
        dot_of_scaled_f8,
        dot_by_cublas,
        f8_of_f8_gemm,
        constant_times_gemm,
        gemm_plus_vector,
        gemm_plus_matrix,
        relu_of_gemm,
        gelu_of_gemm,
        scale_of_f8_gemm,
        gemm_with_workspace,
    )

    enable_cublaslt: bool = True
    """Uses cublasLt, which alone has epilogues."""
    size_threshold: int = 100
    """Dots of smaller operands stay: free sizes together, times the contracting size."""
    workspace_bytes: int = _WORKSPACE
    """Memory that a call may work in; 32 MiB on Hopper, 4 MiB before."""

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Products and what follows them first, then memory to work in."""
        changed = False
        for rules in self._stages:
            if rules and self.apply_outside(module, trace, rules, Callees(self)):
                changed, module = True, module.afresh()
        return changed

    @cached_property
    def _stages(self) -> tuple[Rules, Rules]:
        last = gemm_with_workspace
        return (
            Rules(r for r in self.selected() if r is not last),
            Rules(r for r in self.selected() if r is last),
        )
