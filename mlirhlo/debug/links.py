"""Addresses of files, as a page that is written anywhere links to them."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote


def link_to(path: str, folder: str = "", page: str = "") -> str:
    """The address of `path` (with slashes, below `folder`) in the page whose file is `page`.

    Relative, so that folder and page can be moved together; through symbolic links, where `..` depends on who
    follows it, and on other drives it is absolute. Without a page, it lies in the folder.
    """
    # `./` keeps a name with a colon from being taken for an address.
    below = "./" + quote(path.encode("utf-8", "surrogateescape"))
    if not page:
        return below
    at, target = (os.path.abspath(p) for p in (os.path.dirname(page) or ".", folder or "."))
    if at == target:
        return below
    is_plain = os.path.realpath(at) == at and os.path.realpath(target) == target
    if not is_plain or os.path.splitdrive(at)[0] != os.path.splitdrive(target)[0]:
        return f"{Path(target).as_uri()}/{below[2:]}"
    between = os.path.relpath(target, at).replace(os.sep, "/")
    return f"./{quote(between.encode('utf-8', 'surrogateescape'))}/{below[2:]}"
