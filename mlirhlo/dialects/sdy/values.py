"""Values of Shardy's attributes: what they hold, and their text without the mnemonic.

`str(value)` is the *stripped* form, the one that stands inside ops and other attributes
(`<@mesh, [{"x"}]>`, `{"x", ?}p1`, `"x":(1)2`). Dimensions count from 0, axis names are strings
without quotes, and lists of axes run from the major to the minor one.

Source: the syntax and the constraints are those of the dialect in jaxlib, as it prints and
refuses them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*\Z")
_ESCAPES = {c: f"\\{c:02X}" for c in (*range(0x20), *range(0x7F, 0x100), ord('"'))} | {
    ord("\\"): "\\\\"
}
_LETTERS = "ijklmnopqrstuvwxyz"


class ValueProblem(ValueError):
    """A value that breaks a constraint of its own, whatever it is attached to."""


def quoted(text: str) -> str:
    """`text` as an MLIR string literal; surrogate escapes stand for bytes that are not UTF-8."""
    raw = text.encode("utf-8", "surrogateescape").decode("latin-1")
    return f'"{raw.translate(_ESCAPES)}"'


def symbol_text(name: str) -> str:
    """`@name`, quoted where it is not an identifier."""
    return f"@{name}" if _BARE.match(name) else f"@{quoted(name)}"


def _joined(parts: Iterable[object]) -> str:
    return ", ".join(map(str, parts))


class PropagationDirection(Enum):
    """Which way shardings may flow; the value is the integer MLIR stores."""

    NONE = 0
    FORWARD = 1
    BACKWARD = 2
    BOTH = 3


@dataclass(frozen=True, slots=True)
class MeshAxis:
    """A named axis of a mesh: `"x"=4`."""

    name: str
    size: int

    def __str__(self) -> str:
        return f"{quoted(self.name)}={self.size}"


@dataclass(frozen=True, slots=True)
class Mesh:
    """Axes of devices, and their order where it is not 0, 1, 2, …: `<["x"=2], device_ids=[1, 0]>`.

    No axes and one device id mean a *maximal* sharding, onto that device alone.
    """

    axes: tuple[MeshAxis, ...] = ()
    device_ids: tuple[int, ...] = ()

    def __str__(self) -> str:
        ids = f", device_ids=[{_joined(self.device_ids)}]" if self.device_ids else ""
        return f"<[{_joined(self.axes)}]{ids}>"

    @property
    def size(self) -> int:
        """Number of devices."""
        return math.prod(axis.size for axis in self.axes)

    @property
    def is_maximal(self) -> bool:
        """Whether everything is on one named device."""
        return not self.axes and len(self.device_ids) == 1

    def axis_size(self, name: str) -> int | None:
        """Size of the axis `name`; None where the mesh has no such axis."""
        return next((axis.size for axis in self.axes if axis.name == name), None)

    @staticmethod
    def checked(axes: Sequence[MeshAxis], device_ids: Sequence[int]) -> Mesh:
        """The mesh, its order left out where it is the usual one; raises `ValueProblem`."""
        seen: set[str] = set()
        for axis in axes:
            if axis.size < 1:
                raise ValueProblem(f"axis size must be at least 1, got: {axis.size}")
            if axis.name in seen:
                raise ValueProblem(f"duplicate axis name: {quoted(axis.name)}")
            seen.add(axis.name)
        negative = [number for number in device_ids if number < 0]
        if negative:
            raise ValueProblem(f"device id must be non-negative, got: {negative[0]}")
        mesh = Mesh(tuple(axes), tuple(device_ids))
        if not axes:
            if len(device_ids) > 1:
                raise ValueProblem("axes is empty and device_ids has more than one element")
            return mesh
        if device_ids:
            if len(device_ids) != mesh.size or sorted(device_ids) != list(range(mesh.size)):
                raise ValueProblem(
                    f"sorted device ids must be iota(product(axes)), got: {_joined(sorted(device_ids))}"
                )
            if list(device_ids) == list(range(mesh.size)):
                return Mesh(mesh.axes)
        return mesh


@dataclass(frozen=True, slots=True)
class SubAxis:
    """Part of an axis that is split into several: `(pre_size)size`."""

    pre_size: int
    """Product of the parts to its left."""
    size: int

    def __str__(self) -> str:
        return f"({self.pre_size}){self.size}"


@dataclass(frozen=True, slots=True)
class AxisRef:
    """A whole axis of a mesh, `"x"`, or a part of one, `"x":(1)2`."""

    name: str
    sub_axis_info: SubAxis | None = None

    def __str__(self) -> str:
        part = f":{self.sub_axis_info}" if self.sub_axis_info is not None else ""
        return quoted(self.name) + part

    def size(self, mesh: Mesh) -> int:
        """Devices along the reference; 1 where `mesh` has no such axis."""
        if self.sub_axis_info is not None:
            return self.sub_axis_info.size
        return mesh.axis_size(self.name) or 1


@dataclass(frozen=True, slots=True)
class AxisRefList:
    """`{"x", "y":(1)2}`."""

    value: tuple[AxisRef, ...] = ()

    def __str__(self) -> str:
        return f"{{{_joined(self.value)}}}"


@dataclass(frozen=True, slots=True)
class ListOfAxisRefLists:
    """One list of axes for each dimension: `[{"x"}, {}]`."""

    value: tuple[AxisRefList, ...] = ()

    def __str__(self) -> str:
        return f"[{_joined(self.value)}]"


@dataclass(frozen=True, slots=True)
class DimensionSharding:
    """Axes that shard one dimension: `{"x", ?}p1`; `?` where propagation may add more."""

    axes: tuple[AxisRef, ...] = ()
    is_closed: bool = True
    priority: int | None = None
    """0 is the highest; None means the same."""

    def __str__(self) -> str:
        parts = [str(axis) for axis in self.axes] + ([] if self.is_closed else ["?"])
        priority = "" if self.priority is None else f"p{self.priority}"
        return f"{{{_joined(parts)}}}{priority}"


@dataclass(frozen=True, slots=True)
class TensorSharding:
    """How a tensor lies on a mesh: `<@mesh, [{"x"}, {?}], replicated={"y"}, unreduced={"z"}>`."""

    mesh_or_ref: Mesh | str
    """The mesh, or the name of the `sdy.mesh` that holds it."""
    dim_shardings: tuple[DimensionSharding, ...] = ()
    replicated_axes: tuple[AxisRef, ...] = ()
    unreduced_axes: tuple[AxisRef, ...] = ()

    def __str__(self) -> str:
        mesh = self.mesh_or_ref
        head = symbol_text(mesh) if isinstance(mesh, str) else f"mesh{mesh}"
        tail = f", replicated={{{_joined(self.replicated_axes)}}}" if self.replicated_axes else ""
        if self.unreduced_axes:
            tail += f", unreduced={{{_joined(self.unreduced_axes)}}}"
        return f"<{head}, [{_joined(self.dim_shardings)}]{tail}>"


@dataclass(frozen=True, slots=True)
class TensorShardingPerValue:
    """One sharding for each operand or result: `[<@mesh, [{"x"}]>]`."""

    shardings: tuple[TensorSharding, ...] = ()

    def __str__(self) -> str:
        return f"[{_joined(self.shardings)}]"


@dataclass(frozen=True, slots=True)
class ManualAxes:
    """Axes a region is written for by hand: `{"x", "y"}`."""

    value: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{{{_joined(map(quoted, self.value))}}}"


def factor_symbol(index: int) -> str:
    """Name of a factor: `i` to `z`, then `z_1`, `z_2`, …"""
    last = len(_LETTERS) - 1
    return _LETTERS[index] if index <= last else f"z_{index - last}"


def factor_indices(symbols: str) -> tuple[int, ...]:
    """Factors of a compound name such as `ijz_1`; raises `ValueProblem`."""
    found: list[int] = []
    at = 0
    while at < len(symbols):
        if symbols.startswith("z_", at):
            match = re.match(r"[0-9]+", symbols[at + 2 :])
            if match is None:
                raise ValueProblem(f"expecting integer after 'z_'. Received: '{symbols[at:]}'")
            digits = match.group()
            if digits[0] == "0":
                raise ValueProblem(
                    f"expecting positive integer without leading zeros. Received: '{digits}'"
                )
            found.append(len(_LETTERS) - 1 + int(digits))
            at += 2 + len(digits)
            continue
        index = _LETTERS.find(symbols[at])
        if index < 0:
            raise ValueProblem(f"expecting symbol from 'i' to 'z'. Received: '{symbols[at]}'")
        found.append(index)
        at += 1
    return tuple(found)


@dataclass(frozen=True, slots=True)
class DimMapping:
    """Factors that make up one dimension, major to minor: `ij`."""

    factor_indices: tuple[int, ...] = ()

    def __str__(self) -> str:
        return "".join(map(factor_symbol, self.factor_indices))


@dataclass(frozen=True, slots=True)
class TensorMapping:
    """Factors of every dimension of a tensor: `[i, jk]`."""

    dim_mappings: tuple[DimMapping, ...] = ()

    def __str__(self) -> str:
        return f"[{_joined(self.dim_mappings)}]"


@dataclass(frozen=True, slots=True)
class OpShardingRule:
    """How an op may be partitioned: `<([i, k], [k, j])->([i, j]) {i=8, j=16, k=8} reduction={k}>`."""

    factor_sizes: tuple[int, ...] = ()
    operand_mappings: tuple[TensorMapping, ...] = ()
    result_mappings: tuple[TensorMapping, ...] = ()
    reduction_factors: tuple[int, ...] = ()
    need_replication_factors: tuple[int, ...] = ()
    permutation_factors: tuple[int, ...] = ()
    blocked_propagation_factors: tuple[int, ...] = ()
    is_custom_rule: bool = False
    """Whether a user wrote it, for a custom call."""

    def __str__(self) -> str:
        out = f"<({_joined(self.operand_mappings)})->({_joined(self.result_mappings)})"
        if self.factor_sizes:
            sizes = (f"{factor_symbol(i)}={size}" for i, size in enumerate(self.factor_sizes))
            out += f" {{{_joined(sizes)}}}"
        for keyword, factors in (
            ("reduction", self.reduction_factors),
            ("need_replication", self.need_replication_factors),
            ("permutation", self.permutation_factors),
            ("blocked_propagation", self.blocked_propagation_factors),
        ):
            if factors:
                out += f" {keyword}={{{_joined(map(factor_symbol, factors))}}}"
        return out + (", custom>" if self.is_custom_rule else ">")


@dataclass(frozen=True, slots=True)
class AllToAllParam:
    """Axes that move from one dimension to another: `{"x"}: 0->1`."""

    axes: tuple[AxisRef, ...]
    src_dim: int
    tgt_dim: int

    def __str__(self) -> str:
        return f"{{{_joined(self.axes)}}}: {self.src_dim}->{self.tgt_dim}"


@dataclass(frozen=True, slots=True)
class AllToAllParamList:
    """`[{"x"}: 0->1, {"y"}: 1->2]`."""

    value: tuple[AllToAllParam, ...] = ()

    def __str__(self) -> str:
        return f"[{_joined(self.value)}]"


@dataclass(frozen=True, slots=True)
class EdgeValueRef:
    """An operand or result of an op, or a block argument's place: `operand-0`."""

    type: str
    """`operand` or `result`."""
    index: int

    def __str__(self) -> str:
        return f"{self.type}-{self.index}"


@dataclass(frozen=True, slots=True)
class AxisToPropagationDetails:
    """Where an axis came from and went to in one step: `"x" = operand-0 -> [result-0]`."""

    axis_name: AxisRef
    source: EdgeValueRef
    targets: tuple[EdgeValueRef, ...]

    def __str__(self) -> str:
        return f"{{{self.axis_name} = {self.source} -> [{_joined(self.targets)}]}}"


@dataclass(frozen=True, slots=True)
class PropagationOneStep:
    """What one step of propagation did: `{step-0 = [{"x" = operand-0 -> [result-0]}]}`."""

    step_index: int
    axis_entries: tuple[AxisToPropagationDetails, ...]

    def __str__(self) -> str:
        return f"{{step-{self.step_index} = [{_joined(self.axis_entries)}]}}"


@dataclass(frozen=True, slots=True)
class PropagationEdges:
    """What every step of propagation did: `<[{step-0 = […]}, …]>`."""

    value: tuple[PropagationOneStep, ...]

    def __str__(self) -> str:
        return f"<[{_joined(self.value)}]>"
