"""XLA's flags as its DebugOptions message: of a file, of XLA_FLAGS, of the command line.

Names, types and defaults are the message's fields. What a tool of ours has no use for is accepted
and has no effect; a name nobody knows is a warning that names the nearest one. The command line
wins over the variable, the variable over the file of `--debug_options_file`.
Source of the syntax: dumps reference, "How XLA_FLAGS is parsed".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, cast

from mlirhlo.cli.report import usage_error, warn

if TYPE_CHECKING:
    from mlirhlo.formats.proto.debug_options_pb2 import DebugOptions

_OTHER_COMPILERS = ("xla_tpu_", "xla_jf_", "xla_mosaic_", "xla_sc_", "xla_msa_", "xla_lhs_")
"""Prefixes of flags of the TPU compiler, which are no fields of DebugOptions."""

_WITHOUT_FIELD = frozenset({"xla_fuel", "xla_flags_reset"})

_TOKEN = re.compile(
    r"""\s* (?P<name>-[^\s=]*) (?: (?P<equals>=) (?: "(?P<double>(?:[^"\\]|\\.)*)"?
        | '(?P<single>[^']*)'? | (?P<plain>\S*) ) )? """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class XlaFlags:
    """All flags that were given."""

    given: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    """Last value by name."""
    fuel: dict[str, int] = field(default_factory=dict[str, int])
    """`--xla_fuel=PASS=N`: rewrites that a pass may do."""
    _message: list[DebugOptions] = field(default_factory=list["DebugOptions"], repr=False)

    @property
    def debug_options(self) -> DebugOptions:
        """The message; fields nobody set are unset."""
        if not self._message:
            from mlirhlo.formats.proto.debug_options_pb2 import DebugOptions

            self._message.append(DebugOptions())
        return self._message[0]

    @property
    def disabled_passes(self) -> frozenset[str]:
        """Passes that `--xla_disable_hlo_passes` leaves out."""
        given = "xla_disable_hlo_passes" in self.given
        return frozenset(self.debug_options.xla_disable_hlo_passes) if given else frozenset()

    @property
    def enabled_passes_only(self) -> frozenset[str]:
        """The only passes to run, when `--xla_enable_hlo_passes_only` names any."""
        given = "xla_enable_hlo_passes_only" in self.given
        return frozenset(self.debug_options.xla_enable_hlo_passes_only) if given else frozenset()

    def is_set(self, name: str) -> bool:
        """Whether boolean flag `name` was given as true."""
        return name in self.given and bool(getattr(self.debug_options, name))


def read_flags(command_line: Sequence[tuple[str, str | None]]) -> XlaFlags:
    """All flags; see the head of this file.

    Raises `UsageError` HLO0502 for values that do not fit their flag and for a file of flags that
    cannot be read; `HloError` for a `--debug_options_file` that cannot be.
    """
    flags = XlaFlags()
    for name, value in command_line:
        if name == "debug_options_file":
            _read_file(flags, value or "")
    variable = os.environ.get("XLA_FLAGS", "")
    if variable.strip():
        for name, value in _tokens(variable):
            _add(flags, name, value, " in XLA_FLAGS")
    for name, value in command_line:
        if name != "debug_options_file":
            _add(flags, name, value, "")
    return flags


def _read_file(flags: XlaFlags, path: str) -> None:
    """Fields of a DebugOptions file in protobuf text (or binary); `*.debug_options` dumps are such."""
    from mlirhlo.formats import read_file
    from mlirhlo.formats.containers import read
    from mlirhlo.formats.sniff import Container, Format, Sniffed, sniff

    data, name = read_file(path)
    looks = sniff(data)
    kind = Format.PROTO if looks.format is Format.PROTO else Format.PROTO_TEXT
    message = read(data, name, Sniffed(kind, looks.is_gzip, Container.DEBUG_OPTIONS)).message
    flags.debug_options.MergeFrom(cast("DebugOptions", message))
    for member, value in message.ListFields():
        flags.given[member.name] = str(value)


def _tokens(variable: str) -> Iterator[tuple[str, str | None]]:
    text = variable.lstrip()
    if not text.startswith("-"):
        try:
            with open(variable, encoding="utf-8") as file:
                text = file.read()
        except OSError:
            raise usage_error(
                f"could not open file {variable!r} to read flags for environment variable XLA_FLAGS",
                help="a value that does not start with '--' is taken as a file name",
            ) from None
    position = 0
    # XLA stops without a word at the first token that is no flag; so do we.
    while match := _TOKEN.match(text, position):
        position = match.end()
        value = None
        if match["equals"]:
            value = match["double"]
            value = re.sub(r"\\(.)", r"\1", value) if value is not None else match["single"]
            value = match["plain"] if value is None else value
        yield match["name"].removeprefix("--"), value


def _add(flags: XlaFlags, name: str, value: str | None, where: str) -> None:
    if name == "xla_fuel":
        pass_name, _, count = (value or "").rpartition("=")
        if not pass_name or not count.isdigit():
            raise usage_error(f"--xla_fuel={value or ''}{where}: not PASS=NUMBER")
        flags.fuel[pass_name] = int(count)
    member = flags.debug_options.DESCRIPTOR.fields_by_name.get(name)
    if member is not None:
        _set(flags.debug_options, member, name, value, where)
    elif name not in _WITHOUT_FIELD and not name.startswith(_OTHER_COMPILERS):
        known = [*flags.debug_options.DESCRIPTOR.fields_by_name, *_WITHOUT_FIELD]
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean '--{near[0]}'?" if near else None
        warn("HLO0510", f"unknown flag '--{name}'{where} has no effect", hint)
        return
    flags.given[name] = value


def _set(options: DebugOptions, member: Any, name: str, value: str | None, where: str) -> None:
    kinds = cast(Any, type(member))
    text = value or ""
    result: Any
    match member.type:
        case kinds.TYPE_BOOL:
            result = {"": True, "true": True, "1": True, "false": False, "0": False}.get(
                text.lower() if value != "" else "?"
            )
        case kinds.TYPE_INT32 | kinds.TYPE_INT64 | kinds.TYPE_UINT32 | kinds.TYPE_UINT64:
            result = int(text) if re.fullmatch(r"[+-]?\d+", text) else None
        case kinds.TYPE_FLOAT | kinds.TYPE_DOUBLE:
            result = _float(text)
        case kinds.TYPE_STRING if member.is_repeated:
            getattr(options, name).extend(part for part in text.split(",") if part)
            return
        case kinds.TYPE_STRING:
            result = text
        case _:
            # Enumerations and structured flags steer backends only; what was given is kept as text.
            return
    if result is None:
        raise usage_error(f"couldn't interpret value '{text}' for flag --{name}{where}")
    try:
        setattr(options, name, result)
    except ValueError:
        raise usage_error(f"value {text} of flag --{name}{where} is out of range") from None


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
