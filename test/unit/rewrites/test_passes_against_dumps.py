"""Our passes against XLA's: the module before a pass, run through ours, is the module after it.

The corpus holds what XLA:CPU, XLA:GPU and XLA:TPU dumped around each pass that changed a module.
Modules are compared by their fingerprint text, computations in any order.
"""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import CORPUS, needs_shared

from mlirhlo.formats.hlo_text import PrintOptions, parse_module, print_module
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline
from mlirhlo.rewrites.registry import list_passes

EXPLAINED = {
    # The dumps leave out a pass between the two that decomposed the topk instructions.
    ("topk_mixed.tpu", "tuple-simplifier"),
    # Of equal instructions in a fusion another one stays; the stored order is not in the text.
    ("rng_bit_gen.gpu", "cse"),
}
"""Programs and passes of the only rows that differ, and why."""


def archives() -> Iterator[Path]:
    yield from sorted(CORPUS.glob("programs/*/*.passes.tar.gz"))


def normal(text: str) -> str:
    header, *computations = print_module(parse_module(text), PrintOptions.fingerprint()).split(
        "\n\n"
    )
    return "\n\n".join([header, *sorted(computations)])


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize(
    "archive", list(archives()), ids=lambda path: path.name.removesuffix(".passes.tar.gz")
)
def test_the_module_after_the_pass_is_ours(archive: Path) -> None:
    with tarfile.open(archive) as files:

        def read(name: str) -> str:
            handle = files.extractfile(name)
            assert handle is not None
            return handle.read().decode()

        rows = json.loads(read("INDEX.json"))
        program = archive.name.removesuffix(".passes.tar.gz")
        differing: set[str] = set()
        for row in rows:
            name = row["pass"]
            if name not in list_passes() or not row["before"]:
                continue
            module = parse_module(read(row["before"]), row["before"])
            run_pipeline(module, parse_pipeline(name))
            module.verify()
            if normal(print_module(module)) != normal(read(row["file"])):
                differing.add(name)
    assert differing == {name for who, name in EXPLAINED if who == program}


@needs_shared
def test_the_dumps_hold_every_pass() -> None:
    seen: set[str] = set()
    for archive in archives():
        with tarfile.open(archive) as files:
            handle = files.extractfile("INDEX.json")
            assert handle is not None
            seen |= {row["pass"] for row in json.load(handle)}
    assert set(list_passes(loaded=False)) <= seen
