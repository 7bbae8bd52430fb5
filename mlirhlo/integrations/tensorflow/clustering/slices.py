"""Slices of constant sizes in clusters, so that a cluster is not compiled again for each start."""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence

from mlirhlo.formats.proto import tensorflow_graph_pb2 as tf_pb2
from mlirhlo.integrations.tensorflow.clustering.graph import Graph, Node
from mlirhlo.integrations.tensorflow.clustering.marking import CLUSTER

_INT32, _INT64 = tf_pb2.DT_INT32, tf_pb2.DT_INT64


def increase_dynamism(graph: Graph, kept: Collection[str] = ()) -> Graph:
    """The graph with slices whose shapes depend on their sizes alone.

    A size of -1, which means up to the end, is computed; the size is then what has to be known when the
    cluster is compiled, and the start is not. `kept`: slices that stay as they are.
    """
    slices = {
        node.name: sizes
        for node in graph.nodes
        if node.name not in kept and (sizes := _sizes(node)) is not None
    }
    if not slices:
        return graph
    definition = tf_pb2.GraphDef()
    definition.CopyFrom(graph.definition)
    renamed: dict[str, str] = {}
    for node in graph.nodes:
        if node.name in slices:
            renamed[node.name] = _Rewriter(definition, node.definition).run(slices[node.name])
    for user in definition.node:
        for at, text in enumerate(user.input):
            caret = "^" if text.startswith("^") else ""
            name, colon, output = text.removeprefix("^").partition(":")
            if name in renamed:
                user.input[at] = f"{caret}{renamed[name]}{colon}{output}"
    for sliced in [node for node in definition.node if node.name in renamed]:
        definition.node.remove(sliced)
    return Graph.of(definition)


def _sizes(node: Node) -> list[int] | None:
    """The sizes of a slice in a cluster that gets another form; None for other nodes."""
    if node.op != "Slice" or not node.text_attribute(CLUSTER) or len(node.inputs) != 3:
        return None
    constant = node.inputs[2][0].definition
    if constant.op != "Const" or len(constant.attr["value"].tensor.tensor_shape.dim) != 1:
        return None
    sizes = _integers(constant.attr["value"].tensor)
    return sizes if min(sizes, default=0) >= -1 else None


def _integers(tensor: tf_pb2.TensorProto) -> list[int]:
    count = tensor.tensor_shape.dim[0].size
    is_long = tensor.dtype == _INT64
    if tensor.tensor_content:
        return list(struct.unpack(f"<{count}{'q' if is_long else 'i'}", tensor.tensor_content))
    values = list(tensor.int64_val if is_long else tensor.int_val) or [0]
    return values + values[-1:] * (count - len(values))


class _Rewriter:
    """Adds the nodes of one slice to a graph."""

    def __init__(self, definition: tf_pb2.GraphDef, old: tf_pb2.NodeDef) -> None:
        self.definition, self.old = definition, old
        self.constants: dict[int, str] = {}

    def run(self, sizes: Sequence[int]) -> str:
        """Adds them; the name of the new slice."""
        data, begin, size = self.old.input[:3]
        begin, size = self.as_int64("begin", begin), self.as_int64("size", size)
        if min(sizes, default=0) < 0:
            size = self.computed_size(data, begin, sizes)
        name = self.add("static_shaped_slice", "Slice", data, begin, size, Index=_INT64)
        node = self.definition.node[-1]
        node.attr["T"].CopyFrom(self.old.attr["T"])
        node.attr["_XlaCompileTimeConstantInputs"].list.s.append(b"size")
        node.input.extend(self.old.input[3:])
        return name

    def add(self, name: str, op: str, *inputs: str, **types: tf_pb2.DataType) -> str:
        """A node of the slice's cluster."""
        node = self.definition.node.add(
            name=f"{self.old.name}/static_shaped_slice/{name}", op=op, device=self.old.device
        )
        node.input.extend(inputs)
        node.attr[CLUSTER].CopyFrom(self.old.attr[CLUSTER])
        for key, kind in types.items():
            node.attr[key].type = kind
        return node.name

    def as_int64(self, name: str, value: str) -> str:
        if self.old.attr["Index"].type == _INT64:
            return value
        cast = self.add(f"{name}_s64", "Cast", value, SrcT=_INT32, DstT=_INT64)
        self.definition.node[-1].attr["Truncate"].b = False
        return cast

    def constant(self, value: int) -> str:
        """A vector of one number."""
        if value not in self.constants:
            self.constants[value] = self.add(f"const_{value}", "Const", dtype=_INT64)
            tensor = self.definition.node[-1].attr["value"].tensor
            tensor.dtype = _INT64
            tensor.tensor_shape.dim.add(size=1)
            tensor.int64_val.append(value)
        return self.constants[value]

    def computed_size(self, data: str, begin: str, sizes: Sequence[int]) -> str:
        shape = self.add("input_shape", "Shape", data, out_type=_INT64)
        self.definition.node[-1].attr["T"].CopyFrom(self.old.attr["T"])
        parts: list[str] = []
        for dim, size in enumerate(sizes):
            if size >= 0:
                parts.append(self.constant(size))
                continue
            at, one = self.constant(dim), self.constant(1)
            kinds = {"Index": _INT64, "T": _INT64}
            first = self.add(f"begin_{dim}", "Slice", begin, at, one, **kinds)
            end = self.add(f"input_shape_{dim}", "Slice", shape, at, one, **kinds)
            parts.append(self.add(f"slice_size_{dim}", "Sub", end, first, T=_INT64))
        if len(parts) == 1:
            return parts[0]
        axis = self.add("concat_axis", "Const", dtype=_INT32)
        tensor = self.definition.node[-1].attr["value"].tensor
        tensor.dtype = _INT32
        tensor.tensor_shape.SetInParent()
        tensor.int_val.append(0)
        joined = self.add("slice_size", "ConcatV2", *parts, axis, T=_INT64, Tidx=_INT32)
        self.definition.node[-1].attr["N"].i = len(parts)
        return joined


__all__ = ["increase_dynamism"]
