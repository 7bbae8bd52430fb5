"""Graphs of modules: dot with XLA's conventions, svg, one offline html, JSON for Model Explorer.

`render` is the door. A `Graph` is made once from a module; each printer reads it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mlirhlo.debug.graph.model import Graph, computation_of, node_of
from mlirhlo.debug.graph.options import GraphOptions, Stage
from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.debug.graph import dot as _graph_dot
    from mlirhlo.debug.graph import explorer as _explorer
    from mlirhlo.debug.graph import filters as _filters
    from mlirhlo.debug.graph import page as _page
    from mlirhlo.debug.graph import pictures as _pictures


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.graph.filters import Filter

__all__ = ["FORMATS", "GraphOptions", "Stage", "render"]

FORMATS = ("dot", "svg", "html", "json", "url")
"""What `render` writes. `url` is the html as one `data:` address, or a server's."""


def render(
    module: ModuleOp,
    format: str = "dot",
    options: GraphOptions | None = None,
    computation: str | None = None,
) -> str:
    """The graph of `module` as text in one of `FORMATS`.

    Dot and svg show `computation` (the entry when None) and what it calls; the others everything.
    Raises `HloError`: HLO0540 without Graphviz for svg, HLO0541 for names that the module does not
    have, HLO0542 without the layout library for html, HLO0543 for an unknown format.
    """
    with paused_gc():
        return _rendered(Graph(module), format, options or GraphOptions(), computation)


def _rendered(graph: Graph, format: str, chosen: GraphOptions, computation: str | None) -> str:
    match format:
        case "dot":
            return _dot(graph, chosen, computation)
        case "svg":
            return _picture(graph, "svg", chosen, computation).decode(errors="replace")
        case "json":
            return _explorer.print_json(graph, chosen.label)
        case "url" if chosen.server:
            from urllib.parse import quote

            return chosen.server + quote(_dot(graph, replace(chosen, hover=False), computation))
        case "html" | "url":
            html = _page.print_html(graph, chosen, computation)
            return html if format == "html" else _page.data_url(html)
        case _:
            raise error(
                "HLO0543", f"unknown graph format '{format}'", help=f"one of {', '.join(FORMATS)}"
            )


def picture(
    module: ModuleOp,
    format: str,
    options: GraphOptions | None = None,
    computation: str | None = None,
) -> bytes:
    """The graph that `render` gives as dot, drawn: `svg`, `png` or `pdf`.

    Raises `HloError`: HLO0540 without Graphviz, HLO0541 for names that the module does not have.
    """
    return _picture(Graph(module), format, options or GraphOptions(), computation)


def _picture(graph: Graph, format: str, chosen: GraphOptions, computation: str | None) -> bytes:
    return _pictures.picture_of_dot(_dot(graph, chosen, computation), format)


def _dot(graph: Graph, options: GraphOptions, computation: str | None) -> str:
    shown = filter_of(graph, options)
    place = computation_of(graph, computation)
    if computation is None and shown.computation is not None:
        place = graph.computations[shown.computation]
    return _graph_dot.print_dot(
        graph,
        place,
        _graph_dot.DotOptions(
            options.label,
            options.sharding_color,
            options.addresses,
            options.fusions,
            options.backend_config,
            options.hover,
            shown,
        ),
    )


def filter_of(graph: Graph, options: GraphOptions) -> Filter:
    """What `center` and `path` leave of the graph. Raises `HloError` HLO0541."""
    if options.path is not None:
        start, end = (node_of(graph, name) for name in options.path)
        return _filters.paths(graph, start, end, options.max_nodes)
    if options.center is not None:
        boundary = [node_of(graph, name).index for name in options.boundary]
        return _filters.neighbourhood(
            graph, node_of(graph, options.center), options.radius, boundary
        )
    return _filters.EVERYTHING
