#!/usr/bin/env python3
"""Renews the table of native properties of MLIR's operations from the Python bindings in jaxlib.

    tools/bytecode_properties.py > mlirhlo/formats/bytecode/property_table.py

Bytecode stores the properties of an operation in the order of their names, without the names; the
bindings say which ones there are and which may be missing.
"""

from __future__ import annotations

import re
import sys
import textwrap
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


def main() -> int:
    """Prints the table."""
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
        lines = textwrap.wrap(rows[name], 84)
        if len(lines) == 1 and len(name) + len(lines[0]) < 86:
            print(f'    "{name}": "{lines[0]}",')
        else:
            parts = " ".join(f'"{line} "' for line in lines[:-1])
            print(f'    "{name}": ({parts} "{lines[-1]}"),')
    print("}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
