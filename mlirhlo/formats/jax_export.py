"""What `jax.export` writes: `Exported.serialize()`, a FlatBuffers table around a portable artifact.

Field numbers are those of JAX's `serialization.fbs`; they are only ever added to.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from mlirhlo.diagnostics import HloError, Place, error
from mlirhlo.formats.flatbuffer import BadBuffer, Table, unsigned
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.formats import vhlo


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_MAGIC = b"ML\xefR"
_MAX_VJPS = 32
"""Most derivatives of derivatives that are followed."""


class _Field(IntEnum):
    SERIALIZATION_VERSION = 0
    FUNCTION_NAME = 1
    IN_AVALS = 3
    OUT_AVALS = 5
    NR_DEVICES_SHORT = 6
    PLATFORMS = 9
    MODULE = 13
    CALLING_CONVENTION = 14
    KEPT_VARIABLES = 15
    VJP = 17
    NR_DEVICES = 18
    UNIQUE_AVALS = 19
    IN_AVAL_INDICES = 22
    OUT_AVAL_INDICES = 23
    JAX_VERSION = 26


_DTYPES = {
    0: "bool",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "uint8",
    6: "uint16",
    7: "uint32",
    8: "uint64",
    9: "float16",
    10: "float32",
    11: "float64",
    12: "complex64",
    13: "complex128",
    14: "bfloat16",
    15: "int4",
    16: "uint4",
    17: "float8_e4m3b11fnuz",
    18: "float8_e4m3fn",
    19: "float8_e4m3fnuz",
    20: "float8_e5m2",
    21: "float8_e5m2fnuz",
    22: "float0",
    23: "float8_e4m3",
    24: "float8_e3m4",
    25: "float8_e8m0fnu",
    26: "float4_e2m1fn",
    27: "key<fry>",
    28: "key<rbg>",
    29: "key<unsafe_rbg>",
}


@dataclass(frozen=True, slots=True)
class AbstractValue:
    """Element type and shape of an argument or result; sizes may be expressions such as `2*b`."""

    dtype: str
    shape: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(self.shape)}]"


@dataclass(frozen=True, slots=True)
class JaxExport:
    """An exported JAX function."""

    function_name: str
    platforms: tuple[str, ...]
    in_avals: tuple[AbstractValue, ...]
    out_avals: tuple[AbstractValue, ...]
    nr_devices: int
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    """Arguments that the module still has."""
    serialization_version: int
    jax_version: str
    """Version of JAX that wrote it; empty before that was stored."""
    module_bytes: bytes
    """The portable artifact."""
    vjp: JaxExport | None = None
    """The exported derivative."""

    def module(self, name: str = "<jax.export>") -> ModuleOp:
        """The StableHLO program. Raises as `formats.vhlo.deserialize_artifact` does."""
        return vhlo.deserialize_artifact(self.module_bytes, name)


def is_jax_export(data: bytes) -> bool:
    """Whether data look like what `jax.export` writes; never raises."""
    try:
        found = Table.root(data).vector(_Field.MODULE)
    except BadBuffer:
        return False
    return found is not None and data[found[0] : found[0] + 4] == _MAGIC


def read_jax_export(data: bytes, name: str = "<jax.export>") -> JaxExport:
    """The exported function in `data`. Raises `HloError` HLO0235 with the offset at fault."""
    try:
        return _read(Table.root(data), name)
    except BadBuffer as problem:
        raise _damaged(str(problem), name, problem.offset) from None


def replace_module(data: bytes, module_bytes: bytes, name: str = "<jax.export>") -> bytes:
    """The same exported function with another portable artifact. Raises `HloError` HLO0235."""
    try:
        place = Table.root(data).place(_Field.MODULE)
        if place is None:
            raise _damaged("it holds no module", name, 0)
        unsigned(data, place, 4)
    except BadBuffer as problem:
        raise _damaged(str(problem), name, problem.offset) from None
    # References lead forward, so a new vector may stand behind everything else.
    out = bytearray(data)
    out += bytes(-len(out) % 8 + 4)
    out[place : place + 4] = (len(out) - place).to_bytes(4, "little")
    out += len(module_bytes).to_bytes(4, "little") + module_bytes
    return bytes(out)


def _damaged(message: str, name: str, offset: int) -> HloError:
    place = Place(name, what=f"byte {offset} (0x{offset & 0xFFFFFFFF:x})")
    return error("HLO0235", f"not a valid exported JAX function: {message}", place)


def _read(root: Table, name: str) -> JaxExport:
    chain: list[Table] = []
    table: Table | None = root
    while table is not None:
        chain.append(table)
        if len(chain) > _MAX_VJPS:
            raise _damaged(f"more than {_MAX_VJPS} derivatives", name, table.offset)
        table = table.table(_Field.VJP)
    found: JaxExport | None = None
    for table in reversed(chain):
        found = _one(table, found)
    assert found is not None
    return found


def _one(table: Table, vjp: JaxExport | None) -> JaxExport:
    return JaxExport(
        function_name=table.text(_Field.FUNCTION_NAME),
        platforms=table.texts(_Field.PLATFORMS),
        in_avals=_avals(table, _Field.IN_AVALS, _Field.IN_AVAL_INDICES),
        out_avals=_avals(table, _Field.OUT_AVALS, _Field.OUT_AVAL_INDICES),
        nr_devices=table.number(_Field.NR_DEVICES, 4) or table.number(_Field.NR_DEVICES_SHORT, 2),
        calling_convention_version=table.number(_Field.CALLING_CONVENTION, 2),
        module_kept_var_idx=table.numbers(_Field.KEPT_VARIABLES, 2),
        serialization_version=table.number(_Field.SERIALIZATION_VERSION, 2),
        jax_version=table.text(_Field.JAX_VERSION),
        module_bytes=table.octets(_Field.MODULE),
        vjp=vjp,
    )


def _avals(table: Table, direct: _Field, indices: _Field) -> tuple[AbstractValue, ...]:
    """Abstract values, which newer files hold once each and refer to by number."""
    given = table.tables(direct)
    if given:
        return tuple(map(_aval, given))
    unique = table.tables(_Field.UNIQUE_AVALS)
    found: list[AbstractValue] = []
    for index in table.numbers(indices, 4):
        if index >= len(unique):
            raise BadBuffer(f"abstract value {index} of {len(unique)} does not exist", table.offset)
        found.append(_aval(unique[index]))
    return tuple(found)


def _aval(table: Table) -> AbstractValue:
    number = table.number(2, 1)
    return AbstractValue(_DTYPES.get(number, f"dtype {number}"), table.texts(1))
