"""Kernels of every family against the interpreter's meaning of the instruction, on made-up inputs."""

from __future__ import annotations

import pytest
from structured_support import kernels_of

from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.lowering.structured import to_structured

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
SUM = "sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }\n"
BF16 = "sum16 { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT c = bf16[] add(b, a) }\n"
HALF = """half { a = f32[] parameter(0) b = f32[] parameter(1) t = f32[] constant(0.5) h = f32[] multiply(b, t)
  ROOT c = f32[] subtract(a, h) }\n"""
LAST = "last { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }\n"
LESS = "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }\n"
KEEP = "keep { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=GE }\n"
PAIRS = """pairs { a = f32[] parameter(0) b = f32[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)
  ROOT c = pred[] compare(b, a), direction=LT }\n"""
ARGMAX = """argmax { v = f32[] parameter(0) i = s32[] parameter(1) w = f32[] parameter(2) j = s32[] parameter(3)
  g = pred[] compare(v, w), direction=GE m = f32[] select(g, v, w) n = s32[] select(g, i, j)
  ROOT r = (f32[], s32[]) tuple(m, n) }\n"""

INSTRUCTIONS = {
    "add of layouts": "f32[4,3] add(f32[4,3]{0,1} x, f32[4,3] y)",
    "clamp of scalars": "f32[4,3]{0,1} clamp(f32[] l, f32[4,3] x, f32[] h)",
    "names with numbers": "f32[3] add(f32[3] x_1_2, f32[3] _3)",
    "select of scalar": "s8[5] select(pred[] p, s8[5] x, s8[5] y)",
    "convert s4": "s4[9] convert(f32[9] x)",
    "convert f8": "f8e4m3fn[9] convert(f32[9] x)",
    "complex": "c64[4] multiply(c64[4] x, c64[4] y)",
    "abs of complex": "f32[4] abs(c64[4] x)",
    "iota": "bf16[3,300]{0,1} iota(), iota_dimension=1",
    "broadcast": "f32[4,3,5]{0,2,1} broadcast(f32[3,4]{0,1} x), dimensions={1,0}",
    "transpose": "f32[4,3,5] transpose(f32[5,4,3]{0,2,1} x), dimensions={1,2,0}",
    "reverse": "f32[4,3]{0,1} reverse(f32[4,3] x), dimensions={0}",
    "slice": "f32[2,3] slice(f32[9,8]{0,1} x), slice={[1:8:4],[0:3]}",
    "reshape": "f32[6,4]{0,1} reshape(f32[3,8]{0,1} x)",
    "bitcast": "f32[4,2,3]{2,0,1} bitcast(f32[8,3]{0,1} x)",
    "bitcast of tiles": "f32[16,128]{1,0} bitcast(f32[8,256]{1,0:T(8,128)} x)",
    "bitcast of padded tiles": "f32[1024]{0} bitcast(f32[3,100]{1,0:T(8,128)} x)",
    "bitcast of width": "u8[2,8] bitcast(f32[4] x)",
    "bits wider": "f32[3]{0} bitcast-convert(u8[3,4]{0,1} x)",
    "bits narrower": "u16[3,4,2]{0,1,2} bitcast-convert(f32[3,4] x)",
    "bits of s4": "u8[5] bitcast-convert(s4[5,2] x)",
    "bits of f64": "f64[3] bitcast-convert(s64[3] x)",
    "concatenate": "f32[9,2]{0,1} concatenate(f32[4,2] x, f32[3,2]{0,1} y, f32[2,2] z), dimensions={0}",
    "pad": "f32[9,3]{0,1} pad(f32[4,5] x, f32[] z), padding=2_0_1x-1_-1",
    "pad away": "f32[4] pad(f32[4] x, f32[] z), padding=-9_6_1",
    "dynamic-slice": "f32[2,3]{0,1} dynamic-slice(f32[5,3] x, s32[] i, s32[] j), dynamic_slice_sizes={2,3}",
    "dynamic-update-slice": "f32[5,3]{0,1} dynamic-update-slice(f32[5,3] x, f32[2,3] u, u8[] i, u8[] j)",
    "gather": """f32[3,2,4]{1,0,2} gather(f32[9,4]{0,1} x, s32[3,2]{0,1} i), offset_dims={2},
      collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,4}""",
    "gather of vectors": """f32[5,2,1] gather(f32[9,4] x, s32[2,5] i), offset_dims={1,2},
      collapsed_slice_dims={}, start_index_map={1,0}, index_vector_dim=0, slice_sizes={2,1}""",
    "gather in batches": """f32[3,5,2] gather(f32[3,9,4] x, s32[3,5,1] i), offset_dims={2},
      collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0},
      start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,2}""",
    "scatter": SUM
    + """s32[9,4]{0,1} scatter(s32[9,4] x, s32[5,1] i, s32[5,4]{0,1} u), update_window_dims={1},
      inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum""",
    "scatter in batches": LAST
    + """f32[3,9] scatter(f32[3,9] x, s32[3,5] i, f32[3,5,2] u), update_window_dims={2},
      inserted_window_dims={}, scatter_dims_to_operand_dims={1}, input_batching_dims={0},
      scatter_indices_batching_dims={0}, index_vector_dim=2, to_apply=last""",
    "select-and-scatter": ADD
    + KEEP
    + """f32[6,4]{0,1} select-and-scatter(f32[6,4] x, f32[3,2] s, f32[] z), window={size=3x2 stride=2x2 pad=0_1x0_0},
      select=keep, scatter=add""",
    "reduce": ADD
    + "f32[3]{0} reduce(f32[4,3,5]{0,2,1} x, f32[] z), dimensions={0,2}, to_apply=add",
    "reduce by any": HALF + "f32[3] reduce(f32[7,3] x, f32[] z), dimensions={0}, to_apply=half",
    "reduce of several": ARGMAX
    + """(f32[4], s32[4]) reduce(f32[4,7] x, s32[4,7]{0,1} i, f32[] a, s32[] b), dimensions={1},
      to_apply=argmax""",
    "reduce-window": SUM
    + """s32[2,4]{0,1} reduce-window(s32[5,6] x, s32[] z),
      window={size=2x3 stride=2x1 pad=1_0x-1_1 lhs_dilate=1x1 rhs_dilate=2x1}, to_apply=sum""",
    "reduce-window of gaps": HALF
    + "f32[9] reduce-window(f32[5] x, f32[] z), window={size=2 pad=1_0 lhs_dilate=2}, to_apply=half",
    "cumulative sum": SUM
    + "s32[3,7] reduce-window(s32[3,7]{0,1} x, s32[] z), window={size=1x7 pad=0_0x6_0}, to_apply=sum",
    "reduce of bf16": BF16
    + "bf16[3] reduce(bf16[700,3] x, bf16[] z), dimensions={0}, to_apply=sum16",
    "cumulative sum of bf16": BF16
    + "bf16[700] reduce-window(bf16[700] x, bf16[] z), window={size=700 pad=699_0}, to_apply=sum16",
    "windows of bf16": BF16
    + "bf16[7] reduce-window(bf16[9] x, bf16[] z), window={size=3}, to_apply=sum16",
    "cumulative from the end": SUM
    + "s32[7] reduce-window(s32[7] x, s32[] z), window={size=7 pad=0_6}, to_apply=sum",
    "dot": """f32[2,4,5]{0,1,2} dot(f32[2,3,4]{0,2,1} x, f32[5,3,2] y), lhs_batch_dims={0}, rhs_batch_dims={2},
      lhs_contracting_dims={1}, rhs_contracting_dims={1}""",
    "dot of integers": "s32[4,5] dot(s8[4,3] x, s8[3,5] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    "dot of rows": "s32[] dot(s32[4] x, s32[4] y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
    "dot of nothing": "f32[4,5] dot(f32[4] x, f32[5] y), lhs_contracting_dims={}, rhs_contracting_dims={}",
    "ragged rows": """f32[11,5] ragged-dot(f32[11,3] x, f32[4,3,5] y, s32[4] g), lhs_contracting_dims={1},
      rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}""",
    "ragged contraction": """f32[4,3,5] ragged-dot(f32[11,3] x, f32[11,5] y, s32[4] g), lhs_contracting_dims={0},
      rhs_contracting_dims={0}, lhs_ragged_dims={0}""",
    "convolution": """s32[2,6,4,5]{0,2,1,3} convolution(s32[2,7,6,3] x, s32[3,3,3,5] k),
      window={size=3x3 stride=1x2 pad=1_0x2_1 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f""",
    "convolution with gaps": """s32[1,4,11] convolution(s32[1,4,5] x, s32[4,4,3] k),
      window={size=3 pad=2_2 lhs_dilate=2 rhs_dilate=1}, dim_labels=bf0_oi0->bf0""",
    "convolution in groups": """s32[2,6,4] convolution(s32[2,4,4] x, s32[6,2,3] k), window={size=3 pad=1_1},
      dim_labels=bf0_oi0->bf0, feature_group_count=2""",
    "convolution in batch groups": """s32[2,6,4] convolution(s32[4,3,4] x, s32[6,3,3] k), window={size=3 pad=1_1},
      dim_labels=bf0_oi0->bf0, batch_group_count=2""",
    "sort": LESS + "f32[3,9]{0,1} sort(f32[3,9] x), dimensions={1}, to_apply=less",
    "sort of pairs": PAIRS
    + "(f32[3,9], s32[3,9]{0,1}) sort(f32[3,9] x, s32[3,9] i), dimensions={0}, is_stable=true, to_apply=pairs",
    "topk": "(f32[3,4]{0,1}, s32[3,4]) topk(f32[3,9] x), k=4, largest=true",
    "threefry": "(u64[2], u32[3,5]{0,1}) rng-bit-generator(u64[2] s), algorithm=rng_three_fry",
    "philox": "(u64[3], u16[7]) rng-bit-generator(u64[3] s), algorithm=rng_philox",
    "map": HALF + "f32[4,3]{0,1} map(f32[4,3] x, f32[4,3]{0,1} y), dimensions={0,1}, to_apply=half",
    "cholesky": "f32[3,3]{0,1} cholesky(f32[3,3] x), lower=true",
    "fft": "c64[4,8]{0,1} fft(c64[4,8] x), fft_type=FFT, fft_length={8}",
}


def program(instruction: str) -> str:
    """A module whose entry's root is one instruction, written with the shapes of its operands."""
    *computations, last = instruction.rpartition("}\n")
    head, _, rest = last.partition("(") if not last.startswith("(") else _after_tuple(last)
    inside, depth = "", 1
    while depth:
        depth += {"(": 1, ")": -1}.get(rest[0], 0)
        inside, rest = inside + rest[0], rest[1:]
    operands = [o.strip() for o in _split(inside[:-1])]
    lines = [f"{o.split()[1]} = {o.split()[0]} parameter({n})" for n, o in enumerate(operands)]
    names = ", ".join(o.split()[1] for o in operands)
    body = "\n  ".join([*lines, f"ROOT root = {head}({names}){rest}"])
    return f"HloModule m\n{''.join(computations)}\nENTRY e {{\n  {body}\n}}\n"


def _after_tuple(text: str) -> tuple[str, str, str]:
    end = text.index(") ") + 2
    head, bracket, rest = text[end:].partition("(")
    return text[:end] + head, bracket, rest


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part.strip()]


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_kernel_is_the_instruction(name: str) -> None:
    module = parse_module(program(INSTRUCTIONS[name]))
    for seed in (1, 2):
        (outcome,) = kernels_of(module, make_fake_arguments(module, seed))
        assert outcome.verdict in ("equal", "near"), outcome


FUSION = """HloModule m
inner { a = f32[4] parameter(0) ROOT b = f32[4] negate(a) }
fused { x = f32[4] parameter(0) y = f32[4] parameter(1) n = f32[4] fusion(x), kind=kLoop, calls=inner
  c = f32[4] call(y), to_apply=inner s = f32[4] add(n, c) k = f32[2] constant({1, 2})
  ROOT r = (f32[4], f32[4], f32[2], f32[4]) tuple(s, x, k, s) }
ENTRY e { x = f32[4] parameter(0) y = f32[4] parameter(1)
  ROOT f = (f32[4], f32[4], f32[2], f32[4]) fusion(x, y), kind=kLoop, calls=fused }
"""


def test_fusion_of_several_results() -> None:
    """Nested fusions are inlined; each result is an op's own, also of a parameter, a constant, and a value twice."""
    module = parse_module(FUSION)
    outcomes = list(kernels_of(module, make_fake_arguments(module)))
    assert [o.verdict for o in outcomes] == ["equal"]
    view = HloModule(module)
    kernel = to_structured(view.entry.root, view.by_name(), "k")
    returned = kernel.results_returned
    assert len(set(returned)) == 4
    assert all(value.owner.name == "structured.map" for value in returned)


LOOP = """loop { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[2] broadcast(b), dimensions={}
  d = f32[1] slice(c), slice={[0:1]} e = f32[] reshape(d) ROOT r = f32[] add(a, e) }
"""


OTHER_LAYOUTS = """HloModule m
inner { a = f32[4,3]{0,1} parameter(0) ROOT b = f32[12] bitcast(a) }
fused { x = f32[4,3]{0,1} parameter(0) n = f32[12] fusion(x), kind=kLoop, calls=inner
  ROOT r = f32[4,3]{0,1} reshape(n) }
ENTRY e { x = f32[4,3]{1,0} parameter(0) ROOT f = f32[4,3]{1,0} fusion(x), kind=kLoop, calls=fused }
"""


def test_layouts_of_parameters_and_roots() -> None:
    """What a fusion is given and gives may be laid out otherwise than its computation says."""
    module = parse_module(OTHER_LAYOUTS)
    (outcome,) = kernels_of(module, make_fake_arguments(module))
    assert outcome.verdict == "equal"


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize(
    ("instruction", "code"),
    [
        ("f32[4] rng(f32[] a, f32[] b), distribution=rng_uniform", "HLO0790"),
        ("f32[<=4] negate(f32[<=4] x)", "HLO0790"),
        (
            LOOP + "f32[3] reduce(f32[7,3] x, f32[] z), dimensions={0}, to_apply=loop",
            "HLO0791",
        ),
    ],
)
def test_what_has_no_form_is_refused(instruction: str, code: str) -> None:
    view = HloModule(parse_module(program(instruction)))
    with pytest.raises(HloError) as caught:
        to_structured(view.entry.root, view.by_name(), "k")
    assert caught.value.diagnostics[0].code == code


@pytest.mark.slow
def test_long_fusion() -> None:
    """20,000 instructions in a row and 2,000 fusions in each other, without recursion."""
    chain = "\n".join(f"  v{n} = f32[4] negate(v{n - 1})" for n in range(1, 20_000))
    nested = "".join(
        f"fusion{n} {{ x = f32[4] parameter(0) ROOT r = f32[4] fusion(x), kind=kLoop, calls=fusion{n - 1} }}\n"
        for n in range(1, 2_000)
    )
    text = (
        f"HloModule m\nfusion0 {{\n  v0 = f32[4] parameter(0)\n{chain}\n"
        f"  ROOT r = f32[4] exponential(v19999)\n}}\n{nested}"
        "ENTRY e { x = f32[4] parameter(0) ROOT f = f32[4] fusion(x), kind=kLoop, calls=fusion1999 }\n"
    )
    view = HloModule(parse_module(text))
    kernel = to_structured(view.entry.root, view.by_name(), "k")
    assert sum(1 for _ in kernel.block.ops) == 20_001
