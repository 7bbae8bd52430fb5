"""The graph of a module: nodes with numbers, who reads whom, who calls what. Made once, read by all printers.

A node stands for an instruction, an edge for an operand or a control predecessor. Numbers are
positions in stored order, so that the output of every printer depends on the module alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp

from mlirhlo.debug.sources import call_stack, source_line
from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.attributes.annotations import Metadata
from mlirhlo.dialects.hlo.attributes.header import StackFrames
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, BufferShape, Shape, leaves
from mlirhlo.formats.hlo_text.options import PrintOptions
from mlirhlo.formats.hlo_text.printer import ModulePrinter
from mlirhlo.formats.hlo_text.printer_async import AsyncSugar
from mlirhlo.formats.hlo_text.printer_order import in_storage_order

_NUMBERS = frozenset(
    (
        *("lhs_batch_dims", "lhs_contracting_dims", "rhs_batch_dims", "rhs_contracting_dims"),
        *("offset_dims", "collapsed_slice_dims", "start_index_map", "index_vector_dim"),
        *("operand_batching_dims", "start_indices_batching_dims", "input_batching_dims"),
        *("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims"),
        "scatter_indices_batching_dims",
    )
)
"""Dimension numbers of dots, gathers and scatters, which are one attribute to XLA."""

_NO_METADATA = Metadata()


@dataclass(slots=True)
class Node:
    """One instruction."""

    index: int
    """Position among all nodes of the graph."""
    name: str
    """As the printer of HLO text names it, without `%`."""
    op: Instruction
    computation: int
    """Index of the computation it stands in."""
    operands: tuple[int, ...] = ()
    control: tuple[int, ...] = ()
    """Control predecessors."""
    calls: tuple[int, ...] = ()
    """Called computations."""
    users: list[int] = field(default_factory=list[int])
    """Who reads it, each once, in stored order; control successors left out."""

    @property
    def opcode(self) -> str:
        """As in HLO text."""
        return self.op.opcode.name

    @property
    def shape(self) -> Shape:
        """Shape of the result."""
        return self.op.shape

    @property
    def metadata(self) -> Metadata:
        """Metadata; empty where there is none."""
        return self.op.metadata or _NO_METADATA


@dataclass(slots=True)
class Computation:
    """One computation."""

    index: int
    name: str
    op: ComputationOp
    nodes: tuple[int, ...]
    """In stored order."""
    root: int
    is_entry: bool
    callers: list[int] = field(default_factory=list[int])
    """Nodes that call it."""
    fusion: int | None = None
    """The fusion instruction that it is the body of."""


class Graph:
    """Nodes and computations of a module. Calls of unknown computations are left out."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = HloModule(module)
        self.printer = ModulePrinter(self.module, PrintOptions())
        self.nodes: list[Node] = []
        self.computations: list[Computation] = []
        self.started: dict[int, int] = {}
        """The start behind an asynchronous update or end, by node, as far as it was looked for."""
        by_value: dict[int, int] = {}
        numbers = {name: i for i, name in enumerate(self.printer.lists)}
        for name, listed in self.printer.lists.items():
            self._add_computation(self.printer.by_name[name], listed, by_value)
        for node in self.nodes:
            self._connect(node, by_value, numbers)

    def _add_computation(
        self, op: ComputationOp, listed: Sequence[Instruction], by_value: dict[int, int]
    ) -> None:
        first, place = len(self.nodes), len(self.computations)
        names = self.printer.names
        for instruction in in_storage_order(op, listed):
            value = instruction.results[0]
            name = instruction.instruction_name if names is None else names[id(value)]
            index = by_value[id(value)] = len(self.nodes)
            self.nodes.append(Node(index, name or instruction.opcode.name, instruction, place))
        nodes = tuple(range(first, len(self.nodes)))
        root = by_value[id(op.root.results[0])]
        is_entry = op.is_entry is not None
        self.computations.append(Computation(place, op.computation_name, op, nodes, root, is_entry))

    def _connect(self, node: Node, by_value: Mapping[int, int], numbers: Mapping[str, int]) -> None:
        op = node.op
        node.operands = tuple([by_value[id(value)] for value in op.inputs])
        node.control = tuple([by_value[id(value)] for value in op.control_predecessors])
        for operand in dict.fromkeys(node.operands):
            self.nodes[operand].users.append(node.index)
        if node.op.calling_keys:
            names = node.op.called_computations
            node.calls = tuple(numbers[name] for name in names if name in numbers)
            if node.opcode == "while":
                node.calls = node.calls[::-1]  # XLA's order: body, condition
            for callee in dict.fromkeys(node.calls):
                self.computations[callee].callers.append(node.index)
                if node.opcode == "fusion":
                    self.computations[callee].fusion = node.index

    # -------------------------------------------------------------- looking up

    @cached_property
    def entry(self) -> Computation:
        """The entry; the last computation of a module that marks none.

        Raises `HloError` HLO0541 for a module without computations.
        """
        if not self.computations:
            raise error("HLO0541", "the module has no computations, so there is nothing to draw")
        marked = [c for c in self.computations if c.is_entry]
        return marked[0] if marked else self.computations[-1]

    @cached_property
    def node_by_name(self) -> Mapping[str, Node]:
        """Nodes by name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def computation_by_name(self) -> Mapping[str, Computation]:
        """Computations by name."""
        return {computation.name: computation for computation in self.computations}

    def is_fused(self, node: Node) -> bool:
        """Whether it stands in the body of a fusion."""
        return self.computations[node.computation].fusion is not None

    def is_root(self, node: Node) -> bool:
        """Whether it is the root of its computation."""
        return self.computations[node.computation].root == node.index

    def instructions_of(self, computation: int) -> Sequence[Instruction]:
        """Instructions of a computation in block order, definitions before uses."""
        return self.printer.lists[self.computations[computation].name]

    # -------------------------------------------------------------- texts

    def text(self, node: Node) -> str:
        """The instruction as HLO text has it, without `ROOT` and indentation."""
        return self.printer.instruction_text(node.op, 1)

    def attributes(self, node: Node) -> list[str]:
        """Attributes as `key=text`: without called computations, metadata and backend_config."""
        writer, properties = self.printer.attributes, node.op.properties
        pieces: list[str] = []
        self.printer.row_attributes(node.op, pieces, 0, hides_calls=True)
        wrapped = self._sugar.wrapped(node.op) if node.opcode == "async-start" else None
        if wrapped is not None:
            self.printer.row_attributes(wrapped, pieces, 0, hides_calls=True)
        if "raw_attributes" in properties:
            pieces.append(", " + cast(Any, properties["raw_attributes"]).data)
        pieces += [write(properties[key]) for key, write in writer.before if key in properties]
        if node.control:
            names = ", ".join("%" + self.nodes[i].name for i in node.control)
            pieces.append(f", control-predecessors={{{names}}}")
        for key, write in writer.after:
            if key in properties and key not in ("metadata", "backend_config"):
                pieces.append(write(properties[key]))
        texts = [piece.removeprefix(", ") for piece in pieces if piece]
        if "is_composite=true" in texts:  # part of the call to XLA
            texts.remove("is_composite=true")
        numbers = [text for text in texts if text.partition("=")[0] in _NUMBERS]
        if numbers:
            first = texts.index(numbers[0])
            rest = [text for text in texts[first:] if text not in numbers]
            texts[first:] = [", ".join(numbers), *rest]
        return texts

    @cached_property
    def _sugar(self) -> AsyncSugar:
        return AsyncSugar(self.printer.by_name, self.printer.lists)

    @cached_property
    def frames(self) -> StackFrames:
        """The module's stack frames; empty tables where it has none."""
        return self.module.stack_frames or StackFrames()

    def stack(self, node: Node) -> list[tuple[str, str, int, int]]:
        """File, function, line and column of each frame of the place it came from, innermost first."""
        return call_stack(node.metadata, self.frames)

    def source(self, node: Node) -> str:
        """`file:line` the instruction came from; empty when nobody knows."""
        return source_line(node.metadata, self.frames)


def element_count(shape: Shape) -> int | None:
    """Elements of all arrays in `shape`; None when a token or an opaque value is among them."""
    total = 0
    for _, leaf in leaves(shape):
        array = leaf.element if isinstance(leaf, BufferShape) else leaf
        if not isinstance(array, ArrayShape):
            return None
        total += max(array.element_count, 0)
    return total


def byte_size(shape: Shape) -> int:
    """Bytes of all arrays in `shape`, unpadded; sub-byte types count one byte an element."""
    total = 0
    for _, leaf in leaves(shape):
        array = leaf.element if isinstance(leaf, BufferShape) else leaf
        if isinstance(array, ArrayShape):
            total += max(array.byte_size, 0)
    return total


def node_of(graph: Graph, name: str) -> Node:
    """The instruction called `name`, with or without `%`, in any case. Raises `HloError` HLO0541."""
    key = name.removeprefix("%")
    found = graph.node_by_name.get(key)
    if found is None:
        lowered = key.lower()
        found = next((node for node in graph.nodes if node.name.lower() == lowered), None)
    if found is None:
        raise _unknown("instruction", key, graph.node_by_name)
    return found


def computation_of(graph: Graph, name: str | None) -> Computation:
    """The computation called `name`; the entry for None. Raises `HloError` HLO0541."""
    if name is None:
        return graph.entry
    found = graph.computation_by_name.get(name.removeprefix("%"))
    if found is None:
        raise _unknown("computation", name, graph.computation_by_name)
    return found


def _unknown(what: str, name: str, known: Iterable[str]) -> Exception:
    names = list(known)
    near = get_close_matches(name, names, n=1) if len(names) < 20_000 else []
    hint = f"did you mean '{near[0]}'?" if near else None
    return error("HLO0541", f"the module has no {what} called '{name}'", help=hint)
