"""Bytecode in, module out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.formats.bytecode.container import read_container
from mlirhlo.formats.bytecode.dialects import default_codecs, new_context, op_classes
from mlirhlo.formats.bytecode.entries import Entries
from mlirhlo.formats.bytecode.ir_reader import Adapter, IrReader
from mlirhlo.formats.bytecode.problems import at
from mlirhlo.formats.bytecode.resources import Resource, read_resources
from mlirhlo.formats.bytecode.text import AttributeText

if TYPE_CHECKING:
    from xdsl.context import Context


def read_module(
    data: bytes,
    file: str = "<bytecode>",
    *,
    context: Context | None = None,
    op_class: Callable[[str], type[Operation]] | None = None,
    adapt: Adapter | None = None,
) -> ModuleOp:
    """The module in MLIR bytecode of any version; nothing is verified.

    `context` has the dialects to read with, by default ours and xDSL's. `op_class` gives the class of
    an operation by its name, by default that of the context; `adapt` makes an operation another one
    as it is read. Raises `HloError` HLO0220 to HLO0226, with the offset of the byte at fault.
    """
    container = read_container(data, file)
    context = context or new_context()
    resources = read_resources(container)
    keys = tuple(r.key for r in resources if not r.is_external)
    entries = Entries(container, default_codecs(), AttributeText(context), keys)
    reader = IrReader(container, entries, op_class or op_classes(context), adapt)
    with paused_gc():
        try:
            return reader.read()
        except RecursionError:
            raise _too_deep(file) from None


def resources_of(data: bytes, file: str = "<bytecode>") -> tuple[Resource, ...]:
    """The resources in bytecode, external ones first. Raises HLO0220 to HLO0222."""
    return read_resources(read_container(data, file))


def _too_deep(file: str) -> HloError:
    return error("HLO0223", "something is nested too deep", at(file, 0))
