"""Options of the tools: fields of a dataclass, in every spelling users of XLA, MLIR and xDSL expect.

`--name=value`, `--name value`, one dash or two, dashes or underscores; booleans as `--name`,
`--name=false`, `--no-name`; short ones as `-o FILE`, `-oFILE`. XLA's own flags (`--xla_…`) are
collected apart. A file argument may stand anywhere; `-` is standard input; `--` ends the options.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from typing import Any, Generic, TypeVar, cast

import mlirhlo
from mlirhlo.cli.report import usage_error

T = TypeVar("T")

_GROUPS = ("Input", "Passes", "Output", "Watching", "Testing")
"""Groups that the help shows first, in this order."""

_TRUE = frozenset({"true", "1", "yes", "on", "t", "y"})
_FALSE = frozenset({"false", "0", "no", "off", "f", "n"})


@dataclass(frozen=True, slots=True)
class Flag:
    """What the parser and the help know of one option."""

    names: tuple[str, ...]
    """Spellings without dashes in front, the first is shown; words joined by dashes."""
    help: str
    group: str
    metavar: str
    choices: tuple[str, ...]
    rare: bool
    """Shown by `--help-all` only."""
    least: int | None
    """The smallest number it may be."""


def flag(
    default: T,
    *names: str,
    help: str,
    group: str = "Options",
    metavar: str = "",
    choices: Sequence[str] = (),
    rare: bool = False,
    least: int | None = None,
) -> T:
    """A field of an options class. The default's type says how values are read: bool, int, float,
    str, or a tuple of strings, which collects what several uses and commas give. `None` as default
    is a string that may be missing. `names` are further spellings, without dashes in front."""
    info = Flag(names, help, group, metavar, tuple(choices), rare, least)
    return field(default=default, metadata={"flag": info})


@dataclass(slots=True)
class Parsed(Generic[T]):
    """A command line that was understood."""

    options: T
    files: list[str]
    xla: list[tuple[str, str | None]]
    """XLA's flags as given: name with underscores, value or None."""


def parse(
    cls: type[T],
    argv: Sequence[str],
    other: Callable[[T, str, str | None], bool] | None = None,
) -> Parsed[T]:
    """Reads a command line. `other(options, name, value)` may take options that `cls` lacks.

    Raises `UsageError` HLO0502 with the nearest known name.
    """
    table = _table(cls)
    parsed = Parsed(cls(), list[str](), list[tuple[str, str | None]]())
    rest = iter(argv)
    for token in rest:
        if token == "--":
            parsed.files.extend(rest)
            break
        if token == "-" or not token.startswith("-"):
            parsed.files.append(token)
            continue
        name, equals, text = token.lstrip("-").partition("=")
        value = text if equals else None
        key = name.replace("_", "-")
        if key == "debug-options-file":
            value = next(rest, "") if value is None else value
        if key.startswith("xla-") or key == "debug-options-file":
            parsed.xla.append((name.replace("-", "_"), value))
            continue
        member = table.get(key)
        if member is None and _is_glued(token, key, table):
            member, value = table[name[0]], token[2:].removeprefix("=")  # -oFILE
        if member is None and _negated(table, key) is not None and value is None:
            member, value = _negated(table, key), "false"
        if member is not None:
            _set(parsed.options, member, token, value, rest)
        elif other is None or not other(parsed.options, name, value):
            raise unknown(token.partition("=")[0], key, table)
    return parsed


def _is_glued(token: str, key: str, table: dict[str, Field[Any]]) -> bool:
    """Whether the token is a short option with its value; a mistyped long one is not."""
    return (
        not token.startswith("--")
        and len(key) > 1
        and key[0] in table
        and not get_close_matches(key, table, n=1, cutoff=0.8)
    )


def unknown(spelled: str, key: str, table: Sequence[str] | dict[str, Any]) -> Exception:
    """The error for an option nobody knows."""
    near = get_close_matches(key, [name for name in table if len(name) > 1], n=1, cutoff=0.6)
    hint = f"did you mean '--{near[0]}'? " if near else ""
    return usage_error(f"unknown option '{spelled}'", help=f"{hint}--help shows the options")


def _table(cls: type[Any]) -> dict[str, Field[Any]]:
    table: dict[str, Field[Any]] = {}
    for member in fields(cls):
        table[member.name.replace("_", "-")] = member
        for name in _info(member).names:
            table[name.replace("_", "-")] = member
    return table


def _info(member: Field[Any]) -> Flag:
    info: Flag = member.metadata["flag"]
    return info


def _negated(table: dict[str, Field[Any]], key: str) -> Field[Any] | None:
    if not key.startswith("no"):
        return None
    member = table.get(key.removeprefix("no").removeprefix("-"))
    return member if member is not None and isinstance(member.default, bool) else None


def _set(options: Any, member: Field[Any], token: str, value: str | None, rest: Any) -> None:
    default, info = member.default, _info(member)
    spelled = token.partition("=")[0]
    if isinstance(default, bool):
        setattr(options, member.name, _bool(spelled, value))
        return
    if value is None:
        value = next(rest, None)
        if value is None or value.startswith("--"):
            raise usage_error(
                f"option '{spelled}' needs a value",
                help=f"write {spelled}={info.metavar or 'VALUE'}",
            )
    if info.choices and value not in info.choices:
        near = get_close_matches(value, info.choices, n=1)
        raise usage_error(
            f"{spelled}={value}: not one of {', '.join(c for c in info.choices if c)}",
            help=f"did you mean '{near[0]}'?" if near else None,
        )
    if isinstance(default, tuple):
        so_far: tuple[str, ...] = getattr(options, member.name)
        setattr(options, member.name, so_far + tuple(split_commas(value)))
    elif isinstance(default, int | float):
        setattr(options, member.name, _number(spelled, value, type(default), info.least))
    else:
        setattr(options, member.name, value)


def _bool(spelled: str, value: str | None) -> bool:
    if value is None or value.lower() in _TRUE:
        return True
    if value.lower() in _FALSE:
        return False
    raise usage_error(f"{spelled}={value}: not true or false")


def _number(
    spelled: str, value: str, kind: type[int] | type[float], least: int | None
) -> int | float:
    try:
        number = kind(value)
    except ValueError:
        word = "a whole number" if kind is int else "a number"
        raise usage_error(f"{spelled}={value}: not {word}") from None
    if least is not None and number < least:
        raise usage_error(f"{spelled}={value}: at least {least} is wanted")
    if kind is int and abs(number) >= 1 << 63:
        raise usage_error(f"{spelled}={value}: more than 64 bits hold")
    return number


def split_commas(text: str) -> list[str]:
    """Parts between commas that stand outside of braces and parentheses; empty ones are dropped."""
    parts, depth, start = list[str](), 0, 0
    for index, char in enumerate(text):
        if char in "{([":
            depth += 1
        elif char in "})]":
            depth -= 1
        elif char == "," and depth <= 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


# ---------------------------------------------------------------- help


def answered(tool: str, options: Any, purpose: str, usage: str, examples: Sequence[str]) -> bool:
    """Prints the page of `--help` or `--help-all`, or the version, where `options` asks for it; whether it did."""
    if options.help or options.help_all:
        print(
            help_text(
                cast("type[Any]", type(options)),
                purpose,
                usage,
                examples,
                everything=options.help_all,
            )
        )
    elif options.version:
        print(f"{tool} of mlirhlo {mlirhlo.__version__}")
    return bool(options.help or options.help_all or options.version)


def help_text(
    cls: type[Any],
    purpose: str,
    usage: str,
    examples: Sequence[str],
    *,
    everything: bool = False,
    xla: bool = True,
) -> str:
    """The page of `--help`: purpose, examples, options by group with their defaults.

    `xla` says whether the tool reads XLA's flags too.
    """
    lines = [purpose, "", f"usage: {usage}", "", "examples:", *(f"  {e}" for e in examples)]
    groups: dict[str, list[Field[Any]]] = {group: [] for group in _GROUPS}
    for member in fields(cls):
        info = _info(member)
        if info.help and (everything or not info.rare):
            groups.setdefault(info.group, []).append(member)
    for group, members in groups.items():
        if members:
            lines += ["", f"{group}:", *map(_help_line, members)]
    notes = ["XLA's flags (--xla_...) and XLA_FLAGS are read too."] if xla else []
    if not everything and any(_info(m).rare for m in fields(cls)):
        notes.append("--help-all shows rarer options.")
    return "\n".join([*lines, "", " ".join(notes)] if notes else lines)


def _help_line(member: Field[Any]) -> str:
    info = _info(member)
    short = next((f"-{n}, " for n in info.names if len(n) == 1), "")
    name = f"{short}--{_shown(member)}"
    if not isinstance(member.default, bool):
        name += f"={info.metavar or '|'.join(c for c in info.choices if c) or 'VALUE'}"
    shown = member.default
    default = ""
    if shown is not MISSING and shown not in (None, False, "", ()):
        default = f" [{'true' if shown is True else shown}]"
    gap = " " * max(2, 34 - len(name)) if len(name) <= 32 else "\n" + " " * 36
    return f"  {name}{gap}{info.help}{default}"


def _shown(member: Field[Any]) -> str:
    """Long name as the page shows it: XLA's flags keep their underscores by listing them first."""
    names = _info(member).names
    return next((n for n in names if "_" in n), member.name.replace("_", "-"))
