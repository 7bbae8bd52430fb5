"""The graphs of auto-clustering as files, under TensorFlow's names, in the folder TF_DUMP_GRAPH_PREFIX."""

from __future__ import annotations

from functools import partial

from google.protobuf import text_format

from mlirhlo.debug.dump.jit_dumps import dump_graph
from mlirhlo.formats.proto import tensorflow_graph_pb2 as tf_pb2
from mlirhlo.formats.proto._pool import POOL
from mlirhlo.integrations.tensorflow.clustering.declustering import decluster
from mlirhlo.integrations.tensorflow.clustering.encapsulate import encapsulate
from mlirhlo.integrations.tensorflow.clustering.graph import Graph
from mlirhlo.integrations.tensorflow.clustering.marking import Marking, annotated
from mlirhlo.integrations.tensorflow.clustering.slices import increase_dynamism


def graph_text(definition: tf_pb2.GraphDef) -> str:
    """A GraphDef in protobuf's text, attributes by name, as TensorFlow writes it."""
    return text_format.MessageToString(definition, descriptor_pool=POOL)


def dump(graph: Graph, marking: Marking, prefix: str | None = None) -> None:
    """Writes the graph before and after each pass, for viewing, and with each cluster as a function.

    `prefix`: the folder; that of TF_DUMP_GRAPH_PREFIX when None. Warns (HLO0525) without one.
    """
    static = increase_dynamism(marking.graph)
    final = decluster(static)
    graphs = [
        ("before_mark_for_compilation", graph.definition),
        ("mark_for_compilation", marking.graph.definition),
        ("mark_for_compilation_annotated", annotated(marking).definition),
        ("before_increase_dynamism_for_auto_jit_pass", marking.graph.definition),
        ("encapsulate_subgraphs_before", final.definition),
        ("encapsulate_subgraphs_after", encapsulate(final)),
    ]
    if static is not marking.graph:
        graphs.append(("increase_dynamism_for_auto_jit_pass", static.definition))
    for name, one in graphs:
        dump_graph(name, partial(graph_text, one), prefix)
