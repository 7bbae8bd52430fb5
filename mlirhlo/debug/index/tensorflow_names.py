"""Names of TensorFlow's graph dumps (TF_DUMP_GRAPH_PREFIX).

Source: TensorFlow's passes in compiler/jit, its graph dumper and the registry of its graph optimizations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_GRAPHS = {
    "before_mark_for_compilation": "the TensorFlow graph before what XLA compiles is marked",
    "mark_for_compilation": (
        "the TensorFlow graph with the nodes that XLA compiles marked: attribute _XlaCluster"
    ),
    "mark_for_compilation_annotated": (
        "the marked TensorFlow graph for viewing: names begin with the cluster, unclustered/ or varhandle/"
    ),
    "before_increase_dynamism_for_auto_jit_pass": (
        "the TensorFlow graph before slices are made to need fewer compilations"
    ),
    "increase_dynamism_for_auto_jit_pass": (
        "the TensorFlow graph once slices need fewer compilations; only where some changed"
    ),
    "encapsulate_subgraphs_before": "the TensorFlow graph before clusters become functions",
    "encapsulate_subgraphs_after": "the TensorFlow graph once each cluster is a function",
    "encapsulate_xla_computations_before": "the TensorFlow graph before what xla.compile marks becomes functions",
    "encapsulate_xla_computations_halfway": "the TensorFlow graph once what xla.compile marks is functions",
    "encapsulate_xla_computations_after": "the TensorFlow graph that launches what xla.compile marks",
    "build_xla_launch_ops": "the TensorFlow graph that launches its clusters: XlaLaunch",
    "build_xla_ops": "the TensorFlow graph that compiles and runs its clusters: _XlaCompile, _XlaRun",
}
"""Graphs of auto-clustering, by name. Those of mark_for_compilation and increase_dynamism are written with
TF_XLA_FLAGS=--tf_xla_clustering_debug, the others with verbose logging."""

_PASSES = {
    "build_xla_ops": "clusters are made nodes that compile and run them",
    "clone_constants_for_better_clustering": "small constants are copied for each reader",
    "cluster_scoping": "pipeline stages are kept apart from each other by scopes",
    "encapsulate_subgraphs": "clusters become functions",
    "encapsulate_xla_computations": "what xla.compile marks becomes functions",
    "force_xla_constants_on_host": "constants that a compilation needs are put on the host",
    "functionalize_control_flow": "Switch and Merge become If and While",
    "increase_dynamism_for_auto_jit": "slices are made to need fewer compilations",
    "introduce_floating_point_jitter": "chosen values get a little noise",
    "mark_for_compilation": "what XLA compiles is marked",
    "partially_decluster": "nodes leave their clusters where that saves copies to the host or compilations",
    "report_clustering_info": "clusters are counted",
}
"""What TensorFlow's passes around clusters do."""

_NUMBER = r"(?:_(?P<number>\d+))?"
_KNOWN = re.compile(rf"(?P<graph>{'|'.join(_GRAPHS)}){_NUMBER}")
_PASS = re.compile(
    rf"(?P<graph>(?P<when>before_|after_)?(?P<pass>{'|'.join(_PASSES)})(?:_pass)?(?P<end>_before|_after)?){_NUMBER}"
)
_OPTIMIZATION = re.compile(
    r"(?P<graph>.+)\.(?P<number>\d+)(?:\.\w+)?\.(?P<when>before|after)_opt_group_(?P<group>\w+?)"
    r"(?:_phase_(?P<phase>\d+)_(?P<pass>\w+))?"
)
_STAGE = re.compile(
    r"(?P<graph>.+)\.(?P<number>\d{4,})\.(?:main|graph_opt_pass|bridge_\w+|runtime_\w+)\.(?P<tag>.+)"
)

_FUNCTION = "the function or graph"


def graph_file(stem: str) -> tuple[str, Sequence[tuple[str, str]], Mapping[str, object]] | None:
    """What a `.pbtxt` file is, what the parts of its name say, and the fields of its name; None for other names."""
    if match := _KNOWN.fullmatch(stem) or _PASS.fullmatch(stem):
        graph = match["graph"]
        parts = [(graph, "the pass of TensorFlow's auto-clustering that wrote it")]
        meaning = _GRAPHS.get(graph) or _around(match["when"] or match["end"] or "", match["pass"])
    elif match := _OPTIMIZATION.fullmatch(stem):
        parts = [(match["graph"], _FUNCTION), (match["group"], "group of graph optimizations")]
        if match["pass"]:
            parts.append((match["pass"], f"the pass; phase {match['phase']} of the group"))
        meaning = _around(match["when"], match["pass"] or f"the optimizations {match['group']}")
    elif match := _STAGE.fullmatch(stem):
        parts = [(match["graph"], _FUNCTION), (match["tag"], "the stage of its compilation")]
        meaning = f"the TensorFlow graph at the stage {match['tag']}"
    else:
        return None
    fields = {"step": int(match["number"] or 0), "after": parts[-1][0]}
    if match["number"]:
        parts.insert(1, (match["number"], "number of the graph of this name in its process"))
    return f"{meaning} (TF_DUMP_GRAPH_PREFIX)", parts, fields


def _around(when: str, name: str) -> str:
    """The graph before or after a pass, named as files or classes are."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.removesuffix("Pass")).lower()
    does = f", in which {_PASSES[words]}" if words in _PASSES else ""
    return f"the TensorFlow graph {'before' if 'before' in when else 'after'} {name}{does}"
