"""What the stages between fold, by the text of the stage: `x * 1`, extrema that are choices, products."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from mlirhlo.formats.mosaic import parse_kernel, print_kernel
from mlirhlo.mosaic.interpreter import Kernel
from mlirhlo.mosaic.pipeline import run_pipeline
from mlirhlo.mosaic.target import check_target

VMEM = "#tpu.memory_space<vmem>"
SIMPLE = "infer-memref-layout-simplify"


def kernel(inputs: list[str], result: str, body: str) -> str:
    """A kernel that loads its operands as `%v0`, …, and stores `%r`."""
    refs = ", ".join(
        f"%x{at}: memref<{shape}, {VMEM}>" for at, shape in enumerate((*inputs, result))
    )
    lines = [
        f"module @k {{ func.func @main({refs}) attributes {{tpu.core_type = #tpu.core_type<tc>}} {{"
    ]
    lines.append("%c0 = arith.constant 0 : index")
    for at, shape in enumerate((*inputs, result)):
        place = ", ".join(["%c0"] * shape.count("x"))
        ref = f"%x{at}[{place}] : memref<{shape}, {VMEM}>, vector<{shape}>"
        lines += [f"%v{at} = vector.load {ref}"] if at < len(inputs) else [body]
        if at == len(inputs):
            lines.append(f"vector.store %r, {ref}")
    return "\n".join([*lines, "return } }"])


def folded(text: str, stage: str = SIMPLE) -> list[str]:
    """The operations of `arith`, `math`, `vector` and `tpu` after a stage, in order."""
    module = parse_kernel(text)
    run_pipeline(module, stop_after=stage)
    names = re.findall(r"(?:arith|math|vector|tpu)\.[a-z_]+", print_kernel(module))
    hidden = ("constant", "load", "store", "memory_space", "core_type", "tiled", "layout", "t_cast")
    return [name for name in names if not name.endswith(hidden) and "tpu.main" not in name]


def unary(body: str, element: str = "f32") -> str:
    shape = f"8x128x{element}"
    return kernel([shape], shape, body.replace("VEC", f"vector<{shape}>"))


@pytest.mark.parametrize(
    ("body", "element", "left"),
    [
        ("%c = arith.constant dense<1.0> : VEC %r = arith.mulf %v0, %c : VEC", "f32", []),
        ("%c = arith.constant dense<1.0> : VEC %r = arith.divf %v0, %c : VEC", "f32", []),
        ("%c = arith.constant dense<0.0> : VEC %r = arith.subf %v0, %c : VEC", "f32", []),
        (
            "%c = arith.constant dense<0.0> : VEC %r = arith.addf %v0, %c : VEC",
            "f32",
            ["arith.addf"],
        ),
        (
            "%c = arith.constant dense<-0.0> : VEC %r = arith.subf %v0, %c : VEC",
            "f32",
            ["arith.subf"],
        ),
        ("%c = arith.constant dense<0> : VEC %r = arith.shrui %v0, %c : VEC", "i32", []),
        ("%c = arith.constant dense<-1> : VEC %r = arith.andi %v0, %c : VEC", "i32", []),
        ("%c = arith.constant dense<1> : VEC %r = arith.andi %v0, %c : VEC", "i32", ["arith.andi"]),
        ("%r = arith.maximumf %v0, %v0 : VEC", "f32", []),
        ("%r = arith.xori %v0, %v0 : VEC", "i32", ["arith.xori"]),
    ],
)
def test_units_and_equal_operands(body: str, element: str, left: list[str]) -> None:
    """What changes nothing goes; what changes the sign of a zero stays."""
    assert folded(unary(body, element)) == left


def test_a_product_with_nothing_is_nothing() -> None:
    text = unary("%c = arith.constant dense<0> : VEC %r = arith.muli %c, %v0 : VEC", "i32")
    assert folded(text) == []
    module = parse_kernel(text)
    run_pipeline(module)
    found = Kernel(module).run([np.ones((8, 128), np.int32)], [((8, 128), np.dtype(np.int32))])[0]
    assert not np.asarray(found).any()


@pytest.mark.parametrize(
    ("predicate", "made"), [("sgt", "maxsi"), ("sle", "minsi"), ("ult", "minui"), ("ugt", "maxui")]
)
def test_choices_by_their_own_comparison_are_extrema(predicate: str, made: str) -> None:
    """`x > y ? x : y` is the greater one."""
    choice = (
        f"%c = arith.constant dense<3> : VEC %m = arith.cmpi {predicate}, %v0, %c : VEC "
        "%d = arith.constant dense<3> : VEC "
        "%r = arith.select %m, %v0, %d : vector<8x128xi1>, VEC"
    )
    assert folded(unary(choice, "i32")) == [f"arith.{made}"]


def test_other_choices_stay() -> None:
    other = (
        "%c = arith.constant dense<3> : VEC %m = arith.cmpi sgt, %v0, %c : VEC "
        "%d = arith.constant dense<4> : VEC %r = arith.select %m, %v0, %d : vector<8x128xi1>, VEC"
    )
    assert folded(unary(other, "i32")) == ["arith.cmpi", "arith.select"]


def test_what_becomes_equal_by_merging_is_not_folded_any_more() -> None:
    """Merging comes once, after all folds, as with the compiler."""
    text = unary(
        "%c = arith.constant dense<0.5> : VEC %m = arith.cmpf ogt, %v0, %c : VEC "
        "%a = math.exp %v0 : VEC %b = math.exp %v0 : VEC "
        "%r = arith.select %m, %a, %b : vector<8x128xi1>, VEC"
    )
    assert folded(text) == ["arith.cmpf", "math.exp", "arith.select"]


@pytest.mark.parametrize(
    ("sizes", "offsets", "made"),
    [
        ("1x128", "3, 0", ["vector.extract", "vector.shape_cast"]),
        ("2x128", "3, 0", ["vector.extract_strided_slice"]),
        ("1x64", "3, 0", ["vector.extract_strided_slice"]),
    ],
)
def test_parts_in_one_piece_are_extracted(sizes: str, offsets: str, made: list[str]) -> None:
    box = f"offsets = [{offsets}], sizes = [{sizes.replace('x', ', ')}], strides = [1, 1]"
    body = f"%r = vector.extract_strided_slice %v0 {{{box}}} : vector<8x128xf32> to vector<{sizes}xf32>"
    assert folded(kernel(["8x128xf32"], f"{sizes}xf32", body)) == made


NUMBERS = "#tpu.dot_dimension_numbers<[1], [0], [0], [1], [0, 0, 1, 1], [], []>"
ACROSS = "#tpu.dot_dimension_numbers<[0], [0], [1], [1], [0, 1, 1, 1], [], []>"


def product(name: str, acc: str, numbers: str = NUMBERS, left: str = "8x128") -> str:
    types = f"vector<{left}xf32>, vector<128x128xf32>, vector<8x128xf32> -> vector<8x128xf32>"
    options = f"{{dimension_numbers = {numbers}, transpose_lhs_hint = false}}"
    return f"%{name} = tpu.matmul %v0, %v1, {acc} {options} : {types}"


@pytest.mark.parametrize("is_left", [True, False])
def test_sums_with_a_product_are_its_accumulator(is_left: bool) -> None:
    """Where the product is on the left and begins with nothing."""
    order = "%p, %v2" if is_left else "%v2, %p"
    body = (
        f"%z = arith.constant dense<0.0> : vector<8x128xf32>\n{product('p', '%z')}\n"
        f"%r = arith.addf {order} : vector<8x128xf32>"
    )
    text = kernel(["8x128xf32", "128x128xf32", "8x128xf32"], "8x128xf32", body)
    sums = [name for name in folded(text) if name == "arith.addf"]
    assert len(sums) == (0 if is_left else 1)


def test_a_product_across_rows_turns_its_left_side_alone() -> None:
    """No other dimension is added."""
    body = "%z = arith.constant dense<0.0> : vector<8x128xf32>\n" + product(
        "r", "%z", ACROSS, "128x8"
    )
    text = kernel(["128x8xf32", "128x128xf32"], "8x128xf32", body)
    made = folded(text, "canonicalize-mosaic")
    assert [name for name in made if "dot" not in name] == ["tpu.transpose", "tpu.matmul"]


def test_choices_of_masks_are_made_of_bits() -> None:
    text = unary(
        "%c = arith.constant dense<0.5> : VEC %z = arith.constant dense<0.0> : VEC "
        "%m = arith.cmpf ogt, %v0, %c : VEC %a = arith.cmpf olt, %v0, %z : VEC "
        "%b = arith.cmpf oeq, %v0, %z : VEC "
        "%s = arith.select %m, %a, %b : vector<8x128xi1>, vector<8x128xi1> "
        "%r = arith.select %s, %v0, %z : vector<8x128xi1>, VEC"
    )
    made = folded(text, "canonicalize-mosaic")
    assert made[-5:] == ["arith.xori", "arith.andi", "arith.andi", "arith.ori", "arith.select"]


def test_products_with_a_transposed_right_side_contract_its_last_dimension() -> None:
    body = (
        "%z = arith.constant dense<0.0> : vector<8x128xf32>\n"
        "%t = tpu.transpose %v1, [1, 0] : vector<128x128xf32> -> vector<128x128xf32>\n"
        + product("r", "%z").replace("%v1", "%t")
    )
    text = kernel(["8x128xf32", "128x128xf32"], "8x128xf32", body)
    assert "tpu.transpose" in folded(text, "canonicalize-operations")
    assert "tpu.transpose" not in folded(text, "pre-canon-optimization")


@pytest.mark.parametrize(("step", "left"), [(1, False), (2, True)])
def test_loads_of_neighbouring_rows_have_no_stride(step: int, left: bool) -> None:
    body = (
        f"%r = tpu.strided_load %x0[%c0, %c0] {{strides = array<i32: {step}, 1>}} : "
        f"memref<16x128xf32, {VMEM}>, vector<8x128xf32>"
    )
    text = kernel(["16x128xf32"], "8x128xf32", body)
    module = parse_kernel(text)
    run_pipeline(module, stop_after=SIMPLE)
    assert ("strided_load" in print_kernel(module)) == left


def test_rounding_goes_into_the_cast() -> None:
    """In the stage after casts have their rounding."""
    body = (
        "%e = math.roundeven %v0 : vector<8x128xf32> "
        "%r = arith.fptosi %e : vector<8x128xf32> to vector<8x128xi32>"
    )
    text = kernel(["8x128xf32"], "8x128xi32", body)
    assert "math.roundeven" in folded(text)
    assert "math.roundeven" not in folded(text, "canonicalize-mosaic-simplify")


def test_known_sizes_of_slices_are_stated() -> None:
    """`memref_slice` of a constant number of rows, and what is squeezed of it."""
    ref, whole = f"memref<2x16x128xf32, {VMEM}>", f"memref<16x128xf32, {VMEM}>"
    part, flat = f"memref<1x?x128xf32, {VMEM}>", f"memref<?x128xf32, {VMEM}>"
    sem = "memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"
    text = f"""module @k {{ func.func @main(%x: {ref}, %y: {whole}, %s: {sem}) attributes
      {{tpu.core_type = #tpu.core_type<tc>, scratch_operands = 1 : i64}} {{
      %z = arith.constant 0 : i32
      %n = arith.constant 8 : i32
      %m = tpu.assume_multiple %n, 8 : i32
      %a = tpu.memref_slice %x[%z, %z, %z] <%m> : {ref} -> {part}
      %b = tpu.memref_squeeze %a : {part} -> {flat}
      %c = tpu.memref_slice %y[%z, %z] <%m> : {whole} -> {flat}
      tpu.enqueue_dma source(%b : {flat}) target(%c : {flat}) target_semaphore(%s : {sem})
      tpu.wait_dma2 semaphore(%s : {sem}) src(%b : {flat}) dst(%c : {flat})
      return }} }}"""
    module = parse_kernel(text)
    run_pipeline(module, stop_after=SIMPLE)
    made = print_kernel(module)
    assert "assume_multiple" not in made
    assert made.count("memref.cast") == 2
    assert made.index("tpu.memref_squeeze") < made.index("memref.cast")
    run_pipeline(module, start_after=SIMPLE)


def problems(text: str, generation: str) -> str:
    """What speaks against a kernel."""
    return " ".join(one.message for one in check_target(parse_kernel(text), generation).problems)


@pytest.mark.parametrize("generation", ["v4", "v5e", "v6e", "tpu7x"])
def test_what_is_folded_is_judged_as_folded(generation: str) -> None:
    """Bytes times nothing are none; bytes that are greater than nothing become a maximum."""
    shape = "32x128xi8"
    zero = "%c = arith.constant dense<0> : VEC %r = arith.muli %v0, %c : VEC"
    assert not problems(kernel([shape], shape, zero.replace("VEC", f"vector<{shape}>")), generation)
    choice = (
        "%c = arith.constant dense<0> : VEC %m = arith.cmpi sgt, %v0, %c : VEC "
        "%d = arith.constant dense<0> : VEC %r = arith.select %m, %v0, %d : vector<32x128xi1>, VEC"
    )
    text = kernel([shape], shape, choice.replace("VEC", f"vector<{shape}>"))
    assert "it is folded to arith.maxsi" in problems(text, generation)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("2x4x128xf32", "8x128xf32"),
        ("5x2x200xf32", "10x200xf32"),
        ("40x128xf32", "10x512xf32"),
        ("2x3x4xf32", "6x4xf32"),
        ("3x4x128xbf16", "12x128xbf16"),
    ],
)
def test_tiles_grow_by_way_of_memory(before: str, after: str) -> None:
    """Rows of small tiles are stored in turns, and loaded as rows of larger ones."""
    body = f"%r = vector.shape_cast %v0 : vector<{before}> to vector<{after}>"
    module = parse_kernel(kernel([before], after, body))
    shapes = [tuple(map(int, text.split("x")[:-1])) for text in (before, after)]
    dtype = np.dtype(ml_dtypes.bfloat16 if before.endswith("bf16") else np.float32)
    given = np.random.default_rng(0).normal(size=shapes[0]).astype(dtype)
    run_pipeline(module)
    text = print_kernel(module)
    assert "tpu.internal_scratch" in text
    assert "tpu.shuffled_load" in text
    found = Kernel(module).run([given], [(shapes[1], dtype)])[0]
    np.testing.assert_array_equal(np.asarray(found), given.reshape(shapes[1]))


def branches(body: str) -> str:
    """A kernel of branches on `%c` and `%d`, a number's signs, that add 1, … to a tile."""
    add = "%N = arith.constant dense<N.0> : VEC %v = vector.load REF %s = arith.addf %v, %N : VEC"
    body = re.sub(r"ADD(\d)", lambda one: f"{add.replace('N', one[1])} vector.store %s, REF", body)
    tile = f"memref<8x128xf32, {VMEM}>"
    text = f"""module @k {{ func.func @main(
      %m: memref<1xi32, #tpu.memory_space<smem>>, %x: {tile}, %y: {tile}
    ) attributes {{tpu.core_type = #tpu.core_type<tc>}} {{
        %c0 = arith.constant 0 : index %z = arith.constant 0 : i32 %true = arith.constant true
        %n = memref.load %m[%c0] : memref<1xi32, #tpu.memory_space<smem>>
        %c = arith.cmpi sgt, %n, %z : i32 %d = arith.cmpi slt, %n, %z : i32
        %first = vector.load %x[%c0, %c0] : {tile}, VEC vector.store %first, REF
        {body}
        return }} }}"""
    ref = f"%y[%c0, %c0] : {tile}, VEC"
    return text.replace("REF", ref).replace("VEC", "vector<8x128xf32>")


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("scf.if %c { ADD1 } scf.if %c { ADD2 }", "if add add end"),
        ("scf.if %c { ADD1 } else { ADD3 } scf.if %c { ADD2 }", "if add add else add end"),
        ("%e = arith.xori %c, %true : i1 scf.if %e { ADD1 }", "if else add end"),
        (
            "scf.if %c { ADD1 } %e = arith.xori %c, %true : i1 scf.if %e { ADD2 }",
            "if add else add end",
        ),
        ("scf.if %c { ADD1 } scf.if %d { ADD2 }", "if add end if add end"),
        ("scf.if %c { scf.if %d { ADD1 } }", "if add end"),
        ("scf.if %c { scf.if %d { ADD1 } } else { ADD2 }", "if if add end else add end"),
        (
            """%a = scf.if %c -> f32 { %o = arith.constant 1.0 : f32 scf.yield %o : f32 }
            else { %o = arith.constant 2.0 : f32 scf.yield %o : f32 }
            %b = scf.if %c -> f32 { %o = arith.addf %a, %a : f32 scf.yield %o : f32 }
            else { scf.yield %a : f32 }
            %v = vector.broadcast %b : f32 to VEC vector.store %v, REF""",
            "if else end",
        ),
    ],
)
def test_branches_on_one_condition_are_one(body: str, left: str) -> None:
    """Right after one another; `if not c` is `if c` the other way round; all of a branch is one on both."""
    module = parse_kernel(branches(body))
    before = Kernel(module.clone())
    run_pipeline(module, stop_after=SIMPLE)
    text = print_kernel(module)
    short = {"scf.if": "if", "} else {": "else", "arith.addf": "add"}
    words = re.findall(r"scf\.if|\} else \{|\}$|arith\.addf", text, re.MULTILINE)
    assert " ".join(short.get(word, "end") for word in words[:-2]) == left, text
    tile = np.ones((8, 128), np.float32)
    for number in (-1, 0, 1):
        inputs = [np.array([number], np.int32), tile]
        kinds = [(tile.shape, tile.dtype)]
        (want,), (found,) = (one.run(inputs, kinds) for one in (before, Kernel(module)))
        np.testing.assert_array_equal(found, want)
