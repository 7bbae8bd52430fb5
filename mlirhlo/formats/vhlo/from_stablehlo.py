"""StableHLO to VHLO of a chosen version, and its refusal where that version lacks something.

Operations are not changed: the writer asks for the form of each one, and for the encoding of its
attributes and types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import builtin
from xdsl.dialects.builtin import (
    DictionaryAttr,
    FileLineColLoc,
    ModuleOp,
    NoneAttr,
    StringAttr,
    TensorType,
    UnrealizedConversionCastOp,
    UnregisteredOp,
)
from xdsl.ir import Attribute, Operation

from mlirhlo.diagnostics import Diagnostic, HloError, Place, error
from mlirhlo.dialects.hlo.table import Calls, opcodes
from mlirhlo.dialects.stablehlo import attributes as stablehlo
from mlirhlo.dialects.stablehlo import mesh
from mlirhlo.dialects.stablehlo.locations import (
    FileRangeLoc,
    call_loc,
    file_loc,
    fused_loc,
    name_loc,
)
from mlirhlo.dialects.stablehlo.types import FutureType, UniformQuantizedType
from mlirhlo.formats.bytecode.dialects import default_codecs
from mlirhlo.formats.bytecode.tables import PLAIN, Tables
from mlirhlo.formats.bytecode.writing import OpForm, WriteOptions, Writer
from mlirhlo.formats.vhlo import mapping
from mlirhlo.formats.vhlo.casts import insert_casts, side_of
from mlirhlo.formats.vhlo.table import VhloOp, versions_of
from mlirhlo.formats.vhlo.versions import MIXED, Version, bytecode_version

VHLO = "vhlo"

_RANGES = Version(1, 8, 4)
"""The first version whose readers know stretches of files."""
_DICTIONARY_CONFIG = Version(1, 3)
_PROMOTING = Version(0, 17)
_REDUCERS = frozenset(
    name.replace("-", "_")
    for name in opcodes(lambda row: row.calls is Calls.ELEMENTS and not row.is_asynchronous)
) - {"map", "sort"}

_TYPE_SINCE: Mapping[Attribute, Version] = {
    builtin.Float8E4M3FNUZType(): Version(0, 10),
    builtin.Float8E5M2FNUZType(): Version(0, 10),
    builtin.Float8E4M3B11FNUZType(): Version(0, 11),
    builtin.IntegerType(2): Version(1, 2),
    builtin.IntegerType(2, builtin.Signedness.UNSIGNED): Version(1, 2),
    builtin.FloatTF32Type(): Version(1, 6),
    builtin.NoneType(): Version(1, 6),
    builtin.Float8E4M3Type(): Version(1, 7),
    builtin.Float8E3M4Type(): Version(1, 7),
    builtin.Float4E2M1FNType(): Version(1, 8),
    builtin.Float6E2M3FNType(): Version(1, 8),
    builtin.Float6E3M2FNType(): Version(1, 8),
    builtin.Float8E8M0FNUType(): Version(1, 8),
}
"""Types that not all versions have."""

_MESH = (
    mesh.MeshAttr,
    mesh.MeshAxisAttr,
    mesh.AxisRefAttr,
    mesh.SubAxisInfoAttr,
    mesh.ReplicaGroupMeshAxesAttr,
)


def write_vhlo(module: ModuleOp, target: Version) -> bytes:
    """The artifact of a StableHLO module. Raises `HloError` HLO0233, HLO0234."""
    is_mixed = target.opset >= MIXED
    module = insert_casts(module, _is_vhlo) if is_mixed else module
    former = _Downgrade(target)
    version = bytecode_version(target)
    codecs = default_codecs()
    tables = Tables(codecs, version, {VHLO: _Checked(target, former)}, former.foreign)
    options = WriteOptions(version, f"StableHLO_v{target}")
    return Writer(options, tables, former).write(module)


def _is_vhlo(op: Operation) -> bool:
    """Whether VHLO has the operation."""
    return bool(versions_of(_opcode(op)))


def _opcode(op: Operation) -> str:
    dialect, _, name = op.name.partition(".")
    if dialect == "stablehlo" or (dialect == "func" and name in ("func", "call", "return")):
        return name
    return ""


@dataclass(slots=True)
class _Downgrade:
    """The form of each operation in VHLO of a version."""

    target: Version
    _where: Operation | None = None

    def __call__(self, op: Operation) -> OpForm:
        """The form of an operation. Raises HLO0233, HLO0234."""
        self._where = op
        rows = versions_of(_opcode(op))
        if not rows:
            return self._foreign_form(op)
        try:
            return self._form(op, rows)
        except mapping.Unsuitable as problem:
            raise error("HLO0234", f"{op.name}: {problem}", place_of(op)) from None

    def _foreign_form(self, op: Operation) -> OpForm:
        name, attributes = op.name, dict(op.attributes)
        if isinstance(op, UnregisteredOp):
            name = op.op_name.data
            del attributes["op_name__"]
        if name.startswith("stablehlo."):
            raise error("HLO0234", f"VHLO has no '{name}'", place_of(op))
        if isinstance(op, UnrealizedConversionCastOp):
            to_vhlo = bool(op.operands) and side_of(op.operands[0], _is_vhlo) is False
            return OpForm(name, {}, attributes, VHLO if to_vhlo else PLAIN)
        if name != "builtin.module" and self.target.opset < MIXED:
            raise HloError(
                Diagnostic(
                    "HLO0233",
                    f"'{name}' is no StableHLO operation, and artifacts of StableHLO {self.target}"
                    f" hold no others; {MIXED} is the first that may",
                    place_of(op),
                    help=f"lower '{name}' to StableHLO first, or target {MIXED} or newer",
                )
            )
        return OpForm(name, op.properties, attributes, PLAIN)

    def _form(self, op: Operation, rows: tuple[VhloOp, ...]) -> OpForm:
        newest = rows[-1]
        values = self._attributes(op, newest)
        row = next((r for r in rows if r.since <= self.target.opset <= r.until), None)
        if row is None:
            raise self._too_old(op, rows[0].since, f"'{op.name}' came with")
        for name in set(newest.attributes) - set(row.attributes):
            value = values.pop(name)
            if not _says_nothing(newest.opcode, name, value):
                raise self._too_old(op, self._next(rows, row), f"'{name}' came with")
        if row.name == "dynamic_conv_v1":
            values["padding"] = mapping.default(
                "convolution", "padding", _spatial(values)
            ) or mapping.tensor(())
        self._check(op, rows, row)
        return OpForm(f"{VHLO}.{row.name}", values, op.attributes, VHLO)

    def _next(self, rows: tuple[VhloOp, ...], row: VhloOp) -> Version:
        return rows[rows.index(row) + 1].since

    def _check(self, op: Operation, rows: tuple[VhloOp, ...], row: VhloOp) -> None:
        """What a version cannot say although it has the operation."""
        opcode, target = row.opcode, self.target.opset
        if opcode in ("all_gather", "all_reduce", "all_to_all") and row.number == 1:
            if len(op.operands) != 1:
                raise self._too_old(op, self._next(rows, row), "more than one operand came with")
        elif opcode == "composite" and row.number == 1 and op.regions:
            raise self._too_old(op, self._next(rows, row), "regions came with")
        if (
            opcode == "custom_call"
            and target < _DICTIONARY_CONFIG
            and isinstance(op.properties.get("backend_config"), DictionaryAttr)
        ):
            raise self._too_old(op, _DICTIONARY_CONFIG, "a dictionary as backend_config came with")
        if opcode in _REDUCERS and target < _PROMOTING and _promotes(op):
            raise self._too_old(op, _PROMOTING, "reducing in another element type came with")

    def _attributes(self, op: Operation, row: VhloOp) -> dict[str, Attribute]:
        """All attributes that the newest version of an operation has."""
        opcode = row.opcode
        given = dict(op.properties)
        values: dict[str, Attribute] = {}
        group = mapping.GROUPS.get(opcode)
        if group is not None:
            structure = given.pop(group.property, None)
            if not isinstance(structure, group.cls):
                raise mapping.Unsuitable(f"the property '{group.property}' is missing")
            for name, is_list in group.fields:
                value = getattr(cast("Any", structure).data, mapping.RENAMED.get(name, name))
                values[name] = mapping.tensor(value) if is_list else mapping.integer(value)
        if opcode == "dot_general":
            values.update(mapping.algorithm_to_vhlo(given.pop("algorithm", None)))
        if opcode in mapping.COLLECTIVES:
            handle = given.pop("channel_handle", None)
            if isinstance(handle, stablehlo.ChannelHandleAttr):
                values["channel_id"] = mapping.integer(handle.data.handle)
            if given.pop("use_global_device_ids", None) is not None:
                values["use_global_device_ids"] = mapping.TRUE
        for name, value in given.items():
            if name not in row.attributes:
                raise mapping.Unsuitable(f"VHLO has no place for the property '{name}'")
            values[name] = mapping.to_vhlo(name, value)
        missing = [name for name in row.attributes if name not in values]
        if missing:
            dimensions = _dimensions(op, values)
            for name in missing:
                value = mapping.default(opcode, name, dimensions)
                if value is None:
                    raise mapping.Unsuitable(f"the property '{name}' is missing")
                values[name] = value
        return values

    # ------------------------------------------------------------ refusals

    def _too_old(self, op: Operation, since: Version, what: str) -> HloError:
        return HloError(
            Diagnostic(
                "HLO0233",
                f"{op.name} cannot be written for StableHLO {self.target}: {what} {since}",
                place_of(op),
                help=f"target {since} or newer, or rewrite the operation in terms of older ones",
            )
        )

    def require(self, value: Attribute, since: Version) -> None:
        """Raises HLO0233 when the target is older than what an attribute or type needs."""
        if self.target.opset >= since:
            return
        where = self._where
        name = "the module" if where is None else where.name
        raise HloError(
            Diagnostic(
                "HLO0233",
                f"{name} cannot be written for StableHLO {self.target}: '{str(value)[:80]}' came"
                f" with {since}",
                None if where is None else place_of(where),
                help=f"target {since} or newer, or convert to a type that {self.target} has",
            )
        )

    def foreign(self, value: Attribute, mode: str) -> None:
        """An attribute or type that VHLO has no form of. Raises HLO0233, HLO0234."""
        del mode
        text = str(value)[:80]
        if text.startswith(("#stablehlo", "!stablehlo", "!quant")):
            raise error("HLO0234", f"VHLO has no form of '{text}'")
        if self.target.opset < MIXED:
            raise HloError(
                Diagnostic(
                    "HLO0233",
                    f"'{text}' is not of StableHLO, and artifacts of StableHLO {self.target} hold"
                    f" nothing else; {MIXED} is the first that may",
                    help=f"take it out of the program, or target {MIXED} or newer",
                )
            )

    # ------------------------------------------------------------ locations

    def location(self, value: Attribute) -> Attribute:
        """Stretches of files as points for readers that do not know them."""
        if self.target >= _RANGES:
            return value
        return _as_points(value)


def _as_points(value: Attribute) -> Attribute:
    match value:
        case FileRangeLoc():
            return file_loc(value.data.file, value.data.line, value.data.column)
        case builtin.NameLoc():
            child = value.location
            return name_loc(
                value.desc.data, None if isinstance(child, NoneAttr) else _as_points(child)
            )
        case builtin.CallSiteLoc():
            return call_loc(_as_points(value.callee), _as_points(value.caller))
        case builtin.FusedLoc():
            places = cast("builtin.ArrayAttr[Attribute]", value.locations).data
            points = [_as_points(place) for place in places]
            metadata = value.metadata
            return fused_loc(points, None if isinstance(metadata, NoneAttr) else metadata)
        case _:
            return value


class _Checked:
    """The codec of VHLO, which also checks that the target has what it writes."""

    def __init__(self, target: Version, former: _Downgrade) -> None:
        self._codec = default_codecs()[VHLO]
        self._target, self._former = target, former

    def read_attribute(self, source: object) -> Attribute:
        """Not used: this one only writes."""
        raise TypeError("this codec only writes")

    read_type = read_attribute

    def write_attribute(self, value: Attribute, sink: object) -> bool:
        """Encodes an attribute."""
        if isinstance(value, _MESH):
            self._former.require(value, Version(1, 16))
        elif isinstance(value, stablehlo.ResultAccuracyAttr):
            self._former.require(value, Version(1, 9))
        return self._codec.write_attribute(value, sink)  # type: ignore[arg-type]

    def write_type(self, value: Attribute, sink: object) -> bool:
        """Encodes a type."""
        since = _TYPE_SINCE.get(value)
        if since is None:
            if isinstance(value, UniformQuantizedType) and value.data.axis is not None:
                since = Version(0, 18)
            elif isinstance(value, builtin.MemRefType):
                since = Version(1, 13)
            elif isinstance(value, FutureType):
                since = Version(1, 15)
        if since is not None:
            self._former.require(cast("Attribute", value), since)
        return self._codec.write_type(value, sink)  # type: ignore[arg-type]


def _says_nothing(opcode: str, name: str, value: Attribute) -> bool:
    """Whether an attribute may be left out for a version that lacks it."""
    if name in mapping.ALGORITHM_FIELDS:
        return value == mapping.NONE
    if "batching" in name:
        return not mapping.integers_of(value)
    return mapping.is_default(opcode, name, value)


def _spatial(values: Mapping[str, Attribute]) -> int:
    return len(mapping.integers_of(values["input_spatial_dimensions"]))


def _dimensions(op: Operation, values: Mapping[str, Attribute]) -> int:
    """Number of dimensions of the window of an operation."""
    for name in ("input_spatial_dimensions", "window_dimensions"):
        if name in values:
            return len(mapping.integers_of(values[name]))
    type_ = op.operands[0].type if op.operands else None
    return type_.get_num_dims() if isinstance(type_, TensorType) else 0


def _element(type_: Attribute) -> Attribute:
    if not isinstance(type_, TensorType):
        return type_
    return cast("TensorType[Attribute]", type_).element_type


def _promotes(op: Operation) -> bool:
    """Whether the reducer of an operation works in another element type than its operands'."""
    for region in op.regions:
        block = region.first_block
        if block is None:
            continue
        own = {_element(operand.type) for operand in op.operands}
        if any(_element(argument.type) not in own for argument in block.args):
            return True
    return False


def place_of(op: Operation) -> Place | None:
    """Where an operation is by its location."""
    location: Attribute = op.location
    while isinstance(location, builtin.NameLoc | builtin.CallSiteLoc):
        location = location.location if isinstance(location, builtin.NameLoc) else location.callee
    if isinstance(location, FileLineColLoc):
        return Place(location.filename.data, location.line.data, location.column.data)
    parent = op.parent_op()
    while parent is not None:
        name = parent.properties.get("sym_name")
        if isinstance(name, StringAttr) and parent.name == "func.func":
            return Place("<module>", what=f"in @{name.data}")
        parent = parent.parent_op()
    return None
