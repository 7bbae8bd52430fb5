"""SVG of a dot text, by Graphviz's `dot` where it is installed."""

from __future__ import annotations

import shutil
import subprocess

from mlirhlo.diagnostics import error

_SECONDS = 120


def svg_of_dot(dot: str) -> str:
    """The picture. Raises `HloError` HLO0540 when there is no Graphviz, or it fails or takes too long."""
    program = shutil.which("dot")
    if program is None:
        raise error(
            "HLO0540",
            "svg needs Graphviz, and there is no 'dot' program",
            help="install graphviz (apt-get install graphviz), or write html, which needs nothing",
        )
    try:
        done = subprocess.run(
            [program, "-Tsvg"],
            input=dot.encode(errors="replace"),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise error(
            "HLO0540",
            f"Graphviz has not laid the graph out within {_SECONDS} s",
            help="draw a neighbourhood or one computation, or write html, which folds",
        ) from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().split("\n")[0]
        raise error("HLO0540", f"Graphviz failed: {said or f'exit code {done.returncode}'}")
    return done.stdout.decode(errors="replace")
