"""The opcode table, the op classes, the shape rules and the meanings agree."""

import pytest

from mlirhlo.dialects.hlo import HLO, OP_CLASSES, OPCODES, ops
from mlirhlo.dialects.hlo.attributes.base import TextAttr
from mlirhlo.dialects.hlo.ops.base import Accessor


def test_every_row_has_a_class_and_every_class_a_row() -> None:
    assert OPCODES.keys() == OP_CLASSES.keys()
    assert {cls.name for cls in OP_CLASSES.values()} <= {op.name for op in HLO.operations}


@pytest.mark.parametrize("opcode", OPCODES)
def test_accessors_are_attributes_of_the_row(opcode: str) -> None:
    cls, row = OP_CLASSES[opcode], OPCODES[opcode]
    own = {spec.property_name for spec in row.attributes} | {"parameter_number"}
    for name, value in vars(cls).items():
        if isinstance(value, Accessor):
            assert value.key in own, f"{opcode}: accessor {name} reads {value.key!r}"
    read = {value.key for value in vars(cls).values() if isinstance(value, Accessor)}
    written = {
        spec.property_name
        for spec in row.attributes
        if not (spec.read_only or spec.property_name == "called_computations")
    }
    assert written <= read, f"{opcode}: no accessor for {written - read}"


@pytest.mark.parametrize("opcode", OPCODES)
def test_rows_say_what_they_compute(opcode: str) -> None:
    assert OPCODES[opcode].summary
    assert OP_CLASSES[opcode].__doc__


def test_structured_attributes_have_names_of_their_own() -> None:
    names = [cls.name for cls in HLO.attributes]
    assert len(names) == len(set(names))
    assert all(name.startswith("hlo.") for name in names)
    assert any(issubclass(cls, TextAttr) for cls in HLO.attributes)


def test_defaults_are_in_the_text_their_kind_writes() -> None:
    from mlirhlo.dialects.hlo.syntax import Cursor

    for row in OPCODES.values():
        for spec in row.attributes:
            if spec.default is not None:
                assert spec.kind.write(spec.kind.read(Cursor(spec.default))) == spec.default


@pytest.mark.parametrize("opcode", OPCODES)
def test_a_class_is_imported_by_the_name_of_its_opcode(opcode: str) -> None:
    name = "".join(map(str.capitalize, opcode.split("-"))) + "Op"
    assert getattr(ops, name) is OP_CLASSES[opcode]


def test_a_class_of_no_opcode_is_told() -> None:
    with pytest.raises(ImportError, match="NothingOp"):
        exec("from mlirhlo.dialects.hlo.ops import NothingOp")
