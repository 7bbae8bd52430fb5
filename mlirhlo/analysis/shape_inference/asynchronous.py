"""Shapes of asynchronous pairs, host transfers and random numbers."""

from __future__ import annotations

from mlirhlo.analysis.shape_inference.base import Given, checks, infers, plain
from mlirhlo.analysis.shape_inference.control_flow import check_aliasing, check_arguments
from mlirhlo.dialects.hlo.element_types import PRED, Kind
from mlirhlo.dialects.hlo.shapes import (
    ArrayShape,
    Shape,
    TokenShape,
    TupleShape,
    array,
    compatible,
)
from mlirhlo.dialects.hlo.types import shape_of

_ALIASING = "output_to_operand_aliasing names parts of the result and of operands, of equal shapes"
_START_FORM = (
    "AsyncStart expects the op shape to be in the form of ((async-operands), async-outputs, state)."
)


def _is_async(shape: Shape) -> bool:
    return (
        isinstance(shape, TupleShape)
        and len(shape.elements) >= 2
        and isinstance(shape.elements[0], TupleShape)
    )


@checks(
    "async-start",
    c1="the shape is ((operands), result, contexts…)",
    c2="the computation takes as many parameters as there are operands",
    c3="parameters and operands have the same shapes",
    c4="the shape's first element holds the operands' shapes",
    c5="the shape's second element is the computation's result",
    c6=_ALIASING,
)
def async_start(given: Given) -> None:
    """The wrapped computation against operands and shape."""
    shape = given.declared
    if not isinstance(shape, TupleShape) or not _is_async(shape):  # async-start_c1
        raise given.error(1, f"{_START_FORM} Got {plain(shape)}.")
    callee = given.callee("calls")
    check_arguments(given, given.operands, callee, "Async computation", (2, 3), "calls")
    if not compatible(shape.elements[0], TupleShape(given.operands)):  # async-start_c4
        raise given.error(
            4,
            f"the async operands {plain(shape.elements[0])} of the shape are not the operands"
            f" {plain(TupleShape(given.operands))}",
        )
    if not compatible(shape.elements[1], callee.result):  # async-start_c5
        raise given.error(
            5,
            f"the async result {plain(shape.elements[1])} of the shape is not the computation's"
            f" {plain(callee.result)}",
            attribute="calls",
        )
    check_aliasing(given, 6)  # async-start_c6


_SINGLE = "AsyncUpdate and AsyncDone expect a single async op as their operand."


@infers("async-update", c1="the operand is of an asynchronous pair: ((operands), result, …)")
def async_update(given: Given) -> Shape:
    """The operand's shape."""
    if not _is_async(given.operands[0]):  # async-update_c1
        raise given.error(1, f"{_SINGLE} Got {plain(given.operands[0])}.", operand=0)
    return given.operands[0]


@infers("async-done", c1="the operand is of an asynchronous pair: ((operands), result, …)")
def async_done(given: Given) -> Shape:
    """Element 1 of the operand."""
    shape = given.operands[0]
    if not isinstance(shape, TupleShape) or not _is_async(shape):  # async-done_c1
        raise given.error(1, f"{_SINGLE} Got {plain(shape)}.", operand=0)
    return shape.elements[1]


@checks(
    "copy-start",
    c1="the shape is (result, operand, context)",
    c2="result and operand have the operand's shape, layouts aside",
)
def copy_start(given: Given) -> None:
    """(destination, source, context)."""
    shape = given.declared
    if not isinstance(shape, TupleShape) or len(shape.elements) != 3:  # copy-start_c1
        raise given.error(1, f"the shape is (destination, source, context), not {plain(shape)}")
    for element in shape.elements[:2]:
        if not compatible(element, given.operands[0]):  # copy-start_c2
            raise given.error(
                2, f"{plain(element)} is no copy of {plain(given.operands[0])}", operand=0
            )


@infers("copy-done", c1="the operand is the tuple (result, operand, context) of a copy-start")
def copy_done(given: Given) -> Shape:
    """Element 0 of the operand."""
    shape = given.operands[0]
    if not isinstance(shape, TupleShape) or len(shape.elements) != 3:  # copy-done_c1
        raise given.error(1, f"the operand is that of a copy-start, not {plain(shape)}", operand=0)
    return shape.elements[0]


# ---------------------------------------------------------------- host transfers


def _token(given: Given, index: int, number: int) -> None:
    if not isinstance(given.operands[index], TokenShape):
        raise given.error(
            number,
            f"Expected token shape operand, found {plain(given.operands[index])}",
            operand=index,
        )


@checks(
    "infeed",
    c1="the operand is a token",
    c2="the shape is (data, token[])",
)
def infeed(given: Given) -> None:
    """(data, token[]) of a token."""
    _token(given, 0, 1)  # infeed_c1
    shape = given.declared
    if not (
        isinstance(shape, TupleShape)
        and len(shape.elements) == 2
        and isinstance(shape.elements[1], TokenShape)
    ):
        raise given.error(2, f"the shape is (data, token[]), not {plain(shape)}")  # infeed_c2


@infers("outfeed", c1="operand 1 is a token", c2="outfeed_shape is the shape of operand 0")
def outfeed(given: Given) -> Shape:
    """`token[]`."""
    _token(given, 1, 1)  # outfeed_c1
    attribute = given.properties.get("outfeed_shape")
    if attribute is not None and not compatible(shape_of(attribute), given.operands[0]):
        raise given.error(  # outfeed_c2
            2,
            f"Expected outfeed shape to be equal to operand's shape {plain(given.operands[0])},"
            f" actual shape is {plain(shape_of(attribute))}",
            attribute="outfeed_shape",
        )
    return TokenShape()


@infers("send", c1="operand 1 is a token")
def send(given: Given) -> Shape:
    """(data, u32[], token[])."""
    _token(given, 1, 1)  # send_c1
    return TupleShape((given.operands[0], array("u32"), TokenShape()))


@infers("send-done", c1="the operand is the tuple (data, u32[], token[]) of a send")
def send_done(given: Given) -> Shape:
    """`token[]`."""
    _transfer(given, "send")  # send-done_c1
    return TokenShape()


def _transfer(given: Given, what: str) -> TupleShape:
    shape = given.operands[0]
    if (
        isinstance(shape, TupleShape)
        and len(shape.elements) == 3
        and isinstance(shape.elements[2], TokenShape)
    ):
        return shape
    raise given.error(
        1, f"the operand is (data, u32[], token[]) of a {what}, not {plain(shape)}", operand=0
    )


@checks("recv", c1="the operand is a token", c2="the shape is (data, u32[], token[])")
def recv(given: Given) -> None:
    """(data, u32[], token[]) of a token."""
    _token(given, 0, 1)  # recv_c1
    shape = given.declared
    if not (
        isinstance(shape, TupleShape)
        and len(shape.elements) == 3
        and compatible(shape.elements[1], array("u32"))
        and isinstance(shape.elements[2], TokenShape)
    ):
        raise given.error(2, f"the shape is (data, u32[], token[]), not {plain(shape)}")  # recv_c2


@infers("recv-done", c1="the operand is the tuple (data, u32[], token[]) of a recv")
def recv_done(given: Given) -> Shape:
    """(data, token[])."""
    shape = _transfer(given, "recv")  # recv-done_c1
    return TupleShape((shape.elements[0], shape.elements[2]))


# ---------------------------------------------------------------- random numbers


@checks(
    "rng",
    c1="there are two operands",
    c2="the operands are scalars of the result's element type",
    c3="a normal distribution is of floating point, a uniform one of real numbers or pred",
)
def rng(given: Given) -> None:
    """Two parameters of the distribution."""
    if len(given.operands) != 2:  # rng_c1
        raise given.error(1, f"expects 2 operands, but has {len(given.operands)} operands")
    result = given.declared_array(3)
    for index in range(2):
        x = given.array(index, f"parameter of {given.str('distribution')}", 2)
        if not x.is_scalar or x.element_type is not result.element_type:  # rng_c2
            raise given.error(
                2,
                f"a parameter of the distribution is {result.element_type}[], not {plain(x)}",
                operand=index,
            )
    kind = result.element_type.kind
    if kind is Kind.COMPLEX or (
        given.str("distribution") == "rng_normal" and kind is not Kind.FLOAT
    ):  # rng_c3
        raise given.error(
            3, f"{given.str('distribution')} gives no {plain(result)}", attribute="distribution"
        )


@checks(
    "rng-bit-generator",
    c1="the shape is the bits, or (state, bits)",
    c2="the state keeps its shape",
    c3="the state is an array of u32 or u64, the bits are integers",
)
def rng_bit_generator(given: Given) -> None:
    """(state, bits)."""
    state = given.array(0, "state of rng-bit-generator", 3)
    shape = given.declared
    parts = shape.elements if isinstance(shape, TupleShape) else (shape,)
    bits = parts[-1] if parts else shape
    if not 1 <= len(parts) <= 2 or not isinstance(bits, ArrayShape):  # rng-bit-generator_c1
        raise given.error(1, f"the shape is (state, bits), not {plain(shape)}")
    if len(parts) == 2 and not compatible(parts[0], state):  # rng-bit-generator_c2
        raise given.error(
            2, f"Expected state shape to match: {plain(parts[0])} and {plain(state)}", operand=0
        )
    if not state.element_type.is_unsigned or state.element_type.bits < 32:
        raise given.error(3, f"a state is of u32 or u64, not {plain(state)}", operand=0)
    if bits.element_type is PRED or not bits.element_type.is_integer:  # rng-bit-generator_c3
        raise given.error(3, f"random bits are integers, not {plain(bits)}")


@infers("rng-get-and-update-state")
def rng_get_and_update_state(given: Given) -> Shape:
    """`u64[2]`."""
    return array("u64", (2,))
