"""Target checks: one case a rule, and the real compiler's verdicts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support import SHARED, needs_shared

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.mosaic import parse_kernel
from mlirhlo.mosaic.pipeline import run_pipeline
from mlirhlo.mosaic.target import GENERATIONS, check_target

ROOT = Path(__file__).parents[3]
SAMPLES = SHARED / "reference" / "mosaic_samples"
VMEM, SMEM = "#tpu.memory_space<vmem>", "#tpu.memory_space<smem>"


def kernel(body: str, *arguments: str) -> str:
    """A kernel of `body` on references `%x0`, `%x1`, … of the types given."""
    named = ", ".join(f"%x{at}: {type_}" for at, type_ in enumerate(arguments))
    return f"""module @k {{
  func.func @main({named}) attributes {{dimension_semantics = [], scalar_prefetch = 0 : i64,
      scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>}} {{
    %c0 = arith.constant 0 : index
    %z = arith.constant 0 : i32
    {body}
    return
  }}
}}
"""


def gridded(block: int, bound: int, index: str = "%i", space: str = VMEM) -> str:
    """A kernel that copies blocks of `block` rows."""
    ref = f"memref<{block}x128xf32, {space}>"
    window = f"window_bounds = array<i64: {block}, 128>"
    return f"""module @k {{
  func.func @main(%i: i32, %x: {ref}, %y: {ref}) attributes {{
      dimension_semantics = [#tpu.dimension_semantics<arbitrary>],
      iteration_bounds = array<i64: {bound}>, scalar_prefetch = 0 : i64, scratch_operands = 0 : i64,
      tpu.core_type = #tpu.core_type<tc>, window_params = [
        {{transform_indices = @t, {window}}}, {{transform_indices = @t, {window}}}]}} {{
    return
  }}
  func.func @t(%i: i32) -> (i32, i32) {{
    %c = arith.constant 0 : i32
    return {index}, %c : i32, i32
  }}
}}
"""


def sliced(element: str, offsets: str, shape: str, use: str = "") -> str:
    """A kernel that takes a part of 64x256 (f32: 64x128) elements in HBM."""
    whole = f"memref<64x{128 if element == 'f32' else 256}x{element}, #tpu.memory_space<any>>"
    part = f"memref<{shape}x{element}, #tpu.memory_space<any>>"
    body = f"%p = tpu.memref_slice %x0{offsets} : {whole} -> {part}{use.replace('PART', part)}"
    target = f"memref<{shape}x{element}, {VMEM}>"
    semaphore = "memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"
    return kernel(body, whole, target, semaphore)


def copied(offset: int, size: int) -> str:
    """A kernel that copies a part of all rows."""
    semaphore = "memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"
    text = sliced(
        "f32",
        "[%z, %o]",
        f"64x{size}",
        f"\n    tpu.enqueue_dma source(%p : PART) target(%x1 : memref<64x{size}xf32, {VMEM}>) "
        f"target_semaphore(%x2 : {semaphore})",
    )
    return text.replace("    %p =", f"    %o = arith.constant {offset} : i32\n    %p =")


def keep(type_: str) -> str:
    """A use of `%r`: what nobody uses is not lowered."""
    return f"\n    vector.store %r, %x0[%c0, %c0] : memref<{type_}, {VMEM}>, vector<{type_}>"


V = "vector<8x128xf32>"
REF = f"memref<8x128xf32, {VMEM}>"
WIDE = f"memref<64x128xbf16, {VMEM}>"
KEEP = f"\n    vector.store %r, %x0[%c0, %c0] : {REF}, {V}"
LOAD = f"%v = vector.load %x0[%c0, %c0] : {REF}, {V}\n    "
CASES = {
    "an operation nobody lowers": ("HLO0740", kernel(f"{LOAD}%r = math.asin %v : {V}{KEEP}", REF)),
    "a sort": ("HLO0740", kernel("%k = tpu.core_id : i32")),
    "narrow arithmetic": (
        "HLO0741",
        kernel(
            "%a = arith.constant dense<1> : vector<32x128xi8>\n"
            "    %r = arith.addi %a, %a : vector<32x128xi8>" + keep("32x128xi8"),
            f"memref<32x128xi8, {VMEM}>",
        ),
    ),
    "a minimum in disguise": (
        "HLO0741",
        kernel(
            "%a = arith.constant dense<1> : vector<16x128xi16>\n"
            "    %b = arith.constant dense<2> : vector<16x128xi16>\n"
            "    %m = arith.cmpi slt, %a, %b : vector<16x128xi16>\n"
            "    %r = arith.select %m, %a, %b : vector<16x128xi1>, vector<16x128xi16>"
            + keep("16x128xi16"),
            f"memref<16x128xi16, {VMEM}>",
        ),
    ),
    "a scalar in VMEM": ("HLO0742", kernel(f"%s = memref.load %x0[%c0, %c0] : {REF}", REF)),
    "an unknown row": (
        "HLO0743",
        kernel(
            f"%i = memref.load %x1[%c0] : memref<4xi32, {SMEM}>\n"
            "    %d = arith.index_cast %i : i32 to index\n"
            f"    %v = vector.load %x0[%d, %c0] : {WIDE}, vector<16x128xbf16>",
            WIDE,
            f"memref<4xi32, {SMEM}>",
        ),
    ),
    "an odd block": ("HLO0744", gridded(5, 4)),
    "too large blocks": ("HLO0745", gridded(16384, 4)),
    "a plain semaphore": (
        "HLO0746",
        kernel(
            f"tpu.enqueue_dma source(%x0 : {REF}) target(%x1 : {REF}) target_semaphore(%x2 : "
            "memref<!tpu.semaphore, #tpu.memory_space<semaphore_mem>>)",
            REF,
            REF,
            "memref<!tpu.semaphore, #tpu.memory_space<semaphore_mem>>",
        ),
    ),
    "a barrier without an id": (
        "HLO0746",
        kernel("%b = tpu.sem_barrier : memref<!tpu.semaphore, #tpu.memory_space<semaphore_mem>>"),
    ),
    "a table of constants": (
        "HLO0747",
        kernel(
            "%r = arith.constant dense<[[1.0, 2.0]]> : vector<1x2xf32>" + keep("1x2xf32"),
            f"memref<1x2xf32, {VMEM}>",
        ),
    ),
    "a bound without a grid": ("HLO0747", kernel("%t = tpu.iteration_bound 0 : i32")),
    "a gather over registers": (
        "HLO0748",
        kernel(
            "%a = arith.constant dense<1> : vector<16x256xi32>\n"
            "    %r = tpu.dynamic_gather %a[%a] in [1] "
            ": vector<16x256xi32>, vector<16x256xi32> -> vector<16x256xi32>"
        ),
    ),
    "lanes cut unevenly": (
        "HLO0748",
        kernel(
            "%a = arith.constant dense<1.0> : vector<8x100xf32>\n"
            "    %r = vector.shape_cast %a : vector<8x100xf32> to vector<4x200xf32>"
            + keep("4x200xf32"),
            f"memref<4x200xf32, {VMEM}>",
        ),
    ),
    "a mask with a sign": (
        "HLO0741",
        kernel(
            f"{LOAD}%m = arith.cmpf ogt, %v, %v : {V}\n"
            f"    %r = arith.sitofp %m : vector<8x128xi1> to {V}{KEEP}",
            REF,
        ),
    ),
    "rows that rotate by their number, ragged": (
        "HLO0748",
        kernel(
            "%a = arith.constant dense<1.0> : vector<8x100xf32>\n"
            "    %r = tpu.dynamic_rotate %a by %z dim 1 {stride = 1 : si32, stride_dimension = 0 : "
            "si32} : vector<8x100xf32>, i32 -> vector<8x100xf32>" + keep("8x100xf32"),
            f"memref<8x100xf32, {VMEM}>",
        ),
    ),
    "a part of a row": ("HLO0743", copied(0, 8)),
    "a part of a packed row": ("HLO0743", sliced("bf16", "[%z, %z]", "3x256")),
    "exact products of bf16": (
        "HLO0741",
        kernel(
            "%a = arith.constant dense<1.0> : vector<128x128xbf16>\n"
            "    %b = arith.constant dense<0.0> : vector<128x128xf32>\n"
            "    %r = tpu.matmul %a, %a, %b {dimension_numbers = #tpu.dot_dimension_numbers<[1], [0], "
            "[0], [1], [0, 0, 1, 1], [], []>, precision = #tpu.contract_precision<fp32>, "
            "transpose_lhs_hint = false} : vector<128x128xbf16>, vector<128x128xbf16>, "
            "vector<128x128xf32> -> vector<128x128xf32>" + keep("128x128xf32"),
            f"memref<128x128xf32, {VMEM}>",
        ),
    ),
    "few scalars of many": ("HLO0744", gridded(4, 4, space=SMEM)),
}


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_constant_of_nans_has_one_value(generation: str) -> None:
    """NaN is no number's equal, but the bits are; 0 and -0 are equal, and two constants."""
    nans = kernel(f"%r = arith.constant dense<0x7FC00000> : {V}{KEEP}", REF)
    check_target(parse_kernel(nans), generation).require()
    zeros = "[0.0, -0.0]" + ", [0.0, 0.0]" * 7
    narrow = V.replace("128", "2")
    two = kernel(
        f"%r = arith.constant dense<[{zeros}]> : {narrow}\n"
        f"    vector.store %r, %x0[%c0, %c0] : {REF}, {narrow}",
        REF,
    )
    with pytest.raises(HloError, match="one value everywhere"):
        check_target(parse_kernel(two), generation).require()


@pytest.mark.parametrize("name", CASES)
def test_a_rule_refuses_at_the_line(name: str) -> None:
    code, text = CASES[name]
    problems = check_target(parse_kernel(text, "k.mlir"), "v5e").problems
    assert {problem.code for problem in problems} == {code}
    place = problems[0].place
    assert place is not None
    assert place.file == "k.mlir"
    assert place.line > 0
    assert problems[0].help


def masked(mask: str, is_store: bool = False) -> str:
    """A kernel with a masked load, or store."""
    mask_type = V.replace("f32", "i1")
    what = f"vector.maskedstore %x0[%c0, %c0], %m, %p : {REF}, {mask_type}, {V}"
    if not is_store:
        what = (
            f"%r = vector.maskedload %x0[%c0, %c0], %m, %p : {REF}, {mask_type}, {V} into {V}{KEEP}"
        )
    zero = f"%p = arith.constant dense<0.0> : {V}\n    "
    return kernel(f"{zero}{mask} : {mask_type}\n    {what}", REF)


@pytest.mark.parametrize("is_store", [False, True])
def test_masks_that_are_constants_are_folded(is_store: bool) -> None:
    """All of it is loaded, or nothing; the real compiler (v5e) says the same of each."""
    for mask in (
        "arith.constant dense<true>",
        "arith.constant dense<false>",
        "vector.constant_mask [8, 128]",
    ):
        module = parse_kernel(masked(f"%m = {mask}", is_store))
        check_target(module, "v5e").require()
        run_pipeline(module, stop_after="canonicalize-mosaic")
        assert "masked" not in str(module)
    part = parse_kernel(masked("%m = vector.constant_mask [4, 128]", is_store))
    with pytest.raises(HloError, match="HLO0740"):
        check_target(part, "v5e").require()


@pytest.mark.parametrize(
    ("element", "rows", "is_taken"),
    [
        *(("bf16", rows, rows % 2 == 0) for rows in (1, 2, 3, 6)),
        *(("i8", rows, rows % 4 == 0) for rows in (2, 4, 6, 12)),
        ("f32", 1, True),
    ],
)
def test_strided_loads_of_packed_rows(element: str, rows: int, is_taken: bool) -> None:
    """Rows fill words; the real compiler (v5e) says the same of each."""
    vector = f"vector<{rows}x128x{element}>"
    whole = f"memref<64x128x{element}, {VMEM}>"
    text = kernel(
        f"%r = tpu.strided_load %x0[%c0, %c0] {{strides = array<i32: 2, 1>}} : {whole}, {vector}\n"
        f"    vector.store %r, %x0[%c0, %c0] : {whole}, {vector}",
        whole,
    )
    problems = check_target(parse_kernel(text), "v5e").problems
    assert [problem.code for problem in problems] == ([] if is_taken else ["HLO0748"])


def test_good_kernels_are_taken() -> None:
    for text in (gridded(8, 4), gridded(5, 1), kernel(f"{LOAD}%r = math.tanh %v : {V}", REF)):
        for generation in GENERATIONS:
            report = check_target(parse_kernel(text), generation)
            assert report.is_accepted, (generation, report.problems)


def test_what_the_call_says_counts() -> None:
    barrier = parse_kernel(CASES["a barrier without an id"][1])
    assert check_target(barrier, "v5e", collective_id=3).is_accepted
    large = parse_kernel(CASES["too large blocks"][1])
    assert check_target(large, "v5e", vmem_limit_bytes=40 << 20).is_accepted
    whole = parse_kernel(gridded(5, 1))
    assert not check_target(whole, "v5e", operands=[(20, 128), (20, 128)]).is_accepted


def test_generations_copy_parts_of_rows_by_their_words() -> None:
    taken = {
        (offset, size): {
            generation
            for generation in GENERATIONS
            if check_target(parse_kernel(copied(offset, size)), generation).is_accepted
        }
        for offset, size in ((0, 128), (0, 8), (8, 64), (0, 4))
    }
    assert taken == {
        (0, 128): set(GENERATIONS),
        (0, 8): {"v5p", "v6e", "tpu7x"},
        (8, 64): {"v5p", "v6e"},
        (0, 4): set(),
    }


def test_the_table_of_memory_names_its_users() -> None:
    report = check_target(parse_kernel(gridded(16, 4)), "v6e")
    assert report.memory.total("vmem") == 2 * 2 * 16 * 128 * 4
    assert "operand 0" in report.memory.table(report.generation)


def test_other_generations_are_refused() -> None:
    with pytest.raises(HloError, match="v9") as caught:
        check_target(parse_kernel(gridded(8, 4)), "v9")
    assert caught.value.code == "HLO0749"


@needs_shared
@pytest.mark.slow
def test_the_real_compiler_says_the_same() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    from target_agreement import read_cases, verdicts

    found = [v for case in read_cases(SAMPLES / "acceptance.jsonl") for v in verdicts(case)]
    assert not [v for v in found if v.is_fatal]
    differing = {(v.name, v.generation) for v in found if not v.agrees}
    assert len(differing) <= 0.01 * len(found)
    listed = ROOT / "test" / "data" / "mosaic" / "target_disagreements.jsonl"
    entries = [json.loads(line) for line in listed.read_text().splitlines()]
    assert {(entry["name"], entry["generation"]) for entry in entries} == differing
    assert all(entry["reason"] for entry in entries)
