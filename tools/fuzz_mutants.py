#!/usr/bin/env python3
"""Runs damaged HLO modules through every format, the pipelines and both platforms.

    tools/fuzz_mutants.py --cases 100000 --seed 1 --state mutants.json

Every case follows from the seed and its number: `--only N` prints and repeats one. What a case may come to is
a coded diagnostic, or a module that reads as itself in every format, verifies after each pipeline, and computes
the same on the interpreter and as machine code. Cases run in a child process with bounds of time and memory, so
that a crash or a hang is a finding like the others; findings are grouped by their cause. With `--state` a run
that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import select
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "test")]

from mutants import STAGES, judge, mutants  # noqa: E402

FRESH_AFTER = 2000
"""Cases after which a child is replaced."""
SHOWN = 3
"""Cases that are named for each cause."""


def texts_to_damage(files: list[Path], largest: int) -> list[str]:
    """Texts of files, or the dumps of the repository and the corpus, up to a length."""
    if files:
        return [path.read_text() for path in files]
    from unit.corpus import corpus_texts, repository_texts

    texts = [text for _, text in (*repository_texts(), *corpus_texts(largest))]
    return [text for text in texts if len(text) <= largest]


def serve(texts: list[str], options: argparse.Namespace) -> None:
    """Judges the cases whose numbers come in, one a line."""
    memory = options.memory << 30
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what cases print is no answer
    for line in sys.stdin:
        for _, text in mutants(options.seed, texts, iter([int(line)])):
            answers.write(json.dumps(judge(text, options.stages)) + "\n")
            answers.flush()


class Child:
    """A process that judges cases; started again when one ended it."""

    def __init__(self, arguments: list[str], seconds: float) -> None:
        self._arguments, self._seconds = arguments, seconds
        self._process: subprocess.Popen[str] | None = None
        self._count = 0

    def judge(self, number: int) -> str:
        """What becomes of a case; of one that is too slow or ends the process, that."""
        if self._process is None or self._count >= FRESH_AFTER:
            self.stop()
            command = [sys.executable, __file__, "--serve", *self._arguments]
            self._process = subprocess.Popen(
                command,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        self._count += 1
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
        # A case that is slow the first time is still waited for while the child starts.
        if not select.select(
            [process.stdout], [], [], self._seconds * (3 if self._count == 1 else 1)
        )[0]:
            self.stop()
            return f"took more than {self._seconds:g} s"
        line = process.stdout.readline()
        if not line:
            self.stop()
            return f"ended the process: {process.returncode}"
        answer: str = json.loads(line)
        return answer

    def stop(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._process, self._count = None, 0


class State:
    """What is known of a run, kept in a file."""

    def __init__(self, path: Path | None, seed: int) -> None:
        self._path = path
        self.next = 0
        self.counts: Counter[str] = Counter()
        self.findings: dict[str, list[Any]] = {}
        if path is not None and path.exists():
            known = json.loads(path.read_text())
            if known["seed"] != seed:
                raise SystemExit(f"{path} is of seed {known['seed']}")
            self.next, self.findings = known["next"], known["findings"]
            self.counts.update(known["counts"])
        self._seed = seed

    def add(self, number: int, outcome: str) -> bool:
        """Writes down an outcome; whether it is a finding of a new cause."""
        self.next = number + 1
        cause, _, details = outcome.partition("\n")
        if " " not in cause:
            self.counts[cause] += 1
            return False
        self.counts["findings"] += 1
        is_new = cause not in self.findings
        cases = self.findings.setdefault(cause, [])
        if len(cases) < SHOWN:
            cases.append([number, details])
        return is_new

    def save(self) -> None:
        """Writes the file."""
        if self._path is not None:
            known = {
                "seed": self._seed,
                "next": self.next,
                "counts": self.counts,
                "findings": self.findings,
            }
            self._path.write_text(json.dumps(known, indent=1))

    def report(self) -> None:
        """Prints counts and causes."""
        print(", ".join(f"{what}: {count}" for what, count in self.counts.most_common()))
        for cause, cases in sorted(self.findings.items()):
            print(f"cases {', '.join(str(number) for number, _ in cases)}: {cause}")


def main() -> int:
    """Exit 1 when there are findings."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, help="texts to damage; default: dumps")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, metavar="N", help="one case; prints its text")
    parser.add_argument("--largest", type=int, default=4000, help="longest text that is damaged")
    parser.add_argument("--stages", default=",".join(STAGES), type=lambda text: text.split(","))
    parser.add_argument("--seconds", type=float, default=120, help="bound of a case")
    parser.add_argument("--memory", type=int, default=8, metavar="GIB", help="bound of a child")
    parser.add_argument("--state", type=Path, help="file to go on from, and to write")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    texts = texts_to_damage(options.files, options.largest)
    if options.serve:
        serve(texts, options)
        return 0
    if options.only is not None:
        for _, text in mutants(options.seed, texts, iter([options.only])):
            print(text, judge(text, options.stages), sep="\n", flush=True)
        return 0
    state = State(options.state, options.seed)
    child = Child(sys.argv[1:], options.seconds)
    try:
        for number in range(state.next, options.cases):
            outcome = child.judge(number)
            if outcome.startswith("took"):  # a busy machine is no finding: once more, and longer
                outcome = child.judge(number)
            if state.add(number, outcome):
                print(f"case {number} of seed {options.seed}: {outcome}", flush=True)
            if number % 100 == 0:
                state.save()
    except KeyboardInterrupt:
        pass
    finally:
        child.stop()
        state.save()
    print(f"seed {options.seed}, {state.next} cases over {len(texts)} texts")
    state.report()
    return 1 if state.findings else 0


if __name__ == "__main__":
    sys.exit(main())
