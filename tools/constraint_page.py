"""Writes docs/constraints.md: every numbered constraint of the verifier, one line each.

python tools/constraint_page.py            # write it
python tools/constraint_page.py --check    # exit status 1 when it is out of date
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mlirhlo.analysis.shape_inference.base import CONSTRAINTS
from mlirhlo.analysis.verifier import LAYOUT_NOTE  # importing states the constraints
from mlirhlo.dialects.hlo.table import OPCODES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "constraints.md"

_HEAD = f"""\
<!-- Written by tools/constraint_page.py; change the code it follows from. -->

# Constraints

`hlo-opt FILE` verifies what it reads and names the broken constraint in brackets:

```
bad.hlo:4:26: error[HLO0102]: add: Binary op with incompatible shapes: f32[4] and f32[5]. [add_c3]
```

Each constraint has a failing case in `test/lit/dialects/hlo/invalid_*` or, where no file can break it, in
`test/unit/analysis/`.
{LAYOUT_NOTE}
"""


def _order(key: str) -> tuple[bool, str, int]:
    subject, number = key.rsplit("_c", 1)
    return subject in OPCODES, subject, int(number)


def page() -> str:
    """Text of the page."""
    lines = [_HEAD]
    last = None
    for key in sorted(CONSTRAINTS, key=_order):
        subject = key.rsplit("_c", 1)[0]
        if subject in OPCODES and (last is None or last not in OPCODES):
            lines.append("\n## Opcodes")
        elif last is None:
            lines.append("\n## Modules, computations, instructions")
        if subject != last:
            lines.append(f"\n### {subject.replace('_', ' ')}\n")
        lines.append(f"- `{key}`: {CONSTRAINTS[key]}")
        last = subject
    return "\n".join(lines) + "\n"


def main() -> int:
    """Writes or checks the page; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true", help="only compare")
    text = page()
    if parser.parse_args().check:
        fresh = PAGE.is_file() and PAGE.read_text() == text
        if not fresh:
            print(f"{PAGE} is out of date; run python tools/constraint_page.py", file=sys.stderr)
        return 0 if fresh else 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
