"""Pictures of dot texts, by Graphviz's `dot` where it is installed; a page of several."""

from __future__ import annotations

import base64
import html
import shutil
import subprocess
from collections.abc import Sequence

from mlirhlo.diagnostics import error

_SECONDS = 120


PICTURES = ("svg", "png", "pdf")
"""Formats of pictures."""


def picture_of_dot(dot: str, format: str = "svg") -> bytes:
    """The picture in one of `PICTURES`.

    Raises `HloError` HLO0540 when there is no Graphviz, or it fails or takes too long.
    """
    program = shutil.which("dot")
    if program is None:
        raise error(
            "HLO0540",
            f"{format} needs Graphviz, and there is no 'dot' program",
            help="install graphviz (apt-get install graphviz), or write html, which needs nothing",
        )
    try:
        done = subprocess.run(
            [program, f"-T{format}"],
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
    return done.stdout


def print_dots(dots: Sequence[tuple[str, str]]) -> str:
    """A page of dot texts: pairs of name and text, each drawn below a heading that folds.

    The pictures are images, so that nothing in them runs. Raises `HloError` HLO0540.
    """
    parts = [
        f"<details{' open' if len(dots) == 1 else ''}><summary>{html.escape(name)}</summary>"
        f'<img alt="{html.escape(name)}" src="data:image/svg+xml;base64,'
        f'{base64.b64encode(picture_of_dot(text)).decode()}"></details>'
        for name, text in dots
    ]
    return _PAGE.format(title=html.escape(dots[0][0]), body="\n".join(parts))


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body {{ font: 14px sans-serif; margin: 1em }} summary {{ cursor: pointer; padding: .3em }}
details {{ overflow: auto; border-bottom: 1px solid #ccc }}</style></head>
<body>
{body}
</body></html>
"""
