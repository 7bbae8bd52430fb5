#!/usr/bin/env python3
"""Renews the table of native properties of MLIR's operations from the Python bindings in jaxlib.

    tools/bytecode_properties.py > mlirhlo/formats/bytecode/property_table.py
    tools/bytecode_properties.py --earlier TABLE... > mlirhlo/formats/bytecode/property_history.py

Bytecode stores the properties of an operation in the order of their names, without the names; the
bindings say which ones there are and which may be missing. With `--earlier`, prints what earlier
versions had instead: the tables are this tool's output under older jaxlibs, oldest first.
"""

from __future__ import annotations

import re
import runpy
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

_CLASS = re.compile(
    r"^class \w+\(_ods_ir\.OpView\):\n(.*?)(?=^@|^class |^def |\Z)", re.MULTILINE | re.DOTALL
)
_ADAPTOR = re.compile(
    r"^class \w+\(_ods_ir\.OpAdaptor\):\n(.*?)(?=^@|^class |^def |\Z)", re.MULTILINE | re.DOTALL
)
_NAME = re.compile(r'OPERATION_NAME = "([^"]+)"')
_SET = re.compile(r'^ +(if [^\n:]*: *)?attributes\["(\w+)"\] = ', re.MULTILINE)
_READ = re.compile(r'return self\.attributes\["(\w+)"\]')
_TEST = re.compile(r'"(\w+)" (?:not )?in self\.attributes')
_SEGMENTS = re.compile(r"_ODS_(OPERAND|RESULT)_SEGMENTS = \[([^\]]*)\]")


def _rows() -> dict[str, str]:
    """Properties of every operation of the installed jaxlib."""
    import jaxlib

    folder = Path(jaxlib.__file__).parent / "mlir" / "dialects"
    rows: dict[str, str] = {}
    for path in sorted(folder.glob("_*_ops_gen.py")):
        text = path.read_text()
        adaptors = {}
        for body in _ADAPTOR.findall(text):
            name = _NAME.search(body)
            if name:
                adaptors[name[1]] = body
        for body in _CLASS.findall(text):
            name = _NAME.search(body)
            if name is None:
                continue
            known: dict[str, bool] = {}
            for condition, key in _SET.findall(body):
                known[key] = not condition
            adaptor = adaptors.get(name[1], "")
            tested = set(_TEST.findall(adaptor))
            for key in {*_READ.findall(adaptor), *tested}:
                known.setdefault(key, key not in tested)
            fields = [key if needed else key + "?" for key, needed in sorted(known.items())]
            for kind, sizes in _SEGMENTS.findall(body):
                fields.append(f"{kind.lower()}Segments={len(sizes.rstrip(',').split(','))}")
            if fields:
                rows[name[1]] = " ".join(fields)
    return rows


def _print_table(rows: dict[str, str]) -> None:
    print(
        '"""Native properties of operations in the order of bytecode; `?` marks those that may be'
    )
    print("missing, `operandSegments=N` and `resultSegments=N` the N segment sizes at the end.")
    print()
    print(
        "Written by `tools/bytecode_properties.py`. Operations without properties are not listed."
    )
    print('"""')
    print()
    print("from __future__ import annotations")
    print()
    print("PROPERTIES: dict[str, str] = {")
    for name in sorted(rows):
        print(f'    "{name}": {_literal(rows[name], len(name))},')
    print("}")


def _literal(text: str, used: int) -> str:
    lines = textwrap.wrap(text, 84)
    if len(lines) == 1 and used + len(lines[0]) < 86:
        return f'"{lines[0]}"'
    parts = " ".join(f'"{line} "' for line in lines[:-1])
    return f'({parts} "{lines[-1]}")'


def _print_history(now: dict[str, str], tables: Sequence[str]) -> None:
    earlier: dict[str, list[str]] = {}
    for path in tables:
        for name, text in runpy.run_path(path)["PROPERTIES"].items():
            if text != now.get(name, text) and text not in earlier.setdefault(name, []):
                earlier[name].insert(0, text)
    print('"""Properties that operations had in earlier versions of MLIR, the latest first.')
    print()
    print(
        "Bytecode tells no version of the operations it holds, so what does not fit the layout of"
    )
    print("today may fit one of these. Written by `tools/bytecode_properties.py --earlier`.")
    print('"""')
    print()
    print("from __future__ import annotations")
    print()
    print("EARLIER: dict[str, tuple[str, ...]] = {")
    for name, texts in sorted(earlier.items()):
        if texts:
            print(f'    "{name}": ({"".join(f"{_literal(t, 2)}, " for t in texts)}),')
    print("}")


def main(arguments: Sequence[str]) -> int:
    """Prints the table."""
    if arguments[:1] == ["--earlier"]:
        _print_history(_rows(), arguments[1:])
    else:
        _print_table(_rows())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
