"""The kernel in a `tpu_custom_call`: its configuration and its module.

The body is MLIR bytecode or text, in the stable form (operations prefixed `stable_mosaic.`, a version
on the module) or with plain names. What is read has plain names and the newest form of each operation.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnregisteredOp
from xdsl.ir import Operation

from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.tpu.op_classes import class_of
from mlirhlo.formats.bytecode import read_module
from mlirhlo.formats.bytecode.dialects import default_codecs
from mlirhlo.formats.bytecode.tables import Tables
from mlirhlo.formats.bytecode.writing import AsItIs, OpForm, WriteOptions, Writer
from mlirhlo.formats.mosaic.reader import (
    GPU_PREFIX,
    PREFIX,
    context,
    finish_module,
    parse_kernel,
    plain_name,
)
from mlirhlo.formats.mosaic.stable import GPU_VERSION, VERSION, is_for_gpus, stable_version, stated
from mlirhlo.mosaic.upgrades import upgrade

if TYPE_CHECKING:
    from xdsl.context import Context

_RENAMED = (
    (re.compile(r"\bxir_tc\."), "mosaic_tc."),
    (re.compile(r"\bxir\.enqueue_transfer\b"), "tpu.enqueue_dma"),
    (re.compile(r"\bxir\."), "tpu."),
)
NEWEST, GPU_NEWEST = 20, 8
"""Newest version of the stable form, for TPUs and GPUs, that readers are known to take."""


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
    """The module of a body, bytecode or text in any form; in plain names, upgraded.

    Raises `HloError` HLO0700 for versions nobody knows, HLO0710 to HLO0713 for text, HLO0220 to
    HLO0226 for faults of the bytecode.
    """
    if data.startswith(b"ML\xefR"):
        module = read_module(data, file, context=_bytecode_context(), op_class=_op_class)
    else:
        module = _read_text(data, file)
    _upgrade(module, file)
    finish_module(module)
    return module


def _upgrade(module: ModuleOp, file: str) -> None:
    """Brings a module of the stable form to the newest form; one of GPUs forgets its version, as in MLIR."""
    for name, newest in ((VERSION, NEWEST), (GPU_VERSION, GPU_NEWEST)):
        stated = module.attributes.get(name)
        if not isinstance(stated, IntegerAttr):
            continue
        version = stated.value.data
        if not 1 <= version <= newest:
            raise _unreadable(file, f"version {version} of the stable form, {newest} is the newest")
        if name == VERSION:
            upgrade(module, version)
        else:
            del module.attributes[name]


@dataclass(frozen=True)
class _StableForm(AsItIs):
    """Names with the prefix, all attributes in one dictionary."""

    prefix: str

    def __call__(self, op: Operation) -> OpForm:
        """The stable form of one operation."""
        form = super().__call__(op)
        attributes = stated(op, {**form.properties, **form.attributes})
        if form.name == "builtin.module":
            name, version = stable_version(cast(ModuleOp, op))
            attributes[name] = version
            return OpForm(form.name, {}, attributes)
        return OpForm(self.prefix + form.name, {}, attributes)


def write_stable(module: ModuleOp) -> bytes:
    """The module as MLIR bytecode in the stable form: what `body` of a call holds.

    Raises `HloError` HLO0227 for what bytecode cannot hold.
    """
    options = WriteOptions(version=0, producer="MLIR")
    form = _StableForm(GPU_PREFIX if is_for_gpus(module) else PREFIX)
    return Writer(options, Tables(default_codecs(), 0), form).write(module)


def _unreadable(name: str, problem: str) -> HloError:
    return error(
        "HLO0700",
        f"the kernel of {name} cannot be read: {problem}",
        help="lower the program again; the body has to be MLIR bytecode or MLIR text",
    )


def _op_class(name: str) -> type[Operation]:
    plain = plain_name(name)
    return class_of(plain) or _unregistered(plain)


@lru_cache(maxsize=1024)
def _unregistered(name: str) -> type[Operation]:
    return UnregisteredOp.with_name(name)


@cache
def _bytecode_context() -> Context:
    found = context().clone()
    found.allow_unregistered = True
    return found


def _read_text(data: bytes, file: str) -> ModuleOp:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise _unreadable(file, "it is neither bytecode nor text") from None
    return parse_kernel(known_names(text), file, is_raw=True)


def known_names(text: str) -> str:
    """A dump of a newer compiler in the names that its operations and attributes had before: libtpu 0.0.52
    calls the `tpu` dialect `xir` from its second stage on.
    """
    for new, old in _RENAMED if "xir" in text else ():
        text = new.sub(old, text)
    return text
