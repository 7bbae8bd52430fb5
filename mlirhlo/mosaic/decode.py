"""The kernel in a `tpu_custom_call`: its configuration and its module.

The body is MLIR bytecode or text, in the stable form (operations prefixed `stable_mosaic.`, a version
on the module) or with plain names. What is read has plain names and the newest form of each operation.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnregisteredOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import ParseError

from mlirhlo.diagnostics import HloError, Place, error
from mlirhlo.mosaic.upgrades import upgrade

if TYPE_CHECKING:
    from xdsl.context import Context

VERSION = "stable_mosaic.version"
PREFIX = "stable_mosaic."
NEWEST = 18
"""Newest version of the stable form that readers are known to take."""


@dataclass(frozen=True, slots=True)
class KernelConfig:
    """What `custom_call_config` says beside the body; every field that is absent has its default."""

    body: bytes
    serialization_format: int | None = None
    needs_layout_passes: bool = False
    has_communication: bool = False
    collective_id: int | None = None
    internal_scratch_in_bytes: int = 0
    device_type: str = "DEVICE_TYPE_TENSORCORE"
    others: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields that do not change what a kernel computes: `cost_estimate`, `needs_hlo_passes`,
    `allow_input_fusion`, `flag_configs`, `scoped_memory_configs`, …, as they stand."""


def config_of(options: Mapping[str, Any], name: str = "kernel") -> KernelConfig:
    """The configuration in a decoded `backend_config`. Raises `HloError` HLO0700."""
    inner = options.get("custom_call_config")
    if not isinstance(inner, dict):
        raise _unreadable(name, "its backend_config has no custom_call_config")
    fields: dict[str, Any] = dict(inner)  # pyright: ignore[reportUnknownArgumentType]
    body = fields.pop("body", None)
    if not isinstance(body, str):
        raise _unreadable(name, "its custom_call_config has no body")
    try:
        data = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        raise _unreadable(name, "its body is not base64") from None
    format_ = fields.pop("serialization_format", None)
    collective = fields.pop("collective_id", None)
    return KernelConfig(
        body=data,
        serialization_format=None if format_ is None else int(format_),
        needs_layout_passes=bool(fields.pop("needs_layout_passes", False)),
        has_communication=bool(fields.pop("has_communication", False)),
        collective_id=None if collective is None else int(collective),
        internal_scratch_in_bytes=int(fields.pop("internal_scratch_in_bytes", 0)),
        device_type=str(options.get("device_type", "DEVICE_TYPE_TENSORCORE")),
        others=fields | {k: v for k, v in options.items() if k != "custom_call_config"},
    )


def read_kernel(data: bytes, file: str = "<kernel>") -> ModuleOp:
    """The module of a body, bytecode or text in generic form; in plain names, upgraded.

    Raises `HloError` HLO0700 for text that does not parse and versions nobody knows, HLO0220 to
    HLO0226 for faults of the bytecode.
    """
    if data.startswith(b"ML\xefR"):
        from mlirhlo.formats.bytecode import read_module

        module = read_module(data, file, op_class=_op_class)
    else:
        module = _read_text(data, file)
    stated = module.attributes.get(VERSION)
    if isinstance(stated, IntegerAttr):
        version = stated.value.data
        if not 1 <= version <= NEWEST:
            raise _unreadable(file, f"version {version} of the stable form, {NEWEST} is the newest")
        upgrade(module, version)
    return module


def _unreadable(name: str, problem: str) -> HloError:
    return error(
        "HLO0700",
        f"the kernel of {name} cannot be read: {problem}",
        help="lower the program again; the body has to be MLIR bytecode or generic MLIR text",
    )


@cache
def _op_class(name: str) -> type[Operation]:
    plain = name.removeprefix(PREFIX)
    return ModuleOp if plain == "builtin.module" else UnregisteredOp.with_name(plain)


def _text_context() -> Context:
    from xdsl.context import Context
    from xdsl.dialects.builtin import Builtin

    context = Context(allow_unregistered=True)
    context.load_dialect(Builtin)
    return context


def _read_text(data: bytes, file: str) -> ModuleOp:
    from xdsl.parser import Parser

    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise _unreadable(file, "it is neither bytecode nor text") from None
    try:
        module = Parser(_text_context(), text, file).parse_module()
    except ParseError as problem:
        span = problem.span
        before = text[: span.start]
        line, column = before.count("\n") + 1, span.start - (before.rfind("\n") + 1) + 1
        lines = text.splitlines()
        place = Place(
            file, line, column, source_line=lines[line - 1] if line <= len(lines) else None
        )
        raise error(
            "HLO0700",
            f"the kernel's text cannot be read: {str(problem.args[-1]).strip().splitlines()[-1]}",
            place,
            help='write the operations in generic form: "tpu.iota"() {…} : () -> …',
        ) from None
    for op in module.walk():
        if isinstance(op, UnregisteredOp):
            stated = op.op_name
            op.attributes["op_name__"] = type(stated)(stated.data.removeprefix(PREFIX))
    return module
