"""Portable artifacts: StableHLO programs as VHLO in bytecode, readable by other versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp, UnrealizedConversionCastOp
from xdsl.ir import Attribute, Operation

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.quick import replace
from mlirhlo.formats.bytecode.container import read_head
from mlirhlo.formats.bytecode.dialects import new_context, op_classes
from mlirhlo.formats.bytecode.problems import at
from mlirhlo.formats.bytecode.reading import read_module
from mlirhlo.formats.vhlo import mapping
from mlirhlo.formats.vhlo.table import vhlo_ops
from mlirhlo.formats.vhlo.to_stablehlo import convert_attributes, target_name
from mlirhlo.formats.vhlo.versions import (
    CURRENT,
    MINIMUM,
    Version,
    parse_version,
    version_of_producer,
)
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.formats.vhlo import from_stablehlo


def artifact_version(data: bytes, file: str = "<artifact>") -> Version | None:
    """The StableHLO version of an artifact, None for bytecode that is none. Raises HLO0220 to HLO0222."""
    return version_of_producer(read_head(data, file)[1])


def deserialize_artifact(data: bytes, file: str = "<artifact>") -> ModuleOp:
    """The StableHLO program in a portable artifact, or in other bytecode with VHLO in it.

    Operations of any version from 0.9.0 on are upgraded. Raises `HloError` HLO0220 to HLO0226 for
    damaged bytecode, HLO0231 for an operation that is not known here, HLO0232 for one whose
    attributes make no sense.
    """
    version = artifact_version(data, file)
    if version is not None and version.opset < MINIMUM:
        raise error(
            "HLO0231",
            f"the artifact is of StableHLO {version}; artifacts are kept readable from {MINIMUM} on",
            at(file, 4),
            help=f"write it again with StableHLO {MINIMUM} or newer",
        )
    context = new_context()
    adapter = _Upgrade(file, version, op_classes(context))
    module = read_module(data, file, context=context, adapt=adapter)
    _fold_casts(module)
    return module


def serialize_artifact(module: ModuleOp, target_version: str = "current") -> bytes:
    """The portable artifact of a StableHLO program, for StableHLO `target_version` and newer.

    `target_version` is `current`, `minimum` or a version from 0.9.0 on. Raises `HloError` HLO0230 for
    a version that cannot be written, HLO0233 where that version lacks what the program uses, HLO0234
    where VHLO cannot say it at all.
    """
    return from_stablehlo.write_vhlo(module, parse_version(target_version))


@dataclass(slots=True)
class _Upgrade:
    """Makes operations of VHLO those of StableHLO while they are read."""

    file: str
    version: Version | None
    op_class: Callable[[str], type[Operation]]
    _classes: dict[str, type[Operation]] = field(default_factory=dict[str, type[Operation]])

    def __call__(
        self,
        name: str,
        cls: type[Operation],
        properties: dict[str, Attribute],
        attributes: dict[str, Attribute],
        parent: Operation | None,
        offset: int,
    ) -> tuple[type[Operation], dict[str, Attribute], dict[str, Attribute]]:
        """The StableHLO operation of one of VHLO; others as they are."""
        if not name.startswith("vhlo."):
            return cls, properties, attributes
        row = vhlo_ops().get(name[5:])
        if row is None:
            raise self._unknown(name, offset)
        attributes.pop("op_name__", None)
        in_function = parent is not None and parent.name == "func.func"
        target = target_name(row.opcode, in_function=in_function)
        found = self._classes.get(target)
        if found is None:
            found = self._classes[target] = self.op_class(target)
        try:
            return found, convert_attributes(row, properties), attributes
        except mapping.Unsuitable as problem:
            raise error("HLO0232", f"{name}: {problem}", at(self.file, offset)) from None
        except (TypeError, ValueError) as problem:
            message = f"{name}: its attributes do not fit together: {problem}"
            raise error("HLO0232", message, at(self.file, offset)) from None

    def _unknown(self, name: str, offset: int) -> HloError:
        own = f"StableHLO {self.version}" if self.version is not None else "an unknown version"
        return error(
            "HLO0231",
            f"'{name}' is not known: the artifact is of {own}, and {CURRENT} is the newest that is"
            " read",
            at(self.file, offset),
            help=f"write the artifact with target version {CURRENT} or older",
        )


def _fold_casts(module: ModuleOp) -> None:
    """Takes away casts between types of VHLO and those they are copies of, which are one here."""
    for op in [op for op in _walk(module) if isinstance(op, UnrealizedConversionCastOp)]:
        if len(op.operands) == len(op.results) and all(
            operand.type == result.type
            for operand, result in zip(op.operands, op.results, strict=True)
        ):
            for operand, result in zip(op.operands, op.results, strict=True):
                replace(result, operand)
            op.detach()
            op.erase()


def _walk(module: ModuleOp) -> Iterable[Operation]:
    waiting: list[Operation] = [module]
    while waiting:
        op = waiting.pop()
        yield op
        for region in op.regions:
            for block in region.blocks:
                waiting += block.ops
