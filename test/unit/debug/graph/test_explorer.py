"""JSON for Model Explorer: by the schema of its own classes where the package is installed."""

import dataclasses
import importlib.util
import json
from typing import Any

import pytest
from support import DATA

from mlirhlo.debug.graph import render
from mlirhlo.formats.hlo_text import parse_module

TEXT = (DATA / "dumps/cpu/module_0000.jit_mlp.cpu_after_optimizations.txt").read_text()


@pytest.fixture(scope="module")
def collection() -> dict[str, Any]:
    return json.loads(render(parse_module(TEXT), "json"))


def test_one_graph_a_computation(collection: dict[str, Any]) -> None:
    assert collection["label"] == "jit_mlp"
    ids = [graph["id"] for graph in collection["graphs"]]
    assert ids[0] == "main.4", "the entry first"
    assert len(ids) == len(set(ids)) == 8


def test_edges_and_links_lead_somewhere(collection: dict[str, Any]) -> None:
    graphs = {graph["id"] for graph in collection["graphs"]}
    links = 0
    for graph in collection["graphs"]:
        nodes = {node["id"] for node in graph["nodes"]}
        assert len(nodes) == len(graph["nodes"])
        for node in graph["nodes"]:
            assert {edge["sourceNodeId"] for edge in node["incomingEdges"]} <= nodes
            assert set(node["subgraphIds"]) <= graphs
            links += len(node["subgraphIds"])
    assert links == 7


def test_attributes(collection: dict[str, Any]) -> None:
    (node,) = (n for g in collection["graphs"] for n in g["nodes"] if n["id"] == "dot_general.0")
    attributes = {pair["key"]: pair["value"] for pair in node["attrs"]}
    assert node["label"] == "dot"
    assert attributes["source"] == "sample_mlp.py:13"
    assert attributes["lhs_contracting_dims"].startswith("{1}")
    assert node["style"]["backgroundColor"] == "#1565c0"
    assert [edge["targetNodeInputId"] for edge in node["incomingEdges"]] == ["0", "1"]


@pytest.mark.skipif(
    importlib.util.find_spec("model_explorer") is None, reason="no ai-edge-model-explorer"
)
def test_fields_are_those_of_the_package(collection: dict[str, Any]) -> None:
    from model_explorer import graph_builder as gb

    def check(value: dict[str, Any], cls: Any) -> None:
        fields = {field.name for field in dataclasses.fields(cls)}
        assert set(value) <= fields, cls.__name__

    check(collection, gb.GraphCollection)
    for graph in collection["graphs"]:
        check(graph, gb.Graph)
        for node in graph["nodes"]:
            check(node, gb.GraphNode)
            check(node["style"], gb.GraphNodeStyle)
            for edge in node["incomingEdges"]:
                check(edge, gb.IncomingEdge)
            for item in node["outputsMetadata"]:
                check(item, gb.MetadataItem)
                for pair in item["attrs"]:
                    check(pair, gb.KeyValue)
