"""Target checks of views and of loops, against what the real compiler said of the same kernels."""

from __future__ import annotations

import pytest
from unit.mosaic.test_target import KEEP, REF, SMEM, VMEM, V, kernel

from mlirhlo.formats.mosaic import parse_kernel
from mlirhlo.mosaic.target import GENERATIONS, check_target

# What every generation takes (`+`) or does not, of a reference in VMEM that is then loaded.
RESHAPES = {
    ("f32", True): """
        12x128->4x384 12x128->4x3x128 15x100->3x5x100 16x100->16x1x100 16x1x100->16x100
        16x1x200->2x8x200 16x1x200->4x4x1x200 16x1x256->8x1x512 16x1x512->2x8x4x128
        16x1x512->64x128 1x100->100 1x1024->1024 1x1x5x128->1x5x128 1x512->4x128 1x5x128->5x128
        20x6x200->4x5x6x200 2x128->1x256 2x4x256->8x256 2x8x128->8x2x128 3x128->384 3x2x128->6x128
        3x4x128->2x6x128 4x1x256->1024 4x256->1x4x256 4x40x256->20x8x256 4x4x128->2x4x256
        5x1x384->15x128 64x128->16x512 6x256->1x6x256 7x128->7x1x128 8x128->1024 8x1x512->8x2x256
        8x2x256->16x256 8x4x128->8x512 8x64->2x4x64
    """,
    ("f32", False): """
        100->1x100 1024->8x128 1024->1024x1 16x1x100->8x1x200 16x1x200->32x100 16x200->16x1x200
        16x512->64x128 2x12x128->24x128 2x512->1024 2x8x200->16x1x200 3x5x100->15x100
        3x5x128->15x128 3x5x128->3x1x5x128 4x1x5x128->4x5x128 5x100->500 8x256->2x4x256
        8x256->8x2x128 8x2x256->32x128 8x64->4x128 8x8x256->16x8x128
    """,
    ("bf16", True): """
        16x1x200->4x4x1x200 1x5x128->5x128 20x6x200->4x5x6x200 2x4x256->8x256 3x4x128->12x128
        3x5x128->3x1x5x128 4x5x6x128->20x6x128 8x2x256->16x256 8x4x128->2x16x128
    """,
    ("bf16", False): """
        100->1x100 1024->8x128 12x128->4x384 15x128->3x5x128 16x1x200->16x200 16x1x512->64x128
        1x64->64 3x4x128->2x6x128 8x128->1024 8x256->2x4x256 8x4x128->8x512
    """,
    ("i8", True): "2x32x128->64x128 8x16x128->16x8x128 8x4x128->2x16x128",
    ("i8", False): "15x1x128->3x5x128 8x2x128->2x8x128 8x2x256->16x256 8x128->1024",
}
SQUEEZES = {
    ("f32", True): "8x1x256->8x256 1x256->256 4x1x1x128->4x128 4x1x100->4x100 8x1x8x128->8x8x128",
    ("f32", False): "8x128x1->8x128",
    ("bf16", True): "8x1x8x128->8x8x128 1x8x128->8x128",
    ("bf16", False): "8x1x128->8x128 1x256->256 1x1x128->128 4x1x1x128->4x128 8x128x1->8x128",
}


def viewed(view: str, element: str, before: str, after: str) -> str:
    """A kernel that loads a view of its first operand and stores that to its second."""
    source, result = (f"memref<{shape}x{element}, {VMEM}>" for shape in (before, after))
    at = ", ".join(["%c0"] * (after.count("x") + 1))
    return kernel(
        f"%r = {view} %x0 : {source} -> {result}\n"
        f"    %v = vector.load %r[{at}] : {result}, vector<{after}x{element}>\n"
        f"    vector.store %v, %x1[{at}] : {result}, vector<{after}x{element}>",
        source,
        result,
    )


CASTS = {
    "all": """
        8x128x2->8x256 8x2x100->8x200 4x2x2x64->4x256 1x5x100->1x500 3x5x100->1x3x500 2x3x5x100->6x500
        2x3x5x100->2x1500 4x2x3x100->8x300 16x3x100->2x8x300 3x4x96->3x384 8x2x3x50->8x6x50
    """,
    "from 5 on": """
        8x256->8x128x2 8x200->8x2x100 4x256->4x2x2x64 6x500->2x3x5x100 1x500->1x5x100 2x8x300->16x3x100
        16x189->16x3x7x9 2x768->2x2x2x192
    """,
    "none": """
        5x100->1x500 3x5x100->1x1500 1x500->5x100 600->6x100 1x6x100->600 4x3x100->2x600 2x600->4x3x100
        8x6x50->8x2x150 2x384->4x192 4x2x192->2x768
    """,
}


@pytest.mark.parametrize("element", ["f32", "bf16", "i8"])
def test_vectors_are_reshaped_as_the_compiler_does(element: str) -> None:
    wrong: list[str] = []
    for found, rows in CASTS.items():
        for row in rows.split():
            before, after = row.split("->")
            one, other = (f"memref<{shape}x{element}, {VMEM}>" for shape in (before, after))
            at, to = (", ".join(["%c0"] * (shape.count("x") + 1)) for shape in (before, after))
            text = kernel(
                f"%v = vector.load %x0[{at}] : {one}, vector<{before}x{element}>\n    %r = "
                f"vector.shape_cast %v : vector<{before}x{element}> to vector<{after}x{element}>\n"
                f"    vector.store %r, %x1[{to}] : {other}, vector<{after}x{element}>",
                one,
                other,
            )
            for generation, row_ in GENERATIONS.items():
                wanted = found == "all" or (found == "from 5 on" and row_.number >= 5)
                if check_target(parse_kernel(text), generation).is_accepted != wanted:
                    wrong.append(f"{row} on {generation}")
    assert not wrong


@pytest.mark.parametrize("element", ["f32", "bf16", "i8"])
def test_views_are_taken_as_the_compiler_does(element: str) -> None:
    wrong: list[str] = []
    for view, table in (("tpu.memref_reshape", RESHAPES), ("tpu.memref_squeeze", SQUEEZES)):
        for (found, is_taken), rows in table.items():
            for row in rows.split() if found == element else ():
                text = viewed(view, element, *row.split("->"))
                report = check_target(parse_kernel(text, "k.mlir"), "v5e")
                if report.is_accepted != is_taken:
                    wrong.append(f"{view} {row}")
                assert all(problem.code == "HLO0748" for problem in report.problems), row
    assert not wrong


@pytest.mark.parametrize(
    ("source", "part", "after", "is_taken"),
    [
        ("4x16x256", "4x8x256", "32x256", False),
        ("8x16x128", "4x16x128", "64x128", True),
        ("64x256", "32x128", "4x8x128", False),
        ("64x128", "32x128", "4x8x128", True),
        ("8x1x512", "4x1x512", "16x128", True),
    ],
)
def test_parts_with_gaps_are_not_reshaped(
    source: str, part: str, after: str, is_taken: bool
) -> None:
    whole, piece, result = (f"memref<{s}xf32, {VMEM}>" for s in (source, part, after))
    zeros = ", ".join(["%z"] * (source.count("x") + 1))
    at = ", ".join(["%c0"] * (after.count("x") + 1))
    text = kernel(
        f"%p = tpu.memref_slice %x0[{zeros}] : {whole} -> {piece}\n"
        f"    %r = tpu.memref_reshape %p : {piece} -> {result}\n"
        f"    %v = vector.load %r[{at}] : {result}, vector<{after}xf32>\n"
        f"    vector.store %v, %x1[{at}] : {result}, vector<{after}xf32>",
        whole,
        result,
    )
    report = check_target(parse_kernel(text), "v5e")
    assert report.is_accepted == is_taken
    assert is_taken or "gaps" in report.problems[0].message


def test_what_is_cut_into_lines_is_copied_but_not_loaded() -> None:
    source, result = (f"memref<{s}xf32, #tpu.memory_space<any>>" for s in ("16x512", "16x4x128"))
    semaphore = "memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"
    text = kernel(
        f"%r = tpu.memref_reshape %x0 : {source} -> {result}\n"
        f"    tpu.enqueue_dma source(%r : {result}) target(%x1 : {result}) "
        f"target_semaphore(%x2 : {semaphore})",
        source,
        result,
        semaphore,
    )
    assert check_target(parse_kernel(text), "v5e").is_accepted
    loaded = viewed("tpu.memref_reshape", "f32", "16x512", "16x4x128")
    assert not check_target(parse_kernel(loaded), "v5e").is_accepted


LOADED = f"vector.load %x0[%c0, %c0] : {REF}, {V}"
ZERO = f"arith.constant dense<0.0> : {V}"
ROW = f"vector.load %x0[%c0, %c0] : {REF}, vector<1x128xf32>"
ONE = ("vector<1x128xf32>", V)


def carried(a: str, b: str, step: str, extra: str = "") -> str:
    """A loop of two vectors that begin as `a` and `b`; `step` makes `%p` and `%q` of `%a` and `%b`."""
    return kernel(
        f"{extra}\n    %n = arith.constant 4 : i32\n    %one = arith.constant 1 : i32\n"
        f"    %i = {a}\n    %j = {b}\n"
        f"    %r, %s = scf.for %k = %z to %n step %one iter_args(%a = %i, %b = %j) -> ({V}, {V})"
        f" : i32 {{\n      %l = {LOADED}\n      {step}\n      scf.yield %p, %q : {V}, {V}\n    }}"
        + KEEP,
        REF,
    )


ADD = f"%q = arith.addf %b, %l : {V}\n      "
OLD = ADD + f"%p = arith.addf %a, %b : {V}"
CARRIED = {
    "one element, of what the other was": (carried(ZERO, ZERO, OLD), False),
    "of what the other has become": (
        carried(ZERO, ZERO, ADD + f"%p = arith.addf %a, %q : {V}"),
        True,
    ),
    "the other begins with many": (carried(ZERO, LOADED, OLD), True),
    "of itself": (carried(ZERO, ZERO, ADD + f"%p = arith.addf %a, %l : {V}"), True),
    "one row": (
        carried(
            "vector.broadcast %w : vector<1x128xf32> to " + V,
            "vector.broadcast %w : vector<1x128xf32> to " + V,
            OLD,
            f"%w = {ROW}",
        ),
        False,
    ),
    "a branch": (
        carried(
            ZERO,
            ZERO,
            ADD + f"%t = arith.cmpi slt, %k, %one : i32\n      %p = scf.if %t -> ({V}) {{\n"
            f"        scf.yield %a : {V}\n      }} else {{\n        scf.yield %b : {V}\n      }}",
        ),
        False,
    ),
    "a loop in the loop": (
        carried(
            ZERO,
            ZERO,
            ADD + f"%p = scf.for %m = %z to %n step %one iter_args(%c = %a) -> ({V}) : i32 {{\n"
            f"        %d = arith.addf %c, %b : {V}\n        scf.yield %d : {V}\n      }}",
        ),
        False,
    ),
}
WHILE = kernel(
    f"""%n = memref.load %x1[%c0] : memref<4xi32, {SMEM}>
    %one = arith.constant 1 : i32
    %i = {ZERO}
    %o, %r, %s = scf.while (%k = %z, %a = %i, %b = %i) : (i32, {V}, {V}) -> (i32, {V}, {V}) {{
      %t = arith.cmpi slt, %k, %n : i32
      scf.condition(%t) %k, %a, %b : i32, {V}, {V}
    }} do {{
    ^bb0(%k: i32, %a: {V}, %b: {V}):
      %k1 = arith.addi %k, %one : i32
      %l = {LOADED}
      %p = arith.addf %a, %b : {V}
      %q = arith.addf %b, %l : {V}
      scf.yield %k1, %p, %q : i32, {V}, {V}
    }}"""
    + KEEP,
    REF,
    f"memref<4xi32, {SMEM}>",
)
CARRIED["while"] = (WHILE, False)
CARRIED["while, of what has become"] = (
    WHILE.replace("%p = arith.addf %a, %b", "%p = arith.addf %a, %l"),
    True,
)


@pytest.mark.parametrize("name", CARRIED)
def test_carried_values_differ_in_the_first_round(name: str) -> None:
    text, is_taken = CARRIED[name]
    for generation in GENERATIONS:
        report = check_target(parse_kernel(text, "k.mlir"), generation)
        assert report.is_accepted == is_taken, report.problems
    for problem in report.problems:
        assert problem.code == "HLO0748"
        assert "the loop carries it as value" in problem.message
        assert problem.place is not None


def test_powers_of_scalars_are_refused() -> None:
    body = (
        f"%a = memref.load %x0[%c0] : memref<4xf32, {SMEM}>\n"
        "    %r = math.powf %a, %a : f32\n"
        f"    memref.store %r, %x0[%c0] : memref<4xf32, {SMEM}>"
    )
    report = check_target(parse_kernel(kernel(body, f"memref<4xf32, {SMEM}>")), "v6e")
    assert [problem.code for problem in report.problems] == ["HLO0740"]
