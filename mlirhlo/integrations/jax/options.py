"""Compile options under XLA's names: the fields of its DebugOptions, and a few beside them."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, cast

from mlirhlo.debug.options.known import type_of
from mlirhlo.diagnostics import Diagnostic, Severity, error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.formats.proto import debug_options_pb2


if TYPE_CHECKING:
    from google.protobuf.descriptor import FieldDescriptor

OptionValue: TypeAlias = "bool | int | float | str"

_BESIDE: Mapping[str, type] = {
    "device_memory_size": int,
    "exec_time_optimization_effort": float,
    "fdo_profile": str,
    "memory_fitting_effort": float,
    "num_partitions": int,
    "num_replicas": int,
    "optimization_level": int,
    "use_auto_spmd_partitioning": bool,
    "use_shardy_partitioner": bool,
    "use_spmd_partitioning": bool,
}
"""Options of a compilation that are no fields of DebugOptions, and their types."""

_TPU = ("xla_tpu_", "xla_jf_", "xla_mosaic_", "xla_sc_", "xla_msa_", "xla_lhs_")
"""Prefixes of the TPU compiler's own options, whose names are not public."""


_told: set[tuple[str, ...]] = set()
"""Options that were told to be without effect."""


def check_options(options: Mapping[str, OptionValue] | None) -> dict[str, OptionValue]:
    """The options as they are passed on, values as Python's types.

    Raises `HloError` HLO0602 for a name that XLA does not know, with the nearest one it does, and
    for a value that does not fit.
    """
    fields = debug_options_pb2.DebugOptions.DESCRIPTOR.fields_by_name
    checked: dict[str, OptionValue] = {}
    for name, value in (options or {}).items():
        if name in fields:
            checked[name] = _of_field(cast("FieldDescriptor", fields[name]), value)
        elif name in _BESIDE:
            checked[name] = _of_type(name, _BESIDE[name], value)
        elif name.startswith(_TPU):
            checked[name] = value
        else:
            near = difflib.get_close_matches(name, [*fields, *_BESIDE], n=1)
            raise error(
                "HLO0602",
                f"unknown compile option {name!r}",
                help=f"did you mean {near[0]!r}?"
                if near
                else "options are XLA's flags without the dashes, as `xla_dump_to`",
            )
    return checked


def options_for_us(options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    """The options that are fields of DebugOptions; a remark (HLO0523) names the others, once."""
    own = {name: value for name, value in options.items() if type_of(name) is not None}
    others = tuple(name for name in options if name not in own)
    if others and others not in _told:
        _told.add(others)
        message = f"without effect here: {', '.join(others)}"
        remark = Diagnostic("HLO0523", message, severity=Severity.REMARK)
        logging.getLogger("mlirhlo.flags").warning("%s", remark)
    return own


def _of_field(field: FieldDescriptor, value: OptionValue) -> OptionValue:
    if field.enum_type is not None:
        names = [v.name for v in field.enum_type.values]
        if isinstance(value, str) and value.upper() in (n.upper() for n in names):
            return value
        if isinstance(value, int) and value in field.enum_type.values_by_number:
            return field.enum_type.values_by_number[value].name
        raise _misfit(field.name, value, f"one of {', '.join(names)}")
    if field.message_type is not None:
        if isinstance(value, str):
            return value
        raise _misfit(field.name, value, "its text, as on the command line")
    kinds = {
        field.CPPTYPE_BOOL: bool,
        field.CPPTYPE_DOUBLE: float,
        field.CPPTYPE_FLOAT: float,
        field.CPPTYPE_STRING: str,
    }
    return _of_type(field.name, kinds.get(field.cpp_type, int), value)


def _of_type(name: str, kind: type, value: OptionValue) -> OptionValue:
    """`value` as `kind`; texts are read as on the command line."""
    if kind is bool:
        words = {"true": True, "1": True, "false": False, "0": False}
        if isinstance(value, bool):
            return value
        found = words.get(str(value).lower())
        if found is not None:
            return found
        raise _misfit(name, value, "true or false")
    if kind is str:
        return str(value)
    if not isinstance(value, bool):
        try:
            number = float(value) if kind is float else int(value)
        except (TypeError, ValueError):
            pass
        else:
            if not isinstance(value, float) or number == value:
                return number
    raise _misfit(name, value, "a number" if kind is float else "an integer")


def _misfit(name: str, value: OptionValue, wanted: str) -> Exception:
    return error("HLO0602", f"{name}: {value!r} is not {wanted}")
