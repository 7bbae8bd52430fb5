"""HLO modules, one op or habit each, for the conversion to StableHLO."""

from __future__ import annotations

COMPUTATIONS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ge { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = pred[] compare(a, b), direction=GE }
less { a = f32[] parameter(0) b = f32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3)
  ROOT s = pred[] compare(a, b), direction=LT, type=TOTALORDER }
both { a = f32[] parameter(0) c = s32[] parameter(1) b = f32[] parameter(2) d = s32[] parameter(3)
  s = f32[] add(a, b) t = s32[] maximum(c, d) ROOT o = (f32[], s32[]) tuple(s, t) }
neg { a = f32[4,3] parameter(0) ROOT r = f32[4,3] negate(a) }
pair { p = (f32[4,3], s32[]) parameter(0) a = f32[4,3] get-tuple-element(p), index=0
  ROOT r = (f32[4,3], f32[4,3]) tuple(a, a) }
twice { a = f32[4,3] parameter(0) n = f32[4,3] negate(a) ROOT r = (f32[4,3], f32[4,3]) tuple(a, n) }
below { p = (s32[], (f32[4,3], f32[])) parameter(0) i = s32[] get-tuple-element(p), index=0
  c = s32[] constant(3) ROOT r = pred[] compare(i, c), direction=LT }
step { p = (s32[], (f32[4,3], f32[])) parameter(0) i = s32[] get-tuple-element(p), index=0
  n = (f32[4,3], f32[]) get-tuple-element(p), index=1 a = f32[4,3] get-tuple-element(n), index=0
  b = f32[] get-tuple-element(n), index=1 one = s32[] constant(1) j = s32[] add(i, one)
  w = f32[4,3] broadcast(b), dimensions={} c = f32[4,3] multiply(a, w)
  m = (f32[4,3], f32[]) tuple(c, b) ROOT t = (s32[], (f32[4,3], f32[])) tuple(j, m) }
"""

_UNARY = (
    *("abs", "acos", "acosh", "asin", "asinh", "atanh", "cbrt", "ceil", "cosine", "cosh", "erf"),
    *("exponential", "exponential-minus-one", "floor", "log", "log-plus-one", "logistic", "negate"),
    *("round-nearest-afz", "round-nearest-even", "rsqrt", "sign", "sine", "sinh", "sqrt", "tan"),
    *("tanh", "copy"),
)
_BINARY = ("add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder")

LINES: dict[str, str] = {
    **{opcode: f"ROOT r = f32[4,3] {opcode}(x)" for opcode in _UNARY},
    **{opcode: f"ROOT r = f32[4,3] {opcode}(x, x)" for opcode in _BINARY},
    "and": "ROOT r = s32[4,3] and(y, y)",
    "mulhi": "ROOT r = s32[4,3] mulhi(y, y)",
    "popcnt": "ROOT r = s32[4,3] popcnt(y)",
    "shift-left": "ROOT r = s32[4,3] shift-left(y, y)",
    "complex": "c = c64[4,3] complex(x, x) e = c64[4,3] exponential(c) ROOT r = f32[4,3] imag(e)",
    "compare": "ROOT r = pred[4,3] compare(x, x), direction=EQ, type=TOTALORDER",
    "accuracy": "ROOT r = f32[4,3] exponential(x), result_accuracy={mode=highest}",
    "select": "p = pred[4,3] compare(x, x), direction=LE ROOT r = f32[4,3] select(p, x, x)",
    "clamp": "ROOT r = f32[4,3] clamp(z, x, z)",
    "convert": "ROOT r = bf16[4,3] convert(x)",
    "stochastic-convert": "u = u32[4,3] convert(y) ROOT r = bf16[4,3] stochastic-convert(x, u)",
    "reduce-precision": "ROOT r = f32[4,3] reduce-precision(x), exponent_bits=5, mantissa_bits=10",
    "constant-tuple": "c = (f32[2], s32[]) constant(({1, 2}, 3)) "
    "ROOT r = f32[2] get-tuple-element(c), index=0",
    "iota": "ROOT r = s32[4,3] iota(), iota_dimension=1",
    "broadcast": "ROOT r = f32[4,5,3] broadcast(x), dimensions={0,2}",
    "concatenate": "ROOT r = f32[8,3] concatenate(x, x), dimensions={0}",
    "pad": "ROOT r = f32[7,3] pad(x, z), padding=1_-1_1x0_0",
    "slice": "ROOT r = f32[2,3] slice(x), slice={[0:4:2], [0:3]}",
    "reverse": "ROOT r = f32[4,3] reverse(x), dimensions={0,1}",
    "transpose": "ROOT r = f32[3,4]{1,0} transpose(x), dimensions={1,0}",
    "reshape": "ROOT r = f32[12] reshape(x)",
    "bitcast-convert": "ROOT r = s32[4,3] bitcast-convert(x)",
    "bitcast": "c = f32[4,3]{0,1} copy(x) ROOT r = f32[3,2,2]{2,1,0} bitcast(c)",
    "bitcast-width": "ROOT r = u8[4,12] bitcast(x)",
    "bitcast-same": "c = f32[4,3]{0,1} copy(x) ROOT r = f32[4,3]{0,1} bitcast(c)",
    "bitcast-tiled": "c = s32[4,256]{1,0:T(2,128)} iota(), iota_dimension=1 "
    "ROOT r = s32[1024]{0:T(1024)} bitcast(c)",
    "dynamic-slice": "ROOT r = f32[2,3] dynamic-slice(x, i, i), dynamic_slice_sizes={2,3}",
    "dynamic-update-slice": "p = f32[2,3] slice(x), slice={[0:2], [0:3]} "
    "ROOT r = f32[4,3] dynamic-update-slice(x, p, i, i)",
    "gather": "g = s32[2,1] constant({{0},{3}}) ROOT r = f32[2,3] gather(x, g), offset_dims={1}, "
    "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}",
    "scatter": "g = s32[2,1] constant({{0},{3}}) p = f32[2,3] slice(x), slice={[0:2], [0:3]} "
    "ROOT r = f32[4,3] scatter(x, g, p), update_window_dims={1}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, to_apply=add",
    "reduce": "ROOT r = f32[4] reduce(x, z), dimensions={1}, to_apply=add",
    "reduce-two": "ROOT r = (f32[3], s32[3]) reduce(x, y, z, i), dimensions={0}, to_apply=both",
    "reduce-window": "ROOT r = f32[2,3] reduce-window(x, z), "
    "window={size=2x3 stride=2x1 pad=0_0x1_1}, to_apply=add",
    "select-and-scatter": "p = f32[2,3] slice(x), slice={[0:2], [0:3]} "
    "ROOT r = f32[4,3] select-and-scatter(x, p, z), window={size=2x1 stride=2x1}, "
    "select=ge, scatter=add",
    "map": "ROOT r = f32[4,3] map(x, x), dimensions={0,1}, to_apply=add",
    "sort": "ROOT r = (f32[4,3], s32[4,3]) sort(x, y), dimensions={0}, is_stable=true, "
    "to_apply=less",
    "topk": "ROOT r = (f32[4,2], s32[4,2]) topk(x), k=2, largest=true",
    "topk-smallest": "ROOT r = (f32[4,2], s32[4,2]) topk(x), k=2, largest=false",
    "dot": "ROOT r = f32[4,4] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
    "operand_precision={highest,default}",
    "dot-algorithm": "ROOT r = f32[4,4] dot(x, x), lhs_contracting_dims={1}, "
    "rhs_contracting_dims={1}, algorithm=dot_f32_f32_f32",
    "convolution": "a = f32[1,4,3,1] reshape(x) k = f32[3,1,1,4] reshape(x) "
    "ROOT r = f32[1,2,3,4] convolution(a, k), window={size=3x1}, dim_labels=b01f_01io->b01f",
    "triangular-solve": "s = f32[3,3] slice(x), slice={[0:3], [0:3]} "
    "e = f32[3,3] exponential(s) ROOT r = f32[3,3] triangular-solve(e, s), left_side=true, "
    "lower=true, unit_diagonal=true, transpose_a=NO_TRANSPOSE",
    "fft": "c = c64[4,3] complex(x, x) ROOT r = c64[4,3] fft(c), fft_type=FFT, fft_length={3}",
    "batch-norm-training": "o = f32[3] constant({1, 1, 1}) ROOT r = (f32[4,3], f32[3], f32[3]) "
    "batch-norm-training(x, o, o), epsilon=0.5, feature_index=1",
    "rng-bit-generator": "s = u64[2] constant({1, 2}) ROOT r = (u64[2], u32[8]) "
    "rng-bit-generator(s), algorithm=rng_three_fry",
    "call": "ROOT r = f32[4,3] call(x), to_apply=neg",
    "fusion": "ROOT r = f32[4,3] fusion(x), kind=kLoop, calls=neg",
    "fusion-tuple": "f = (f32[4,3], f32[4,3]) fusion(x), kind=kInput, calls=twice "
    "ROOT r = f32[4,3] get-tuple-element(f), index=1",
    "conditional": "t = (f32[4,3], s32[]) tuple(x, i) ROOT r = (f32[4,3], f32[4,3]) "
    "conditional(i, t, x), branch_computations={pair, twice}",
    "conditional-pred": "t = (f32[4,3], s32[]) tuple(x, i) p = pred[] constant(false) "
    "ROOT r = (f32[4,3], f32[4,3]) conditional(p, t, x), true_computation=pair, "
    "false_computation=twice",
    "while-nested": "t = (f32[4,3], f32[]) tuple(x, z) w = (s32[], (f32[4,3], f32[])) tuple(i, t) "
    "ROOT r = (s32[], (f32[4,3], f32[])) while(w), condition=below, body=step",
    "opt-barrier": "t = (f32[4,3], s32[]) tuple(x, i) b = (f32[4,3], s32[]) opt-barrier(t) "
    "ROOT r = f32[4,3] get-tuple-element(b), index=0",
    "add-dependency": "t = token[] after-all() ROOT r = f32[4,3] add-dependency(x, t)",
    "after-all": "t = token[] after-all() u = token[] after-all(t, t) "
    "ROOT r = f32[4,3] add-dependency(x, u)",
    "copy-start": "s = (f32[4,3]{0,1}, f32[4,3], u32[]) copy-start(x) "
    "ROOT r = f32[4,3]{0,1} copy-done(s)",
    "async-start": "s = ((f32[4,3]), f32[4,3], s32[]) async-start(x), calls=neg "
    "ROOT r = f32[4,3] async-done(s)",
    "all-reduce-start": "s = f32[4,3] all-reduce-start(x), replica_groups={}, to_apply=add "
    "ROOT r = f32[4,3] all-reduce-done(s)",
    "collective-permute-start": "s = (f32[4,3], f32[4,3], u32[], u32[]) "
    "collective-permute-start(x), source_target_pairs={{0,0}} "
    "ROOT r = f32[4,3] collective-permute-done(s)",
    "all-gather": "ROOT r = f32[4,3] all-gather(x), replica_groups={{0}}, dimensions={0}",
    "reduce-scatter": "ROOT r = f32[4,3] reduce-scatter(x), replica_groups={{0}}, "
    "dimensions={0}, to_apply=add",
    "all-to-all": "ROOT r = f32[4,3] all-to-all(x), replica_groups={{0}}, dimensions={1}",
    "all-to-all-tuple": "ROOT r = (f32[4,3]) all-to-all(x), replica_groups={{0}}",
    "replica-id": "ROOT r = u32[] replica-id()",
    "dynamic": "d = f32[<=4,3] set-dimension-size(x, i), dimensions={0} "
    "n = f32[<=4,3] negate(d) ROOT r = s32[] get-dimension-size(n), dimensions={0}",
    "mixed-reshape": "ROOT r = bf16[12] reshape(x)",
    "mixed-select": "b = bf16[4,3] convert(x) p = pred[4,3] compare(x, x), direction=LE "
    "ROOT r = bf16[4,3] select(p, x, b)",
    "mixed-reduce": "b = bf16[4] reduce(x, z), dimensions={1}, to_apply=add "
    "ROOT r = f32[4] convert(b)",
}
"""By name; the operands are `x` (f32[4,3]), `y` (s32[4,3]), `z` (f32[]) and `i` (s32[])."""


def module(name: str) -> str:
    """The module of an entry of `LINES`."""
    return f"""HloModule {name.replace("-", "_")}
{COMPUTATIONS}
ENTRY main {{
  x = f32[4,3] parameter(0)
  y = s32[4,3] parameter(1)
  z = f32[] parameter(2)
  i = s32[] parameter(3)
  {LINES[name]}
}}
"""
