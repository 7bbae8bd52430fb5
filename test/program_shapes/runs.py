"""Every opcode that can read what it gives, many times in a row."""

from __future__ import annotations

from program_shapes.registry import ADD, module, shape

FUNCTIONS = """once {
  a = f32[] parameter(0)
  ROOT b = f32[] tanh(a)
}

less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}

same {
  a = f32[4,4] parameter(0)
  ROOT b = f32[4,4] sine(a)
}

"""
UNARY = (
    *("abs", "ceil", "cbrt", "copy", "cosine", "erf", "exponential", "exponential-minus-one"),
    *("floor", "log", "log-plus-one", "logistic", "negate", "opt-barrier", "reshape"),
    *("round-nearest-afz", "round-nearest-even", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh"),
)
BINARY = (
    *("add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder"),
    "subtract",
)
OTHERS = """
select(p, {x}, y)
select(p, y, {x})
clamp(y, {x}, y)
clamp({x}, y, {x})
multiply({x}, {x})
reverse({x}), dimensions={1}
transpose({x}), dimensions={1,0}
broadcast({x}), dimensions={0,1}
slice({x}), slice={[0:4],[0:4]}
pad({x}, zero), padding=1_-1x0_0
dynamic-slice({x}, i, i), dynamic_slice_sizes={4,4}
dynamic-update-slice({x}, y, i, i)
dynamic-update-slice(y, {x}, i, i)
dot({x}, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
convolution({x}, y), dim_labels=bf_io->bf
map({x}), dimensions={0,1}, to_apply=once
reduce-window({x}, zero), window={size=3x1 pad=1_1x0_0}, to_apply=add
sort({x}), dimensions={1}, to_apply=less
reduce-precision({x}), exponent_bits=8, mantissa_bits=7
all-reduce({x}), replica_groups={}, to_apply=add
custom-call({x}), custom_call_target="Sharding"
collective-permute({x}), source_target_pairs={{0,0}}
call({x}), to_apply=same
cholesky({x}), lower=true
triangular-solve(y, {x}), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
gather({x}, rows), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}
scatter({x}, rows, y), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
"""  # noqa: E501
ON_INTEGERS = (
    *("add", "and", "divide", "maximum", "multiply", "or", "remainder", "shift-left"),
    *("shift-right-arithmetic", "shift-right-logical", "subtract", "xor"),
)
RUNS = (
    *(("f32[4,4]", f"{name}({{x}})") for name in UNARY),
    *(("f32[4,4]", f"{name}({{x}}, y)") for name in BINARY),
    *(("f32[4,4]", f"{name}(y, {{x}})") for name in BINARY),
    *(("f32[4,4]", line) for line in OTHERS.strip().splitlines()),
    *(("s32[4,4]", f"{name}({{x}})") for name in ("count-leading-zeros", "not", "popcnt")),
    *(("s32[4,4]", f"{name}({{x}}, n)") for name in ON_INTEGERS),
    *(("pred[4,4]", f"{name}({{x}}, p)") for name in ("and", "or", "xor")),
    ("pred[4,4]", "compare({x}, p), direction=EQ"),
)
"""Types, and instructions of these types that read `{x}`, which has it too."""


@shape
def runs(count: int) -> str:
    """A run of each opcode, in which each instruction reads the one before."""
    lines = [
        "  x0 = f32[4,4] parameter(0)",
        "  y = f32[4,4] parameter(1)",
        "  n = s32[4,4] parameter(2)",
        "  p = pred[4,4] parameter(3)",
        "  rows = s32[4,1] parameter(4)",
        "  i = s32[] parameter(5)",
        "  zero = f32[] constant(0)",
    ]
    last, number = "x0", 0
    for type_, instruction in RUNS:
        lines.append(f"  to{number} = {type_} convert({last})")
        last = f"to{number}"
        for _ in range(max(count // len(RUNS), 1)):
            number += 1
            lines.append(f"  x{number} = {type_} {instruction.replace('{x}', last)}")
            last = f"x{number}"
    return module(lines, ADD + FUNCTIONS)
