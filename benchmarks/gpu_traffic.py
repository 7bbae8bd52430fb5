"""Global traffic of kernels for GPUs against the least there is, over kinds and shapes, on the simulated GPU.

    python benchmarks/gpu_traffic.py [--only=PART] [--samples=100] [--gpu=h100]

Traffic is the sectors of 32 bytes that requests touch, the least is those that arguments and results fill. Requests are
coalesced as far as they touch no more sectors than the bytes that their lanes read or write fill: `fill` is that part,
the fewest sectors a request can do with to those it touches. At the end: the worst of each kind, and all conflicts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import log2
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import mlirhlo  # noqa: E402
from mlirhlo.interp.fake_data import make_fake_arguments  # noqa: E402
from mlirhlo.simulator.report import Figures  # noqa: E402

SECTOR = 32
"""Bytes."""
COMBINERS = """
add { a = TYPE[] parameter(0) b = TYPE[] parameter(1) ROOT c = TYPE[] add(a, b) }
maximum { a = TYPE[] parameter(0) b = TYPE[] parameter(1) ROOT c = TYPE[] maximum(a, b) }
"""


@dataclass(frozen=True)
class Kernel:
    """A module of one kernel, and where its figures are expected."""

    kind: str
    shape: str
    hlo: str


@dataclass(frozen=True)
class Row:
    """What a kernel did."""

    ratio: float
    """Traffic to the sectors of arguments and results."""
    fill: float
    """Bytes of lanes to bytes of the sectors they touch."""
    conflicts: int
    instructions: int
    """Of warps."""


ZEROS = {"c64": "(0, 0)", "pred": "false"}
"""Of types that write it in another way."""


def _module(type_: str, body: str) -> str:
    add, maximum = COMBINERS.strip().splitlines()
    combiners = f"{add}\n{maximum}\n" if type_ != "c64" else f"{add}\n"
    return "HloModule m\n" + combiners.replace("TYPE", type_) + "ENTRY e {\n" + body + "\n}\n"


def reduces(
    shapes: Sequence[tuple[int, int]] = (
        (300, 12),
        (1000, 3),
        (500, 33),
        (70, 100),
        (64, 1024),
        (33, 1001),
        (4, 40000),
        (1, 65536),
        (5000, 7),
        (2, 2632),
    ),
    types: Sequence[str] = ("f32", "bf16"),
) -> Iterator[Kernel]:
    """Sums of rows, and of columns."""
    for type_ in types:
        for rows, length in shapes:
            for dim, kind in ((1, "row sum"), (0, "column sum")):
                if dim == 0 and rows == 1:
                    continue
                size = length if dim == 0 else rows
                text = f"""  x = {type_}[{rows},{length}] parameter(0)
  zero = {type_}[] constant({ZEROS.get(type_, 0)})
  ROOT r = {type_}[{size}] reduce(x, zero), dimensions={{{dim}}}, to_apply=add"""
                yield Kernel(kind, f"{type_}[{rows},{length}]", _module(type_, text))


def transposes(
    shapes: Sequence[tuple[tuple[int, ...], tuple[int, ...]]] = (
        ((256, 512), (1, 0)),
        ((70, 96), (1, 0)),
        ((100, 300), (1, 0)),
        ((129, 65), (1, 0)),
        ((33, 47), (1, 0)),
        ((17, 19, 23), (2, 1, 0)),
        ((1000, 8), (1, 0)),
        ((8, 1000), (1, 0)),
        ((3, 2000), (1, 0)),
        ((2000, 3), (1, 0)),
        ((6, 40, 72), (0, 2, 1)),
        ((6, 40, 72), (2, 1, 0)),
        ((6, 40, 72), (1, 2, 0)),
        ((6, 40, 72), (1, 0, 2)),
        ((4, 32, 8, 64), (0, 2, 1, 3)),
        ((4, 32, 8, 60), (0, 2, 3, 1)),
    ),
    types: Sequence[str] = ("s8", "f16", "f32", "f64", "c128"),
) -> Iterator[Kernel]:
    """Matrices, and stacks of them, of elements of 1 to 16 bytes."""
    for type_ in types:
        for sizes, order in shapes:
            source, result = (",".join(map(str, s)) for s in (sizes, [sizes[d] for d in order]))
            dims = ",".join(map(str, order))
            text = f"""  x = {type_}[{source}] parameter(0)
  ROOT r = {type_}[{result}] transpose(x), dimensions={{{dims}}}"""
            yield Kernel("transpose", f"{type_}[{source}] {dims}", _module(type_, text))


def chains(
    shapes: Sequence[tuple[int, int]] = (
        (64, 1024),
        (300, 12),
        (50, 100),
        (33, 1001),
        (128, 65),
        (16, 4096),
        (5, 1004),
        (16, 2088),
        (1, 9001),
        (26880, 1),
    ),
    types: Sequence[str] = ("f32", "bf16"),
) -> Iterator[Kernel]:
    """Rows that are read once: softmax, layer norm, root-mean-square norm, cross-entropy."""
    for type_ in types:
        for rows, length in shapes:
            x, row, one = f"{type_}[{rows},{length}]", f"{type_}[{rows}]", f"{type_}[{length}]"
            soft = f"""  x = {x} parameter(0)
  low = {type_}[] constant(-inf)
  zero = {type_}[] constant(0)
  top = {row} reduce(x, low), dimensions={{1}}, to_apply=maximum
  tops = {x} broadcast(top), dimensions={{0}}
  less = {x} subtract(x, tops)
  w = {x} exponential(less)
  sum = {row} reduce(w, zero), dimensions={{1}}, to_apply=add
"""
            yield Kernel(
                "softmax",
                x,
                _module(
                    type_,
                    soft
                    + f"""  sums = {x} broadcast(sum), dimensions={{0}}
  ROOT r = {x} divide(w, sums)""",
                ),
            )
            yield Kernel(
                "cross-entropy",
                x,
                _module(
                    type_,
                    soft
                    + f"""  label = s32[{rows}] parameter(1)
  labels = s32[{rows},{length}] broadcast(label), dimensions={{0}}
  at = s32[{rows},{length}] iota(), iota_dimension=1
  hit = pred[{rows},{length}] compare(labels, at), direction=EQ
  zeros = {x} broadcast(zero), dimensions={{}}
  picked = {x} select(hit, less, zeros)
  logit = {row} reduce(picked, zero), dimensions={{1}}, to_apply=add
  logsum = {row} log(sum)
  ROOT r = {row} subtract(logsum, logit)""",
                ),
            )
            mean = f"""  part = {type_}[] constant({1 / length})
  parts = {row} broadcast(part), dimensions={{}}
  zero = {type_}[] constant(0)
  small = {type_}[] constant(1e-05)
  smalls = {row} broadcast(small), dimensions={{}}
  x = {x} parameter(0)
"""
            yield Kernel("rms norm", x, _module(type_, mean + _norm("x", x, row, one)))
            yield Kernel(
                "layer norm",
                x,
                _module(
                    type_,
                    mean
                    + f"""  sum = {row} reduce(x, zero), dimensions={{1}}, to_apply=add
  mean = {row} multiply(sum, parts)
  means = {x} broadcast(mean), dimensions={{0}}
  centred = {x} subtract(x, means)
"""
                    + _norm("centred", x, row, one),
                ),
            )


def _norm(centred: str, x: str, row: str, one: str) -> str:
    return f"""  square = {x} multiply({centred}, {centred})
  squares = {row} reduce(square, zero), dimensions={{1}}, to_apply=add
  variance = {row} multiply(squares, parts)
  lifted = {row} add(variance, smalls)
  inverse = {row} rsqrt(lifted)
  inverses = {x} broadcast(inverse), dimensions={{0}}
  unit = {x} multiply({centred}, inverses)
  scale = {one} parameter(1)
  scales = {x} broadcast(scale), dimensions={{1}}
  ROOT r = {x} multiply(unit, scales)"""


def products() -> Iterator[Kernel]:
    """Products of matrices; of larger ones, each element is read for several tiles."""
    for type_ in ("f32", "f16", "bf16"):
        for m, k, n in ((64, 64, 64), (70, 81, 43), (33, 100, 57), (128, 256, 128), (64, 65, 64)):
            for a, b in ((f"{m},{k}", f"{k},{n}"), (f"{k},{m}", f"{n},{k}")):
                left = a == f"{m},{k}"
                text = f"""  a = {type_}[{a}] parameter(0)
  b = {type_}[{b}] parameter(1)
  ROOT r = {type_}[{m},{n}] dot(a, b), lhs_contracting_dims={{{int(left)}}}, rhs_contracting_dims={{{int(not left)}}}"""
                yield Kernel("product", f"{type_}[{a}]x[{b}]", _module(type_, text))


def scans() -> Iterator[Kernel]:
    """Cumulative folds of lines, short and long, along every dimension."""
    for type_ in ("f32", "bf16"):
        for sizes, dim in (
            ((64, 100), 1),
            ((33, 1001), 1),
            ((16, 4096), 1),
            ((1, 40000), 1),
            ((2, 33001), 1),
            ((1000, 20), 1),
            ((77, 7), 1),
            ((1000, 64), 0),
            ((500, 33), 0),
            ((40, 100, 16), 1),
            ((300, 9, 3), 1),
        ):
            shape = f"{type_}[{','.join(map(str, sizes))}]"
            window, pad = (
                "x".join(one if d == dim else none for d in range(len(sizes)))
                for one, none in ((str(sizes[dim]), "1"), (f"{sizes[dim] - 1}_0", "0_0"))
            )
            text = f"""  x = {shape} parameter(0)
  zero = {type_}[] constant(0)
  ROOT r = {shape} reduce-window(x, zero), to_apply=maximum, window={{size={window} pad={pad}}}"""
            yield Kernel("scan", f"{shape} {dim}", _module(type_, text))


def movements() -> Iterator[Kernel]:
    """What moves elements: rows that are gathered, pieces put together, padded, cut out."""
    for type_, width in (("f32", 64), ("f32", 50), ("bf16", 96)):
        text = f"""  x = {type_}[500,{width}] parameter(0)
  i = s32[500,1] iota(), iota_dimension=0
  ROOT r = {type_}[500,{width}] gather(x, i), offset_dims={{1}}, collapsed_slice_dims={{0}},
    start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,{width}}}"""
        yield Kernel("gather", f"{type_}[500,{width}]", _module(type_, text))
    for type_ in ("f32", "bf16"):
        text = f"""  x = {type_}[300,128] parameter(0)
  y = {type_}[300,64] parameter(1)
  ROOT r = {type_}[300,192] concatenate(x, y), dimensions={{1}}"""
        yield Kernel("concatenate", f"{type_}[300,192] 1", _module(type_, text))
        text = f"""  x = {type_}[300,128] parameter(0)
  y = {type_}[200,128] parameter(1)
  ROOT r = {type_}[500,128] concatenate(x, y), dimensions={{0}}"""
        yield Kernel("concatenate", f"{type_}[500,128] 0", _module(type_, text))
        text = f"""  x = {type_}[300,120] parameter(0)
  zero = {type_}[] constant(0)
  ROOT r = {type_}[304,128] pad(x, zero), padding=2_2x4_4"""
        yield Kernel("pad", f"{type_}[304,128]", _module(type_, text))
        text = f"""  x = {type_}[64,32,32] parameter(0)
  zero = {type_}[] constant(0)
  ROOT r = {type_}[64,16,16] reduce-window(x, zero), to_apply=add, window={{size=1x2x2 stride=1x2x2}}"""
        yield Kernel("pool", f"{type_}[64,32,32]", _module(type_, text))


def neighbourhoods() -> Iterator[Kernel]:
    """What reads within sectors, or reads neighbours again."""
    for type_ in ("f32", "bf16"):
        rows = (
            ("reverse", "[300,101]", "[300,101]", "reverse(x), dimensions={1}"),
            ("concatenate", "[300,50]", "[300,100]", "concatenate(x, x), dimensions={1}"),
            ("pad", "[10,64,64]", "[10,66,66]", "pad(x, zero), padding=0_0x1_1x1_1"),
            ("pad", "[9991]", "[10000]", "pad(x, zero), padding=5_4"),
            *(
                (
                    "window",
                    source,
                    result,
                    f"reduce-window(x, zero), window={{{window}}}, to_apply=maximum",
                )
                for source, result, window in (
                    ("[64,32,32]", "[64,32,32]", "size=1x3x3 pad=0_0x1_1x1_1"),
                    ("[64,33,33]", "[64,16,16]", "size=1x2x2 stride=1x2x2"),
                    ("[100,1000]", "[100,1000]", "size=1x5 pad=0_0x2_2"),
                    ("[8,32,64,8]", "[8,16,32,8]", "size=1x2x2x1 stride=1x2x2x1"),
                )
            ),
        )
        for kind, source, result, op in rows:
            text = f"""  x = {type_}{source} parameter(0)
  zero = {type_}[] constant(0)
  ROOT r = {type_}{result} {op}"""
            yield Kernel(kind, f"{type_}{result} of {source}", _module(type_, text))


def concatenations(
    widths: Sequence[tuple[int, int]] = ((7, 5), (33, 17), (101, 3), (128, 65), (257, 257)),
    types: Sequence[str] = ("s8", "bf16", "f32", "f64"),
    rows: int = 301,
) -> Iterator[Kernel]:
    """Rows put together at widths that end within sectors."""
    for type_ in types:
        for a, b in widths:
            text = f"""  x = {type_}[{rows},{a}] parameter(0)
  y = {type_}[{rows},{b}] parameter(1)
  ROOT r = {type_}[{rows},{a + b}] concatenate(x, y), dimensions={{1}}"""
            yield Kernel("concatenate", f"{type_}[{rows},{a}+{b}]", _module(type_, text))


def sorts() -> Iterator[Kernel]:
    """Lines of keys."""
    for rows, length in ((64, 100), (16, 256), (4, 500), (1, 4000)):
        text = f"""  x = s32[{rows},{length}] parameter(0)
  ROOT r = s32[{rows},{length}] sort(x), dimensions={{1}}, to_apply=less"""
        less = "less { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }\n"
        yield Kernel(
            "sort", f"s32[{rows},{length}]", _module("s32", text).replace("ENTRY", less + "ENTRY")
        )


def selections() -> Iterator[Kernel]:
    """The largest of each row: what has to move is the rows, once."""
    for rows, length, kept in ((64, 200, 4), (8, 1000, 10), (1, 20000, 8)):
        text = f"""  x = f32[{rows},{length}] parameter(0)
  ROOT t = (f32[{rows},{kept}], s32[{rows},{kept}]) topk(x), k={kept}, largest=true"""
        yield Kernel("top-k", f"f32[{rows},{length}] {kept}", _module("f32", text))


def sampled(seed: int, elements: int = 30_000) -> Kernel:
    """A reduce, row chain or transpose of random shape and type, of about so many elements at most: as many as a block
    holds. Chains of longer rows read them again, and few odd rows of more columns are not summed side by side."""
    random = Random(seed)
    kind = random.choice(
        ("row sum", "column sum", "softmax", "rms norm", "layer norm", "transpose")
    )
    types = ("f32", "bf16", "f64", "f16")
    if kind in ("row sum", "column sum", "transpose"):
        types += ("s8", "pred", "c64", "s32")
    type_ = random.choice(types)

    def sizes(rank: int) -> list[int]:
        left, found = elements, list[int]()
        for _ in range(rank):
            size = int(2 ** random.uniform(0, log2(left)))
            found.append(max(2, size // 8 * 8 if random.random() < 0.5 else size))
            left = max(2, left // found[-1])
        random.shuffle(found)
        return found

    if kind == "transpose":
        shape = sizes(random.choice((2, 2, 3, 4)))
        order = random.sample(range(len(shape)), len(shape))
        return next(transposes([(tuple(shape), tuple(order))], [type_]))
    rows, length = sizes(2)
    rows = 1 if kind != "column sum" and random.random() < 0.1 else rows
    choices = (*reduces([(rows, length)], [type_]), *chains([(rows, length)], [type_]))
    return next(kernel for kernel in choices if kernel.kind == kind)


def kernels() -> Iterator[Kernel]:
    """What is measured."""
    movers = (movements, concatenations, neighbourhoods, sorts, selections)
    for kinds in (reduces, transposes, chains, products, scans, *movers):
        yield from kinds()


def _arrays(result: Any) -> list[Any]:
    return [np.asarray(one) for one in (result if isinstance(result, tuple) else (result,))]


def measure(kernel: Kernel, gpu: str = "h100") -> Row:
    """Runs a kernel on random inputs. Raises AssertionError for a wrong result, or a finding of the simulator."""
    module = mlirhlo.parse(kernel.hlo)
    executable: Any = mlirhlo.compile(module, platform="gpu", gpu=gpu)
    inputs = make_fake_arguments(module.op)
    results, expected = (
        _arrays(run(*inputs)) for run in (executable, partial(mlirhlo.run, module))
    )
    for result, right in zip(results, expected, strict=True):
        tolerance = 1e-4 if result.dtype == np.float32 else 0.1
        wide = np.complex128 if result.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(
            result.astype(wide), right.astype(wide), rtol=tolerance, atol=tolerance
        )
    assert not executable.findings, executable.findings
    total = sum((one.figures for one in executable.figures), Figures())
    least = sum(-(-np.asarray(array).nbytes // SECTOR) for array in (*inputs, *results))
    moved = total.global_memory.sectors
    lanes = total.global_memory.bytes_read + total.global_memory.bytes_written
    conflicts = total.shared_memory.bank_conflicts
    fill = lanes / (moved * SECTOR) if moved else 1.0
    return Row(moved / least, fill, conflicts, total.warp_instructions)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of kind and shape")
    parser.add_argument("--samples", type=int, default=0, help="so many random kernels instead")
    parser.add_argument("--gpu", default="h100", help="the device")
    options = parser.parse_args()
    print(f"{'':44}{'traffic/least':>14}{'fill':>7}{'conflicts':>11}{'instructions':>14}")
    chosen = map(sampled, range(options.samples)) if options.samples else kernels()
    rows: dict[str, list[Row]] = {}
    for kernel in chosen:
        name = f"{kernel.kind} {kernel.shape}"
        if options.only in name:
            row = measure(kernel, options.gpu)
            rows.setdefault(kernel.kind, []).append(row)
            print(
                f"{name:44}{row.ratio:14.3f}{row.fill:7.3f}{row.conflicts:11,}{row.instructions:14,}",
                flush=True,
            )
    print()
    for kind, found in rows.items():
        ratio, fill = max(row.ratio for row in found), min(row.fill for row in found)
        conflicts = sum(row.conflicts for row in found)
        print(
            f"worst {kind} of {len(found):<5}".ljust(44)
            + f"{ratio:14.3f}{fill:7.3f}{conflicts:11,}"
        )


if __name__ == "__main__":
    main()
