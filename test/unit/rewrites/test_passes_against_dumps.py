"""Our passes against XLA's: the module before a pass, run through ours, is the module after it.

The corpus holds what XLA:CPU, XLA:GPU and XLA:TPU dumped around each pass that changed a module.
Modules are compared by their fingerprint text, computations in any order.
"""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import CORPUS, needs_shared, sample

from mlirhlo.formats.hlo_text import PrintOptions, parse_module, print_module
from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline
from mlirhlo.rewrites.registry import list_passes

SETTINGS = {
    ("gpu", "fusion", "cse"): "cse{is-layout-sensitive=true only-fusion-computations=true}",
}
"""How XLA's pipelines (platform, pipeline, pass) set passes up, where not by default.

Dumps tell names, not options. XLA:GPU's fusion pipeline leaves computations alone that no fusion
calls, whatever could be merged in them.
"""


EXACT = {
    "call-inliner",
    "constant_folding",
    "conv-rewriter",
    "convolution-canonicalization",
    "cse",
    "cublas-gemm-rewriter",
    "cudnn-fused-convolution-rewriter",
    "dce",
    "dynamic_padder",
    "flatten-call-graph",
    "hlo-module-dce",
    "sharding-remover",
    "simplify-sorts",
    "tuple-simplifier",
    "while-loop-constant-sinking",
    "while-loop-trip-count-annotator",
}
"""Passes that leave one module possible, the calls of libraries too, so that XLA's and ours are the
same text.

The others choose: among rules that apply, in the helpers they build, in the order they visit. They
are held to XLA's by what the result costs (`tools/compare_passes.py`) and by what it computes
(`test_passes_keep_meaning.py`).
"""


CLEANED = {"sharding-remover", "simplify-sorts"}
"""Of those, the passes that leave dead code to others, XLA's other than ours."""


def archives() -> Iterator[Path]:
    yield from sorted(CORPUS.glob("programs/*/*.passes.tar.gz"))


def normal(text: str, name: str) -> str:
    module = parse_module(text)
    if name in CLEANED:
        run_pipeline(module, parse_pipeline("dce"))
    header, *computations = print_module(module, PrintOptions.fingerprint()).split("\n\n")
    return "\n\n".join([header, *sorted(computations)])


@needs_shared
@pytest.mark.slow
@pytest.mark.parametrize(
    "archive", sample(archives(), 6), ids=lambda path: path.name.removesuffix(".passes.tar.gz")
)
def test_the_module_after_the_pass_is_ours(archive: Path) -> None:
    platform = archive.name.removesuffix(".passes.tar.gz").rpartition(".")[2]
    with tarfile.open(archive) as files:

        def read(name: str) -> str:
            handle = files.extractfile(name)
            assert handle is not None
            return handle.read().decode()

        rows = json.loads(read("INDEX.json"))
        differing: list[str] = []
        for row in rows:
            name = row["pass"]
            if name not in EXACT or not row["before"]:
                continue
            module = parse_module(read(row["before"]), row["before"])
            pipeline = SETTINGS.get((platform, row["pipeline"], name), name)
            run_pipeline(module, parse_pipeline(pipeline))
            module.verify()
            if normal(print_module(module), name) != normal(read(row["file"]), name):
                differing.append(row["file"])
    assert differing == []


@needs_shared
def test_the_dumps_hold_every_exact_pass() -> None:
    seen: set[str] = set()
    for archive in archives():
        with tarfile.open(archive) as files:
            handle = files.extractfile("INDEX.json")
            assert handle is not None
            seen |= {row["pass"] for row in json.load(handle)}
    assert seen >= EXACT
    assert list_passes().keys() >= EXACT
