"""Graphs in dot, laid out as XLA lays them out: merged constants, drawn fusions, colours, hover rules.

Source: dumps reference, "dot layout", and the graphs of XLA itself, which tests compare with. Ids
are numbers where XLA has addresses, so that two runs give the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from mlirhlo.debug.graph.calls import library_call_fields
from mlirhlo.debug.graph.colors import SHARDING_SCHEMES, Scheme
from mlirhlo.debug.graph.filters import EVERYTHING, Filter
from mlirhlo.debug.graph.model import Computation, Graph, Node
from mlirhlo.debug.graph.texts import (
    constant_text,
    escape,
    is_scalar,
    is_small,
    label,
    parameter_scheme,
    quoted,
    scheme_of,
    trivial_word,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape, leaves

_MAX_SHAPE, _MAX_DEVICES, _MAX_INLINED, _MAX_PARALLEL = 64, 128, 32, 64
_LONG_FIELDS = ("replica_groups=", "source_target_pairs=", "control-predecessors=")
_MERGED_TUPLE_USERS = 3

_HEADER = """digraph G {{
rankdir = TB;
compound = true;
label = <<b>{label}</b>>;
labelloc = t;
tooltip = " ";
stylesheet=<
  data:text/css,
  svg text {{
    font-family: 'Roboto', sans-serif;
    font-size: 12px;
  }}

  {rules}
>

"""


@dataclass(frozen=True, slots=True)
class DotOptions:
    """What is drawn."""

    label: str = ""
    """First line of the title: a dump's file name without extension."""
    sharding_color: bool = False
    """Colours by sharding, `--xla_hlo_graph_sharding_color`."""
    addresses: bool = False
    """A number in place of XLA's memory addresses, `--xla_hlo_graph_addresses`."""
    fusions: bool = True
    """Draw the bodies of fusions instead of one node each."""
    backend_config: bool = False
    hover: bool = True
    """Rules that colour an edge while the pointer is on one of its ends; they are most of the bytes."""
    filter: Filter = EVERYTHING


def print_dot(graph: Graph, computation: Computation, options: DotOptions | None = None) -> str:
    """A computation, and what it calls, in dot."""
    return _DotPrinter(graph, computation, options or DotOptions()).text()


@dataclass(slots=True)
class _DotPrinter:
    graph: Graph
    computation: Computation
    options: DotOptions
    node_ids: dict[int, int] = field(default_factory=dict[int, int])
    """Place of a node among the nodes printed, from 1, as Graphviz counts."""
    cluster_ids: dict[int, int] = field(default_factory=dict[int, int])
    edges: list[str] = field(default_factory=list[str])
    ends: list[tuple[int, int | None]] = field(default_factory=list[tuple[int, "int | None"]])
    """Nodes at both ends of each edge; None is the root tag."""
    parallel: Counter[tuple[int, int]] = field(default_factory=Counter[tuple[int, int]])
    root_id: int = 0
    merged_tuples: dict[int, bool] = field(default_factory=dict[int, bool])
    """Whether a parameter that is a tuple is written into its users; each of them asks."""
    sharding_schemes: dict[str, Scheme] = field(default_factory=dict[str, Scheme])

    def text(self) -> str:
        body = "".join((*self._computation(self.computation), self._root_tag()))
        title = [self.options.label, f"Computation {self.computation.name}"]
        if self.computation.fusion is not None:
            fusion = self.graph.nodes[self.computation.fusion].name
            title[-1] += f" (in fusion instruction {fusion})"
        if self.computation.is_entry:
            title.append("ENTRY computation")
        rules = "\n".join(self._hover_rules()).replace("#", "%23") if self.options.hover else ""
        head = _HEADER.format(label=label(map(escape, title)), rules=rules)
        return head + body + "\n".join(self.edges) + "\n}"

    # -------------------------------------------------------------- computations

    def _computation(self, computation: Computation) -> Iterator[str]:
        """The nodes of a computation, each after the clusters of what it calls.

        A stack, not recursion: calls nest deeper than Python's.
        """
        stack: list[tuple[Iterator[str | tuple[Computation, Node]], str]] = [
            (self._parts(computation), "")
        ]
        while stack:
            parts, end = stack[-1]
            part = next(parts, None)
            if part is None:
                stack.pop()
                yield end
            elif isinstance(part, str):
                yield part
            else:
                callee, caller = part
                self._edge_to_caller(callee, caller)
                if callee.index in self.cluster_ids:
                    continue
                self.cluster_ids[callee.index] = len(self.cluster_ids) + 1
                yield self._cluster_head(callee, caller)
                end = f"\n}}  // cluster_{callee.index}\n\n"
                stack.append((self._parts(callee), end))

    def _parts(self, computation: Computation) -> Iterator[str | tuple[Computation, Node]]:
        for index in computation.nodes:
            node = self.graph.nodes[index]
            if not self.options.filter.shows(node):
                continue
            for callee in node.calls:
                if self._draws(self.graph.computations[callee], node):
                    yield self.graph.computations[callee], node
            if not self._is_omitted(node):
                yield self._node(node)

    def _draws(self, callee: Computation, caller: Node) -> bool:
        shown = self.options.filter
        if caller.opcode == "fusion":
            if not self.options.fusions or not shown.shows(caller) or shown.omits_operands(caller):
                return False
        elif trivial_word(self.graph, callee) is not None:
            return False
        return any(shown.shows(self.graph.nodes[index]) for index in callee.nodes)

    def _edge_to_caller(self, callee: Computation, caller: Node) -> None:
        if caller.opcode == "fusion":
            return
        start = self._drawn(self.graph.nodes[callee.root])
        self.ends.append((start.index, caller.index))
        self.edges.append(
            f'{start.index + 1} -> {caller.index + 1} [ltail="cluster_{callee.index}",'
            f' style="dashed" tooltip="{quoted(callee.name)} -> {quoted(caller.name)}"];'
        )

    def _cluster_head(self, callee: Computation, caller: Node) -> str:
        if caller.opcode == "fusion":
            kind = cast(Any, caller.op).kind
            category = kind.removeprefix("k").lower() + " fusion"
            lines = [f"Fused expression for <b>{escape(caller.name)}</b>", category]
            lines += self._details(caller)
            highlighted = self.options.filter.highlights(caller)
            fill, stroke = ("#ffcdd2", "#b71c1c") if highlighted else ("#f5f5f5", "#c2c2c2")
            if self.options.sharding_color and not highlighted:
                colors = self._scheme(caller).value
                fill, stroke = colors.fill, colors.stroke
            # The semicolon within the quotes is XLA's.
            style = f'style="rounded,filled,bold"; fillcolor="{fill}"; color="{stroke};"'
        else:
            name = escape(callee.name)
            lines = [f"Subcomputation for <b>{escape(caller.name)}</b>", name]
            style = "style=rounded; color=black;"
        return (
            f"subgraph cluster_{callee.index} {{\n{style}\nlabel = <{label(lines)}>;\nlabelloc = t;\n"
            'tooltip = " ";\n'
        )

    def _root_tag(self) -> str:
        start = self._drawn(self.graph.nodes[self.computation.root])
        if (
            not self.options.filter.shows(start)
            or start.opcode == "constant"
            or self._is_fused_scalar(start)
        ):
            return ""
        self.root_id = len(self.node_ids) + 1
        self.ends.append((start.index, None))
        name = f"cluster_{self.computation.index}"
        self.edges.append(f'{start.index + 1} -> {name} [tooltip=" "];')
        colors = Scheme.BROWN.value.attributes
        return f'{name} [label=<ROOT>, shape=circle, tooltip=" ", {colors}];\n'

    # -------------------------------------------------------------- nodes

    def _is_omitted(self, node: Node) -> bool:
        if node.opcode == "constant" or self._is_fused_scalar(node):
            return not self.graph.is_root(node)
        return self._is_merged(node) or self._is_drawn_fusion(node)

    def _is_drawn_fusion(self, node: Node) -> bool:
        if node.opcode != "fusion" or not node.calls:
            return False
        return self._draws(self.graph.computations[node.calls[0]], node)

    def _is_fused_scalar(self, node: Node) -> bool:
        """A broadcast of a constant scalar inside a fusion."""
        if node.opcode != "broadcast" or not self.graph.is_fused(node):
            return False
        operand = self.graph.nodes[node.operands[0]]
        return operand.opcode == "constant" and is_scalar(operand.shape)

    def _is_merged(self, node: Node) -> bool:
        """Whether it is written into its users."""
        if node.opcode == "get-tuple-element":
            return not self.graph.is_root(node)
        if node.opcode != "parameter":
            return False
        if self._bound_constant(node) is not None:
            return True
        if not isinstance(node.shape, TupleShape) or self.graph.is_fused(node):
            return False
        if (known := self.merged_tuples.get(node.index)) is None:
            shown = [u for u in map(self.graph.nodes.__getitem__, node.users) if self._shows(u)]
            known = self.merged_tuples[node.index] = len(shown) > _MERGED_TUPLE_USERS and all(
                user.opcode == "get-tuple-element" for user in shown
            )
        return known

    def _shows(self, node: Node) -> bool:
        return self.options.filter.shows(node)

    def _bound_constant(self, node: Node) -> Node | None:
        """The constant that a fusion's parameter stands for."""
        fusion = self.graph.computations[node.computation].fusion
        if fusion is None or node.opcode != "parameter":
            return None
        operand = self.graph.nodes[self._argument(fusion, node)]
        return operand if operand.opcode == "constant" else None

    def _argument(self, caller: int, parameter: Node) -> int:
        number: int = cast(Any, parameter.op).parameter_number
        return self.graph.nodes[caller].operands[number]

    def _drawn(self, node: Node) -> Node:
        """The node that stands for `node` in the picture."""
        if node.opcode == "get-tuple-element":
            node = self.graph.nodes[node.operands[0]]
        while self._is_drawn_fusion(node):
            node = self.graph.nodes[self.graph.computations[node.calls[0]].root]
        return node

    def _node(self, node: Node) -> str:
        self.node_ids[node.index] = len(self.node_ids) + 1
        scheme = self._scheme(node)
        shape = "ellipse" if node.opcode == "while" else "rect"
        self._edges_into(node)
        if not self.options.sharding_color:
            if self.options.filter.deemphasizes(node):
                scheme = Scheme.DASHED_BORDER
            if self.options.filter.highlights(node):
                shape, scheme = "diamond", Scheme.DARK_RED
        lines = [*self._title(node), *self._trivial(node), *self._details(node)]
        lines += self._inlined(node)
        lines += self._backend_config(node)
        return (
            f"{node.index + 1} [label=<{label(lines)}>, shape={shape},"
            f' tooltip="{self._tooltip(node)}", {scheme.value.attributes}];\n'
        )

    def _title(self, node: Node) -> list[str]:
        if node.opcode == "parameter":
            lines = [f"<b>Parameter {cast(Any, node.op).parameter_number}</b>"]
            origin = self._origin(node)
            return lines + ([f"<i>{origin}</i>"] if origin else [])
        name = f"<b>{escape(node.name)}</b>"
        if node.name.startswith(node.opcode):
            return [name]
        kind = f":{cast(Any, node.op).kind}" if node.opcode == "fusion" else ""
        return [name, escape(node.opcode + kind)]

    def _origin(self, node: Node) -> str:
        """Where the parameter of a called computation comes from, looking through what only hands on."""
        callers = self.graph.computations[node.computation].callers
        if len(callers) != 1 or self.graph.nodes[callers[0]].opcode != "call":
            return ""
        source = self.graph.nodes[self._argument(callers[0], node)]
        part: list[int] = []
        while (before := self._handed_on(source, part)) is not None:
            source = before
        place = self.graph.computations[source.computation]
        where = "the ENTRY computation" if place.is_entry else escape(place.name)
        return f"from {escape(source.name)} in {where}"

    def _handed_on(self, node: Node, part: list[int]) -> Node | None:
        """The node whose value `node` only hands on; `part` are the places in tuples to look at."""
        match node.opcode:
            case "call" if node.calls:
                return self.graph.nodes[self.graph.computations[node.calls[0]].root]
            case "get-tuple-element":
                part.append(cast(Any, node.op).index)
                return self.graph.nodes[node.operands[0]]
            case "tuple" if part:
                return self.graph.nodes[node.operands[part.pop()]]
            case "copy" | "bitcast":
                return self.graph.nodes[node.operands[0]]
            case _:
                return None

    def _trivial(self, node: Node) -> list[str]:
        if node.opcode == "fusion":
            return []
        lines: list[str] = []
        for place, callee in enumerate(node.calls):
            word = trivial_word(self.graph, self.graph.computations[callee])
            if word is not None:
                number = f" {place}" if len(node.calls) > 1 else ""
                lines.append(f"Subcomputation{number}: <b>{word}</b>")
        return lines

    def _details(self, node: Node) -> list[str]:
        """Attributes, shape and number."""
        lines: list[str] = []
        for text in self.graph.attributes(node):
            if text.startswith(_LONG_FIELDS) and len(text) > _MAX_DEVICES:
                text = text[: _MAX_DEVICES - 3] + "..."
            line = escape(text)
            lines.append(f"<b>{line}</b>" if text.startswith("feature_group_count=") else line)
        if not self._is_drawn_fusion(node):
            arrays = [leaf for _, leaf in leaves(node.shape) if isinstance(leaf, ArrayShape)]
            layout = node.opcode != "tuple" and any(array.rank > 1 for array in arrays)
            shape = node.shape.to_string(layout)
            if len(shape) > _MAX_SHAPE:
                shape = shape[: _MAX_SHAPE - 3] + "..."
            lines.append(escape(shape))
        if self.options.addresses:
            lines.append(f"[0x{node.index + 1:x}]")
        return lines

    def _inlined(self, node: Node) -> list[str]:
        """Operands that are written into the node."""
        lines: list[str] = []
        for place, index in enumerate(node.operands):
            text = self._inlined_operand(self.graph.nodes[index])
            if text is not None:
                number = f" {place}" if len(node.operands) > 1 else ""
                lines.append(f"<b>operand{number}</b> = {escape(text)}")
        if len(lines) > _MAX_INLINED:
            lines[_MAX_INLINED:] = ["..."]
        fusion = self.graph.computations[node.computation].fusion
        if node.opcode == "parameter" and fusion is not None:
            source = self.graph.nodes[self._argument(fusion, node)]
            if source.opcode == "get-tuple-element":
                lines.append(escape(self._tuple_element(source)))
        return lines

    def _inlined_operand(self, operand: Node) -> str | None:
        if operand.opcode == "constant":
            return constant_text(operand, operand.shape)
        if self._is_fused_scalar(operand):
            return constant_text(self.graph.nodes[operand.operands[0]], operand.shape)
        if not self._is_merged(operand):
            return None
        if operand.opcode == "get-tuple-element":
            return self._tuple_element(operand)
        constant = self._bound_constant(operand)
        if constant is not None:
            return constant_text(constant, constant.shape)
        return f"Parameter {cast(Any, operand.op).parameter_number}"

    def _backend_config(self, node: Node) -> list[str]:
        """What a library call's configuration means; others only when asked for."""
        fields = library_call_fields(node)
        if fields:
            return [*([""] if len(fields) > 1 else []), *map(escape, fields)]
        if self.options.backend_config and node.op.backend_config:
            return [escape(f'backend_config="{node.op.backend_config}"')]
        return []

    def _tuple_element(self, node: Node) -> str:
        source = self.graph.nodes[node.operands[0]].name
        shape = node.shape.to_string(True)
        return f"tuple-element {cast(Any, node.op).index} of {source} {shape}"

    def _tooltip(self, node: Node) -> str:
        metadata = node.metadata
        lines: list[str] = []
        if metadata.op_name:
            lines.append(metadata.op_name)
        if metadata.op_type:
            lines.append(f"op_type: {metadata.op_type}")
        if metadata.source_file and metadata.source_line:
            lines.append(f"source: {metadata.source_file}:{metadata.source_line}")
        lines = [escape(line) for line in lines]
        # A quoted string needs no `&lt;`; XLA writes frames as they are.
        lines += [
            ":".join(map(str, frame))[:1500].replace('"', "&quot;")
            for frame in self.graph.stack(node)
        ]
        return "\n".join(lines).replace("\\", "\\\\")

    # -------------------------------------------------------------- colours

    def _scheme(self, node: Node) -> Scheme:
        if self.options.sharding_color:
            if node.op.sharding is None:
                return Scheme.DASHED_BORDER
            text = str(node.op.sharding)
            schemes = self.sharding_schemes
            return schemes.setdefault(text, SHARDING_SCHEMES[len(schemes) % len(SHARDING_SCHEMES)])
        if any(self._is_merged_parameter(self.graph.nodes[index]) for index in node.operands):
            return parameter_scheme(node.shape)
        return scheme_of(self.graph, node)

    def _is_merged_parameter(self, node: Node) -> bool:
        is_merged = node.opcode == "parameter" and self._is_merged(node)
        return is_merged and self._bound_constant(node) is None

    # -------------------------------------------------------------- edges

    def _edges_into(self, node: Node) -> None:
        fusion = self.graph.computations[node.computation].fusion
        if node.opcode == "parameter" and fusion is not None:
            if node.computation != self.computation.index:
                self._edge(self.graph.nodes[self._argument(fusion, node)], node, "")
            return
        is_numbered = len(node.operands) > 1
        for place, index in enumerate(node.operands):
            mark = f' headlabel="{place}", labeldistance=2' if is_numbered else ""
            self._edge(self.graph.nodes[index], node, mark)
        for index in node.control:
            self._edge(self.graph.nodes[index], node, 'style="dotted" color="gray" label="ctrl"')

    def _edge(self, start: Node, end: Node, mark: str) -> None:
        start = self._drawn(start)
        if (
            not self._shows(start)
            or start.opcode == "constant"
            or self._is_fused_scalar(start)
            or self._is_merged(start)
        ):
            return
        self.parallel[start.index, end.index] += 1
        if self.parallel[start.index, end.index] > _MAX_PARALLEL:
            return
        self.ends.append((start.index, end.index))
        arrow = "empty" if is_small(start.shape) else "normal"
        self.edges.append(
            f"{start.index + 1} -> {end.index + 1} [arrowhead={arrow}"
            f' tooltip="{quoted(start.name)} -> {quoted(end.name)}" {mark}];'
        )

    def _hover_rules(self) -> Iterator[str]:
        """The edge turns blue while the pointer is where it starts, red where it ends."""
        for number, (start, end) in enumerate(self.ends, 1):
            if start not in self.node_ids or (end is not None and end not in self.node_ids):
                continue
            yield _hover_rule(f"node{self.node_ids[start]}", number, "#1976d2")
            last = self.root_id if end is None else self.node_ids[end]
            yield _hover_rule(f"node{last}", number, "#d32f2f")
            if end is None:
                continue
            first, target = self.graph.nodes[start], self.graph.nodes[end]
            if self._is_clustered(first) and self.graph.is_root(first):
                cluster = self.cluster_ids[first.computation]
                yield _hover_rule(f"clust{cluster}", number, "#1976d2")
            if self._is_clustered(target) and target.opcode == "parameter":
                cluster = self.cluster_ids[target.computation]
                yield _hover_rule(f"clust{cluster}", number, "#d32f2f")

    def _is_clustered(self, node: Node) -> bool:
        return self.graph.is_fused(node) and node.computation in self.cluster_ids


def _hover_rule(element: str, edge: int, color: str) -> str:
    start = f"  #{element}:hover ~ #edge{edge}"
    return (
        f"{start} text {{ fill: {color}; }}\n"
        f"{start} path {{ stroke: {color}; stroke-width: .2em; }}\n"
        f"{start} polygon {{ fill: {color}; stroke: {color}; stroke-width: .2em; }}\n"
    )
