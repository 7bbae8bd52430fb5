"""Programs on a GPU of this machine, beside XLA:GPU (through JAX), cuBLAS and the copy bandwidth, in turns.

    python benchmarks/gpu.py                      # on a card; peers that are not installed are left out
    python benchmarks/gpu.py --simulated          # the same path without a card: small sizes, on the simulator
    python benchmarks/gpu.py --only=softmax --json=figures.json

Every function is first run at a small size and compared with numpy. On a card each is then measured at its large size
on random values: `--rounds` rounds, in each of them everyone once; the time of a round is that of as many calls as
take `--milliseconds`, and the median counts. `share` is of the measured copy bandwidth, of products of cuBLAS' rate
where it is there, else of the card's; of attention of the card's. `predicted` is what the model of
`simulator/performance.py` says of the figures that the simulator counts for a few blocks. Simulated, times are the
model's, of all blocks.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gpu_cases import LARGE, SMALL, Case, cases  # noqa: E402
from gpu_peers import Ours, peers  # noqa: E402

from mlirhlo.lowering.gpu.devices import GpuDevice  # noqa: E402
from mlirhlo.lowering.gpu.devices import device as described  # noqa: E402
from mlirhlo.runtime.cuda.prediction import predicted, predicted_launch  # noqa: E402

SIMULATED_GPU = "h100"
MULTIPLY_ADDS = {(8, 0): 1024, (9, 0): 2048, (10, 0): 4096}
"""Of 16 bits, of a multiprocessor in a cycle; twice as many of 8 bits."""


@dataclass
class Line:
    """What is printed of a case."""

    name: str
    microseconds: dict[str, float]
    """Of a call, by who ran it."""
    predicted: float
    """Microseconds."""
    share: float | None = None
    reach: float = 0.0
    moved: float = 0.0
    """Bytes of operands and results."""


def checked(case: Case, ours: Ours) -> None:
    """Compares a case at its small size with numpy. Raises AssertionError."""
    arrays = case.arrays(SMALL)
    wide = [array.astype(np.float32) for array in arrays]
    expected = np.asarray(case.function(np, *wide), np.float32)
    found = ours.result(case, arrays).astype(np.float32)
    np.testing.assert_allclose(found, expected, rtol=case.tolerance, atol=case.tolerance)


def prediction(case: Case, ours: Ours, size: int, blocks: int) -> float:
    """Microseconds by the model."""
    arrays = case.arrays(size)
    compiled = ours.compiled(case, arrays)
    if case.attention is None:
        found = predicted(compiled.program, blocks)
    else:
        made = compiled.compiled(ours.gpu)
        sizes = [array.nbytes for array in (*arrays, arrays[0])]
        found = predicted_launch(made.ptx, made.launch, sizes, made.device, blocks)
    return sum(one.nanoseconds for one in found) / 1000


def moved_bytes(case: Case, size: int) -> float:
    """Of operands and results, each once."""
    arrays: list[np.ndarray[Any, Any]] = list(case.arrays(size))
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    result = 0 if case.name.startswith(("sum", "maximum")) else prod(shape)
    return sum(a.nbytes for a in arrays) + result * arrays[0].itemsize


def in_turns(
    work: Mapping[str, tuple[Any, Any]], rounds: int, milliseconds: float
) -> dict[str, float]:
    """Microseconds of a call of each, everyone once in each round."""
    counts: dict[str, int] = {}
    for name, (call, wait) in work.items():
        once = 0.0
        for _ in range(3):  # the third is a steady one
            start = time.perf_counter()
            call()
            wait()
            once = time.perf_counter() - start
        counts[name] = max(1, min(1000, round(milliseconds / 1000 / once)))
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, (call, wait) in work.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                call()
            wait()
            times[name].append((time.perf_counter() - start) / counts[name] * 1e6)
    return {name: statistics.median(values) for name, values in times.items()}


def rate(device: GpuDevice, case: Case) -> float:
    """Floating-point operations a second of the matrix units."""
    twice = 2 if np.dtype(case.dtype).itemsize == 1 else 1
    adds = MULTIPLY_ADDS.get(device.capability, 512) * twice
    return 2 * adds * device.core_count * device.clock_rate_ghz * 1e9


def share(case: Case, line: Line, size: int, device: GpuDevice, bandwidth: float) -> float | None:
    """What is reached of what can be."""
    own = line.microseconds["mlirhlo"] * 1e-6
    if case.launches > 1:
        return None
    if case.flops is None:
        return line.moved / own / bandwidth
    if (library := line.microseconds.get("cuBLAS")) is not None:
        return library * 1e-6 / own
    return case.flops(case.shapes[size]) / own / rate(device, case)


def on_card(chosen: Sequence[Case], options: argparse.Namespace) -> tuple[list[Line], str]:
    """The lines of a card, and what is said above them."""
    ours = Ours(options.gpu)
    device = ours.driver().device
    others, missing = peers(ours)
    size = 512 << 20
    copy = in_turns({"copy": ours.copy(size)}, options.rounds, options.milliseconds)["copy"]
    bandwidth = 2 * size / copy * 1e6
    said = [f"{device.description}: copies {bandwidth / 1e12:.2f} TB/s, read and written"]
    said += [f"{name} is left out: {why}" for name, why in missing.items()]
    lines: list[Line] = []
    for case in chosen:
        checked(case, ours)
        arrays = case.arrays(LARGE)
        work = {"mlirhlo": ours.work(case, arrays)}
        for name, peer in others.items():
            if (theirs := peer.work(case, arrays)) is not None:
                work[name] = theirs
        times = in_turns(work, options.rounds, options.milliseconds)
        guess = prediction(case, ours, LARGE, options.blocks) if options.blocks else 0.0
        line = Line(case.name, times, guess, reach=case.reach, moved=moved_bytes(case, LARGE))
        line.share = share(case, line, LARGE, device, bandwidth)
        lines.append(line)
    return lines, "\n".join(said)


def simulated(chosen: Sequence[Case], options: argparse.Namespace) -> tuple[list[Line], str]:
    """The lines without a card: modelled times at the small sizes, against the described bandwidth."""
    ours, device = Ours(SIMULATED_GPU), described(SIMULATED_GPU)
    lines: list[Line] = []
    for case in chosen:
        checked(case, ours)
        whole = prediction(case, ours, SMALL, 1 << 30)
        guess = prediction(case, ours, SMALL, options.blocks) if options.blocks else 0.0
        line = Line(case.name, {"mlirhlo": whole}, guess, moved=moved_bytes(case, SMALL))
        line.share = share(case, line, SMALL, device, device.memory_bandwidth)
        lines.append(line)
    return lines, f"{device.description}, simulated at small sizes; times are modelled"


def table(lines: Sequence[Line]) -> str:
    """The lines as text, with the geometric mean beside XLA:GPU."""
    names = list(dict.fromkeys(name for line in lines for name in line.microseconds))
    head = f"{'':20}" + "".join(f"{name + ' µs':>14}" for name in names)
    rows = [head + f"{'predicted µs':>14}{'share':>8}{'to reach':>10}"]
    for line in lines:
        times = "".join(
            f"{line.microseconds[name]:14.1f}" if name in line.microseconds else f"{'-':>14}"
            for name in names
        )
        part = "-" if line.share is None else f"{line.share:.0%}"
        reach = f"{line.reach:.0%}" if line.reach and line.share is not None else "-"
        rows.append(f"{line.name:20}{times}{line.predicted:14.1f}{part:>8}{reach:>10}")
    ratios = [
        line.microseconds["XLA:GPU"] / line.microseconds["mlirhlo"]
        for line in lines
        if "XLA:GPU" in line.microseconds
    ]
    if ratios:
        mean = statistics.geometric_mean(ratios)
        rows.append(f"XLA:GPU ÷ mlirhlo: geometric mean {mean:.2f}, least {min(ratios):.2f}")
    errors = [line.microseconds["mlirhlo"] / line.predicted for line in lines if line.predicted > 0]
    if errors:
        mean = statistics.geometric_mean(errors)
        rows.append(
            f"measured ÷ predicted: geometric mean {mean:.2f}, {min(errors):.2f} to {max(errors):.2f}"
        )
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulated", action="store_true", help="without a card")
    parser.add_argument("--gpu", default="cuda", help="cuda, cuda:1 …")
    parser.add_argument("--only", default="", help="a part of the name; several by commas")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--milliseconds", type=float, default=20.0, help="of a round of each")
    parser.add_argument(
        "--blocks", type=int, default=1, help="that predictions simulate; 0 for no predictions"
    )
    parser.add_argument("--json", type=Path, help="writes the lines here")
    options = parser.parse_args(arguments)
    wanted = options.only.split(",")
    chosen = [case for case in cases() if any(part in case.name for part in wanted)]
    lines, said = (simulated if options.simulated else on_card)(chosen, options)
    print(said)
    print(table(lines))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")


if __name__ == "__main__":
    main()
