"""Damaged bytecode: a diagnostic with the place, never another exception."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from support import DATA, SEED

from mlirhlo.diagnostics import HloError
from mlirhlo.formats import jax_export, vhlo

CASES = int(os.environ.get("MLIRHLO_FUZZ", "400"))
FILES = sorted((DATA / "bytecode").glob("*.mlirbc")) + sorted((DATA / "bytecode").glob("*.bin"))
CODES = {"read", "HLO0235", *(f"HLO022{n}" for n in range(8)), *(f"HLO023{n}" for n in range(5))}


def damaged(data: bytes, choice: random.Random) -> bytes:
    """A few bits, bytes or a tail changed."""
    found = bytearray(data)
    at = choice.randrange(len(found))
    match choice.randrange(5):
        case 0:
            del found[at:]
        case 1:
            for _ in range(choice.randrange(1, 4)):
                found[choice.randrange(len(found))] ^= 1 << choice.randrange(8)
        case 2:
            found[at] = choice.choice([0, 1, 2, 3, 0x7F, 0x80, 0xFF])
        case 3:
            del found[at : at + choice.randrange(1, 5)]
        case _:
            found[at:at] = choice.randbytes(choice.randrange(1, 9))
    return bytes(found)


@pytest.mark.parametrize("part", range(4))
def test_damaged_files(part: int) -> None:
    choice = random.Random(SEED + part)
    codes: Counter[str] = Counter()
    for _ in range(CASES // 4):
        file = choice.choice(FILES)
        data = damaged(file.read_bytes(), choice)
        try:
            if file.suffix == ".bin":
                jax_export.read_jax_export(data).module()
            else:
                vhlo.deserialize_artifact(data)
            codes["read"] += 1
        except HloError as problem:
            codes[problem.code if "byte" in str(problem) else f"no place: {problem}"] += 1
    assert set(codes) <= CODES, f"seed {SEED + part}"
    assert codes["HLO0221"] > CASES // 16  # most of the damage is found
