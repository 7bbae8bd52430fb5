"""`layout-assignment`: what has to lie alike does, values stay, and no more is moved than XLA moves."""

import json
import tarfile
from collections.abc import Iterator
from typing import cast

import numpy as np
import pytest
from support import CORPUS, needs_shared
from unit.rewrites.random_layouts import Layouts
from xdsl.dialects.builtin import ModuleOp

from mlirhlo.analysis.dataflow import callers_of
from mlirhlo.analysis.verifier import verify_module
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import TransposeOp, WhileOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.interp import run_module
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.rewrites.layout_assignment.moves import reshaped
from mlirhlo.rewrites.layout_assignment.problem import Problem
from mlirhlo.rewrites.layout_assignment.settled import is_settled
from mlirhlo.rewrites.layout_assignment.writing import add_copies, write_layouts
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

ALIKE = {"negate", "cosine", "add", "maximum"}


def order(shape: object) -> tuple[int, ...]:
    assert isinstance(shape, ArrayShape)
    assert shape.layout is not None
    return shape.layout.minor_to_major


def places(shape: ArrayShape) -> np.ndarray:
    """The place in memory of every element: what a layout means."""
    major = tuple(reversed(order(shape)))
    laid = np.arange(shape.element_count).reshape([shape.dimensions[d] for d in major])
    return laid.transpose(np.argsort(major)) if major else laid


def moves_elements(op: Instruction) -> bool:
    """Whether a copy, transpose or reshape puts any element elsewhere."""
    source = places(cast(ArrayShape, op.input_shapes[0]))
    if isinstance(op, TransposeOp):
        source = source.transpose(op.dimensions)
    result = places(cast(ArrayShape, op.shape))
    return not np.array_equal(source.reshape(result.shape), result)


def moved_bytes(module: ModuleOp) -> int:
    return sum(
        cast(ArrayShape, op.shape).byte_size
        for op in HloModule(module).instructions
        if op.opcode.name in ("copy", "transpose", "reshape") and moves_elements(op)
    )


def wrong(module: ModuleOp, target: str) -> Iterator[str]:
    """What lies otherwise than it must."""
    view = HloModule(module)
    computations, layout = view.by_name(), view.program_layout
    if tuple(p.shape for p in view.entry.parameters) != layout.parameters:
        yield "parameters"
    if view.entry.root.shape != layout.result:
        yield "result"
    for op in view.instructions:
        name = op.opcode.name
        if name in ALIKE and any(shape != op.shape for shape in op.input_shapes):
            yield str(op)
        if target == "cpu" and name == "dot":
            if any(order(s) != (1, 0) for s in (*op.input_shapes, op.shape)):
                yield str(op)
        if isinstance(op, WhileOp):
            body, condition = computations[op.body], computations[op.condition]
            ends = (body.root.shape, body.parameters[0].shape, condition.parameters[0].shape)
            if {op.shape, op.input_shapes[0], *ends} != {op.shape}:
                yield str(op)


def test_without_the_pass_much_is_wrong() -> None:
    found = [seed for seed in range(40) if any(wrong(parse_module(Layouts(seed).text), "cpu"))]
    assert len(found) > 20


@pytest.mark.one_case_in(2)
@pytest.mark.parametrize("start", range(0, 80, 20))
@pytest.mark.parametrize("target", ["any", "cpu"])
def test_random_modules(start: int, target: str) -> None:
    moved = 0
    for seed in range(start, start + 20):
        text = Layouts(seed).text
        module = parse_module(text)
        arguments = list(make_fake_arguments(module, 1))
        wanted = run_module(module, arguments)
        before = moved_bytes(module)
        run_pipeline(module, parse_pipeline(f"layout-assignment{{target={target}}}"))
        assert verify_module(module) == [], text
        assert list(wrong(module, target)) == [], text
        for a, b in zip(wanted, run_module(module, arguments), strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), text)
        moved += before - moved_bytes(module)
    assert moved > 0  # less than with layouts drawn by lot


@pytest.mark.one_case_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("target", ["any", "cpu"])
def test_what_is_settled_stays(target: str) -> None:
    """Where no layout is in question, finding all of them finds those that there are."""
    settled = {False: 0, True: 0}
    for seed in range(40):
        for pipeline in ("", f"layout-assignment{{target={target}}}", "default-layouts"):
            module = parse_module(Layouts(seed).text)
            run_pipeline(module, parse_pipeline(pipeline))
            view = HloModule(module, {})
            callers = callers_of(view.calling(), view.by_name())
            flags = {"row_major_libraries": target == "cpu"}
            if any(len(found) > 1 for found in callers.values()):
                continue
            if not is_settled(view, callers, **flags):
                continue
            settled[pipeline != ""] += 1
            before = print_module(module)
            problem = Problem.of(view, **flags)
            problem.solve()
            assert not write_layouts(problem)
            assert add_copies(problem) == 0
            assert print_module(module) == before
    assert settled[True] > 20
    assert settled[False] < 40


def test_a_reshape_in_place_moves_nothing() -> None:
    cases = [
        ((4, 6), (2, 2, 6)),
        ((4, 6), (24,)),
        ((2, 3, 4), (6, 4)),
        ((2, 3, 4), (2, 12)),
        ((3, 4), (3, 1, 4, 1)),
        ((1, 3, 1, 4), (3, 4)),
        ((4, 6), (6, 4)),
        ((6,), (1, 6)),
    ]
    possible = 0
    for sizes, target in cases:
        for seed in range(6):
            minor = tuple(int(d) for d in np.random.default_rng(seed).permutation(len(sizes)))
            found = reshaped(minor, sizes, target)
            if found is None:
                continue
            possible += 1
            given = f"f32[{','.join(map(str, sizes))}]{{{','.join(map(str, minor))}}}"
            text = f"HloModule m\nENTRY e {{\n  x = {given} parameter(0)\n"
            text += f"  ROOT r = f32[{','.join(map(str, target))}]{{{','.join(map(str, found))}}} reshape(x)\n}}"
            assert moved_bytes(parse_module(text)) == 0, text
    assert possible > len(cases)


@needs_shared
@pytest.mark.slow
def test_no_more_is_moved_than_by_xla() -> None:
    compared = 0
    for archive in sorted(CORPUS.glob("programs/*/*.passes.tar.gz")):
        target = "cpu" if ".cpu." in archive.name else "any"
        with tarfile.open(archive) as files:

            def read(name: str, files: tarfile.TarFile = files) -> str:
                handle = files.extractfile(name)
                assert handle is not None
                return handle.read().decode()

            for row in json.loads(read("INDEX.json")):
                if row["pass"] == "layout-assignment" and row["before"]:
                    module = parse_module(read(row["before"]))
                    run_pipeline(module, parse_pipeline(f"layout-assignment{{target={target}}}"))
                    theirs = parse_module(read(row["file"]))
                    assert moved_bytes(module) <= moved_bytes(theirs), archive.name
                    compared += 1
    assert compared
