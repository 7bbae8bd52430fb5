#!/usr/bin/env python3
"""Partitions random programs with random shardings: on simulated devices they must compute what they compute whole.

    tools/fuzz_partitioner.py --cases 5000 --seed 1     every opcode in turn
    tools/fuzz_partitioner.py --only scatter,gather     these alone
    tools/fuzz_partitioner.py --only gather --case 17   shows case 17 of that run: both modules, inputs, difference

Every case follows from the seed, the opcode and its number. Whole modules run on the interpreter, partitioned ones on
as many devices as they have partitions; what a device has beyond the end of an array is filled with values
that spoil any result they get into. 1 when a case differs, or is refused after partitioning alone.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

import spmd_support as spmd  # noqa: E402
from strategies.choices import Seeded  # noqa: E402
from strategies.sharded import OPCODES, Program, program  # noqa: E402

from mlirhlo.diagnostics import HloError  # noqa: E402
from mlirhlo.formats.hlo_text import print_module  # noqa: E402

EQUAL, DIFFERENT = "equal", "different"
DRAWS = 100
"""Programs drawn until one has a meaning before partitioning."""


def case(seed: int, opcode: str, number: int) -> Program:
    """The program of a case: the first that means something, not a shift of floats or such."""
    for draw in range(DRAWS):
        key = f"{seed} {opcode} {number} {draw}"
        given = program(Seeded(zlib.crc32(key.encode())), opcode)
        if spmd.refusal(given.text, given.inputs) is None:
            return given
    raise AssertionError(f"{opcode}: no program of {DRAWS} has a meaning")


def verdict(given: Program) -> tuple[str, str]:
    """Whether a program is equal, and how it differs."""
    try:
        spmd.compare(
            given.text,
            given.partitions,
            given.inputs,
            before=given.propagation,
            floor=given.off,
        )
    except (AssertionError, HloError) as problem:
        return DIFFERENT, str(problem).strip()
    except Exception as problem:  # noqa: BLE001 - whatever the partitioner raises is its failure
        return DIFFERENT, f"{type(problem).__name__}: {problem}"
    return EQUAL, ""


def show(given: Program) -> None:
    """Prints all there is to see of one case."""
    print(given.text)
    for number, array in enumerate(given.inputs):
        print(f"input {number}: {array.dtype}{list(array.shape)} {array.tolist()}")
    print(f"{given.partitions} partitions, after {given.propagation or 'no propagation'}:\n")
    try:
        print(print_module(spmd.partitioned(given.text, given.partitions, given.propagation)))
    except (AssertionError, HloError) as problem:
        print(problem)


def main(arguments: list[str] | None = None) -> int:
    """Runs the cases and prints a line for each opcode that has differences, and the sum."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cases", type=int, default=500, help="so many (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of all choices (%(default)s)")
    parser.add_argument("--only", default="", help="opcodes, by commas")
    parser.add_argument("--case", type=int, help="this one alone, with both modules")
    options = parser.parse_args(arguments)
    opcodes = [o for o in options.only.split(",") if o] or list(OPCODES)
    if unknown := [o for o in opcodes if o not in OPCODES]:
        parser.error(f"no generator for {', '.join(unknown)}; there are {', '.join(OPCODES)}")
    numbers = range(options.cases) if options.case is None else (options.case,)
    print(f"seed {options.seed}, {len(numbers)} cases of {len(opcodes)} opcodes")
    sums: Counter[str] = Counter()
    by_opcode: dict[str, Counter[str]] = {opcode: Counter() for opcode in opcodes}
    for number in numbers:
        opcode = opcodes[number % len(opcodes)]
        given = case(options.seed, opcode, number)
        if options.case is not None:
            show(given)
        found, why = verdict(given)
        sums[found] += 1
        by_opcode[opcode][found] += 1
        if found == DIFFERENT:
            text = why if options.case is not None else why.split("\n")[0]
            print(
                f"{opcode}: --only {opcode} --seed {options.seed} --case {number}: {text}",
                flush=True,
            )
    for opcode, counts in by_opcode.items():
        print(f"{opcode:24} " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    print(f"seed {options.seed}: {sums[EQUAL]} of {len(numbers)} equal, {sums[DIFFERENT]} differ")
    return 1 if sums[DIFFERENT] else 0


if __name__ == "__main__":
    sys.exit(main())
