"""rng-bit-generator, bit for bit: known answers, and XLA:CPU for every width and shape."""

from __future__ import annotations

import numpy as np
import pytest
from xla_execution import SEED, SIZE, XLA, Refusal

from mlirhlo.diagnostics import HloError
from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.interp.engine import run_module
from mlirhlo.interp.ops.random_bits import philox_4x32, threefry_2x32

ONES = (1 << 64) - 1


@pytest.mark.parametrize(
    ("key", "counter", "want"),
    [
        (0, 0, (0x6B200159, 0x99BA4EFE)),
        (ONES, ONES, (0x1CB996FC, 0xBB002BE7)),
        (0x03707344_13198A2E, 0x85A308D3_243F6A88, (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_known_answers(key: int, counter: int, want: tuple[int, int]) -> None:
    x, y = threefry_2x32(key, np.array([counter], np.uint64))
    assert (int(x[0]), int(y[0])) == want


@pytest.mark.parametrize(
    ("key", "low", "high", "want"),
    [
        (0, 0, 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (ONES, ONES, ONES, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ],
)
def test_philox_known_answers(key: int, low: int, high: int, want: tuple[int, ...]) -> None:
    words = philox_4x32(key, np.array([low], np.uint64), np.array([high], np.uint64))
    assert tuple(int(word[0]) for word in words) == want


def test_wrong_state() -> None:
    text = (
        "HloModule m\nENTRY e { s = u64[3] parameter(0)\n"
        "ROOT r = (u64[3], u32[4]) rng-bit-generator(s), algorithm=rng_three_fry }\n"
    )
    with pytest.raises(HloError, match="HLO0355"):
        run_module(parse_module(text), [np.zeros(3, np.uint64)])


SHAPES = [
    (),
    (1,),
    (5,),
    (6,),
    (0,),
    (1, 1),
    (2, 3),
    (3, 3),
    (5, 3),
    (3, 5, 7),
    (4, 4),
    (3, 9, 5),
    (17, 2),
]


@pytest.mark.oracle
@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["rng_three_fry", "rng_philox", "rng_default"])
def test_bits_are_those_of_xla(algorithm: str) -> None:
    pytest.importorskip("jaxlib")
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    for _ in range(SIZE):
        for size in (2,) if algorithm == "rng_three_fry" else (2, 3):
            state = rng.integers(0, ONES, size, np.uint64, endpoint=True)
            if rng.random() < 0.5:
                state[1] = ONES  # the counter wraps around
            shapes = [
                f"{type_}[{','.join(map(str, shape))}]"
                for shape in (SHAPES[:4] if algorithm == "rng_default" else SHAPES)
                for type_ in ("s8", "u16", "u32", "u64")
            ]
            lines = [
                f"(u64[{size}], {shape}) rng-bit-generator(p0), algorithm={algorithm}"
                for shape in shapes
            ]
            text = _flat(lines, shapes, size)
            theirs = XLA.run(text, [state])
            assert not isinstance(theirs, Refusal), theirs
            ours = run_module(parse_module(text), [state], check=True)
            for shape, mine, other in zip(_names(shapes), ours, theirs, strict=True):
                # XLA:CPU hands signed bits out as unsigned ones.
                other = other.view(mine.dtype)
                np.testing.assert_array_equal(mine, other, err_msg=f"{shape} {state}")


def _names(shapes: list[str]) -> list[str]:
    return [f"{what} of {shape}" for shape in shapes for what in ("state", "bits")]


def _flat(lines: list[str], shapes: list[str], size: int) -> str:
    body, results, types = [f"  p0 = u64[{size}] parameter(0)"], [], []
    for k, (line, shape) in enumerate(zip(lines, shapes, strict=True)):
        body.append(f"  r{k} = {line}")
        body.append(f"  state{k} = u64[{size}] get-tuple-element(r{k}), index=0")
        body.append(f"  bits{k} = {shape} get-tuple-element(r{k}), index=1")
        results += [f"state{k}", f"bits{k}"]
        types += [f"u64[{size}]", shape]
    body.append(f"  ROOT t = ({', '.join(types)}) tuple({', '.join(results)})")
    return "HloModule m\nENTRY e {\n" + "\n".join(body) + "\n}\n"
