"""The graphs of auto-clustering as files, under TensorFlow's names, in the folder TF_DUMP_GRAPH_PREFIX."""

from __future__ import annotations

from functools import partial

from google.protobuf import text_format

from mlirhlo.debug.dump.jit_dumps import dump_graph
from mlirhlo.formats.proto import tensorflow_graph_pb2 as tf_pb2
from mlirhlo.formats.proto._pool import POOL
from mlirhlo.integrations.tensorflow.clustering.encapsulate import encapsulate
from mlirhlo.integrations.tensorflow.clustering.graph import Graph
from mlirhlo.integrations.tensorflow.clustering.marking import Marking, annotated


def graph_text(definition: tf_pb2.GraphDef) -> str:
    """A GraphDef in protobuf's text, attributes by name, as TensorFlow writes it."""
    return text_format.MessageToString(definition, descriptor_pool=POOL)


def dump(graph: Graph, marking: Marking, prefix: str | None = None) -> None:
    """Writes the graph before and after marking, for viewing, and with each cluster as a function.

    `prefix`: the folder; that of TF_DUMP_GRAPH_PREFIX when None. Warns (HLO0525) without one.
    """
    for name, one in (
        ("before_mark_for_compilation", graph.definition),
        ("mark_for_compilation", marking.graph.definition),
        ("mark_for_compilation_annotated", annotated(marking).definition),
        ("encapsulate_subgraphs_before", marking.graph.definition),
        ("encapsulate_subgraphs_after", encapsulate(marking.graph)),
    ):
        dump_graph(name, partial(graph_text, one), prefix)
