"""How the tools write modules: format, preset and switches, shared by all that print."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from mlirhlo import formats
from mlirhlo.cli.options import flag
from mlirhlo.cli.report import usage_error
from mlirhlo.formats.files import check_ending, write_file
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.formats import hlo_text, sniff


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.options import Flags
    from mlirhlo.formats.hlo_text import PrintOptions

EMITTED = (
    "hlo", "mlir", "mlir-generic", "stablehlo", "mlirbc", "artifact", "proto", "pb", "pbtxt", "json",
)  # fmt: skip

_ALIASES = {
    "result-shape": "result_shapes",
    "operand-shape": "operand_shapes",
    "operand-name": "operand_names",
    "control-dependencies": "control_predecessors",
    "include-layout-in-shapes": "layouts",
    "layout": "layouts",
    "canonicalize-instruction-names": "canonical_names",
    "syntax-sugar-async-ops": "async_sugar",
    "only-essential-constants": "essential_constants",
    "constants": "large_constants",
}
"""Other names of switches: those of XLA's HloPrintOptions."""


@dataclass
class OutputFlags:
    """Options of a tool that writes modules."""

    output: str = flag("-", "o", group="Output", metavar="FILE", help="where to write")
    emit: str | None = flag(
        None,
        "t",
        "target",
        "to",
        group="Output",
        choices=EMITTED,
        help="format (else as the input)",
    )
    style: str = flag(
        "long",
        group="Output",
        choices=("long", "short", "canonical", "fingerprint", "module-fingerprint"),
        help="XLA's presets of HLO text; --short is --style=short",
        metavar="PRESET",
    )
    switches: tuple[str, ...] = flag(
        (),
        "print",
        group="Output",
        metavar="a,no-b",
        help="of HLO text, each --a or --no-a too: metadata, ids, …",
    )
    container: str = flag(
        "HloProto",
        "proto-container",
        group="Output",
        metavar="MESSAGE",
        help="message around an emitted module: HloProto, HloModuleProto, HloSnapshot, …",
        rare=True,
    )
    short: bool = flag(False, group="Output", help="")
    canonical: bool = flag(False, group="Output", help="")
    fingerprint: bool = flag(False, group="Output", help="")
    mlir_print_op_generic: bool = flag(
        False, "print-op-generic", group="Output", help="", rare=True
    )
    emit_proto: bool = flag(
        False, "emit_proto", group="Output", help="as XLA's: --emit=pbtxt", rare=True
    )


def take_switch(options: OutputFlags, name: str, value: str | None) -> bool:
    """Takes `--print-metadata`, `--metadata=false`, `--no-metadata` and the like; the parser's hook
    for options it does not know."""
    key = name.replace("_", "-").removeprefix("mlir-")
    on = not key.startswith("no-")
    key = key.removeprefix("no-").removeprefix("print-")
    if _switch(key) is None:
        return False
    if value is not None:
        if value.lower() not in ("true", "false", "1", "0"):
            raise usage_error(f"--{name}={value}: not true or false")
        on = on == (value.lower() in ("true", "1"))
    options.switches = (*options.switches, key if on else f"no-{key}")
    return True


def switch_names() -> list[str]:
    """Every switch of HLO text with its default."""
    options = _long(hlo_text.PrintOptions())
    return [
        f"{member.name.replace('_', '-')} [{getattr(options, member.name)}]".lower()
        for member in fields(hlo_text.PrintOptions)
        if isinstance(member.default, bool)
    ]


def _switch(key: str) -> str | None:
    """Field of PrintOptions that a switch sets."""
    name = _ALIASES.get(key, key.replace("-", "_"))
    found = next((m for m in fields(hlo_text.PrintOptions) if m.name == name), None)
    return name if found is not None and isinstance(found.default, bool) else None


def _long(options: PrintOptions) -> PrintOptions:
    """XLA's long form, but with what the module knows of large constants: nothing that was read
    gets lost, and what a dump has elided is `{...}` still."""
    return replace(options, large_constants=True)


def print_options(options: OutputFlags, xla: Flags) -> PrintOptions:
    """What the printer of HLO text is to do. Raises `UsageError` HLO0502."""
    style = next(
        (s for s in ("short", "canonical", "fingerprint") if getattr(options, s)), options.style
    )
    if style == "long" and _given(xla, "xla_dump_hlo_as_long_text") is False:
        style = "short"
    presets: dict[str, Callable[[], hlo_text.PrintOptions]] = {
        "short": hlo_text.PrintOptions.short_parsable,
        "canonical": hlo_text.PrintOptions.canonical,
        "fingerprint": hlo_text.PrintOptions.fingerprint,
        "module-fingerprint": hlo_text.PrintOptions.module_fingerprint,
    }
    result = presets[style]() if style in presets else _long(hlo_text.PrintOptions())
    changes: dict[str, Any] = {}
    for flag_name, switch, means in (
        ("xla_dump_large_constants", "large_constants", True),
        ("xla_dump_disable_metadata", "metadata", False),
        ("xla_hlo_print_inline_stack_frames", "inline_stack_frames", True),
        ("xla_syntax_sugar_async_ops", "async_sugar", True),
    ):
        value = _given(xla, flag_name)
        if value is not None:
            changes[switch] = value == means
    for text in options.switches:
        on = not text.startswith("no-")
        name = _switch(text.removeprefix("no-").removeprefix("print-"))
        if name is None:
            known = [m.name.replace("_", "-") for m in fields(hlo_text.PrintOptions)]
            near = get_close_matches(text.removeprefix("no-"), known, n=1)
            hint = f"did you mean '{near[0]}'? " if near else ""
            raise usage_error(f"unknown switch '{text}'", help=f"{hint}--help-all lists them")
        changes[name] = on
    return replace(result, **changes)


def _given(xla: Flags, name: str) -> bool | None:
    value = xla.given.get(name)
    return value if isinstance(value, bool) else None


def emitted_format(options: OutputFlags, default: str) -> str:
    """Format to write: as asked for, by the output file's name, or `default`."""
    if options.mlir_print_op_generic:
        return "mlir-generic"
    if options.emit_proto:
        return "pbtxt"
    if options.emit is not None:
        return options.emit
    name = options.output.removesuffix(".gz")
    for ending in ("mlir", "mlirbc", "pbtxt", "pb", "json", "hlo"):
        if name.endswith(f".{ending}"):
            return ending
    check_ending(name)
    return default


def render(module: ModuleOp, format: str, options: OutputFlags, text: PrintOptions) -> bytes:
    """A module in `format`. Raises `HloError` as `formats.to_bytes` does."""
    if options.container != "HloProto":
        names = [c.value for c in sniff.Container if c.holds_module]
        if options.container not in names:
            known = ", ".join(names)
            raise usage_error(
                f"unknown message '{options.container}'", help=f"modules stand in {known}"
            )
    return formats.to_bytes(module, format, options=text, container=options.container)


def deliver(data: bytes, options: OutputFlags) -> None:
    """Writes the result to the file asked for, gzip by its name, or to standard output."""
    if options.output != "-":
        if options.output.endswith(".gz"):
            import gzip

            data = gzip.compress(data, mtime=0)
        write_file(options.output, data)
        return
    if b"\0" in data and sys.stdout.isatty():
        raise usage_error("a binary file does not go to a terminal", help="use -o FILE")
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
