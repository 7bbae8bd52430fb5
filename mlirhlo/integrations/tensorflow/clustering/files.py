"""Auto-clustering of graphs in files."""

from __future__ import annotations

from pathlib import Path

from mlirhlo.integrations.tensorflow.clustering.dumps import dump
from mlirhlo.integrations.tensorflow.clustering.flags import Flags, environment_flags, parse_flags
from mlirhlo.integrations.tensorflow.clustering.graph import read_graph
from mlirhlo.integrations.tensorflow.clustering.marking import Marking, mark

ON = Flags(auto_jit=2, cpu_global_jit=True)
"""What clustering starts from here; TF_XLA_FLAGS goes over it."""


def mark_for_compilation(
    graph: str | bytes | Path, flags: str | None = None, dump_to: str | Path | None = None
) -> Marking:
    """The clusters that auto-clustering makes of a GraphDef. Needs no TensorFlow.

    - `graph`: a file, or its content: binary, or protobuf text as in TensorFlow's dumps.
    - `flags`: as TF_XLA_FLAGS has them, over those of the environment.
    - `dump_to`: a folder for the graphs before and after; with `--tf_xla_clustering_debug` that of
      TF_DUMP_GRAPH_PREFIX when None.

    Raises `HloError` HLO0201, HLO0202, HLO0503 and HLO0630 for graphs, HLO0631 for flags.
    """
    chosen = environment_flags(ON)
    if flags is not None:
        chosen = parse_flags(flags, chosen)
    original = read_graph(graph)
    marking = mark(original, chosen)
    if dump_to is not None or chosen.clustering_debug:
        dump(original, marking, None if dump_to is None else str(dump_to))
    return marking
