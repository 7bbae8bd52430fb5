"""Round-trips every HLO text and proto of the shared data and says how many came back identical.

    python tools/roundtrip.py                   # all forms, all texts (some minutes)
    python tools/roundtrip.py --forms text      # text only
    python tools/roundtrip.py --only 'gpt24'    # a regular expression on the names

Forms: `text` (parse, print), `mlir` and `generic` (through the MLIR forms and back), `proto` (through a
serialised HloModuleProto and back). Ends with a count line; exit status 1 when anything came back
different.

A text that people wrote need not be what XLA prints: its frontend attributes may be unsorted, a
name may stand twice, the blank line at the end may be missing. So where a text does not come back,
XLA itself (jaxlib) is asked to read and print it. If XLA changes it too, and our print under the
same options is XLA's byte for byte, the text counts as printed `as XLA prints it`, and its other
forms have to come back as that print. Without jaxlib such a text counts as different.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from mlirhlo.formats.hlo_text import PrintOptions, parse_module, print_module
from mlirhlo.formats.hlo_text.options import ComputationOrder

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("MLIRHLO_SHARED", ROOT.parent / "shared"))


def members(shared: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file of the corpus and the dump samples, archives unpacked."""
    for folder in (shared / "corpus" / "programs", shared / "reference" / "dump_samples"):
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            name = str(path.relative_to(shared))
            if name.endswith(".tar.gz"):
                with tarfile.open(path) as archive:
                    for member in archive.getmembers():
                        handle = archive.extractfile(member) if member.isfile() else None
                        if handle is not None:
                            yield f"{name}!{member.name}", handle.read()
            elif name.endswith(".gz"):
                yield name, gzip.decompress(path.read_bytes())
            else:
                yield name, path.read_bytes()


def texts(shared: Path) -> Iterator[tuple[str, str]]:
    """Name and text of every HLO module."""
    for name, data in members(shared):
        if data.startswith(b"HloModule") and b"sample trimmed here" not in data:
            yield name, data.decode("utf-8", "surrogateescape")


def print_options(text: str) -> PrintOptions:
    """The options a text was printed with, told from the text.

    Constants stand in full where the text has them, so `large_constants` is on throughout.
    """
    entry = re.search(r"^ENTRY .*$", text, re.MULTILINE)
    operand = re.search(r" = \S+ (?:add|multiply|broadcast|tuple|negate|reduce)\(([^)]*)", text)
    options = PrintOptions(
        large_constants=True,
        percent="%" in text,
        program_shape=entry is not None and "->" in entry.group(),
        operand_shapes=operand is not None and " " in operand[1].split(",")[0].strip(),
    )
    if "  tmp_0 = " in text:
        return replace(PrintOptions.canonical(), large_constants=True)
    if not options.percent:
        return replace(options, operand_index_interval=0)
    return options


def our_print(name: str, source: str) -> str:
    """A text, read and printed with the options it was printed with."""
    return print_module(parse_module(source, name), print_options(source))


XLA_PRINTS = """
import sys
from jaxlib import _hlo

percent, program_shape, operand_shape = (word == "True" for word in sys.argv[1:])
options = _hlo.HloPrintOptions() if percent else _hlo.HloPrintOptions.short_parsable()
options.print_percent = percent
options.print_program_shape = program_shape
options.print_operand_shape = operand_shape
options.print_large_constants = options.print_control_dependencies = True
options.print_metadata = True
text = sys.stdin.buffer.read().decode()
sys.stdout.buffer.write(_hlo.hlo_module_from_text(text).to_string(options).encode())
"""
"""Asks XLA, in a process of its own: what it cannot read may end the process."""


def xla_print(source: str, options: PrintOptions) -> str | None:
    """What XLA prints for a text under the same options; None where it cannot be asked or read."""
    switches = (options.percent, options.program_shape, options.operand_shapes)
    asked = subprocess.run(
        [sys.executable, "-c", XLA_PRINTS, *map(str, switches)],
        input=source.encode("utf-8", "surrogateescape"),
        capture_output=True,
        check=False,
    )
    return asked.stdout.decode() if asked.returncode == 0 else None


@cache
def prints_as_xla(name: str, source: str) -> bool:
    """Whether a text is no print of XLA's, and our print of it is XLA's, byte for byte.

    XLA's library writes asynchronous instructions short and walks computations anew, unlike its
    dumps, and its reader drops the element size of constants; ours is held to the same.
    """
    options = print_options(source)
    theirs = xla_print(source, options)
    if theirs is None:
        return False
    options = replace(options, async_sugar=True, computation_order=ComputationOrder.WALKED)
    ours = print_module(parse_module(source, name), options)
    return source != theirs == re.sub(r":E\(\d+\)(?=\} constant\()", "", ours)


def form_functions(wanted: list[str]) -> dict[str, Callable[[str, str], str]]:
    """What each form does with a text: returns the text that comes back."""
    from mlirhlo.formats import mlir, proto

    def through_mlir(generic: bool) -> Callable[[str, str], str]:
        def run(name: str, source: str) -> str:
            form = mlir.print_module(parse_module(source, name), generic=generic)
            return print_module(mlir.parse_module(form, name), print_options(source))

        return run

    def through_proto(name: str, source: str) -> str:
        message = proto.encode_module(parse_module(source, name))
        again = type(message).FromString(message.SerializeToString())
        return print_module(proto.decode_module(again), print_options(source))

    every = {
        "text": our_print,
        "mlir": through_mlir(generic=False),
        "generic": through_mlir(generic=True),
        "proto": through_proto,
    }
    return {form: every[form] for form in every if form in wanted}


def main() -> int:
    """Runs the round trips; 0 when all came back identical."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--forms", default="text,mlir,proto", help="default: %(default)s")
    parser.add_argument("--only", default="", help="names that match this regular expression")
    parser.add_argument("--limit-bytes", type=int, default=1 << 40, help="skip larger texts")
    options = parser.parse_args()
    wanted = options.forms.split(",")
    forms = form_functions(wanted)
    same = dict.fromkeys(forms, 0)
    as_xla = dict.fromkeys(forms, 0)
    total = size = 0
    spent = dict.fromkeys(forms, 0.0)
    for name, source in texts(SHARED):
        if not re.search(options.only, name) or len(source) > options.limit_bytes:
            continue
        total += 1
        size += len(source)
        for form, function in forms.items():
            start = time.process_time()
            try:
                back = function(name, source)
            except Exception as problem:  # noqa: BLE001  a report of all files, whatever happens
                print(f"{form}: {name}: {type(problem).__name__}: {str(problem)[:300]}")
                continue
            spent[form] += time.process_time() - start
            if back == source:
                same[form] += 1
            elif back == our_print(name, source) and prints_as_xla(name, source):
                as_xla[form] += 1
                if form == next(iter(forms)):
                    print(f"{name}: not as XLA prints it; our print is XLA's")
            else:
                print(f"{form}: {name}: {first_difference(source, back)}")
    for form in forms:
        others = f", {as_xla[form]} as XLA prints them" if as_xla[form] else ""
        print(
            f"{form}: {same[form]} of {total} identical{others},"
            f" {size / 1e6:.1f} MB in {spent[form]:.1f} s CPU"
        )
    return 0 if all(same[form] + as_xla[form] == total for form in forms) else 1


def first_difference(a: str, b: str) -> str:
    """The first line in which two texts differ."""
    for number, (x, y) in enumerate(zip(a.split("\n"), b.split("\n"), strict=False), 1):
        if x != y:
            at = next(
                (i for i, (p, q) in enumerate(zip(x, y, strict=False)) if p != q),
                min(len(x), len(y)),
            )
            low = max(0, at - 40)
            return f"line {number}: {x[low : at + 60]!r} became {y[low : at + 60]!r}"
    return f"{a.count(chr(10))} lines became {b.count(chr(10))}"


if __name__ == "__main__":
    sys.exit(main())
