"""Words and colours of a node that more than one printer writes.

Source: the graphs of XLA itself, which tests compare with.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from mlirhlo.debug.graph.colors import SCHEME_OF_OPCODE, Scheme
from mlirhlo.debug.graph.model import Computation, Graph, Node, element_count
from mlirhlo.dialects.hlo.literal import Literal
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape

_SMALL = 4096
"""Elements from which on an array is drawn as a large one."""
_MAX_PIECE, _MAX_LABEL = 1500, 15000
"""Characters; Graphviz takes labels of 16384 bytes."""
_MAX_LITERAL_ELEMENTS, _MAX_LITERAL_TEXT = 8, 64

_TRIVIAL = {
    "add": "add",
    "multiply": "multiply",
    "minimum": "min",
    "maximum": "max",
    "xor": "xor",
    "and": "and",
    "or": "or",
}
_DIRECTIONS = {
    "LE": "less-or-equal",
    "GE": "greater-or-equal",
    "GT": "greater-than",
    "LT": "less-than",
    "EQ": "equal-to",
    "NE": "not-equal-to",
}


def escape(text: str) -> str:
    """Text for Graphviz' HTML-like labels and its quoted strings; no longer than those may be."""
    if len(text) > _MAX_PIECE:
        text = text[:_MAX_PIECE] + "..."
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = text.replace('"', "&quot;")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def quoted(text: str) -> str:
    """Text within a quoted string of dot."""
    return escape(text).replace("\\", "\\\\")


def label(lines: Iterable[str]) -> str:
    """Lines of a label, as many as Graphviz takes."""
    kept: list[str] = []
    room = _MAX_LABEL
    for line in lines:
        room -= len(line) + len("<br/>")
        if room < 0:
            kept.append("...")
            break
        kept.append(line)
    return "<br/>".join(kept)


def trivial_word(graph: Graph, computation: Computation) -> str | None:
    """`add` for a computation that adds its two scalar parameters, and so on; None for others."""
    if len(computation.nodes) != 3:
        return None
    root = graph.nodes[computation.root]
    operands = [graph.nodes[index] for index in root.operands]
    if (
        len(set(root.operands)) != 2
        or not all(node.opcode == "parameter" for node in operands)
        or not all(is_scalar(node.shape) for node in (root, *operands))
    ):
        return None
    if root.opcode == "compare":
        return _DIRECTIONS.get(cast(Any, root.op).direction)
    return _TRIVIAL.get(root.opcode)


def scheme_of(graph: Graph, node: Node) -> Scheme:
    """The colours of an opcode."""
    if node.opcode == "parameter":
        return parameter_scheme(node.shape)
    if node.opcode == "bitcast":
        return Scheme.GREEN if graph.is_fused(node) else Scheme.WHITE
    first = node.index
    while node.opcode in ("async-update", "async-done") and node.operands:
        # Operands come first: the start behind one that is an update is known.
        node = graph.nodes[graph.started.get(node.operands[0], node.operands[0])]
    if node.index != first:
        graph.started[first] = node.index
    if node.opcode == "async-start" and node.calls:
        return scheme_of(graph, graph.nodes[graph.computations[node.calls[0]].root])
    return SCHEME_OF_OPCODE.get(node.opcode, Scheme.WHITE)


def parameter_scheme(shape: Shape) -> Scheme:
    """The colours of a parameter: darker for large ones."""
    return Scheme.ORANGE if is_small(shape) else Scheme.DARK_ORANGE


def is_small(shape: Shape) -> bool:
    """Whether an edge is drawn as that of a small array; tokens and opaque values are."""
    count = element_count(shape)
    return count is None or count < _SMALL


def is_scalar(shape: Shape) -> bool:
    """Whether it is an array of one element, of any rank."""
    return isinstance(shape, ArrayShape) and shape.element_count == 1


def constant_text(node: Node, shape: Shape) -> str:
    """How a constant is written into its users; `shape` is that of its broadcast, where it has one."""
    if isinstance(shape, ArrayShape) and shape.element_count == 0:
        return f"{{}} ({node.shape.to_string(False)})"
    literal = literal_of(node)
    count = element_count(node.shape)
    if (
        isinstance(node.shape, ArrayShape)
        and count is not None
        and count <= _MAX_LITERAL_ELEMENTS
        and literal is not None
        and not literal.is_elided
    ):
        value = _literal_text(literal, node.shape)
        if len(value) <= _MAX_LITERAL_TEXT:
            return f"{shape.to_string(False)} {value}"
    name = node.name if node.name.startswith("constant") else f"constant {node.name}"
    return f"{name} {shape.to_string(False)}"


def _literal_text(literal: Literal, shape: ArrayShape) -> str:
    """A literal as XLA shows it outside of dumps: from two dimensions on, a row a line."""
    texts = literal.to_text().replace("{", " ").replace("}", " ").replace(",", " ").split()
    if shape.rank < 2 or len(texts) != shape.element_count:
        return literal.to_text()

    def block(at: tuple[int, ...], start: int, size: int) -> str:
        dim = len(at)
        size //= shape.dimensions[dim]
        places = range(start, start + size * shape.dimensions[dim], size)
        if dim == shape.rank - 1:
            blank = " " if len(places) > 1 else ""
            return f"  {{{blank}{', '.join(texts[place] for place in places)}{blank}}}"
        inner = ",\n".join(block((*at, i), place, size) for i, place in enumerate(places))
        where = ",".join(f"i{d}={i}" for d, i in enumerate(at)) if shape.rank > 3 else ""
        return f"{{ /*{where}*/\n{inner}\n}}" if where else f"{{\n{inner}\n}}"

    return block((), 0, shape.element_count)


def literal_of(node: Node) -> Literal | None:
    """The value of a constant; None where nobody wrote it down."""
    attribute = node.op.properties.get("literal")
    return None if attribute is None else cast(Literal, cast(Any, attribute).data)
