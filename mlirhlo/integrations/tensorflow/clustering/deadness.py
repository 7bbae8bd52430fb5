"""When nodes of a graph with `Switch` and `Merge` have values: a predicate of each, equal for equal conditions.

    Switch(x, p) has x on output 1 where p holds, else on output 0; the other output is dead.
    A node is dead when any input is; Merge takes the input that is not.

A cluster runs as a whole or not at all, so that its nodes need one predicate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from mlirhlo.integrations.tensorflow.clustering.graph import Graph, Node
from mlirhlo.integrations.tensorflow.clustering.order import reverse_post_order


@dataclass(frozen=True, slots=True)
class Symbol:
    """Something that is known by its tensor only."""

    tensor: tuple[int, int]
    is_value: bool
    """The tensor holds true (or the number `branch`), not only: it is alive."""
    branch: int = 1


@dataclass(frozen=True, slots=True)
class Not:
    """The contrary."""

    operand: Predicate


@dataclass(frozen=True, slots=True)
class And:
    """All of them; none means true."""

    operands: frozenset[Predicate]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of them; none means false."""

    operands: frozenset[Predicate]


@dataclass(frozen=True, slots=True)
class Recurrence:
    """In a loop: `start` before the first iteration, and with each iteration `step` as well."""

    start: Predicate
    step: Predicate
    frame: str


Predicate: TypeAlias = "Symbol | Not | And | Or | Recurrence"

TRUE = And(frozenset())
FALSE = Or(frozenset())


def negate(predicate: Predicate) -> Predicate:
    """The contrary, by De Morgan's laws."""
    match predicate:
        case Not(operand):
            return operand
        case And(operands):
            return disjunction(map(negate, operands))
        case Or(operands):
            return conjunction(map(negate, operands))
        case _:
            return Not(predicate)


def conjunction(predicates: Iterable[Predicate]) -> Predicate:
    """All of them, simplified."""
    operands: set[Predicate] = set()
    for one in predicates:
        operands |= one.operands if isinstance(one, And) else {one}
    if FALSE in operands or any(negate(one) in operands for one in operands):
        return FALSE
    return operands.pop() if len(operands) == 1 else And(frozenset(operands))


def disjunction(predicates: Iterable[Predicate]) -> Predicate:
    """Any of them, simplified: `(a & b) | (a & ~b)` is `a`."""
    operands: set[Predicate] = set()
    for one in predicates:
        operands |= one.operands if isinstance(one, Or) else {one}
    if TRUE in operands or any(negate(one) in operands for one in operands):
        return TRUE
    if len(operands) == 1:
        return operands.pop()
    parts: list[frozenset[Predicate]] = [
        one.operands if isinstance(one, And) else frozenset[Predicate]([one]) for one in operands
    ]
    common = parts[0].intersection(*parts) if parts else frozenset[Predicate]()
    if common:
        rest = disjunction(conjunction(part - common) for part in parts)
        return conjunction([*common, rest])
    return Or(frozenset(operands))


def predicates(graph: Graph) -> list[Predicate]:
    """For each node, by number, when it runs."""
    if not any(
        node.op in ("Switch", "_SwitchN", "Merge", "_Recv", "_HostRecv") for node in graph.nodes
    ):
        return [TRUE] * len(graph.nodes)
    order = reverse_post_order(graph)
    frames = _frames(order)
    loops = [
        n for n in order if n.op == "Merge" and any(p.op == "NextIteration" for p, _ in n.inputs)
    ]
    first: dict[str, Node] = {}
    symbols = {n.number: _alive(first.setdefault(frames[n.number], n)) for n in loops}
    outputs = _run(order, symbols, {})
    merged = _recurrences(loops, frames, symbols, outputs)
    exits = _exits(order, frames, outputs)
    outputs = _run(order, merged, exits)
    return [outputs[node.number][-1] for node in graph.nodes]


def _recurrences(
    loops: list[Node],
    frames: Mapping[int, str],
    symbols: Mapping[int, Predicate],
    outputs: Mapping[int, list[Predicate]],
) -> dict[int, Predicate]:
    """For each head of a loop a recurrence, where all heads of its frame have the same; else a symbol."""
    merged: dict[int, Predicate] = {}
    by_frame: dict[str, set[Predicate | None]] = {}
    for node in loops:
        symbol, frame = symbols[node.number], frames[node.number]
        starts, steps = set[Predicate](), set[Predicate]()
        for producer, output in node.inputs:
            value = _output(outputs[producer.number], output)
            (steps if producer.op == "NextIteration" else starts).add(value)
        step = steps.pop()
        operands = step.operands if isinstance(step, And) else frozenset([step])
        recurrence: Predicate | None = None
        if symbol in operands and not any(_mentions(o, symbol) for o in operands - {symbol}):
            recurrence = Recurrence(disjunction(starts), conjunction(operands - {symbol}), frame)
            merged[node.number] = recurrence
        by_frame.setdefault(frame, set()).add(recurrence)
    for node in loops:
        if len(by_frame[frames[node.number]]) > 1 or node.number not in merged:
            merged[node.number] = _alive(node)
    return merged


def _exits(
    order: list[Node], frames: Mapping[int, str], outputs: Mapping[int, list[Predicate]]
) -> dict[int, Predicate]:
    """A loop's results are alive where what enters it is."""
    starts: dict[str, list[Predicate]] = {}
    for node in order:
        if node.op == "Enter":
            starts.setdefault(frames[node.number], []).append(outputs[node.number][-1])
    return {
        node.number: conjunction(starts.get(frames[node.inputs[0][0].number], []))
        for node in order
        if node.op == "Exit" and node.inputs
    }


def _mentions(predicate: Predicate, symbol: Predicate) -> bool:
    match predicate:
        case And(operands) | Or(operands):
            return any(_mentions(one, symbol) for one in operands)
        case Not(operand):
            return _mentions(operand, symbol)
        case Recurrence(start, step, _):
            return _mentions(start, symbol) or _mentions(step, symbol)
        case Symbol():
            return predicate == symbol


def _alive(node: Node) -> Predicate:
    return Symbol((node.number, 0), is_value=False)


def _output(outputs: list[Predicate], number: int) -> Predicate:
    """The predicate of an output; most nodes have one for all."""
    return outputs[number] if len(outputs) > number + 1 else outputs[-1]


def _run(
    order: list[Node], heads: Mapping[int, Predicate], exits: Mapping[int, Predicate]
) -> dict[int, list[Predicate]]:
    """Predicates of the outputs of each node, the one of its control output last."""
    outputs: dict[int, list[Predicate]] = {}
    known = {**heads, **exits}
    for node in order:
        if node.number in known:
            outputs[node.number] = [known[node.number]]
            continue
        data = [_output(outputs[p.number], n) for p, n in node.inputs if p.number in outputs]
        controls = [outputs[p.number][-1] for p in node.controls if p.number in outputs]
        if node.op == "Merge":
            outputs[node.number] = [disjunction(data)]
            continue
        if node.op == "ControlTrigger":
            outputs[node.number] = [TRUE]
            continue
        alive = conjunction([*data, *controls])
        if node.op in ("Switch", "_SwitchN") and len(node.inputs) > 1:
            outputs[node.number] = [*_switched(node, alive), alive]
        elif node.op in ("_Recv", "_HostRecv"):
            outputs[node.number] = [conjunction([alive, _alive(node)])]
        else:
            outputs[node.number] = [alive]
    return outputs


def _switched(node: Node, alive: Predicate) -> list[Predicate]:
    producer, output = node.inputs[1]
    tensor = (producer.number, output)
    if node.op == "Switch":
        holds: Predicate = Symbol(tensor, is_value=True)
        return [conjunction([alive, negate(holds)]), conjunction([alive, holds])]
    count = node.definition.attr["num_outs"].i
    branches: list[Predicate] = [Symbol(tensor, True, number) for number in range(count - 1)]
    last = conjunction(map(negate, branches))
    return [conjunction([alive, one]) for one in [*branches, last]]


def _frames(order: list[Node]) -> dict[int, str]:
    """The loop that each node is in, by its `frame_name`; loops inside others follow theirs after a `/`."""
    frames: dict[int, str] = {}
    for node in order:
        inside = [frames[p.number] for p in node.producers if p.number in frames]
        frame = max(inside, key=len, default="")
        if node.op in ("Enter", "RefEnter"):
            frame = f"{frame}/{node.text_attribute('frame_name')}"
        frames[node.number] = frame.rpartition("/")[0] if node.op == "Exit" else frame
    return frames


def loop_frames(graph: Graph) -> dict[int, str]:
    """For each node the loop that it is in; an `Exit` is outside, an `Enter` inside."""
    return _frames(reverse_post_order(graph))
