"""TensorFlow graphs as modules: a GraphDef with a `tf2xla.Config`, as tfcompile takes them.

TensorFlow makes the HLO and has to be installed for that; what a config gets wrong is told without it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mlirhlo.aot.config import Config, Entry
from mlirhlo.diagnostics import HloError, error
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.formats.proto import tensorflow_graph_pb2 as tf_pb2
from mlirhlo.integrations.ir import module_of
from mlirhlo.integrations.optional import require
from mlirhlo.integrations.tensorflow.clustering.graph import Graph, Node, signature, type_name
from mlirhlo.integrations.tensorflow.clustering.segments import Segment, constant_inputs
from mlirhlo.integrations.tensorflow.clustering.table import table
from mlirhlo.integrations.tensorflow.graph_functions import compiler_ir, imported
from mlirhlo.integrations.tensorflow.refusals import refusal_types, refused
from mlirhlo.rewrites.spmd.factors import leaves

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_FEEDS = ("Placeholder", "PlaceholderV2", "_Arg")


def graph_module(graph: Graph, config: Config) -> tuple[ModuleOp, Config]:
    """The module that computes a config's fetches from its feeds, and the config with their numbers in it.

    Variables are parameters behind the feeds; those that the graph assigns are results behind the fetches.
    Raises `HloError` HLO0842 for a config that does not fit the graph, HLO0600 without TensorFlow, HLO0607
    where TensorFlow's compiler does not take the graph.
    """
    nodes = {node.name: node for node in graph.nodes}
    _check(config, nodes, graph)
    feeds = {_tensor(entry): _described(entry, nodes, graph) for entry in config.feeds}
    fetches = [_tensor(entry) for entry in config.fetches]
    variables = {_tensor(entry): _variable(entry, nodes) for entry in config.variables}
    needed = _needed(nodes, {**feeds, **variables}, fetches)
    segment = Segment("", needed, [*feeds, *variables], fetches)
    if constant := constant_inputs(segment):
        entry = [*config.feeds, *config.variables][constant[0]]
        raise _unfit(
            f"{_kind_of(nodes[entry.node])} '{entry.node}': its value is needed while the graph is compiled",
            "make shapes, axes and sizes constants of the graph",
        )
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # TensorFlow greets on standard error
    tf: Any = require("tensorflow", "tensorflow", "hlo-aot of a TensorFlow graph")
    specs = {name: tf.TensorSpec(dims, tf.as_dtype(kind)) for name, (kind, dims) in feeds.items()}
    try:
        values = {n: tf.Variable(tf.zeros(d, tf.as_dtype(k))) for n, (k, d) in variables.items()}
        definition = segment.graph_def(graph.definition.library)
        function = imported(definition, specs, fetches, variables=values)
        ir = compiler_ir(function, [tf.zeros(spec.shape, spec.dtype) for spec in specs.values()])
    except refusal_types() as problem:
        raise refused(problem) from None
    module = module_of(ir).op
    _check_updates(config, module, needed)
    return module, _numbered(config)


def _check_updates(config: Config, module: ModuleOp, needed: Sequence[Node]) -> None:
    """Raises `HloError` HLO0842 where the graph assigns other variables than the config says."""
    kinds = table().resources
    assigned = {
        producer.name
        for node in needed
        if kinds.get(node.op, "read") != "read"
        for producer, _ in node.inputs
    }
    calls = any(
        producer.op == "VarHandleOp" and node.op not in kinds
        for node in needed
        for producer, _ in node.inputs
    )
    for entry in config.variables:
        if (entry.node in assigned) == entry.readonly and not calls:
            raise _misstated(entry.node, entry.readonly)
    results = leaves(HloModule(module).entry.root.shape)
    updated = len(results) - len(config.fetches)
    said = [entry.node for entry in config.variables if not entry.readonly]
    if updated != len(said):
        message = f"the graph assigns {updated} variables, the config says {len(said)}"
        raise _unfit(message, "readonly: true is for those that it does not assign")


def _misstated(name: str, is_readonly: bool) -> HloError:
    if is_readonly:
        return _unfit(f"variable '{name}': the graph assigns it", "leave out readonly: true")
    message = f"variable '{name}': nothing that is fetched assigns it"
    return _unfit(message, "say readonly: true, or fetch what runs after the assignment")


def _tensor(entry: Entry) -> str:
    return f"{entry.node}:{entry.output}"


def _numbered(config: Config) -> Config:
    """Entries that mean parameters and results by number, under the names that they had."""
    feeds, fetches = _counted(config.feeds), _counted(config.fetches)
    return Config(feeds, fetches, _counted(config.variables, len(feeds)))


def _counted(entries: Sequence[Entry], first: int = 0) -> list[Entry]:
    return [replace(e, node=str(n), name=e.name or e.node) for n, e in enumerate(entries, first)]


def _check(config: Config, nodes: Mapping[str, Node], graph: Graph) -> None:
    """Raises `HloError` HLO0842 for entries of what the graph has not, or that stand twice."""
    if not config.fetches:
        raise _unfit("the config has no fetch", 'name a result: fetch { id { node_name: "…" } }')
    kinds = {"feed": config.feeds, "fetch": config.fetches, "variable": config.variables}
    for kind, entries in kinds.items():
        seen: set[str] = set()
        for entry in entries:
            outputs = _output_types(entry, kind, nodes, graph)
            if outputs is not None and entry.output >= len(outputs):
                raise _unfit(f"{kind} '{_tensor(entry)}': the node has {len(outputs)} outputs")
            if _tensor(entry) in seen:
                raise _unfit(f"{kind} '{entry.node}' is named twice")
            seen.add(_tensor(entry))


def _unfit(message: str, help: str | None = None) -> HloError:
    return error("HLO0842", message, help=help)


def _output_types(
    entry: Entry, kind: str, nodes: Mapping[str, Node], graph: Graph
) -> list[str] | None:
    """Element types of a node's outputs; None where only TensorFlow knows them."""
    node = nodes.get(entry.node)
    if node is None:
        raise _unfit(f"{kind} '{entry.node}': the graph has no such node")
    if node.op in _FEEDS:
        key = "T" if node.op == "_Arg" else "dtype"
        return [type_name(node.definition.attr[key].type)]
    types = signature(node.definition, graph.functions)
    return None if types is None else types[1]


def _described(
    entry: Entry, nodes: Mapping[str, Node], graph: Graph
) -> tuple[str, tuple[int, ...]]:
    """Element type and shape of a feed, of the config and the graph."""
    types = _output_types(entry, "feed", nodes, graph) or []
    kind = types[entry.output] if entry.output < len(types) else ""
    if entry.type:
        chosen = entry.type.removeprefix("DT_").lower()
        if f"DT_{chosen.upper()}" not in tf_pb2.DataType.DESCRIPTOR.values_by_name:
            raise _unfit(f"feed '{entry.node}': unknown type {entry.type}", "as in DT_FLOAT")
        if kind not in ("", chosen):
            raise _unfit(f"feed '{entry.node}': the config says {chosen}, the graph {kind}")
        kind = chosen
    if not kind:
        raise _unfit(f"feed '{entry.node}': its type is not known", "say type: DT_FLOAT")
    return kind, _shape(entry, nodes[entry.node])


def _shape(entry: Entry, node: Node) -> tuple[int, ...]:
    known: tuple[int, ...] | None = None
    if "shape" in node.definition.attr and node.op in (*_FEEDS, "VarHandleOp"):
        shape = node.definition.attr["shape"].shape
        known = None if shape.unknown_rank else tuple(dim.size for dim in shape.dim)
    if entry.dimensions is None:
        if known is None or min(known, default=0) < 0:
            message = f"{_kind_of(node)} '{entry.node}': its shape is not known"
            raise _unfit(message, "say shape { dim { size: 2 } }")
        return known
    chosen = tuple(entry.dimensions)
    if known is not None and (
        len(known) != len(chosen)
        or any(k not in (-1, c) for k, c in zip(known, chosen, strict=True))
    ):
        said = f"the config says {list(chosen)}, the graph {list(known)}"
        raise _unfit(f"{_kind_of(node)} '{entry.node}': {said}")
    return chosen


def _kind_of(node: Node) -> str:
    return "variable" if node.op == "VarHandleOp" else "feed"


def _variable(entry: Entry, nodes: Mapping[str, Node]) -> tuple[str, tuple[int, ...]]:
    """Element type and shape of a variable, of the config and its node."""
    node = nodes[entry.node]
    if node.op != "VarHandleOp":
        raise _unfit(
            f"variable '{entry.node}': the node is {node.op}", "name that of its VarHandleOp"
        )
    kind = type_name(node.definition.attr["dtype"].type)
    if entry.type not in ("", f"DT_{kind.upper()}"):
        raise _unfit(f"variable '{entry.node}': the config says {entry.type}, the graph {kind}")
    return kind, _shape(entry, node)


def _needed(
    nodes: Mapping[str, Node], feeds: Mapping[str, object], fetches: Sequence[str]
) -> list[Node]:
    """The nodes that compute fetches from feeds. Raises `HloError` HLO0842 where a feed is missing."""
    fed_nodes = {name.rpartition(":")[0] for name in feeds}
    work = [nodes[name.rpartition(":")[0]] for name in fetches if name not in feeds]
    seen: dict[str, Node] = {}
    while work:
        node = work.pop()
        if node.name in seen:
            continue
        seen[node.name] = node
        work += [p for p, n in node.inputs if f"{p.name}:{n}" not in feeds]
        work += [control for control in node.controls if control.name not in fed_nodes]
    missing = [node.name for node in nodes.values() if node.name in seen and node.op in _FEEDS]
    if missing:
        raise _unfit(
            f"the config has no feed for {', '.join(map(repr, missing[:8]))}",
            'what is fetched reads it: feed { id { node_name: "' + missing[0] + '" } }',
        )
    unknown = [
        n.name for n in seen.values() if n.op == "VarHandleOp" and f"{n.name}:0" not in feeds
    ]
    if unknown:
        raise _unfit(
            f"the config has no variable '{unknown[0]}'",
            'what is fetched reads it: variable { node_name: "' + unknown[0] + '" readonly: true }',
        )
    return [node for node in nodes.values() if node.name in seen]
