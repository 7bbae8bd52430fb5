"""Damaged protos end in diagnostics: no traceback, no hang, and what is read is written again.

The number of cases is MLIRHLO_FUZZ_CASES (default small); each case depends on its number only:

    MLIRHLO_FUZZ_CASES=50000 pytest -m "" test/unit/formats/test_proto_fuzz.py
"""

from __future__ import annotations

import os
import random
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from support import HLO_PROTOS, SHARED

from mlirhlo.diagnostics import HloError
from mlirhlo.formats import containers
from mlirhlo.formats.hlo_text import parse_module, print_module
from mlirhlo.formats.proto import decode_module, encode_module
from mlirhlo.formats.proto.containers_pb2 import HloProto, HloSnapshot

CASES = int(os.environ.get("MLIRHLO_FUZZ_CASES", "600"))
SLOWEST_S = 20.0
"""Most that one case may take; the machine may be busy."""

EVERY_OPCODE = Path(__file__).parent / "proto_inputs" / "every_opcode.hlo"


def seeds() -> list[bytes]:
    """Small files of all kinds, binary, gzip and text."""
    module = encode_module(parse_module(EVERY_OPCODE.read_text()))
    found = [containers.write(HloProto(hlo_module=module))] * 3
    found.append(containers.write(HloProto(hlo_module=module), containers.Format.PROTO_TEXT))
    paths = [*HLO_PROTOS, *(SHARED / "reference").rglob("*.pb")]
    found += [path.read_bytes() for path in sorted(paths) if path.stat().st_size < 30_000]
    return found


def mutated_bytes(rng: random.Random, seed: bytes) -> bytes:
    """Truncation, flipped bits, bytes replaced, removed, inserted or repeated."""
    data = bytearray(seed)
    place = rng.randrange(len(data))
    match rng.choice("tffffffrdic"):
        case "t":
            del data[place:]
        case "f":
            for _ in range(rng.choice([1, 1, 1, 2, 4, 16])):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        case "r":
            data[place] = rng.randrange(256)
        case "d":
            del data[place : place + rng.randrange(1, 20)]
        case "i":
            data[place:place] = rng.randbytes(rng.randrange(1, 8))
        case _:
            other = rng.randrange(len(data))
            data[place : place + 32] = data[other : other + rng.randrange(64)]
    return bytes(data)


WITH_MODULE = {container for container in containers.Container if container.holds_module}

NUMBERS = (0, 1, 2, 3, 7, 13, 34, 255, -1, -(1 << 63), (1 << 63) - 1, 1 << 31, 1 << 40, 1 << 62)
WORDS = ("", "x", "add", "while", "parameter", "EQ", "f32", "__a", "a b\n", "é", "kLoop", '{"a":1}')


def mutate_message(rng: random.Random, message: Message) -> None:
    """Changes one field somewhere inside."""
    fields = message.DESCRIPTOR.fields
    present = [field for field, _ in message.ListFields()]
    pool = present if present and rng.random() < 0.9 else list(fields)
    if not pool:
        return
    field = rng.choice(pool)
    value: Any = getattr(message, field.name)
    is_message = field.message_type is not None
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        message.ClearField(field.name)
    elif field.is_repeated:
        _mutate_list(rng, value, is_message)
    elif is_message:
        if rng.random() < 0.1:
            message.ClearField(field.name)
        elif rng.random() < 0.05:
            value.Clear()
            value.SetInParent()
        else:
            mutate_message(rng, value)
    else:
        _set(rng, message, field.name, value)


def _mutate_list(rng: random.Random, value: Any, is_message: bool) -> None:
    action = rng.random()
    if len(value) and action < 0.15:
        del value[rng.randrange(len(value))]
    elif len(value) and action < 0.2:
        value.append(value[rng.randrange(len(value))])
    elif len(value) > 1 and action < 0.25:
        kept = [_copy(item) for item in value]
        rng.shuffle(kept)
        del value[:]
        value.extend(kept)
    elif len(value) and is_message:
        mutate_message(rng, value[rng.randrange(len(value))])
    elif is_message:
        value.add()
    elif len(value):
        item = value[0]
        place = rng.randrange(len(value))
        for candidate in rng.sample(WORDS if isinstance(item, str) else NUMBERS, 3):
            try:
                value[place] = candidate
                return
            except (TypeError, ValueError):
                continue


def _copy(item: Any) -> Any:
    if not isinstance(item, Message):
        return item
    copy = type(item)()
    copy.CopyFrom(item)
    return copy


def _set(rng: random.Random, message: Message, name: str, value: Any) -> None:
    if rng.random() < 0.15:
        message.ClearField(name)
        return
    candidates: tuple[Any, ...] = NUMBERS
    if isinstance(value, str):
        candidates = WORDS
    elif isinstance(value, bytes):
        candidates = (b"", b"x", b"\xff\x00", b"{}")
    elif isinstance(value, bool):
        candidates = (not value,)
    elif isinstance(value, float):
        candidates = (0.0, -1.5, float("nan"), float("inf"))
    elif rng.random() < 0.5:
        candidates = (value + 1, value - 1, value ^ 1 << rng.randrange(40))
    for candidate in rng.sample(candidates, len(candidates)):
        try:
            setattr(message, name, candidate)
            return
        except (TypeError, ValueError):
            continue


def outcome(data: bytes) -> str:
    """What reading ends in: a code, or `ok`. Raises what it should not."""
    try:
        contents = containers.read(data, "case")
        proto = contents.module
        module = decode_module(proto, "case")
    except HloError as problem:
        if any(not d.code.startswith("HLO02") for d in problem.diagnostics):
            raise
        return problem.code
    again = encode_module(module)
    # Messages with NaN are not equal to themselves.
    assert again == proto or written(again) == written(proto)
    try:
        print_module(module)
    except HloError as problem:
        return problem.code
    return "ok"


def written(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def run(cases: list[tuple[str, bytes]]) -> Counter[str]:
    """Outcomes of all cases; fails with the first tracebacks of those that went wrong."""
    found: Counter[str] = Counter()
    wrong: list[str] = []
    for name, data in cases:
        before = time.monotonic()
        try:
            found[outcome(data)] += 1
        except Exception:  # noqa: BLE001 - whatever it is, it is a defect
            wrong.append(f"{name}:\n{traceback.format_exc(limit=-6)}")
        if time.monotonic() - before > SLOWEST_S:
            wrong.append(f"{name}: took more than {SLOWEST_S} s")
    assert not wrong, f"{len(wrong)} of {len(cases)} cases\n" + "\n".join(wrong[:4])
    return found


@pytest.mark.slow
def test_mutated_bytes() -> None:
    files = seeds()
    cases: list[tuple[str, bytes]] = []
    for number in range(CASES):
        rng = random.Random(f"bytes {number}")
        cases.append((f"bytes {number}", mutated_bytes(rng, rng.choice(files))))
        if len(cases) == 1000:
            run(cases)
            cases.clear()
    run(cases)


@pytest.mark.slow
def test_mutated_messages() -> None:
    contents = [containers.read(data) for data in seeds()]
    modules = [c.module for c in contents if c.sniffed.container in WITH_MODULE]
    found: Counter[str] = Counter()
    for start in range(0, CASES, 1000):
        cases: list[tuple[str, bytes]] = []
        for number in range(start, min(start + 1000, CASES)):
            rng = random.Random(f"message {number}")
            module = _copy(rng.choice(modules))
            for _ in range(rng.choice([1, 1, 2, 4])):
                mutate_message(rng, module)
            cases.append((f"message {number}", written(HloProto(hlo_module=module))))
        found += run(cases)
    assert len(found) > 3


def test_every_truncation_of_a_small_file() -> None:
    module = encode_module(
        parse_module("ENTRY e { p = f32[4] parameter(0) ROOT n = f32[4] negate(p) }")
    )
    data = written(HloSnapshot(hlo=HloProto(hlo_module=module), execution_platform="x"))
    run([(f"cut at {cut}", data[:cut]) for cut in range(len(data))])
