"""A GraphDef as nodes and edges; read from binary or text files without TensorFlow."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from mlirhlo.diagnostics import Place, error
from mlirhlo.formats.containers import text_problem
from mlirhlo.formats.proto import tensorflow_graph_pb2 as tf_pb2
from mlirhlo.formats.proto._pool import POOL
from mlirhlo.integrations.tensorflow.clustering.table import Argument, table


@dataclass(slots=True)
class Node:
    """A node of a graph; nodes are numbered in the order of the file."""

    number: int
    definition: tf_pb2.NodeDef
    inputs: list[tuple[Node, int]] = field(default_factory=list[Any])
    """Producers with the numbers of their outputs."""
    controls: list[Node] = field(default_factory=list[Any])
    """Nodes that have to run before."""

    @property
    def name(self) -> str:
        """The node's name."""
        return self.definition.name

    @property
    def op(self) -> str:
        """The operation, or the function that is called."""
        return self.definition.op

    @property
    def producers(self) -> list[Node]:
        """Nodes that edges, of data or control, come from."""
        return [*(node for node, _ in self.inputs), *self.controls]

    def bool_attribute(self, name: str) -> bool | None:
        """An attribute that is true or false; None without it."""
        return self.definition.attr[name].b if name in self.definition.attr else None

    def text_attribute(self, name: str) -> str:
        """An attribute that is text; empty without it."""
        if name not in self.definition.attr:
            return ""
        return self.definition.attr[name].s.decode("utf-8", "replace")


@dataclass(frozen=True)
class Graph:
    """A GraphDef: its nodes in order, and the functions of its library."""

    definition: tf_pb2.GraphDef
    nodes: Sequence[Node]
    functions: Mapping[str, tf_pb2.FunctionDef]

    @classmethod
    def of(cls, definition: tf_pb2.GraphDef, file: str = "<graph>") -> Graph:
        """The graph of a message. Raises `HloError` HLO0630 for edges from nothing and names that stand twice."""
        functions = {f.signature.name: f for f in definition.library.function}
        return cls(definition, nodes_of(definition.node, file), functions)

    def users(self) -> list[list[Node]]:
        """For each node, by number, the nodes that read it or wait for it."""
        result: list[list[Node]] = [[] for _ in self.nodes]
        for node in self.nodes:
            for producer in node.producers:
                result[producer.number].append(node)
        return result


def nodes_of(definitions: Sequence[tf_pb2.NodeDef], file: str) -> list[Node]:
    """Nodes with their edges. Raises as `Graph.of`."""
    nodes = [Node(number, definition) for number, definition in enumerate(definitions)]
    by_name = {node.name: node for node in nodes}
    if len(by_name) < len(nodes):
        names = [node.name for node in nodes]
        twice = next(name for name in names if names.count(name) > 1)
        raise error("HLO0630", f"two nodes are called '{twice}'", Place(file))
    for node in nodes:
        for text in node.definition.input:
            name, _, output = text.removeprefix("^").partition(":")
            producer = by_name.get(name)
            if producer is None or not (output or "0").isdigit():
                message = f"input '{text}' of node '{node.name}' is no node of the graph"
                raise error("HLO0630", message, Place(file))
            if text.startswith("^"):
                node.controls.append(producer)
            else:
                node.inputs.append((producer, int(output or 0)))
    return nodes


def is_graph(data: bytes) -> bool:
    """Whether data are a GraphDef: text that begins with one of its fields, or binary without other fields."""
    if (text := _text(data)) is not None:
        return re.match(r"\s*(?:#[^\n]*\n\s*)*(?:node|library|versions)\s*\{", text) is not None
    definition = tf_pb2.GraphDef()
    try:
        definition.ParseFromString(data)
    except DecodeError:
        return False
    definition.DiscardUnknownFields()
    is_whole = definition.ByteSize() == len(data)
    return is_whole and all(node.name and node.op.isidentifier() for node in definition.node)


def read_graph(source: str | bytes | Path, file: str = "<graph>") -> Graph:
    """The graph in a file (a path), or in the file's content: binary, or text as in dumps.

    `file`: the name of the file that content is from.

    Raises `HloError` HLO0503 when the file cannot be read, HLO0201 or HLO0202 when it is no GraphDef,
    HLO0630 as `Graph.of`.
    """
    if isinstance(source, Path):
        file = str(source)
        try:
            source = source.read_bytes()
        except OSError as problem:
            raise error("HLO0503", f"cannot read '{file}': {problem.strerror}") from None
    data = source.encode() if isinstance(source, str) else source
    definition = tf_pb2.GraphDef()
    if (text := _text(data)) is None:
        try:
            definition.ParseFromString(data)
        except DecodeError as problem:
            raise error("HLO0201", f"not a GraphDef: {problem}", Place(file)) from None
        return Graph.of(definition, file)
    try:
        text_format.Parse(text, definition, descriptor_pool=POOL)
    except text_format.ParseError as problem:
        raise text_problem(text, problem, file) from None
    return Graph.of(definition, file)


def _text(data: bytes) -> str | None:
    """The data as text, if it is; a binary GraphDef has control characters in its lengths and tags."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    is_text = all(c.isprintable() or c.isspace() for c in text[:4096])
    return text if is_text and (not text or text[0] != "\n" or "{" in text) else None


def type_name(number: int) -> str:
    """`float` of DT_FLOAT."""
    return tf_pb2.DataType.Name(number).removeprefix("DT_").lower()


def argument_types(node: tf_pb2.NodeDef, arguments: Sequence[Argument]) -> list[str]:
    """The element types of a node's inputs or outputs; empty strings where an attribute is missing."""
    types: list[str] = []
    for argument in arguments:
        kind = argument.kind
        if kind.startswith("="):
            names = [kind[1:]]
        elif kind.startswith("*"):
            types += (
                [type_name(t) for t in node.attr[kind[1:]].list.type]
                if kind[1:] in node.attr
                else []
            )
            continue
        else:
            names = [type_name(node.attr[kind].type) if kind in node.attr else ""]
        count = node.attr[argument.number].i if argument.number in node.attr else 1
        types += names * (count if argument.number else 1)
    return types


def signature(
    node: tf_pb2.NodeDef, functions: Mapping[str, tf_pb2.FunctionDef]
) -> tuple[list[str], list[str]] | None:
    """Element types of inputs and outputs; None for an operation that is not in the table."""
    if (function := functions.get(node.op)) is not None:
        arguments = (function.signature.input_arg, function.signature.output_arg)
        inputs, outputs = ([_function_argument(a) for a in some] for some in arguments)
    elif (op := table().ops.get(node.op)) is not None:
        inputs, outputs = list(op.inputs), list(op.outputs)
    else:
        return None
    return argument_types(node, inputs), argument_types(node, outputs)


def _function_argument(argument: tf_pb2.OpDef.ArgDef) -> Argument:
    if argument.type_list_attr:
        return Argument(argument.name, "", f"*{argument.type_list_attr}")
    kind = argument.type_attr or f"={type_name(argument.type)}"
    return Argument(argument.name, argument.number_attr, kind)
