"""Filling `DebugOptions`: defaults < XLA_FLAGS < LIBTPU_INIT_ARGS < command line < compile options.

What XLA ends the process for is an error here when a value is wrong, and a warning when a name is: a
program must not stop because of a flag for another version. What XLA does in silence is said.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mlirhlo.debug.options.fields import ALIASES, REPLACED, DebugOptions, flag_fields, info_of
from mlirhlo.debug.options.jax_era import HISTORIC
from mlirhlo.debug.options.known import (
    FUEL,
    is_of_other_compiler,
    nearest,
    type_of,
    xla_rows,
)
from mlirhlo.debug.options.tokens import Token, Tokens, tokenize
from mlirhlo.debug.options.values import BadValue, Value, from_python, from_text, to_text
from mlirhlo.diagnostics import Diagnostic, Severity, error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo import formats
    from mlirhlo.formats import containers
    from mlirhlo.formats import sniff as formats_sniff
    from mlirhlo.formats.proto import debug_options_pb2
    from mlirhlo.rewrites import control


if TYPE_CHECKING:
    from mlirhlo.rewrites.control import PassControl

XLA_FLAGS, LIBTPU_INIT_ARGS = "XLA_FLAGS", "LIBTPU_INIT_ARGS"
COMMAND_LINE, COMPILE_OPTIONS = "the command line", "compile options"


@dataclass(frozen=True, slots=True)
class Flags:
    """All flags that were given, and what they make of `DebugOptions`."""

    options: DebugOptions = field(default_factory=DebugOptions)
    given: Mapping[str, Value] = field(default_factory=dict[str, Value])
    """Values by name, also of flags without effect here."""
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where each value comes from."""
    fuel: Mapping[str, int] = field(default_factory=dict[str, int])
    """`--xla_fuel=PASS=N`: rewrites that a pass may do."""
    problems: tuple[Diagnostic, ...] = ()
    """What to tell the user."""

    def non_defaults(self) -> str:
        """The fields that differ from XLA's defaults, as its `debug_options` files list them."""
        lines: list[str] = []
        for name, row in xla_rows().items():
            value = self.given.get(name)
            if value is None or value == row.default:
                continue
            if isinstance(value, tuple):
                for part in sorted(value) or [""]:
                    lines.append(f"{name}: {to_text(part, row.type)}")
            else:
                lines.append(f"{name}: {to_text(value, row.type)}")
        return "".join(f"{line}\n" for line in lines)

    def with_compile_options(self, options: Mapping[str, object]) -> Flags:
        """These flags under the options of one compilation, as JAX's `compiler_options`.

        Any field of DebugOptions may be set. Raises `HloError` HLO0524.
        """
        draft = _Draft.of(self)
        for name, value in options.items():
            draft.set_option(name, value)
        return draft.finish()


def pass_control(flags: Flags) -> PassControl:
    """What the flags say about the passes of one module; a new one for each. Raises as it says."""
    options = flags.options
    return control.PassControl(
        control.PassFilter(
            options.xla_disable_hlo_passes,
            options.xla_enable_hlo_passes_only,
            none=options.xla_disable_all_hlo_passes,
        ),
        dict(flags.fuel),
        options.xla_unsupported_crash_on_hlo_pass_fix_max_iterations,
        options.xla_unsupported_crash_on_hlo_pass_silent_hlo_change,
        options.xla_unsupported_crash_on_hlo_pass_noop_change,
    )


def wanted_passes(flags: Flags) -> Callable[[str], bool]:
    """Which passes the flags leave, by name, each asked about when it is reached."""
    return pass_control(flags).filter.admits


def resolve(
    command_line: Sequence[tuple[str, str | None]] = (),
    *,
    file: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Flags:
    """The flags of a process.

    `command_line`: names without dashes, with the text after `=`. `file`: DebugOptions in protobuf
    text or binary (XLA's `--debug_options_file`, or a `*.debug_options` dump), which everything else
    overrides. Raises `HloError` HLO0520 for values that do not fit, HLO0521 for a file of flags that
    cannot be read, HLO0503 for `file`.
    """
    environ = os.environ if environ is None else environ
    draft = _Draft()
    if file is not None:
        draft.add_file(file)
    variable = environ.get(XLA_FLAGS, "")
    if variable.strip():
        draft.add_tokens(_tokens_of(variable), XLA_FLAGS)
    libtpu = environ.get(LIBTPU_INIT_ARGS, "")
    if libtpu.strip():
        draft.add_tokens(tokenize(libtpu), LIBTPU_INIT_ARGS)
    draft.add_tokens(Tokens(tuple(Token(n, v) for n, v in command_line)), COMMAND_LINE)
    return draft.finish()


def _tokens_of(variable: str) -> Tokens:
    """Flags of the variable or of the file it names: no dash in front makes the whole a name."""
    if variable.lstrip(" \t\r\n").startswith("-"):
        return tokenize(variable)
    try:
        with open(variable, encoding="utf-8", errors="surrogateescape") as file:
            return tokenize(file.read())
    except (OSError, ValueError):
        raise error(
            "HLO0521",
            f'Could not open file "{variable}" to read flags for environment variable'
            f' "{XLA_FLAGS}". (We assumed "{variable}" was a file name because it did not start'
            ' with a "--".)',
        ) from None


class _Draft:
    """Flags while they are collected."""

    def __init__(self) -> None:
        self.given: dict[str, Value] = {}
        self.origins: dict[str, str] = {}
        self.fuel: dict[str, int] = {}
        self.problems: list[Diagnostic] = []
        self.idle: list[str] = []
        """Flags without effect here, as they were written."""

    @staticmethod
    def of(flags: Flags) -> _Draft:
        draft = _Draft()
        draft.given, draft.origins = dict(flags.given), dict(flags.origins)
        draft.fuel = dict(flags.fuel)
        return draft

    def finish(self) -> Flags:
        known = flag_fields()
        options = DebugOptions(**{n: v for n, v in self.given.items() if n in known})  # type: ignore[arg-type]
        if self.idle:
            names = ", ".join(dict.fromkeys(self.idle))
            self.note("HLO0523", f"without effect here: {names}", severity=Severity.REMARK)
        return Flags(options, self.given, self.origins, self.fuel, tuple(self.problems))

    def note(
        self,
        code: str,
        message: str,
        help: str | None = None,
        severity: Severity = Severity.WARNING,
    ) -> None:
        self.problems.append(Diagnostic(code, message, help=help, severity=severity))

    # -------------------------------------------------------------- text

    def add_tokens(self, tokens: Tokens, origin: str) -> None:
        unknown = [token for token in tokens.flags if not self._add(token, origin)]
        if unknown:
            self._report_unknown(unknown, origin)
        if tokens.stopped_at:
            lost = f": {' '.join(tokens.lost)} is lost" if tokens.lost else ""
            self.note(
                "HLO0522",
                f"{origin} ends for XLA at '{tokens.stopped_at}', which does not start with"
                f" '-'{lost}",
                help="write --flag=value in one word, in quotes after the '=' when it has blanks",
            )

    def _add(self, token: Token, origin: str) -> bool:
        """Whether the flag is known."""
        name = ALIASES.get(token.name, token.name)
        if token.dashes != 2 and origin != COMMAND_LINE:
            return False
        if name == FUEL:
            self._add_fuel(token, origin)
            return True
        member = flag_fields().get(name)
        if origin == LIBTPU_INIT_ARGS and not is_of_other_compiler(name):
            return False
        if member is not None and not info_of(member).is_flag:
            return False
        kind = type_of(name)
        if kind is None:
            if is_of_other_compiler(name):
                self.idle.append(f"--{token.name}")
            return is_of_other_compiler(name)
        try:
            value = from_text(token.value, kind)
        except BadValue:
            where = "" if origin == COMMAND_LINE else f" in {origin}"
            raise error(
                "HLO0520",
                f"Couldn't interpret value {token.value or ''} for flag {token.name}{where}.",
                help=f"--{token.name} takes {_ARTICLES.get(kind, 'text')}",
            ) from None
        self._set(name, value, origin)
        if member is None or not info_of(member).has_effect:
            self.idle.append(f"--{token.name}")
        return True

    def _set(self, name: str, value: Value, origin: str) -> None:
        so_far = self.given.get(name)
        if isinstance(value, tuple) and isinstance(so_far, tuple) and self.origins[name] == origin:
            value = so_far + value
        self.given[name], self.origins[name] = value, origin

    def _add_fuel(self, token: Token, origin: str) -> None:
        pass_name, _, count = (token.value or "").rpartition("=")
        if not pass_name or not count.isdigit():
            raise error(
                "HLO0520",
                f"Couldn't interpret value {token.value or ''} for flag {FUEL}.",
                help=f"--{FUEL} takes PASS=NUMBER; it was given by {origin}",
            )
        self.fuel[pass_name] = int(count)

    def _report_unknown(self, tokens: Iterable[Token], origin: str) -> None:
        """In XLA's words, but the process goes on."""
        tokens = list(tokens)
        if origin == LIBTPU_INIT_ARGS:
            for token in tokens:
                near = "xla_jf_dump_to" if token.name == "xla_dump_to" else nearest(token.name)
                hint = f" Did you mean: {near} ?" if near and is_of_other_compiler(near) else ""
                self.note(
                    "HLO0510",
                    f"Unknown command line flag '{token.name}'.{hint}",
                    help=f"it has no effect in {origin}; --xla_dump_* flags go into {XLA_FLAGS}",
                )
            return
        words = "Unknown flags" if len(tokens) > 1 else "Unknown flag"
        where = "" if origin == COMMAND_LINE else f" in {origin}"
        hints = [hint for token in tokens if (hint := _hint(token))]
        self.note(
            "HLO0510",
            f"{words}{where}: {' '.join(token.text for token in tokens)}",
            help="; ".join([*hints, "without effect; XLA would end the process"]),
        )

    # -------------------------------------------------------------- files and dicts

    def add_file(self, path: str) -> None:
        from typing import cast

        data, name = formats.read_file(path)
        looks = formats_sniff.sniff(data)
        binary = looks.format is formats_sniff.Format.PROTO
        form = formats_sniff.Sniffed(
            formats_sniff.Format.PROTO if binary else formats_sniff.Format.PROTO_TEXT,
            looks.is_gzip,
            formats_sniff.Container.DEBUG_OPTIONS,
        )
        message = cast(debug_options_pb2.DebugOptions, containers.read(data, name, form).message)
        for member, value in message.ListFields():
            kind = type_of(member.name)
            if kind is not None:
                self._set(member.name, _of_message(value, kind, member), path)

    def set_option(self, name: str, value: object) -> None:
        """One compile option. Raises `HloError` HLO0524 in JAX's words."""
        kind = type_of(name)
        if kind is None:
            near = nearest(name)
            raise error(
                "HLO0524",
                f"No such compile option: '{name}'",
                help=_replaced(name) or (f"did you mean '{near}'?" if near else None),
            )
        try:
            read = from_python(value, kind)
        except BadValue:
            raise error(
                "HLO0524",
                f"While setting option {name}, '{value}' is not a valid {kind} value.",
                help="booleans are True or False, or these words" if kind == "bool" else None,
            ) from None
        self.given[name], self.origins[name] = read, COMPILE_OPTIONS
        member = flag_fields().get(name)
        if member is None or not info_of(member).has_effect:
            self.idle.append(name)


_ARTICLES = {
    "bool": "true or false (or 1, 0, or nothing)",
    "int32": "a whole number of 32 bits",
    "int64": "a whole number of 64 bits",
    "float": "a number",
}


def _replaced(name: str) -> str:
    """What stands in for a flag of the past; empty for others."""
    if (instead := HISTORIC.get(name.upper())) is not None:
        return f"{name} is historic; today: {instead}"
    replaced = REPLACED.get(name)
    return f"--{name} is of 2018, today: {replaced}" if replaced else ""


def _hint(token: Token) -> str:
    if replaced := _replaced(token.name):
        return replaced
    member = flag_fields().get(token.name)
    if member is not None and not info_of(member).is_flag:
        return f"{token.name} is no flag, but an option of compile()"
    near = nearest(token.name)
    return f"did you mean '--{near}'?" if near else ""


def _of_message(value: object, type: str, member: object) -> Value:
    """A field of the protobuf message as a flag's value."""
    if isinstance(value, bool | float | str):
        return value
    from typing import Any, cast

    field_of: Any = member
    if type == "map":
        pairs = cast("Mapping[str, str]", value)
        return tuple(f"{key}={text}" for key, text in sorted(pairs.items()))
    if type.startswith("enum"):
        names: Any = field_of.enum_type.values_by_number if field_of.enum_type else {}
        if isinstance(value, int):
            return str(names[value].name)
        return tuple(str(names[number].name) for number in cast("Iterable[int]", value))
    if isinstance(value, int):
        return value
    if type.endswith("[]"):
        return tuple(map(str, cast("Iterable[object]", value)))
    return str(value)
