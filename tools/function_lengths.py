"""Lists the functions of the package with more lines than a bound, the longest first.

python tools/function_lengths.py              # those over 80 lines: there are to be none
python tools/function_lengths.py --over 40
"""

from __future__ import annotations

import argparse
import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 80
"""That a function of the package may have."""


def long_functions(over: int) -> list[tuple[int, str]]:
    """Lines and location of the functions longer than `over`."""
    found: list[tuple[int, str]] = []
    for path in sorted((ROOT / "mlirhlo").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > over:
                    where = f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
                    found.append((lines, where))
    return sorted(found, reverse=True)


def main() -> int:
    """Prints the list; the exit status is 1 when one is longer than it may be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--over", type=int, default=MAX_LINES)
    found = long_functions(parser.parse_args().over)
    for lines, where in found:
        print(f"{lines:4} {where}")
    return int(any(lines > MAX_LINES for lines, _ in found))


if __name__ == "__main__":
    sys.exit(main())
