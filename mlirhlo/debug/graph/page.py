"""The html: one file with the module's data, the viewer and its layout library; no network.

The viewer is `viewer/`, real modules in a browser's language, joined into one script here. The page
allows that script and that style sheet by their hashes and nothing else, so that no name in a module
can do more than be shown. Layout is dagre, which the `netron` package carries.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import importlib.util
import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from mlirhlo.debug.graph.memory import write_memory
from mlirhlo.debug.graph.model import Graph, computation_of, node_of
from mlirhlo.debug.graph.stages import write_stages
from mlirhlo.debug.links import link_to
from mlirhlo.diagnostics import error

if TYPE_CHECKING:
    from mlirhlo.debug.graph.options import GraphOptions

_VIEWER = Path(__file__).parent / "viewer"
_SCRIPTS = (
    "dom.js", "data.js", "groups.js", "tree.js", "layout.js", "select.js", "draw.js", "search.js", "panel.js",
    "view.js", "fold.js", "help.js", "pointer.js", "passes.js", "address.js", "main.js",
)  # fmt: skip
"""Each after those it imports from."""
_IMPORT = re.compile(r'^import [^;]*? from "\./[\w.-]+";\n', re.MULTILINE)


def print_html(graph: Graph, options: GraphOptions, computation: str | None = None) -> str:
    """The page about a module and, as a slider, about the stages before it.

    Raises `HloError` HLO0541 for names the module does not have, HLO0542 without the layout library.
    """
    title = options.label or graph.module.name or "module"
    return _page(_data(graph, options, computation), title)


def _data(graph: Graph, options: GraphOptions, computation: str | None) -> dict[str, object]:
    """What the page carries."""
    stages = [(Graph(stage.module), stage.label, stage.file) for stage in options.stages]
    if not stages or stages[-1][0].module.op is not graph.module.op:
        stages.append((graph, "the module" if stages else "", options.file))
    _ = graph.entry  # a module without computations is nothing to look at
    title = options.label or graph.module.name or "module"
    stages = [
        (g, label, link_to(file, options.folder, options.page) if file else "")
        for g, label, file in stages
    ]
    data = write_stages(stages, title, graph.module.name)
    data["memory"] = write_memory(stages[-1][0])  # earlier stages have no place in memory yet
    # What to look at first.
    data["start"] = {
        "computation": None if computation is None else computation_of(graph, computation).name,
        "center": None if options.center is None else node_of(graph, options.center).name,
        "radius": options.radius,
        "path": None if options.path is None else [node_of(graph, n).name for n in options.path],
        "sharding": options.sharding_color,
    }
    return data


def _page(data: dict[str, object], title: str) -> str:
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True)
    packed = base64.b64encode(gzip.compress(text.encode(), compresslevel=4, mtime=0)).decode()
    script, style = viewer_script(), (_VIEWER / "viewer.css").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}';"
        " base-uri 'none'; form-action 'none'"
    )
    pieces = {
        "policy": policy,
        "title": html.escape(title[:200]),
        "style": style,
        "data": packed,
        "script": script,
    }
    page = (_VIEWER / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: pieces[match[1]], page)


def data_url(page: str) -> str:
    """The page as one address."""
    return "data:text/html;base64," + base64.b64encode(page.encode()).decode()


@cache
def viewer_script() -> str:
    """The layout library and the viewer as one module. Raises `HloError` HLO0542."""
    parts = [layout_library().read_text(encoding="utf-8")]
    parts += [(_VIEWER / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    script = "\n".join(_IMPORT.sub("", part.replace("\r\n", "\n")) for part in parts)
    assert "</script" not in script.lower()
    return script


def layout_library() -> Path:
    """The file of dagre. Raises `HloError` HLO0542 when it is not installed."""
    spec = importlib.util.find_spec("netron")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    for folder in folders:
        path = Path(folder) / "dagre.js"
        if path.is_file():
            return path
    raise error(
        "HLO0542",
        "html needs the layout library dagre, which the package netron carries",
        help="pip install 'netron>=8.4'; dot and json need nothing",
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
