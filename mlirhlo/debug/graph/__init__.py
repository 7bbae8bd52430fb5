"""Graphs of modules: dot with XLA's conventions, svg, one offline html, JSON for Model Explorer.

`render` is the door. A `Graph` is made once from a module; each printer reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mlirhlo.debug.graph.model import Graph
from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.build import paused_gc
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.debug.graph import dot as _graph_dot
    from mlirhlo.debug.graph import explorer as _explorer
    from mlirhlo.debug.graph import filters as _filters
    from mlirhlo.debug.graph import pictures as _pictures


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.graph.filters import Filter
    from mlirhlo.debug.graph.model import Computation, Node

__all__ = ["FORMATS", "GraphOptions", "Stage", "render"]

FORMATS = ("dot", "svg", "html", "json", "url")
"""What `render` writes. `url` is the html as one `data:` address, or a server's."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The module at one moment of its compilation."""

    label: str
    """`after algsimp`, or a file name."""
    module: ModuleOp
    file: str = ""
    """Path of the file that holds its text, below the folder of the stages."""


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """What is drawn, for every format; those that do not apply to one are ignored."""

    label: str = ""
    """Title: a dump's file name without extension."""
    sharding_color: bool = False
    """`--xla_hlo_graph_sharding_color`."""
    addresses: bool = False
    """`--xla_hlo_graph_addresses`; numbers stand for addresses."""
    fusions: bool = True
    """Bodies of fusions instead of one node each; off for `top_level` files."""
    backend_config: bool = False
    hover: bool = True
    """dot only: rules that colour edges under the pointer; most of the bytes of XLA's files."""
    center: str | None = None
    """Name of an instruction: draw its neighbourhood only."""
    radius: int = 2
    """Of the neighbourhood, in operands and users."""
    boundary: Sequence[str] = ()
    """Names of instructions that the neighbourhood does not go beyond."""
    path: tuple[str, str] | None = None
    """Names of two instructions: draw the paths between them only."""
    max_nodes: int = 100
    """Of paths; beyond that, shortest paths only."""
    stages: Sequence[Stage] = ()
    """html only: the module after each pass, oldest first; the module rendered is the last one."""
    file: str = ""
    """html only: path of the file that holds the text of the module, below `folder`."""
    folder: str = ""
    """html only: where files of stages lie, when the page lies elsewhere."""
    page: str = ""
    """html only: the file that the page is written to, when that is not in `folder`."""
    server: str = ""
    """url only: address of a Graphviz server that takes a dot text behind it, as in
    `https://host/graphviz#`; without one the page itself is the address."""


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
            from mlirhlo.debug.graph.page import data_url, print_html

            html = print_html(graph, chosen, computation)
            return html if format == "html" else data_url(html)
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


def node_of(graph: Graph, name: str) -> Node:
    """The instruction called `name`, with or without `%`, in any case. Raises `HloError` HLO0541."""
    key = name.removeprefix("%")
    found = graph.node_by_name.get(key)
    if found is None:
        lowered = key.lower()
        found = next((node for node in graph.nodes if node.name.lower() == lowered), None)
    if found is None:
        raise _unknown("instruction", key, graph.node_by_name)
    return found


def computation_of(graph: Graph, name: str | None) -> Computation:
    """The computation called `name`; the entry for None. Raises `HloError` HLO0541."""
    if name is None:
        return graph.entry
    found = graph.computation_by_name.get(name.removeprefix("%"))
    if found is None:
        raise _unknown("computation", name, graph.computation_by_name)
    return found


def _unknown(what: str, name: str, known: object) -> Exception:
    from collections.abc import Iterable
    from difflib import get_close_matches
    from typing import cast

    names = [str(other) for other in cast("Iterable[object]", known)]
    near = get_close_matches(name, names, n=1) if len(names) < 20_000 else []
    hint = f"did you mean '{near[0]}'?" if near else None
    return error("HLO0541", f"the module has no {what} called '{name}'", help=hint)
