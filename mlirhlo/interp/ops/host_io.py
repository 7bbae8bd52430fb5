"""Infeed, outfeed, send and recv: queues of the host and channels between devices.

`send` never waits; `recv-done` waits. Which devices a transfer joins stands in the frontend
attribute `_xla_send_recv_source_target_pairs`; a device that is no target receives zeros. Without
that attribute a channel is one queue that all devices share.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.dialects.hlo.syntax import SyntaxProblem, parse_all
from mlirhlo.interp.machine import host_box, infeed_box, outfeed_box
from mlirhlo.interp.ops.async_ops import zeros
from mlirhlo.interp.registry import TOKEN, Frame, Value, evaluates
from mlirhlo.interp.values import value_from

if TYPE_CHECKING:
    from mlirhlo.dialects.hlo.ops.tokens import (
        InfeedOp,
        OutfeedOp,
        RecvDoneOp,
        RecvOp,
        SendDoneOp,
        SendOp,
    )

_PAIRS = "_xla_send_recv_source_target_pairs"
_NOTHING = ("nothing",)
"""Key of a receive on a device that nobody sends to."""


def _device(frame: Frame) -> int:
    return frame.machine.device(frame.replica, frame.partition)


@evaluates("infeed")
def infeed(op: InfeedOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """The oldest value the host has fed to this device. Raises HLO0352 when there is none."""
    name = f"infeed %{op.instruction_name}"
    value = frame.machine.from_host(infeed_box(_device(frame)), name)
    shape = cast(TupleShape, op.shape).elements[0]
    if isinstance(shape, TupleShape) and len(shape.elements) == 1 and not isinstance(value, tuple):
        value = (value,)
    return (value_from(cast(object, value), shape, name), TOKEN)


@evaluates("outfeed")
def outfeed(op: OutfeedOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Puts the operand into this device's outfeed queue."""
    frame.machine.post(outfeed_box(_device(frame)), inputs[0])
    return TOKEN


def _pairs(op: SendOp | RecvOp) -> dict[int, int] | None:
    """Sources and targets of a transfer; None when it does not name them."""
    attributes = op.frontend_attributes
    text = None if attributes is None else dict(attributes.entries).get(_PAIRS)
    if text is None:
        return None
    try:
        pairs = parse_all(text, lambda cursor: cursor.items("{", "}", cursor.integers))
        return {source: target for source, target in pairs}  # noqa: C416 - checks the pairs' length
    except (SyntaxProblem, ValueError):
        raise error(
            "HLO0354", f"{op.opcode.name}: {_PAIRS} is not a list of pairs: {text}"
        ) from None


def _number(frame: Frame) -> int:
    """What source-target pairs call this device: its partition, or its replica if there is one."""
    return frame.partition if frame.machine.partitions > 1 else frame.replica


@evaluates("send")
def send(op: SendOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """Puts the operand on its way; `(operand, context, token)`."""
    channel = op.channel_id or 0
    pairs = None if op.is_host_transfer else _pairs(op)
    key: Hashable
    if op.is_host_transfer:
        key = host_box(channel, _device(frame), to_device=False)
    elif pairs is None:
        key = ("channel", channel)
    else:
        source = _number(frame)
        key = ("pair", channel, source, pairs[source]) if source in pairs else None
    if key is not None:
        frame.machine.post(key, inputs[0])
    return (inputs[0], np.zeros((), dtype=np.uint32), TOKEN)


@evaluates("send-done")
def send_done(op: SendDoneOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """A token: sending never waits."""
    return TOKEN


@evaluates("recv")
def recv(op: RecvOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(zeros, context, token)`; the context is a ticket that `recv-done` redeems for the data."""
    channel = op.channel_id or 0
    pairs = None if op.is_host_transfer else _pairs(op)
    key: Hashable
    if op.is_host_transfer:
        key = host_box(channel, _device(frame), to_device=True)
    elif pairs is None:
        key = ("channel", channel)
    else:
        target = _number(frame)
        sources = [s for s, t in pairs.items() if t == target]
        key = ("pair", channel, sources[0], target) if sources else _NOTHING
    ticket = frame.machine.ticket(key)
    shape = cast(TupleShape, op.shape).elements[0]
    return (zeros(shape), np.array(ticket, dtype=np.uint32), TOKEN)


@evaluates("recv-done")
def recv_done(op: RecvDoneOp, inputs: Sequence[Any], frame: Frame) -> Value:
    """`(data, token)`. Raises HLO0351 when nobody sends, HLO0352 when the host does not."""
    data, context, _ = inputs[0]
    key = cast("tuple[Any, ...] | None", frame.machine.redeem(int(context)))
    name = f"recv-done %{op.instruction_name}"
    if key is None:
        raise error("HLO0354", f"{name}: its operand is not a recv that still waits for its data")
    if key == _NOTHING:
        return (data, TOKEN)
    shape = cast(TupleShape, op.shape).elements[0]
    if key[0] == "host":
        return (value_from(frame.machine.from_host(key, name), shape, name), TOKEN)
    sender = f"a send on channel {key[1]}"
    if key[0] == "pair":
        sender += f" from device {key[2]}"
    return (frame.machine.collect(_device(frame), key, name, sender), TOKEN)
