#!/usr/bin/env python3
"""Fits the polynomials of the elementary functions and writes `math_coefficients.py`.

    python tools/fit_math.py > mlirhlo/lowering/hlo_to_loops/math_coefficients.py

Each row is a minimax fit (Remez exchange on a dense grid, 60 digits) of a function that is smooth on
its interval, weighted so that the error counts relative to what is computed from it. `f32` and
`f64` are evaluated in their own type, `single` in f64 for results that are rounded to f32.
Needs mpmath; nothing at run time does.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
from mpmath import mp, mpf

mp.dps = 60
Real = Any
Function = Callable[[Real], Real]
_GRID = 500


@dataclass(frozen=True)
class Fit:
    """A function to be fitted."""

    name: str
    function: Function
    """What the polynomial stands for."""
    weight: Function
    """Error of the result per error of the polynomial."""
    low: Real
    high: Real
    degrees: dict[str, int]
    """By precision: `f32`, `f64`, `single`."""


def _ratio(function: Function, limit: Real) -> Function:
    """`function`, and its limit at 0."""
    return lambda x: limit if abs(x) < mpf(10) ** -40 else function(x)


def _odd(function: Function, limit: Real) -> Function:
    """(f(√z) - √z) / (√z z): what an odd function adds to its argument."""
    return _ratio(
        lambda z: (function(mpmath.sqrt(z)) - mpmath.sqrt(z)) / (mpmath.sqrt(z) * z), limit
    )


_HALF_LN2 = mpmath.log(2) / 2 * mpf("1.01")
STEPS = {"f32": 16, "single": 8}
"""Parts that a factor of two has where e**x is looked up."""
TANH_FROM, TANH_BITS, TANH_COUNT = 0.625, 3, 32
"""Pieces of tanh: |x| + 0.625 by its exponent and leading bits."""
_QUARTER_PI = mpmath.pi / 4 * mpf("1.001")
_ROOT = mpmath.sqrt(mpf(1) / 2)
_S = (mpmath.sqrt(2) - 1) / (mpmath.sqrt(2) + 1) * mpf("1.001")
_TAN8 = mpmath.tan(mpmath.pi / 8) * mpf("1.001")
ERF_MIDDLE = mpf("1.75")
"""|x| less it is exact where erf depends on it."""


FITS = (
    # e**r = 1 + r + r*r*q(r)
    Fit(
        "EXP",
        _ratio(lambda r: (mpmath.exp(r) - 1 - r) / (r * r), mpf(1) / 2),
        abs,
        -_HALF_LN2,
        _HALF_LN2,
        {"f32": 4, "f64": 10, "single": 5},
    ),
    # The same of a short r, for e**r and for f32
    *(
        Fit(
            "EXP_STEP",
            _ratio(lambda r: (mpmath.exp(r) - 1 - r) / (r * r), mpf(1) / 2),
            lambda r: r * r,
            -_HALF_LN2 / count,
            _HALF_LN2 / count,
            {precision: 1 if precision == "f32" else 2},
        )
        for precision, count in STEPS.items()
    ),
    # log(1 + f) = f - f*f/2 + f**3 * q(f)
    Fit(
        "LOG",
        _ratio(lambda f: (mpmath.log(1 + f) - f + f * f / 2) / f**3, mpf(1) / 3),
        lambda f: f * f,
        _ROOT - 1,
        mpmath.sqrt(2) - 1,
        {"f32": 8},
    ),
    # log((1 + s) / (1 - s)) = 2s + s*z*q(z), z = s*s
    Fit(
        "LOG_RATIO",
        _ratio(
            lambda z: (
                (2 * mpmath.atanh(mpmath.sqrt(z)) - 2 * mpmath.sqrt(z)) / (mpmath.sqrt(z) * z)
            ),
            mpf(2) / 3,
        ),
        lambda z: z,
        mpf(0),
        _S * _S,
        {"f64": 7, "single": 3},
    ),
    # The same beyond its first term: … = 2s + s*z*(2/3 + z*q(z))
    Fit(
        "LOG_RATIO_REST",
        _ratio(
            lambda z: (
                (2 * mpmath.atanh(mpmath.sqrt(z)) - 2 * mpmath.sqrt(z) * (1 + z / 3))
                / (mpmath.sqrt(z) * z * z)
            ),
            mpf(2) / 5,
        ),
        lambda z: z * z,
        mpf(0),
        _S * _S,
        {"f64": 8},
    ),
    # sin r = r + r*z*q(z); cos r = 1 - z/2 + z*z*q(z)
    Fit(
        "SIN",
        _odd(mpmath.sin, -mpf(1) / 6),
        lambda z: z,
        mpf(0),
        _QUARTER_PI**2,
        {"f64": 6, "single": 3},
    ),
    Fit(
        "COS",
        _ratio(lambda z: (mpmath.cos(mpmath.sqrt(z)) - 1 + z / 2) / (z * z), mpf(1) / 24),
        lambda z: z * z,
        mpf(0),
        _QUARTER_PI**2,
        {"f64": 6, "single": 3},
    ),
    # atan t = t + t*z*q(z), |t| <= tan(pi / 8)
    Fit(
        "ATAN",
        _odd(mpmath.atan, -mpf(1) / 3),
        lambda z: z,
        mpf(0),
        _TAN8**2,
        {"f64": 11, "single": 5},
    ),
    # asin t = t + t*z*q(z), |t| <= 1/2
    Fit(
        "ASIN",
        _odd(mpmath.asin, mpf(1) / 6),
        lambda z: z,
        mpf(0),
        mpf("0.2501"),
        {"f64": 13, "single": 6},
    ),
    # sinh x = x + x*z*q(z), |x| <= 1
    Fit(
        "SINH",
        _odd(mpmath.sinh, mpf(1) / 6),
        lambda z: z,
        mpf(0),
        mpf("1.001"),
        {"f64": 7, "single": 3},
    ),
    # The cube root of m, a first guess
    Fit(
        "CBRT",
        mpmath.cbrt,
        lambda m: 1 / mpmath.cbrt(m),
        mpf(1),
        mpf(8),
        {"f64": 5, "single": 5},
    ),
    # erf x = x + x*q(x*x), |x| <= 7/8
    Fit(
        "ERF",
        _ratio(
            lambda z: mpmath.erf(mpmath.sqrt(z)) / mpmath.sqrt(z) - 1,
            2 / mpmath.sqrt(mpmath.pi) - 1,
        ),
        lambda z: mpf(1),
        mpf(0),
        mpf("0.77"),
        {"f32": 5, "f64": 12},
    ),
    # erf x = 1 - exp(q(|x| - middle)): up to 6.125, for f32 up to 4.125
    Fit(
        "ERFC",
        lambda v: mpmath.log(mpmath.erfc(ERF_MIDDLE + v)),
        lambda v: mpmath.erfc(ERF_MIDDLE + v),
        mpf("-0.876"),
        mpf("4.375"),
        {"f64": 20},
    ),
    Fit(
        "ERFC",
        lambda v: mpmath.log(mpmath.erfc(ERF_MIDDLE + v)),
        lambda v: mpmath.erfc(ERF_MIDDLE + v),
        mpf("-0.876"),
        mpf("2.375"),
        {"f32": 6},
    ),
)


def minimax(fit: Fit, degree: int) -> tuple[list[Real], Real]:
    """Coefficients, lowest first, and the greatest weighted error."""
    middle, half = (fit.high + fit.low) / 2, (fit.high - fit.low) / 2
    grid = [
        middle - half * mpmath.cos(mpmath.pi * k / (_GRID - 1)) if k else fit.low
        for k in range(_GRID)
    ]
    values = [fit.function(x) for x in grid]
    weights = [fit.weight(x) for x in grid]
    # A weight of 0 says nothing about its point.
    floor = max(weights) * mpf(10) ** -6
    usable = [k for k in range(_GRID) if weights[k] > floor]
    count = degree + 2
    chosen = [usable[round(k * (len(usable) - 1) / (count - 1))] for k in range(count)]
    coefficients: list[Real] = []
    worst = mpf(0)
    for _ in range(60):
        matrix = mpmath.matrix(count, count)
        right = mpmath.matrix(count, 1)
        for row, k in enumerate(chosen):
            power = mpf(1)
            for column in range(degree + 1):
                matrix[row, column] = power
                power *= grid[k]
            matrix[row, degree + 1] = (-1) ** row / weights[k]
            right[row] = values[k]
        solved = mpmath.lu_solve(matrix, right)
        coefficients = [solved[k] for k in range(degree + 1)]
        level = abs(solved[degree + 1])
        errors = {
            k: weights[k] * (mpmath.polyval(coefficients[::-1], grid[k]) - values[k])
            for k in usable
        }
        worst = max(abs(e) for e in errors.values())
        if worst <= level * mpf("1.001"):
            break
        chosen = _extrema(usable, errors, count)
    return coefficients, worst


def _extrema(usable: list[int], errors: dict[int, Real], count: int) -> list[int]:
    """The greatest error of each run of one sign, `count` neighbours among them."""
    runs: list[int] = []
    for k in usable:
        if runs and (errors[runs[-1]] < 0) == (errors[k] < 0):
            if abs(errors[k]) > abs(errors[runs[-1]]):
                runs[-1] = k
        else:
            runs.append(k)
    while len(runs) > count:
        if abs(errors[runs[0]]) < abs(errors[runs[-1]]):
            runs.pop(0)
        else:
            runs.pop()
    while len(runs) < count:
        spare = [k for k in usable if k not in runs]
        runs = sorted([*runs, max(spare, key=lambda k: abs(errors[k]))])
    return runs


def rounded(value: Real, precision: str) -> float:
    """The nearest f32 or f64."""
    number = float(value)
    return struct.unpack("f", struct.pack("f", number))[0] if precision == "f32" else number


def parts(value: Real, bits: list[int]) -> list[float]:
    """`value` as a sum of numbers of so many bits each, the last one rounded."""
    result: list[float] = []
    for number, width in enumerate(bits):
        _, exponent = mpmath.frexp(value)
        scale = mpmath.ldexp(1, width - exponent)
        scaled = value * scale
        whole = mpmath.nint(scaled) if number == len(bits) - 1 else mpmath.floor(scaled)
        part = whole / scale
        result.append(float(part))
        value -= part
    return result


def two_over_pi(words: int, bits: int) -> list[float]:
    """Digits of 2/pi of `bits` bits each, as whole numbers."""
    with mp.workdps(words * bits // 3 + 40):
        whole: Real = mpmath.floor(mpmath.ldexp(2 / mpmath.pi, words * bits))
    digits = int(whole)
    mask = (1 << bits) - 1
    return [float((digits >> (bits * (words - 1 - k))) & mask) for k in range(words)]


def tanh_pieces(degree: int) -> list[float]:
    """Coefficients of 1, t, t*t, … for each of the pieces: tanh(low + t), in the order of their low bits."""
    word = 23 - TANH_BITS
    (bits,) = struct.unpack("I", struct.pack("f", TANH_FROM))
    first = bits >> word
    edges = [
        mpf(struct.unpack("f", struct.pack("I", k << word))[0]) - TANH_FROM
        for k in range(first, first + TANH_COUNT + 1)
    ]
    rows: list[list[float]] = [[]] * TANH_COUNT
    for k, (low, high) in enumerate(itertools.pairwise(edges)):
        # The first numbers are exact, so that what is near the edge is off by one rounding.
        head = [mpf(rounded(mpmath.tanh(low), "f32")), mpf(1)][: 2 if low == 0 else 1]
        piece = Fit(
            "TANH",
            lambda t, low=low, head=head: (
                (mpmath.tanh(low + t) - mpmath.polyval(head[::-1], t)) / t ** len(head)
            ),
            lambda t, low=low, head=head: t ** len(head) / mpmath.tanh(low + t),
            (high - low) / 1000,
            high - low,
            {},
        )
        rest, _ = minimax(piece, degree - len(head))
        rows[(first + k) % TANH_COUNT] = [rounded(c, "f32") for c in [*head, *rest]]
    return [row[power] for power in range(degree + 1) for row in rows]


def main() -> None:
    """Prints the module."""
    print(
        '"""Coefficients of polynomials, lowest first. Written by tools/fit_math.py; do not edit."""'
    )
    print("\nfrom __future__ import annotations\n")
    print("from collections.abc import Mapping, Sequence\n")
    print("TABLES: Mapping[str, Sequence[float]] = {")
    for fit in FITS:
        for precision, degree in fit.degrees.items():
            coefficients, worst = minimax(fit, degree)
            print(f"    # error 2**{float(mpmath.log(worst, 2)):.1f}")
            print(f'    "{fit.name}.{precision}": (')
            for c in coefficients:
                print(f"        {rounded(c, precision)!r},")
            print("    ),")
    constants = {
        "HALF_PI.parts": parts(mpmath.pi / 2, [33, 33, 33, 53]),
        "HALF_PI.pair": parts(mpmath.pi / 2, [53, 53]),
        "LN2.pair": parts(mpmath.log(2), [53, 53]),
        # Its first part times an exponent is exact.
        "LN2.short": parts(mpmath.log(2), [40, 53]),
        "LN2.f32": [rounded(p, "f32") for p in parts(mpmath.log(2), [24, 24])],
        **{
            f"POWERS.{precision}": [
                rounded(mpf(2) ** (mpf(k) / count), precision) for k in range(count)
            ]
            for precision, count in STEPS.items()
        },
        "POWERS.rest.f32": [
            rounded(
                mpf(2) ** (mpf(k) / 16) / mpf(rounded(mpf(2) ** (mpf(k) / 16), "f32")) - 1, "f32"
            )
            for k in range(16)
        ],
        "TANH.f32": tanh_pieces(4),
        "ERF.middle": [float(ERF_MIDDLE)],
        "TWO_OVER_PI.digits": two_over_pi(56, 26),
    }
    for name, numbers in constants.items():
        print(f'    "{name}": (')
        for c in numbers:
            print(f"        {c!r},")
        print("    ),")
    print("}")


if __name__ == "__main__":
    main()
