"""Pages of html with no script and no network: a head with a policy that allows the page's own style alone."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape

STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem; }
"""


def html_page(title: str, style: str, body: Iterable[str]) -> str:
    """A page. `title` is text, `body` html."""
    whole = STYLE + style
    digest = base64.b64encode(hashlib.sha256(whole.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return "".join(
        (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
            f"<title>{html_text(title)}</title><style>{whole}</style></head><body>\n",
            f"<h1>{html_text(title)}</h1>\n",
            *body,
            "</body></html>\n",
        )
    )


def html_text(text: str) -> str:
    """Text in html, what cannot be shown as a dot."""
    return escape("".join(c if c.isprintable() else "·" for c in text))
