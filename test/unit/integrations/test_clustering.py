"""TensorFlow's auto-clustering without TensorFlow: marks on recorded graphs, flags, conditions, dumps."""

from __future__ import annotations

import itertools
import json
import random
import re
import shutil
from pathlib import Path

import pytest

from mlirhlo.analysis.clustering import Clustering, OrderedGraph
from mlirhlo.cli import hlo_view
from mlirhlo.diagnostics import HloError
from mlirhlo.integrations.tensorflow.clustering.deadness import (
    FALSE,
    TRUE,
    Symbol,
    conjunction,
    disjunction,
    negate,
)
from mlirhlo.integrations.tensorflow.clustering.declustering import final_clusters
from mlirhlo.integrations.tensorflow.clustering.dot import dump_as_dot
from mlirhlo.integrations.tensorflow.clustering.dumps import dump, graph_text
from mlirhlo.integrations.tensorflow.clustering.encapsulate import encapsulate
from mlirhlo.integrations.tensorflow.clustering.flags import Flags, parse_flags
from mlirhlo.integrations.tensorflow.clustering.graph import Graph, read_graph
from mlirhlo.integrations.tensorflow.clustering.marking import Marking, annotated, mark
from mlirhlo.integrations.tensorflow.clustering.segments import segments

DATA = Path(__file__).parents[2] / "data" / "tensorflow_clustering"
ON = parse_flags("--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1")

RECORDED = [
    (path.stem, flags, clusters)
    for path in sorted(DATA.glob("*.json"))
    for flags, clusters in json.loads(path.read_text()).items()
    if clusters is not None and not path.stem.endswith(".final")
]
COMPILED = [
    (path.name.partition(".")[0], flags, clusters)
    for path in sorted(DATA.glob("*.final.json"))
    for flags, clusters in json.loads(path.read_text()).items()
]


@pytest.mark.parametrize(("name", "flags", "clusters"), RECORDED)
def test_clusters_are_those_of_tensorflow(name: str, flags: str, clusters: list[list[str]]) -> None:
    marking = mark(read_graph(DATA / f"{name}.pb"), parse_flags(flags))
    assert sorted(map(sorted, marking.clusters.values())) == sorted(map(sorted, clusters))
    assert len(RECORDED) > 12


@pytest.mark.parametrize(("name", "flags", "clusters"), COMPILED)
def test_what_is_compiled_is_that_of_tensorflow(
    name: str, flags: str, clusters: list[list[str]]
) -> None:
    marking = mark(read_graph(DATA / f"{name}.pb"), parse_flags(flags))
    final = members(final_clusters(marking.graph))
    assert sorted(map(sorted, final.values())) == sorted(map(sorted, clusters))
    assert len(COMPILED) > 3


def members(graph: Graph) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node in graph.nodes:
        if cluster := node.text_attribute("_XlaCluster"):
            found.setdefault(cluster, []).append(node.name)
    return found


def test_results_for_hosts_are_copied_out() -> None:
    graph = nodes(
        "x Placeholder", "a Sin x", "l LinSpace a a a", "b Cos l", "p Fill l x", "q Cos p",
        l='attr { key: "Tidx" value { type: DT_INT32 } }',
    )  # fmt: skip
    marked = mark(
        graph,
        parse_flags("--tf_xla_cluster_exclude_ops= --tf_xla_ops_to_cluster=Sin,LinSpace,Cos", ON),
    )
    final = final_clusters(marked.graph)
    by_name = {node.name: node for node in final.nodes}
    assert [p.name for p, _ in by_name["p"].inputs] == ["l/declustered", "x"]
    assert [p.name for p, _ in by_name["b"].inputs] == ["l"]
    assert "l/declustered" not in str(members(final))
    only = nodes("x Placeholder", "a Sin x", "l LinSpace a a a", "p Fill l x")
    marked = mark(only, parse_flags("--tf_xla_ops_to_cluster=Sin,LinSpace", ON))
    assert "l" not in {node.name for node in final_clusters(marked.graph).nodes}
    assert "l" in {node.name for node in final_clusters(marked.graph, ["l"]).nodes}


def test_what_is_needed_while_compiling_leaves_first() -> None:
    graph = nodes(
        "x Placeholder", "n Placeholder", "m Neg n", "k Abs m", "a Sin x", "t Tile a k", "z Cos t"
    )
    marked = mark(graph, ON)
    assert members(marked.graph) == {"cluster_0": ["m", "k", "a", "t", "z"]}
    assert members(final_clusters(marked.graph)) == {"cluster_0": ["a", "t", "z"]}
    inside = nodes("x Placeholder", "a Sin x", "s Shape a", "k Abs s", "t Tile a k")
    assert members(final_clusters(mark(inside, ON).graph)) == {"cluster_0": ["a", "s", "k", "t"]}
    shape = nodes("x Placeholder", "s Shape x", "k Abs s", "c Cos k")
    assert members(final_clusters(mark(shape, ON).graph)) == {"cluster_0": ["k", "c"]}


def nodes(*texts: str, **attributes: str) -> Graph:
    """A graph of `name op input…`; an attribute for a node by its name."""
    lines: list[str] = []
    for text in texts:
        name, op, *inputs = text.split()
        lines.append(f'node {{ name: "{name}" op: "{op}"')
        lines += [f'input: "{one}"' for one in inputs]
        kind = "DT_RESOURCE" if op == "VarHandleOp" else "DT_FLOAT"
        keys = ("dtype",) if op in ("Const", "ReadVariableOp", "AssignVariableOp") else ("T",)
        lines += [f'attr {{ key: "{key}" value {{ type: {kind} }} }}' for key in keys]
        lines += [attributes.get(name, ""), "}"]
    return read_graph("\n".join(lines))


def clusters(graph: Graph, flags: Flags = ON) -> set[str]:
    return {" ".join(sorted(names)) for names in mark(graph, flags).clusters.values()}


def test_no_cycle_through_what_is_not_compiled() -> None:
    graph = nodes(
        "x Placeholder", "a Sin x", "s AsString a", "n StringToNumber s", "b Add a n", "c Cos b"
    )
    assert clusters(graph) == {"a", "b c"}
    assert clusters(nodes("x Placeholder", "a Sin x", "b Add a a", "c Cos b")) == {"a b c"}


def test_control_edges_count_as_edges() -> None:
    graph = nodes("x Placeholder", "a Sin x", "p PrintV2 a", "b Cos a ^p")
    assert clusters(graph) == {"a", "b"}


def test_sizes_and_fuel() -> None:
    graph = nodes("x Placeholder", "a Sin x", "b Cos a", "c Tan b", "i Identity c")
    at_least = parse_flags("--tf_xla_min_cluster_size=4", ON)
    assert clusters(graph, at_least) == set()
    assert clusters(graph, parse_flags("--tf_xla_min_cluster_size=3", ON)) == {"a b c i"}
    halves = clusters(graph, parse_flags("--tf_xla_max_cluster_size=2", ON))
    assert max(len(one.split()) for one in halves) == 2
    assert clusters(graph, parse_flags("--tf_xla_clustering_fuel=2", ON)) == {"a b"}
    assert clusters(graph, parse_flags("--tf_xla_clustering_fuel=0", ON)) == set()
    marking = mark(graph, parse_flags("--tf_xla_min_cluster_size=4", ON))
    assert marking.reasons["a"] == "its cluster has 3 of at least 4 operations"
    assert marking.reasons["x"] == "feed or fetch"


def test_devices() -> None:
    graph = nodes(
        "x Placeholder", "a Sin x", "b Cos a", "c Tan b",
        a='device: "/device:GPU:0"', b='device: "/device:GPU:1"', c='device: "/device:TPU:0"',
    )  # fmt: skip
    assert clusters(graph) == {"a", "b"}
    assert clusters(graph, parse_flags("--tf_xla_cpu_global_jit=false", ON)) == {"a", "b"}
    on_cpu = nodes("x Placeholder", "a Sin x", a='device: "/cpu:0"')
    assert clusters(on_cpu, parse_flags("--tf_xla_cpu_global_jit=false", ON)) == set()


def test_attributes_that_say_what_is_compiled() -> None:
    yes = 'attr { key: "_XlaCompile" value { b: true } }'
    no = 'attr { key: "_XlaCompile" value { b: false } }'
    must = 'attr { key: "_XlaMustCompile" value { b: true } }'
    graph = nodes("x Placeholder", "a Sin x", "b Cos a", "c Tan b", a=yes, c=no)
    assert clusters(graph, Flags()) == {"a"}
    assert clusters(graph) == {"a b"}
    graph = nodes("x Placeholder", "a Sin x", a=must)
    assert clusters(graph, parse_flags("--tf_xla_min_cluster_size=9", ON)) == {"a"}
    assert clusters(graph, Flags()) == set()
    scopes = {n: f'attr {{ key: "_XlaScope" value {{ s: "{n}" }} }} {yes}' for n in "ab"}
    assert clusters(nodes("x Placeholder", "a Sin x", "b Cos a", **scopes), Flags()) == {"a", "b"}


def test_no_read_after_a_write_in_one_cluster() -> None:
    graph = nodes(
        "v VarHandleOp", "x Placeholder", "a Sin x", "w AssignVariableOp v a",
        "r ReadVariableOp v ^w", "b Cos r",
    )  # fmt: skip
    assert clusters(graph) == {"a w", "b r"}
    graph = nodes(
        "v VarHandleOp", "r ReadVariableOp v", "a Sin r", "w AssignVariableOp v a ^r",
    )  # fmt: skip
    assert clusters(graph) == {"a r w"}


def test_dead_tensors_stay_apart() -> None:
    graph = nodes(
        "x Placeholder", "p Placeholder", "s Switch x p", "f Sin s:0", "t Cos s:1", "m Merge f t",
        "after Tan m", "before Exp x", "sum Add after before", "half Add t t",
    )  # fmt: skip
    found = clusters(graph)
    assert {"f", "half t"} <= found
    assert "after before sum" in found


def test_conditions_are_simplified() -> None:
    a, b = Symbol((0, 0), is_value=True), Symbol((1, 0), is_value=True)
    assert disjunction([conjunction([a, b]), conjunction([a, negate(b)])]) == a
    assert conjunction([a, negate(a)]) == FALSE
    assert disjunction([a, negate(a)]) == TRUE
    assert negate(conjunction([a, b])) == disjunction([negate(a), negate(b)])


def test_types_and_functions() -> None:
    text = 'attr { key: "T" value { type: DT_STRING } }'
    assert mark(
        read_graph(f'node {{ name: "x" op: "Placeholder" }} node {{ name: "a" op: "Identity" input: "x" {text} }}'), ON
    ).reasons["a"] == "XLA has no Identity of string"  # fmt: skip
    library = """library { function { signature { name: "g" } node_def { name: "p" op: "PrintV2" } }
                 function { signature { name: "h" } node_def { name: "s" op: "Sin" } } }"""
    reasons = mark(
        read_graph(f'node {{ name: "a" op: "g" }} node {{ name: "b" op: "h" }} {library}'), ON
    )
    assert reasons.reasons["a"] == "p in g: XLA has no PrintV2"
    assert list(reasons.clusters.values()) == [["b"]]


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ('node { name: "a" op: "Sin" input: "b" }', "HLO0630"),
        ('node { name: "a" op: "Sin" input: "a:x" }', "HLO0630"),
        ('node { name: "a" op: "Sin" } node { name: "a" op: "Cos" }', "HLO0630"),
        ('node { name: "a" ops: "Sin" }', "HLO0202"),
        (b"\x0a\xff\xff\xff\xff\x01", "HLO0201"),
        (Path("/no/such/graph.pb"), "HLO0503"),
    ],
)
def test_bad_graphs(source: str | bytes | Path, code: str) -> None:
    with pytest.raises(HloError) as problem:
        read_graph(source)
    assert problem.value.diagnostics[0].code == code


@pytest.mark.parametrize(
    "flags",
    [
        "--tf_xla_min_size=2", "--min_cluster_size=2", "--tf_xla_min_cluster_size=two", "--tf_xla_min_cluster_size",
        "--tf_xla_cpu_global_jit=perhaps", "--tf_xla_cluster_exclude_ops=Add",
        "--tf_xla_auto_jit=2 --tf_xla_ops_to_cluster=Foo",
    ],
)  # fmt: skip
def test_bad_flags(flags: str) -> None:
    with pytest.raises(HloError, match="HLO0631"):
        mark(nodes("x Placeholder"), parse_flags(flags))


def test_flags_of_others_have_no_effect() -> None:
    assert (
        parse_flags("--tf_xla_enable_lazy_compilation=false --tf_xla_auto_jit=single-gpu(2)")
        == Flags()
    )
    assert parse_flags("--tf_xla_auto_jit=fusible").ops_to_cluster == "FUSIBLE"


def around() -> Marking:
    return mark(
        read_graph(DATA / "around.pb"), parse_flags("--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit")
    )


def test_text_and_binary_are_the_same_graph() -> None:
    graph = read_graph(DATA / "around.pb")
    assert read_graph(graph_text(graph.definition)).definition == graph.definition


def test_clusters_become_functions() -> None:
    marking = around()
    result = encapsulate(marking.graph)
    functions = {f.signature.name: f for f in result.library.function}
    assert functions.keys() == marking.clusters.keys()
    for name, members in marking.clusters.items():
        assert [n.name for n in functions[name].node_def] == members
        (call,) = [n for n in result.node if n.op == name]
        count = len([i for i in call.input if not i.startswith("^")])
        assert count == len(functions[name].signature.input_arg)
        assert functions[name].ret.keys() == {a.name for a in functions[name].signature.output_arg}
    assert Graph.of(result).nodes, "every edge leads to a node"


def test_graphs_for_viewing() -> None:
    names = {node.name.partition("/")[0] for node in annotated(around()).nodes}
    assert names == {"cluster_0", "unclustered"}


def test_dumps_have_names_of_tensorflow(tmp_path: Path) -> None:
    marking = around()
    dump(read_graph(DATA / "around.pb"), marking, str(tmp_path))
    stems = [re.sub(r"(_\d+)?\.pbtxt", "", path.name) for path in sorted(tmp_path.iterdir())]
    assert stems == [
        "before_increase_dynamism_for_auto_jit_pass", "before_mark_for_compilation",
        "encapsulate_subgraphs_after", "encapsulate_subgraphs_before",
        "mark_for_compilation", "mark_for_compilation_annotated",
    ]  # fmt: skip
    for path in tmp_path.glob("mark_for_compilation*.pbtxt"):
        assert read_graph(path).nodes


def test_segments_run_in_order() -> None:
    marking = around()
    fetched = [node for node in marking.graph.nodes if node.op == "_Retval"]
    fetches = [f"{p.name}:{n}" for node in fetched for p, n in node.inputs]
    targets = [node.name for node in marking.graph.nodes if node.op == "PrintV2"]
    parts = segments(marking.graph, fetches, targets)
    known = {f"{n.name}:0" for n in marking.graph.nodes if n.op == "_Arg"}
    for part in parts:
        assert known.issuperset(part.inputs)
        known |= set(part.outputs)
    assert known.issuperset(fetches)
    assert [part.cluster for part in parts if part.cluster] == ["cluster_0"]
    with pytest.raises(HloError, match="HLO0630"):
        segments(marking.graph, ["nothing:0"])


def test_random_graphs_stay_acyclic() -> None:
    draw = random.Random(3)
    for _ in range(60):
        size = draw.randint(2, 24)
        edges = [(a, b) for a, b in itertools.combinations(range(size), 2) if draw.random() < 0.2]
        graph = OrderedGraph(size)
        names = draw.sample(range(size), size)
        for a, b in edges:
            assert graph.insert(names[a], names[b])
            assert not graph.insert(names[b], names[a])
        may = {n: [n] for n in range(size) if draw.random() < 0.7}
        found = list(Clustering(graph, may, lambda a, b: [*a, *b]).grow(lambda a, b: True))
        of = {n: index for index, nodes in enumerate(found) for n in nodes}
        unit = [of.get(n, size + n) for n in range(size)]
        quotient = {(unit[names[a]], unit[names[b]]) for a, b in edges}
        quotient = {(a, b) for a, b in quotient if a != b}
        assert is_acyclic(quotient)
        for a, b in quotient:  # no two clusters could still be joined
            if a < size > b:
                merged = {(a if s == b else s, a if t == b else t) for s, t in quotient}
                assert not is_acyclic({(s, t) for s, t in merged if s != t})


def is_acyclic(edges: set[tuple[int, int]]) -> bool:
    edges = set(edges)
    while edges:
        sources = {a for a, _ in edges} - {b for _, b in edges}
        if not sources:
            return False
        edges = {(a, b) for a, b in edges if a not in sources}
    return True


def test_graphs_are_drawn(tmp_path: Path) -> None:
    dump(read_graph(DATA / "around.pb"), around(), str(tmp_path))
    (marked,) = (
        p for p in tmp_path.iterdir() if re.fullmatch(r"mark_for_compilation(_\d+)?", p.stem)
    )
    ((name, text),) = dump_as_dot(str(marked))
    assert name == marked.name
    assert 'subgraph "cluster cluster_0"' in text
    assert text.count("->") == sum(len(node.producers) for node in around().graph.nodes)
    assert dump_as_dot(str(DATA / "around.json")) == []
    if shutil.which("dot"):
        assert hlo_view.main([str(marked), "-o", str(tmp_path / "graph.html")]) == 0
        assert (
            "<svg" in (tmp_path / "graph.html").read_text()
            or (tmp_path / "graph.html").stat().st_size > 2000
        )
