"""Protos made from text against those that jaxlib makes from the same text."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, cast

import pytest
from google.protobuf.message import Message
from support import CORPUS
from unit.corpus import repository_texts

from mlirhlo.formats.hlo_text import parse_module
from mlirhlo.formats.proto import encode_module
from mlirhlo.formats.proto.module_pb2 import HloModuleProto

EVERY_OPCODE = Path(__file__).parent / "proto_inputs" / "every_opcode.hlo"

pytestmark = pytest.mark.oracle


def xla() -> Any:
    """jaxlib's module for HLO; it has no type stubs."""
    return importlib.import_module("jaxlib._hlo")


def ours(text: str) -> HloModuleProto:
    return encode_module(parse_module(text), keep_config=False)


def theirs(text: str) -> HloModuleProto:
    module = xla().hlo_module_from_text(text)
    return HloModuleProto.FromString(module.as_serialized_hlo_module_proto())


def normalised(proto: HloModuleProto, *, is_elided: bool) -> HloModuleProto:
    """Without what two processes, or two readers, may see differently.

    jaxlib numbers modules of a process and renumbers the stack frames of a text in the order of their
    use; it fills elided constants with a counter. What a wrapped asynchronous instruction gets of
    its start, update and done is no part of the text; jaxlib takes the last of them.
    """
    proto.ClearField("id")
    proto.ClearField("stack_frame_index")
    wrapped = {
        callee
        for computation in proto.computations
        for instruction in computation.instructions
        if instruction.opcode == "async-start"
        for callee in instruction.called_computation_ids
    }
    for computation in proto.computations:
        for instruction in computation.instructions:
            instruction.metadata.ClearField("stack_frame_id")
            if computation.id in wrapped:
                instruction.metadata.Clear()
                instruction.ClearField("backend_config")
            if is_elided and instruction.opcode == "constant":
                instruction.ClearField("literal")
    return proto


def differences(a: Message, b: Message, path: str = "") -> list[str]:
    """Paths and values of the fields in which two messages differ; the first twenty."""
    found: list[str] = []
    names = {f.name for f, _ in a.ListFields()} | {f.name for f, _ in b.ListFields()}
    for name in sorted(names):
        left, right = getattr(a, name), getattr(b, name)
        where = f"{path}.{name}"
        if left == right and (
            isinstance(left, Message) is False or a.HasField(name) == b.HasField(name)
        ):
            continue
        if isinstance(left, Message):
            if a.HasField(name) != b.HasField(name):
                found.append(f"{where}: present on one side only")
            found += differences(left, cast(Message, right), where)
        elif hasattr(left, "add") and len(left) == len(right):
            for index, (x, y) in enumerate(zip(left, right, strict=True)):
                found += differences(x, y, f"{where}[{index}]")
        else:
            found.append(f"{where}: ours {str(left)[:100]}, jaxlib's {str(right)[:100]}")
        if len(found) > 20:
            break
    return found


KNOWN = ("element_size_in_bits",)
"""jaxlib drops the element size of 4-bit constants when it reads text."""


def check(name: str, text: str) -> list[str]:
    """Differences of one text, with its name."""
    is_elided = "{...}" in text
    mine = normalised(ours(text), is_elided=is_elided)
    try:
        want = normalised(theirs(text), is_elided=is_elided)
    except Exception as problem:  # noqa: BLE001 - whatever jaxlib raises
        # libtpu prints `order=` on compares, which this jaxlib does not read.
        return [] if "order" in str(problem) else [f"{name}: jaxlib: {problem}"]
    found = differences(mine, want)
    found = [d for d in found if not any(known in d for known in KNOWN)]
    if not found and not is_elided:
        # XLA takes our message; and what it prints for it is what it prints for its own.
        load = xla().HloModule.from_serialized_hlo_module_proto
        loaded = load(written(ours(text)))
        if written(mine) == written(want):
            assert load(written(mine)).to_string() == load(written(want)).to_string()
        assert loaded.name == mine.name
    return [f"{name}: {difference}" for difference in found]


def written(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def test_every_opcode() -> None:
    assert not check("every_opcode", EVERY_OPCODE.read_text())


@pytest.mark.slow
def test_texts_of_the_repository_and_the_corpus() -> None:
    wrong: list[str] = []
    count = 0
    texts = [*repository_texts()]
    programs = CORPUS / "programs"
    texts += [(path.name, path.read_text()) for path in sorted(programs.rglob("*.hlo"))]
    for name, text in texts:
        if ".canonical." in name:
            continue  # bodies stand twice in them; jaxlib makes two computations of each
        found = check(name, text)
        wrong += found[:2]
        count += 1
    assert not wrong, f"{len(wrong)} differences in {count} texts\n" + "\n".join(wrong[:20])
