"""Real dumps verify clean: of XLA:CPU, GPU and TPU, before, after and between passes."""

from __future__ import annotations

import gc
import time

import pytest
from support import needs_shared, one_in, sampled
from unit.corpus import big_texts, corpus_texts, repository_texts

from mlirhlo.analysis.verifier import verify_module
from mlirhlo.formats.hlo_text import parse_module


@pytest.mark.parametrize(("name", "text"), list(repository_texts()), ids=lambda v: v[:60])
def test_dump_is_sound(name: str, text: str) -> None:
    assert verify_module(parse_module(text, name)) == []


@needs_shared
@pytest.mark.slow
@sampled(12)
def test_corpus_is_sound(every: int) -> None:
    wrong = [
        str(found[0])
        for name, text in one_in(every, corpus_texts(largest=500_000))
        if (found := verify_module(parse_module(text, name)))
    ]
    assert wrong == []


@needs_shared
@pytest.mark.slow
@sampled(6)
def test_big_dumps_are_sound_in_seconds(every: int) -> None:
    for name, text in one_in(every, big_texts()):
        module = parse_module(text, name)
        count = sum(1 for c in module.body.block.ops for _ in c.regions[0].block.ops)
        gc.disable()  # the module before is a heap of cycles; freeing it is not verifying
        before = time.process_time()
        found = verify_module(module)
        took = time.process_time() - before
        gc.enable()
        assert found == []
        # 10 µs an instruction when nothing else runs; the bound catches what is not linear.
        assert took < 2 + count * 100e-6, name
