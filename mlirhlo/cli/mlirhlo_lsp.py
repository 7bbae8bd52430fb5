"""`mlirhlo-lsp`: the language server for editors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import mlirhlo
from mlirhlo.cli.options import flag, help_text, parse
from mlirhlo.cli.report import DONE, run_tool
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.integrations import lsp, optional


PURPOSE = "mlirhlo-lsp: HLO text in editors: what is wrong as you type, hover, names, completion"
USAGE = "mlirhlo-lsp    (an editor starts it, and speaks to it by standard input and output)"
EXAMPLES = ("mlirhlo-lsp                     docs/editors.md has the settings of editors",)


@dataclass
class Options:
    """The command line of mlirhlo-lsp."""

    stdio: bool = flag(False, group="Editor", help="as editors say it; there is no other way")
    help: bool = flag(False, "h", group="Help", help="")
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    return run_tool("mlirhlo-lsp", _run, argv)


def _run(argv: Sequence[str]) -> int:
    options = parse(Options, argv).options
    if options.version:
        print(f"mlirhlo-lsp of mlirhlo {mlirhlo.__version__}")
        return DONE
    if options.help:
        print(help_text(Options, PURPOSE, USAGE, EXAMPLES, xla=False))
        return DONE

    optional.require("pygls", "lsp", "the language server")

    lsp.serve()
    return DONE


if __name__ == "__main__":
    sys.exit(main())
