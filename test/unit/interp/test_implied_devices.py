"""Collectives whose shapes say how many devices there are: so many are simulated, or the instruction is refused."""

from __future__ import annotations

import numpy as np
import pytest
from support import SHARED, needs_shared

import mlirhlo
from mlirhlo.diagnostics import HloError

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
GATHER = "inner { x = f32[2] parameter(0) ROOT g = f32[8] all-gather(x), replica_groups={}, dimensions={0} }\n"

IMPLIED = {
    "all-gather": ("f32[2]", "ROOT r = f32[8] all-gather(x), replica_groups={}, dimensions={0}", 4, (8,)),
    "all-gather of replicas and partitions": (
        "f32[2]",
        "ROOT r = f32[8] all-gather(x), channel_id=1, replica_groups={{0},{1}}, dimensions={0}",
        8,
        (8,),
    ),
    "all-gather of everybody": (
        "f32[2]",
        "ROOT r = f32[8] all-gather(x), channel_id=1, replica_groups={}, dimensions={0}",
        4,
        (8,),
    ),
    "all-gather of two": (
        "f32[2,3]",
        ("g = (f32[2,9], f32[2,9]) all-gather(x, x), replica_groups={}, dimensions={1}\n"
        "  ROOT r = f32[2,9] get-tuple-element(g), index=1"),
        3,
        (2, 9),
    ),
    "all-gather-start": (
        "f32[2]",
        ("s = (f32[2], f32[8]) all-gather-start(x), replica_groups={}, dimensions={0}\n"
        "  ROOT r = f32[8] all-gather-done(s)"),
        4,
        (8,),
    ),
    "asynchronous all-gather": (
        "f32[2]",
        ("s = ((f32[2]), f32[8], u32[]) async-start(x), calls=inner\n"
        "  ROOT r = f32[8] async-done(s)"),
        4,
        (8,),
    ),
    "reduce-scatter": (
        "f32[8]",
        "ROOT r = f32[2] reduce-scatter(x), replica_groups={}, dimensions={0}, to_apply=add",
        4,
        (2,),
    ),
    "all-to-all": (
        "f32[2]",
        ("a = (f32[2], f32[2], f32[2]) all-to-all(x, x, x), replica_groups={}\n"
        "  ROOT r = f32[2] get-tuple-element(a), index=2"),
        3,
        (2,),
    ),
    "all-to-all of partitions": (
        "f32[2]",
        ("a = (f32[2], f32[2]) all-to-all(x, x), channel_id=1, replica_groups={}\n"
        "  ROOT r = f32[2] get-tuple-element(a), index=1"),
        2,
        (2,),
    ),
    "all-reduce beside an all-gather": (
        "f32[2]",
        ("g = f32[8] all-gather(x), replica_groups={}, dimensions={0}\n"
        "  ROOT r = f32[8] all-reduce(g), replica_groups={}, to_apply=add"),
        4,
        (8,),
    ),
    "collective-permute": (
        "f32[2]",
        "ROOT r = f32[2] collective-permute(x), source_target_pairs={{0,3},{3,0}}",
        4,
        (2,),
    ),
}  # fmt: skip


def program(shape: str, lines: str, header: str = "") -> mlirhlo.Module:
    text = (
        f"HloModule m{header}\n{ADD}{GATHER}ENTRY e {{\n  x = {shape} parameter(0)\n  {lines}\n}}\n"
    )
    if "calls=inner" not in text:
        text = text.replace(GATHER, "")
    return mlirhlo.parse(text.replace(ADD, "") if "to_apply" not in text else text)


def operand(shape: str) -> np.ndarray:
    sizes = [int(n) for n in shape[4:-1].split(",")]
    return np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)


@pytest.mark.parametrize("name", IMPLIED)
def test_as_many_devices_as_the_shapes_say(name: str) -> None:
    shape, lines, devices, sizes = IMPLIED[name]
    module, x = program(shape, lines), operand(shape)
    assert module.problems() == []
    interpreted = module(x)
    assert interpreted.shape == sizes
    np.testing.assert_array_equal(np.asarray(mlirhlo.compile(module)(x)), interpreted)
    assert len(module.on_devices([x])) == devices


CONTRADICTIONS = {
    "a header of other replicas": (
        "f32[2]",
        "ROOT r = f32[8] all-gather(x), replica_groups={}, dimensions={0}",
        ", replica_count=2",
    ),
    "groups of other sizes": (
        "f32[2]",
        "ROOT r = f32[8] all-gather(x), replica_groups={{0}}, dimensions={0}",
        "",
    ),
    "a scatter of other replicas": (
        "f32[8]",
        "ROOT r = f32[4] reduce-scatter(x), replica_groups={}, dimensions={0}, to_apply=add",
        ", replica_count=4",
    ),
    "two sizes of one group": (
        "f32[2]",
        (
            "g = f32[4] all-gather(x), replica_groups={}, dimensions={0}\n"
            "  ROOT r = f32[16] all-gather(g), replica_groups={}, dimensions={0}"
        ),
        "",
    ),
    "operands of other replicas": (
        "f32[2]",
        "ROOT a = (f32[2], f32[2], f32[2]) all-to-all(x, x, x), replica_groups={}",
        ", replica_count=2",
    ),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_contradictions_name_the_instruction(name: str) -> None:
    shape, lines, header = CONTRADICTIONS[name]
    module, x = program(shape, lines, header), operand(shape)
    assert module.problems() == []
    for run in (module, mlirhlo.compile(module)):
        with pytest.raises(HloError, match="%") as raised:
            run(x)
        assert raised.value.code == "HLO0354"
        assert raised.value.diagnostics[0].place is not None


def test_a_start_that_is_no_pair_is_what_the_verifier_says() -> None:
    """Not Python's words, on any platform."""
    for opcode, more, expected in (
        ("collective-permute-start", "source_target_pairs={{0,0}}", "HLO0103"),
        ("all-gather-start", "replica_groups={}, dimensions={0}", "HLO0102"),
    ):
        text = f"s = f32[4] {opcode}(x), {more}\n  ROOT r = f32[4] negate(s)"
        module = program("f32[4]", text)
        with pytest.raises(HloError) as interpreted:
            module(np.ones(4, np.float32))
        with pytest.raises(HloError) as compiled:
            mlirhlo.compile(module)(np.ones(4, np.float32))
        assert interpreted.value.code == compiled.value.code == expected


def test_barriers_of_sharding_hand_on_their_operand() -> None:
    lines = (
        'a = f32[3] custom-call(x), custom_call_target="ShardBarrierFrom", custom_call_has_side_effect=true\n'
        '  b = f32[3] custom-call(a), custom_call_target="ShardBarrierTo", custom_call_has_side_effect=true\n'
        "  ROOT r = f32[3] negate(b)"
    )
    module, x = program("f32[3]", lines), operand("f32[3]")
    np.testing.assert_array_equal(module(x), -x)
    np.testing.assert_array_equal(np.asarray(mlirhlo.compile(module)(x)), -x)


@needs_shared
@pytest.mark.parametrize(
    ("name", "count", "expected"),
    [
        ("gather_from_unsaid_devices", 1, [0, 0, 0, 0]),
        ("scatter_to_unsaid_devices", 8, [0, 2, 4, 6]),
    ],
)
def test_shared_inputs(name: str, count: int, expected: list[int]) -> None:
    path = SHARED / "faults" / "execution" / f"{name}.hlo"
    if not path.is_file():
        pytest.skip(f"no {path}")
    module = mlirhlo.load(path)
    x = np.arange(count, dtype=np.float32)
    assert module(x).tolist() == np.asarray(mlirhlo.compile(module)(x)).tolist() == expected
