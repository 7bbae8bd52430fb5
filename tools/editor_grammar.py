#!/usr/bin/env python3
"""Writes the TextMate grammar of HLO text: `editors/vscode/syntaxes/hlo.tmLanguage.json`.

python tools/editor_grammar.py            # write it
python tools/editor_grammar.py --check    # exit status 1 when it is out of date
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from mlirhlo.debug.editor.features import TOKEN_PATTERNS  # noqa: E402

FILE = ROOT / "editors" / "vscode" / "syntaxes" / "hlo.tmLanguage.json"
SCOPES = {
    "comment": "comment.hlo",
    "string": "string.quoted.double.hlo",
    "property": "variable.other.member.hlo",
    "type": "storage.type.hlo",
    "keyword": "keyword.control.hlo",
    "function": "entity.name.function.hlo",
    "variable": "variable.other.hlo",
    "number": "constant.numeric.hlo",
}


def grammar() -> str:
    """The patterns of the language server's tokens, with TextMate's names of scopes."""
    patterns = [{"match": text, "name": SCOPES[kind]} for kind, text in TOKEN_PATTERNS.items()]
    whole = {"name": "HLO", "scopeName": "source.hlo", "fileTypes": ["hlo"], "patterns": patterns}
    return json.dumps(whole, indent=2) + "\n"


def main() -> int:
    """Exit 1 when `--check` finds another text."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        return int(not FILE.exists() or FILE.read_text() != grammar())
    FILE.write_text(grammar())
    return 0


if __name__ == "__main__":
    sys.exit(main())
