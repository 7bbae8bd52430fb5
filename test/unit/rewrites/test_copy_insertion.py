"""`copy-insertion`: nothing that is still needed is written over, in whatever order instructions run."""

import json
import random
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import CORPUS, needs_shared, one_in, sampled
from unit.rewrites.random_loops import Program
from unit.rewrites.shared_buffers import clobbers

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.dialects.hlo.attributes.base import integer
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import GetTupleElementOp, ParameterOp, TupleOp
from mlirhlo.dialects.hlo.ops.base import CONTROL_PREDECESSORS, Instruction
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.interp import run_module
from mlirhlo.interp.fake_data import make_fake_arguments
from mlirhlo.rewrites.copy_insertion.buffer import Buffer
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

SEEDS = range(60)


def problems(module: HloModule) -> list[str]:
    return [found for seed in range(8) for found in clobbers(module, seed)]


def test_without_the_pass_values_are_lost() -> None:
    lost = [seed for seed in SEEDS if problems(HloModule(parse_module(Program(seed).text)))]
    assert len(lost) > len(SEEDS) // 2


@pytest.mark.parametrize("start", SEEDS[::20])
@pytest.mark.parametrize("before", ["", "hlo-memory-scheduler,"], ids=["any-order", "scheduled"])
def test_random_modules(start: int, before: str) -> None:
    for seed in range(start, start + 20):
        text = Program(seed).text
        module = parse_module(text)
        arguments = list(make_fake_arguments(module, 1))
        wanted = run_module(module, arguments)
        run_pipeline(module, parse_pipeline(f"{before}copy-insertion"))
        assert verify_module(module) == []
        assert problems(HloModule(module)) == [], text
        found = run_module(module, arguments)
        for a, b in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b), text)
        run_pipeline(module, parse_pipeline("copy-insertion"))
        assert problems(HloModule(module)) == [], text


def waiting(module: HloModule, seed: int) -> list[tuple[str | None, str | None]]:
    """Control dependencies drawn by lot: who is waited for, and who waits."""
    rng = random.Random(seed)
    pairs: list[tuple[str | None, str | None]] = []
    for computation in module.computations:
        ops = list(computation.instructions)
        for _ in range(3 if len(ops) > 1 else 0):
            first, second = (ops[place] for place in sorted(rng.sample(range(len(ops)), 2)))
            if not isinstance(second, ParameterOp) and first.output not in second.operands:
                count = len(second.control_predecessors)
                second.operands = [*second.operands, first.output]
                second.properties[CONTROL_PREDECESSORS] = integer(count + 1)
                pairs += [(first.instruction_name, name) for name in lasting(second)]
    return pairs


def lasting(op: Instruction) -> set[str | None]:
    """The name of `op`, or those of its readers where it takes tuples apart or builds them, which may go."""
    if not isinstance(op, GetTupleElementOp | TupleOp):
        return {op.instruction_name}
    readers = [use.operation for use in op.output.uses]
    return {name for r in readers if isinstance(r, Instruction) for name in lasting(r)}


def test_who_waits_goes_on_waiting() -> None:
    checked = 0
    for seed in SEEDS[::2]:
        module = parse_module(Program(seed).text)
        run_pipeline(module, parse_pipeline("tuple-simplifier,dce"))
        pairs = waiting(HloModule(module), seed)
        run_pipeline(module, parse_pipeline("copy-insertion"))
        assert verify_module(module) == []
        by_name = {op.instruction_name: op for op in HloModule(module).instructions}
        for first, second in pairs:
            if first not in by_name or second not in by_name:
                continue  # a part of a tuple, which is what the tuple was made of now
            before: set[object] = set()
            work = [by_name[second]]
            while work:
                op = work.pop()
                if op not in before:
                    before.add(op)
                    work += [v.owner for v in op.operands if isinstance(v.owner, Instruction)]
            assert by_name[first] in before, (seed, first, second)
            checked += 1
    assert checked > 50


def modules() -> Iterator[tuple[str, str]]:
    """Modules before XLA's pass."""
    for archive in sorted(CORPUS.glob("programs/*/*.passes.tar.gz")):
        with tarfile.open(archive) as files:

            def read(name: str, files: tarfile.TarFile = files) -> str:
                handle = files.extractfile(name)
                assert handle is not None
                return handle.read().decode()

            for row in json.loads(read("INDEX.json")):
                if row["pass"] == "copy-insertion" and row["before"]:
                    yield f"{archive.name}: {row['file']}", read(row["before"])


@needs_shared
@pytest.mark.slow
@sampled(6)
def test_modules_of_xla(every: int) -> None:
    for name, text in one_in(every, modules()):
        module = parse_module(text, Path(name).name)
        run_pipeline(module, parse_pipeline("copy-insertion"))
        assert problems(HloModule(module)) == [], name


@pytest.mark.parametrize("before", ["", "hlo-memory-scheduler,"], ids=["any-order", "scheduled"])
def test_neighbours_in_a_buffer_answer_for_all(
    before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking the values written just before and after decides as asking every value of the buffers."""
    pipeline = parse_pipeline(f"{before}copy-insertion")
    in_order = Buffer.put_in_order

    def exhaustive(self: Buffer, *arguments: Any) -> None:
        in_order(self, *arguments)
        self.is_chain = False

    for seed in SEEDS:
        texts: list[str] = []
        for put in (in_order, exhaustive):
            monkeypatch.setattr(Buffer, "put_in_order", put)
            module = parse_module(Program(seed, nested=seed % 2 == 1).text)
            run_pipeline(module, pipeline)
            texts.append(print_module(module))
        assert texts[0] == texts[1], seed
