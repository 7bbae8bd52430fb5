"""Damaged MLIR text: only modules and diagnostics come out."""

import os
import random
from collections import Counter

import pytest
from support import sampled
from unit.corpus import repository_texts

import mlirhlo
from mlirhlo.analysis.verifier import verify_module
from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.formats.mlir import parse_module as parse_mlir
from mlirhlo.formats.mlir import print_module

CASES = int(os.environ.get("MLIRHLO_FUZZ_CASES", "1500"))
SEED = int(os.environ.get("MLIRHLO_SEED", "20240"))
PIECES = '{}()[]<>"%@#!:,=0123456789-xf.\n \\'


def damaged(text: str, random_: random.Random) -> str:
    """`text` with up to four characters changed, pieces cut out, doubled or moved, or its end lost."""
    marks = list(text)
    for _ in range(random_.randint(1, 4)):
        at = random_.randrange(len(marks))
        match random_.randrange(6):
            case 0 | 1:
                marks[at] = random_.choice(PIECES)
            case 2:
                del marks[at : at + random_.randint(1, 20)]
            case 3:
                marks[at:at] = random_.choice(PIECES) * random_.randint(1, 3)
            case 4:
                del marks[at + 1 :]
            case _:
                other = random_.randrange(len(marks))
                marks[at:at] = marks[other : other + random_.randint(1, 60)]
        if not marks:
            return ""
    return "".join(marks)


@pytest.mark.slow
@sampled(6)
def test_damaged_text_gives_modules_or_diagnostics(every: int) -> None:
    random_ = random.Random(SEED)
    modules = [parse_module(text, name) for name, text in repository_texts() if len(text) < 5_000]
    texts = [print_module(m, generic=generic) for m in modules for generic in (False, True)]
    seen: Counter[str] = Counter()
    for _ in range(CASES // every):
        try:
            module = parse_mlir(damaged(random_.choice(texts), random_))
        except HloError as problem:
            seen[problem.code] += 1
            continue
        seen["read"] += 1
        verify_module(module)
        assert print_module(parse_mlir(print_module(module))) == print_module(module)
        print_module(module, generic=True)
        mlirhlo.Module(module).as_text()
    print(f"seed {SEED}: {dict(seen)}")
    assert seen["read"]
    assert seen["HLO0060"]
