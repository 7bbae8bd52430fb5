"""Writes docs/constraints.md and docs/stablehlo_constraints.md: every numbered constraint, one line each.

python tools/constraint_page.py            # write them
python tools/constraint_page.py --check    # exit status 1 when one is out of date
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mlirhlo.analysis.shape_inference.base import CONSTRAINTS
from mlirhlo.analysis.stablehlo import CONSTRAINTS as STABLEHLO_CONSTRAINTS
from mlirhlo.analysis.verifier import LAYOUT_NOTE  # importing states the constraints
from mlirhlo.dialects.hlo.table import OPCODES

DOCS = Path(__file__).resolve().parent.parent / "docs"

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


_STABLEHLO_HEAD = """\
<!-- Written by tools/constraint_page.py; change the code it follows from. -->

# Constraints of StableHLO

What `mlirhlo.analysis.stablehlo.verify_module` holds of programs, with the numbers of its specification. CHLO,
shardings and the ops that the specification leaves out have numbers of their own.

```
bad.mlir:2:8: error[HLO0120]: stablehlo.slice: dimension 0 ends at 9, beyond its 8 elements [slice_c3]
```

What an input or output may be at all is named by its place: `cosine_i1` is input 1 of `cosine`, `abs_o1` output 1 of
`abs`. Each constraint has a broken program in `test/unit/analysis/stablehlo_broken.py`, where stands too which of them
MLIR's own verifier lets pass, and why.
"""


def _order(key: str) -> tuple[bool, str, int]:
    subject, number = key.rsplit("_c", 1)
    return subject in OPCODES, subject, int(number)


def _stablehlo_order(key: str) -> tuple[str, int]:
    return _order(key)[1:]


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


def stablehlo_page() -> str:
    """Text of the page for StableHLO, CHLO and shardings."""
    lines = [_STABLEHLO_HEAD]
    groups = (
        ("StableHLO", lambda subject: "." not in subject),
        ("CHLO", lambda subject: subject.startswith("chlo.")),
        ("Shardings", lambda subject: subject.startswith("sdy.")),
    )
    for title, holds in groups:
        lines.append(f"\n## {title}")
        last = None
        for key in sorted(STABLEHLO_CONSTRAINTS, key=_stablehlo_order):
            subject = key.rsplit("_c", 1)[0]
            if not holds(subject):
                continue
            if subject != last:
                lines.append(f"\n### {subject}\n")
            lines.append(f"- `{key}`: {STABLEHLO_CONSTRAINTS[key]}")
            last = subject
    return "\n".join(lines) + "\n"


def main() -> int:
    """Writes or checks the pages; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true", help="only compare")
    pages = {
        DOCS / "constraints.md": page(),
        DOCS / "stablehlo_constraints.md": stablehlo_page(),
    }
    if parser.parse_args().check:
        stale = [
            path for path, text in pages.items() if not path.is_file() or path.read_text() != text
        ]
        for path in stale:
            print(f"{path} is out of date; run python tools/constraint_page.py", file=sys.stderr)
        return 1 if stale else 0
    for path, text in pages.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
