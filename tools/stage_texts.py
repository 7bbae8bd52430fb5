"""Counts who reads what the compilers' stages print: MLIR (jaxlib's), xdsl-opt with our plugin, hlo-opt.

    python tools/stage_texts.py                        # the programs of the repository
    python tools/stage_texts.py --platform gpu
    python tools/stage_texts.py ../shared/corpus/programs --only attention

hlo-opt has read a text when it gives the same LLVM text, so the same machine code, as the program. MLIR reads stages
with ops of this project in the generic form. The exit status is 1 when a text is refused; each is named with the
reason.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "test")]

from readers_of_stages import (  # noqa: E402
    StageTexts,
    fault_of_mlir,
    fault_of_reader,
    fault_of_xdsl,
    gpu_stage_texts,
    stage_texts,
)
from support import DATA  # noqa: E402

from mlirhlo.diagnostics import HloError  # noqa: E402
from mlirhlo.formats.hlo_text import parse_module  # noqa: E402

READERS: dict[str, Callable[[StageTexts, str], str]] = {
    "MLIR": lambda texts, stage: fault_of_mlir(texts.generic.get(stage, texts.by_stage[stage])),
    "xdsl-opt": lambda texts, stage: fault_of_xdsl(texts.by_stage[stage]),
    "hlo-opt": fault_of_reader,
}
"""What a reader has against a stage's text; empty = nothing."""


def main() -> int:
    """Reads the command line; the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=DATA / "programs")
    parser.add_argument("--platform", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--only", default="", help="part of the names of programs")
    parser.add_argument("--largest", type=int, default=1 << 20, help="characters of a text")
    arguments = parser.parse_args()
    texts_of = gpu_stage_texts if arguments.platform == "gpu" else stage_texts
    read, programs, is_refused = Counter[tuple[str, str]](), 0, False
    for path in sorted(arguments.folder.glob("*/*.hlo")):
        if path.stem != path.parent.name or arguments.only not in path.stem:
            continue
        try:
            texts = texts_of(parse_module(path.read_text()))
        except HloError as problem:
            print(f"{path.stem}: no code: {problem.diagnostics[0].code}")
            continue
        if max(map(len, texts.by_stage.values())) > arguments.largest:
            continue
        programs += 1
        for stage in texts.by_stage:
            for reader, fault_of in READERS.items():
                fault = fault_of(texts, stage)
                read[stage, reader] += not fault
                if fault:
                    is_refused = True
                    print(f"{path.stem}: {reader} refuses {stage}: {' '.join(fault.split())[:200]}")
    print(f"{programs} programs")
    for (stage, reader), count in read.items():
        print(f"{stage:12}  {reader:8}  {count}")
    return int(is_refused)


if __name__ == "__main__":
    sys.exit(main())
