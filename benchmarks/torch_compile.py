#!/usr/bin/env python3
"""`torch.compile(backend="mlirhlo")` beside `inductor` and PyTorch without a compiler, on ten small models, in turns.

    python benchmarks/torch_compile.py                 # forward, and forward with backward
    python benchmarks/torch_compile.py --only vit,moe --rounds 20

Medians of rounds in which each runs once; microseconds of ours, and how many times as long the others take. "error" is
the greatest difference from PyTorch's results. A dash where inductor does not compile the model (it needs a C++
compiler).
Needs torch.
"""

# PyTorch is not among the tools of development.
# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import copy
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch_models import CASES, Case


def main() -> None:
    """Prints a row a model."""
    parser = argparse.ArgumentParser(description="torch.compile by mlirhlo, by inductor, and eager")
    parser.add_argument("--only", default="", help="names, separated by commas")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch._dynamo.config.allow_rnn = True
    only = [name for name in options.only.split(",") if name]
    print(
        f"{'model':<10} {'part':<8} {'µs':>9} {'inductor ÷':>10} {'eager ÷':>8} {'compile s':>9} {'error':>8}"
    )
    for case in CASES:
        if not only or case.name in only:
            for is_training in (False, True):
                row(case, options.rounds, is_training=is_training)


def row(case: Case, rounds: int, *, is_training: bool) -> None:
    """Measures one model."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, arguments = case.make(), case.arguments()
    model.train(is_training)
    runs: dict[str, Callable[[], Any]] = {}
    seconds: dict[str, float] = {}
    errors: dict[str, float] = {}
    expected = results(model, arguments)
    for name in ("mlirhlo", "inductor", "eager"):
        own = copy.deepcopy(model)
        function = own if name == "eager" else torch.compile(own, backend=name)
        runs[name] = step(function, arguments, is_training=is_training)
        started = time.process_time()
        try:
            runs[name]()
            pairs = zip(expected, results(function, arguments), strict=True)
            errors[name] = max(float((a - b).abs().max()) for a, b in pairs)
        except Exception as problem:  # noqa: BLE001 - a peer that cannot is left out
            print(f"{case.name}: {name}: {str(problem).splitlines()[0]}")
            del runs[name]
        seconds[name] = time.process_time() - started
    times = measured(runs, rounds)
    ours = times["mlirhlo"]
    ratios = [
        f"{times[name] / ours:.2f}" if name in times else "-" for name in ("inductor", "eager")
    ]
    part = "train" if is_training else "forward"
    print(
        f"{case.name:<10} {part:<8} {ours * 1e6:9.0f} {ratios[0]:>10} {ratios[1]:>8}"
        f" {seconds['mlirhlo']:9.1f} {errors['mlirhlo']:8.1e}",
        flush=True,
    )


def results(function: Callable[..., Any], arguments: tuple[Any, ...]) -> list[Any]:
    """The tensors of a call."""
    with torch.no_grad():
        found = function(*arguments)
    return list(found) if isinstance(found, tuple) else [found]


def step(function: Any, arguments: tuple[Any, ...], *, is_training: bool) -> Callable[[], Any]:
    """A call, with the gradients of the mean of squares where it trains."""

    def forward() -> Any:
        with torch.no_grad():
            return function(*arguments)

    def train() -> Any:
        found = function(*arguments)
        parts = found if isinstance(found, tuple) else (found,)
        sum((part**2).mean() for part in parts).backward()  # type: ignore[union-attr]

    return train if is_training else forward


def measured(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median processor time of a call of each, in turns."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            started = time.process_time()
            run()
            taken[name].append(time.process_time() - started)
    return {name: statistics.median(times) for name, times in taken.items()}


if __name__ == "__main__":
    main()
