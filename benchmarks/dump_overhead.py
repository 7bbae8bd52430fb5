"""What dumping costs: time for dumps over compile time, on a module of 5,000 instructions.

    python benchmarks/dump_overhead.py [--rounds 3] [--instructions 5000] [--only '3-pass regex']

Both are measured in the same compilation, as processor time, so that a busy machine slows both alike:
everything that the compiler tells its dumps is timed, and compared with the rest. The cache of objects
is off.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlirhlo
from mlirhlo.debug.dump.compilation import CompilationDump
from mlirhlo.debug.dump.passes import PassDumper

TOLD = (
    "given",
    "optimized",
    "planned",
    "lowered",
    "assembled",
    "compiled",
    "started",
    "before",
    "after",
)
"""What a compilation calls of an observer and of who watches passes."""

SETTINGS = {
    "no per-pass files": {},
    "3-pass regex": {"xla_dump_hlo_pass_re": "^(algsimp|cse|fusion)$"},
    "every change (.*)": {"xla_dump_hlo_pass_re": ".*"},
    "every boundary (.+)": {"xla_dump_hlo_pass_re": ".+"},
    ".* as proto": {"xla_dump_hlo_pass_re": ".*", "xla_dump_hlo_as_proto": True},
    ".* as dot": {"xla_dump_hlo_pass_re": ".*", "xla_dump_hlo_as_dot": True},
}


CONTRACTED = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def program(instructions: int) -> str:
    """A chain of layers: products, biases, activations, normalisations."""
    lines = ["  x0 = f32[64,64] parameter(0)", "  w = f32[64,64] parameter(1)",
             "  b = f32[64] parameter(2)", "  zero = f32[] constant(0)"]  # fmt: skip
    layer = 0
    while len(lines) < instructions - 8:
        scale = 1 + layer / 1000
        lines += [
            f"  d{layer} = f32[64,64] dot(x{layer}, w), {CONTRACTED}",
            f"  k{layer} = f32[] constant({scale})",
            f"  scale.{layer} = f32[64,64] broadcast(k{layer}), dimensions={{}}",
            f"  o{layer} = f32[64,64] broadcast(b), dimensions={{1}}",
            f"  a{layer} = f32[64,64] add(d{layer}, o{layer})",
            f"  m{layer} = f32[64,64] multiply(a{layer}, scale.{layer})",
            f"  t{layer} = f32[64,64] tanh(m{layer})",
            f"  r{layer} = f32[64] reduce(t{layer}, zero), dimensions={{1}}, to_apply=add",
            f"  q{layer} = f32[64,64] broadcast(r{layer}), dimensions={{0}}",
            f"  x{layer + 1} = f32[64,64] subtract(t{layer}, q{layer})",
        ]
        layer += 1
    lines.append(f"  ROOT out = f32[64,64] negate(x{layer})")
    add = (
        "add {\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n  ROOT s = f32[] add(p, q)\n}\n"
    )
    return f"HloModule layers\n\n{add}\nENTRY main {{\n" + "\n".join(lines) + "\n}\n"


class Meter:
    """Processor time inside of what a compilation tells its dumps."""

    def __init__(self) -> None:
        self.inside = 0.0
        self._depth = 0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, measured; what it calls of its own kind counts once."""

        def timed(*arguments: Any, **named: Any) -> Any:
            self._depth += 1
            start = time.process_time()
            try:
                return function(*arguments, **named)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.inside += time.process_time() - start

        return timed


def overhead(text: str, options: dict[str, object]) -> tuple[float, float]:
    """Share of the dumps, in the processor time of the rest; and that time."""
    module, meter = mlirhlo.parse(text), Meter()
    kept: list[tuple[type, str, Any]] = []
    for cls in (CompilationDump, PassDumper):
        for name in TOLD:
            if name in vars(cls):
                kept.append((cls, name, vars(cls)[name]))
                setattr(cls, name, meter.around(vars(cls)[name]))
    try:
        start = time.process_time()
        mlirhlo.compile(module, cached=False, options=options)
        total = time.process_time() - start
    finally:
        for cls, name, function in kept:
            setattr(cls, name, function)
    rest = total - meter.inside
    return meter.inside / rest, rest


def main() -> None:
    """Prints a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--instructions", type=int, default=5000)
    parser.add_argument("--only", choices=SETTINGS, help="one setting")
    arguments = parser.parse_args()
    text = program(arguments.instructions)
    count = sum(1 for _ in mlirhlo.parse(text).hlo.instructions)
    print(f"{count} instructions, {arguments.rounds} rounds, settings in turns")
    with tempfile.TemporaryDirectory() as folder:
        overhead(text, {"xla_dump_to": folder})  # imports
    settings = {n: o for n, o in SETTINGS.items() if arguments.only in (None, n)}
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in settings}
    written: dict[str, tuple[int, int]] = {}
    for _ in range(arguments.rounds):
        for name, options in settings.items():
            with tempfile.TemporaryDirectory() as folder:
                measured[name].append(overhead(text, {"xla_dump_to": folder, **options}))
                found = [p for p in Path(folder).rglob("*") if p.is_file()]
                written[name] = len(found), sum(p.stat().st_size for p in found)
    for name, (files, size) in written.items():
        shares, rest = zip(*measured[name], strict=True)
        print(
            f"{name:22} {100 * statistics.median(shares):5.1f} % "
            f"({100 * min(shares):.1f} to {100 * max(shares):.1f}) of {statistics.median(rest):.2f} s, "
            f"{files} files, {size / 1e6:.1f} MB"
        )


if __name__ == "__main__":
    main()
