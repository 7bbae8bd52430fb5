"""Tokens, and transfers from and to the host and other programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.hlo.attributes.kinds import shape_attribute
from mlirhlo.dialects.hlo.shapes import TOKEN_SHAPE, ArrayShape, Layout, Shape, TupleShape, array
from mlirhlo.dialects.hlo.types import shape_of
from mlirhlo.importing import LATE
from mlirhlo.rewrites.stablehlo_to_hlo.attributes import (
    attribute,
    boolean,
    flag,
    integer,
    numbers_of,
    text,
)
from mlirhlo.rewrites.stablehlo_to_hlo.core import Body, lowers, result_shapes
from mlirhlo.rewrites.stablehlo_to_hlo.problems import problem

with LATE:
    from mlirhlo.rewrites.stablehlo_to_hlo import frontend_attributes


def channel(op: Operation, *, keep_zero: bool = False) -> dict[str, Attribute]:
    """`channel_id` of a channel handle; none for handle 0."""
    found = attribute(op, "channel_handle")
    if found is None:
        return {}
    handle = int(cast(Any, found).data.handle)
    return {"channel_id": integer(handle)} if handle > 0 or keep_zero else {}


@lowers("stablehlo.create_token", "stablehlo.after_all")
def after_all(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`after-all`."""
    return (body.emit("after-all", body.inputs(op), TOKEN_SHAPE),)


@lowers("stablehlo.infeed")
def infeed(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`infeed` of a tuple of the values, taken apart."""
    shapes = result_shapes(op)[:-1]
    layouts = attribute(op, "layout")
    if layouts is not None:
        shapes = [
            _laid_out(shape, entry)
            for shape, entry in zip(shapes, cast(Any, layouts).data, strict=False)
        ]
    data = TupleShape(tuple(shapes))
    config = text(op, "infeed_config")
    properties: dict[str, Attribute] = {"infeed_config": string(config)} if config else {}
    value = body.emit("infeed", body.inputs(op), TupleShape((data, TOKEN_SHAPE)), properties)
    whole = body.element(value, 0)
    parts = body.split(whole, len(shapes))
    return [*parts, body.element(value, 1)]


def _laid_out(shape: Shape, entry: Attribute) -> Shape:
    order = numbers_of(entry)
    if isinstance(shape, ArrayShape) and len(order) == shape.rank:
        return shape.with_layout(Layout(order))
    return shape


@lowers("stablehlo.outfeed")
def outfeed(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`outfeed` of a value, or of a tuple of them."""
    *values, token = body.inputs(op)
    value = values[0] if len(values) == 1 else body.tuple(values)
    properties: dict[str, Attribute] = {"outfeed_shape": shape_attribute(shape_of(value.type))}
    if config := text(op, "outfeed_config"):
        properties["outfeed_config"] = string(config)
    return (body.emit("outfeed", (value, token), TOKEN_SHAPE, properties),)


def _host(op: Operation) -> dict[str, Attribute]:
    return {"is_host_transfer": boolean(True)} if flag(op, "is_host_transfer") else {}


def _single(op: Operation, values: Sequence[SSAValue], body: Body) -> SSAValue:
    return values[0] if len(values) == 1 else body.tuple(values)


@lowers("stablehlo.send")
def send(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`send` and `send-done`."""
    *values, token = body.inputs(op)
    value = _single(op, values, body)
    properties = {**channel(op, keep_zero=True), **_host(op)}
    _transfer(op, body)
    shape = TupleShape((shape_of(value.type), array("u32"), TOKEN_SHAPE))
    started = body.emit("send", (value, token), shape, properties)
    return (body.emit("send-done", (started,), TOKEN_SHAPE, properties),)


@lowers("stablehlo.recv")
def recv(op: Operation, body: Body) -> Sequence[SSAValue]:
    """`recv` and `recv-done`."""
    shapes = result_shapes(op)[:-1]
    data = shapes[0] if len(shapes) == 1 else TupleShape(tuple(shapes))
    properties = {**channel(op, keep_zero=True), **_host(op)}
    _transfer(op, body)
    shape = TupleShape((data, array("u32"), TOKEN_SHAPE))
    started = body.emit("recv", body.inputs(op), shape, properties)
    value = body.emit("recv-done", (started,), TupleShape((data, TOKEN_SHAPE)), properties)
    first = body.element(value, 0)
    parts = (first,) if len(shapes) == 1 else body.split(first, len(shapes))
    return [*parts, body.element(value, 1)]


def _transfer(op: Operation, body: Body) -> None:
    """Transfers within the device have pairs of devices, which HLO keeps as a frontend attribute."""
    pairs = attribute(op, "source_target_pairs")
    if pairs is None or flag(op, "is_host_transfer"):
        return

    flat = numbers_of(pairs)
    if len(flat) % 2:
        raise problem("HLO0426", op, "source_target_pairs is not a list of pairs")
    spelled = ",".join(f"{{{a},{b}}}" for a, b in zip(flat[::2], flat[1::2], strict=True))
    frontend_attributes.frontend(body, {"_xla_send_recv_source_target_pairs": "{" + spelled + "}"})
