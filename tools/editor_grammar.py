#!/usr/bin/env python3
"""Writes the TextMate grammars of HLO text and MLIR: `editors/vscode/syntaxes/*.tmLanguage.json`.

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

from mlirhlo.debug.editor import features, mlir  # noqa: E402

FOLDER = ROOT / "editors" / "vscode" / "syntaxes"
LANGUAGES = {"hlo": ("HLO", features.TOKEN_PATTERNS), "mlir": ("MLIR", mlir.TOKEN_PATTERNS)}
"""Titles and patterns, by the ending of files."""
SCOPES = {
    "comment": "comment",
    "string": "string.quoted.double",
    "property": "variable.other.member",
    "type": "storage.type",
    "keyword": "keyword.control",
    "function": "entity.name.function",
    "variable": "variable.other",
    "number": "constant.numeric",
}


def file_of(language: str) -> Path:
    """Where a grammar is."""
    return FOLDER / f"{language}.tmLanguage.json"


def grammar(language: str) -> str:
    """The patterns of the language server's tokens, with TextMate's names of scopes."""
    title, tokens = LANGUAGES[language]
    patterns = [
        {"match": text, "name": f"{SCOPES[kind]}.{language}"} for kind, text in tokens.items()
    ]
    whole = {
        "name": title,
        "scopeName": f"source.{language}",
        "fileTypes": [language],
        "patterns": patterns,
    }
    return json.dumps(whole, indent=2) + "\n"


def main() -> int:
    """Exit 1 when `--check` finds another text."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    for language in LANGUAGES:
        file = file_of(language)
        if options.check and (not file.exists() or file.read_text() != grammar(language)):
            return 1
        if not options.check:
            file.write_text(grammar(language))
    return 0


if __name__ == "__main__":
    sys.exit(main())
