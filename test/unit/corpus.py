"""HLO texts for tests: the small dumps of the repository, and the corpus where it is present."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Iterator
from pathlib import Path

from support import CORPUS, DATA, SHARED

SAMPLES = SHARED / "reference" / "dump_samples"

TRIMMED = "[... sample trimmed here"
"""Marks reference samples that were cut short by hand; they are no HLO text any more."""


def _is_hlo(data: bytes) -> bool:
    return data.startswith(b"HloModule") and TRIMMED.encode() not in data


def repository_texts() -> Iterator[tuple[str, str]]:
    """Name and text of every dump that travels with the repository."""
    for path in sorted(DATA.rglob("*")):
        if path.suffix in (".txt", ".hlo") and _is_hlo(data := path.read_bytes()):
            yield str(path.relative_to(DATA)), data.decode()


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and member.name.endswith((".txt", ".hlo")):
                    file = archive.extractfile(member)
                    assert file is not None
                    yield f"{path.name}:{member.name}", file.read()
    elif path.suffix == ".hlo":
        yield path.name, path.read_bytes()
    elif path.name.endswith(".hlo.gz"):
        yield path.name, gzip.decompress(path.read_bytes())


def corpus_texts(largest: int | None = None) -> Iterator[tuple[str, str]]:
    """Name and text of every HLO text of the corpus and the reference dumps.

    Texts of more than `largest` characters are left out. Yields nothing without the corpus.
    """
    for path in sorted(CORPUS.glob("programs/*/*")):
        for name, data in _members(path):
            if _is_hlo(data) and (largest is None or len(data) <= largest):
                yield name, data.decode()
    for path in sorted(SAMPLES.rglob("*")):
        if path.is_file() and _is_hlo(data := path.read_bytes()):
            if largest is None or len(data) <= largest:
                yield str(path.relative_to(SAMPLES)), data.decode()


def big_texts() -> Iterator[tuple[str, str]]:
    """Name and text of the big dumps, up to 220,000 instructions."""
    for path in sorted(CORPUS.glob("programs/big_*/*.hlo.gz")):
        yield path.name, gzip.decompress(path.read_bytes()).decode()
