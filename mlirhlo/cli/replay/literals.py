"""Values as text, and as XLA's file of literals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from mlirhlo.diagnostics import Place, error
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.shapes import Shape, TupleShape
from mlirhlo.formats import read_file, write_file
from mlirhlo.formats.proto.containers_pb2 import RunHloModuleLiterals
from mlirhlo.formats.sniff import Container, Format, Sniffed, sniff
from mlirhlo.importing import LATE
from mlirhlo.interp.engine import Interpreter
from mlirhlo.interp.registry import Value
from mlirhlo.interp.values import literal_of_value

with LATE:
    from mlirhlo.formats import containers
    from mlirhlo.formats.proto import literals
    from mlirhlo.formats.proto import message as proto_message


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.replay import Inputs


_ONE_LINE = 72
"""Characters of elements that stand in one line; longer ones take a line a row."""


class StoredIteration:
    """Arguments of one iteration in a file of literals."""

    def __init__(self, arguments: Sequence[Literal]) -> None:
        self.arguments = arguments


def value_text(value: Value, shape: Shape) -> str:
    """A value as XLA prints literals, shapes without layouts; tuples one element a line."""
    if isinstance(shape, TupleShape):
        parts = cast("tuple[Value, ...]", value)
        lines = [value_text(v, s) for v, s in zip(parts, shape.elements, strict=True)]
        return "(\n" + ",\n".join(lines) + "\n)"
    literal = literal_of_value(value, shape)
    if literal is None:
        return shape.to_string(layout=False)
    text = literal.to_text()
    if len(text) > _ONE_LINE and text.startswith("{ {"):
        rows = text[2:-2].replace("}, {", "},\n  {")
        text = f"{{\n  {rows}\n}}"
    return f"{literal.shape.to_string(layout=False)} {text}"


def read_literals(path: str) -> list[StoredIteration]:
    """The iterations of a RunHloModuleLiterals file, binary or text.

    Raises `HloError`: HLO0503, HLO0506 when the file holds something else, HLO0206.
    """
    data, name = read_file(path)
    looks = sniff(data)
    kind = looks.format if looks.format in (Format.PROTO_TEXT, Format.PROTO_JSON) else Format.PROTO
    message = containers.read(
        data, name, Sniffed(kind, looks.is_gzip, Container.RUN_LITERALS)
    ).message
    assert isinstance(message, RunHloModuleLiterals)
    if not message.iterations:
        raise error("HLO0506", "the file holds no iterations of RunHloModuleLiterals", Place(name))
    try:
        return [
            StoredIteration([literals.decode_literal(a) for a in i.arguments])
            for i in message.iterations
        ]
    except proto_message.DecodeProblem as problem:
        raise problem.at(name, "iterations") from None


def write_literals(
    path: str, module: ModuleOp, records: Sequence[tuple[Inputs, list[Value], list[Value] | None]]
) -> None:
    """Writes arguments and results of all iterations (of device 0), as text when the file's name
    ends in `txt`."""
    entry = HloModule(module).entry
    reader = Interpreter(module)
    message = RunHloModuleLiterals()
    for inputs, results, expected in records:
        row = message.iterations.add()
        values = reader.inputs(inputs.per_device[0])
        for value, parameter in zip(values, entry.parameters, strict=True):
            literal = literal_of_value(value, parameter.shape)
            if literal is not None:
                row.arguments.append(literals.encode_literal(literal))
        for target, value in ((row.result, results), (row.reference_result, expected)):
            literal = literal_of_value(value[0], entry.root.shape) if value else None
            if literal is not None:
                target.CopyFrom(literals.encode_literal(literal))
    text = path.endswith("txt")
    write_file(path, containers.write(message, Format.PROTO_TEXT if text else Format.PROTO))
