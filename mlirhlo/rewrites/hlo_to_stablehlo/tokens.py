"""Tokens, asynchronous pairs, and transfers from and to the host and other programs.

An asynchronous pair is its plain op, where it starts: the start's value has the result in the place
that the opcode has for it, and parts without meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.base import bool_of, int_of, str_of
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, compatible
from mlirhlo.dialects.stablehlo.attributes import ChannelHandle, ChannelHandleAttr
from mlirhlo.dialects.stablehlo.types import TokenType
from mlirhlo.rewrites.hlo_to_stablehlo.attributes import boolean, integer, string
from mlirhlo.rewrites.hlo_to_stablehlo.core import Scope, Tree, converts, unflatten
from mlirhlo.rewrites.hlo_to_stablehlo.data_movement import copied
from mlirhlo.rewrites.hlo_to_stablehlo.types import leaf_types, leaves

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.tokens import AsyncStartOp

DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE = 1, 2, 3
"""Types of channels."""


def channel(op: Instruction, kind: int) -> dict[str, Attribute]:
    """`channel_handle` where the instruction has a channel."""
    found = op.properties.get("channel_id")
    if found is None:
        return {}
    return {"channel_handle": ChannelHandleAttr(ChannelHandle(int_of(found), kind))}


@converts("after-all")
def after_all(op: Instruction, scope: Scope) -> Tree:
    """`create_token`, or `after_all` of the tokens among the operands: StableHLO waits for nothing else."""
    operands = [v for v in scope.leaves(op) if isinstance(v.type, TokenType)]
    name = "stablehlo.after_all" if operands else "stablehlo.create_token"
    return scope.one(name, operands, op.shape)


# ---------------------------------------------------------------- asynchronous pairs


@converts("async-start")
def async_start(op: Instruction, scope: Scope) -> Tree:
    """What the computation does, here and now."""
    computation = scope.importer.computations[cast("AsyncStartOp", op).calls]
    arguments = tuple(scope.trees[value] for value in op.inputs)
    result = scope.inline(computation, arguments)
    contexts = cast(TupleShape, op.shape).elements[2:]
    return (arguments, result, *(None for _ in contexts))


@converts("async-update", "all-reduce-done")
def same(op: Instruction, scope: Scope) -> Tree:
    """The operand as it is."""
    return scope.trees[op.inputs[0]]


@converts("async-done", "all-gather-done", "collective-permute-done")
def second_part(op: Instruction, scope: Scope) -> Tree:
    """The result, which the start has put beside its operands."""
    return scope.element(scope.trees[op.inputs[0]], 1)


@converts("copy-start")
def copy_start(op: Instruction, scope: Scope) -> Tree:
    """A copy: `(destination, source, context)`."""
    tree = scope.trees[op.inputs[0]]
    return (copied(tree, cast(TupleShape, op.shape).elements[0], scope), tree, None)


@converts("copy-done")
def copy_done(op: Instruction, scope: Scope) -> Tree:
    """The destination."""
    return scope.element(scope.trees[op.inputs[0]], 0)


def started(op: Instruction, scope: Scope, result: Tree) -> Tree:
    """The value of a start: `(operands, result, contexts…)`, as its shape has them."""
    shape = cast(TupleShape, op.shape)
    trees = tuple(scope.trees[value] for value in op.inputs)
    is_lone = len(trees) == 1 and compatible(shape.elements[0], op.input_shapes[0])
    return (trees[0] if is_lone else trees, result, *(None for _ in shape.elements[2:]))


# ---------------------------------------------------------------- transfers


def _layouts(shape: Shape) -> Attribute | None:
    """Orders of dimensions of the leaves; None when a leaf is no array."""
    found: list[Attribute] = []
    for leaf in leaves(shape):
        if not isinstance(leaf, ArrayShape) or leaf.layout is None:
            return None
        found.append(ArrayAttr([integer(dim) for dim in leaf.layout.minor_to_major]))
    return ArrayAttr(found)


@converts("infeed")
def infeed(op: Instruction, scope: Scope) -> Tree:
    """`infeed` of the leaves, and a token."""
    data = cast(TupleShape, op.shape).elements[0]
    properties: dict[str, Attribute] = {
        "infeed_config": string(str_of(op.properties.get("infeed_config")))
    }
    layouts = _layouts(data)
    if layouts is not None:
        properties["layout"] = layouts
    return scope.many("stablehlo.infeed", scope.leaves(op), op.shape, properties)


@converts("outfeed")
def outfeed(op: Instruction, scope: Scope) -> Tree:
    """`outfeed` of the leaves."""
    properties: dict[str, Attribute] = {
        "outfeed_config": string(str_of(op.properties.get("outfeed_config")))
    }
    return scope.one("stablehlo.outfeed", scope.leaves(op), op.shape, properties)


def _transfer(op: Instruction, to_host: int) -> dict[str, Attribute]:
    host = bool_of(op.properties.get("is_host_transfer"))
    kind = to_host if host else DEVICE_TO_DEVICE
    handle = ChannelHandle(int_of(op.properties.get("channel_id")), kind)
    return {"channel_handle": ChannelHandleAttr(handle), "is_host_transfer": boolean(host)}


@converts("send")
def send(op: Instruction, scope: Scope) -> Tree:
    """`send`: `(operand, context, token)`."""
    shape = cast(TupleShape, op.shape).elements[2]
    token = scope.one("stablehlo.send", scope.leaves(op), shape, _transfer(op, DEVICE_TO_HOST))
    return (scope.trees[op.inputs[0]], None, token)


@converts("send-done")
def send_done(op: Instruction, scope: Scope) -> Tree:
    """The token."""
    return scope.element(scope.trees[op.inputs[0]], 2)


@converts("recv")
def recv(op: Instruction, scope: Scope) -> Tree:
    """`recv`: `(received, context, token)`."""
    data, _, token = cast(TupleShape, op.shape).elements
    types = [*leaf_types(data), *leaf_types(token)]
    received = scope.emit("stablehlo.recv", scope.leaves(op), types, _transfer(op, HOST_TO_DEVICE))
    return (unflatten(data, received.results[:-1]), None, received.results[-1])


@converts("recv-done")
def recv_done(op: Instruction, scope: Scope) -> Tree:
    """What was received, and the token."""
    tree = scope.trees[op.inputs[0]]
    return (scope.element(tree, 0), scope.element(tree, 2))
