"""Rules of branches, loops, calls of composites, tuples and tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, FunctionType, StringAttr, TupleType
from xdsl.ir import Attribute, Operation
from xdsl.traits import SymbolTable

from mlirhlo.analysis.stablehlo.base import Given, Results, checks, infers, listed
from mlirhlo.analysis.stablehlo.tensors import (
    Tensor,
    fits_types,
    is_pred,
    least_specific,
    tensor_of,
)
from mlirhlo.dialects.stablehlo.types import FutureType

TOKEN = "stablehlo.token"
"""Name of the token type."""


def is_token(kind: Attribute) -> bool:
    """Whether `kind` is `!stablehlo.token`."""
    return kind.name == TOKEN


def _types(kinds: Sequence[Attribute]) -> str:
    return "(" + ", ".join(map(str, kinds)) + ")"


@infers(
    "case",
    c1="there is a branch",
    c2="branches take nothing",
    c3="all branches return the same types",
    c4="results have the types that branches return",
    result=(4, 4),
)
def _case(given: Given) -> Results:
    return _chosen(given, (2, 3))


@infers(
    "if",
    c1="branches take nothing",
    c2="both branches return the same types",
    c3="results have the types that branches return",
    result=(3, 3),
)
def _if(given: Given) -> Results:
    return _chosen(given, (1, 2))


def _chosen(given: Given, numbers: tuple[int, int]) -> Results:
    if given.tensor(0).rank != 0:
        raise given.error("i1", f"what chooses is {given.tensor(0)}, not a scalar", operand=0)
    if not given.regions:  # case_c1
        raise given.error(1, "there is no branch")
    returned = [given.returned(index) for index in range(len(given.regions))]
    for index, types in enumerate(returned):
        if given.arguments(index):
            raise given.error(numbers[0], f"branch {index} takes {_types(given.arguments(index))}")
        if not fits_types(returned[0], types):
            raise given.error(
                numbers[1],
                f"branch 0 returns {_types(returned[0])}, branch {index} {_types(types)}",
            )
    results: list[Tensor | Attribute] = []
    for alternatives in zip(*returned, strict=True):
        tensors = [tensor_of(kind) for kind in alternatives]
        known = [tensor for tensor in tensors if tensor is not None]
        results.append(least_specific(known) if len(known) == len(tensors) else alternatives[0])
    return results


@infers(
    "while",
    c1="cond takes the operands and returns tensor<i1>",
    c2="body takes and returns the operands",
    c3="results have the types of the operands",
    result=(3, 3),
)
def _while(given: Given) -> Results:
    return [tensor_of(kind) or kind for kind in given.operands]


@checks("while")
def _check_while(given: Given) -> None:
    for number, region, name in ((1, 0, "cond"), (2, 1, "body")):  # c1, c2
        if not fits_types(given.operands, given.arguments(region)):
            raise given.error(
                number,
                f"{name} takes {_types(given.arguments(region))}, not {_types(given.operands)}",
            )
    returned = given.returned(1)
    if not fits_types(given.operands, returned):  # c2
        raise given.error(2, f"body returns {_types(returned)}, not {_types(given.operands)}")
    condition = [tensor_of(kind) for kind in given.returned(0)]
    if (
        len(condition) != 1
        or condition[0] is None
        or condition[0].rank
        or not is_pred(condition[0].element)
    ):
        raise given.error(1, f"cond returns {_types(given.returned(0))}, not tensor<i1>")  # c1


@infers("optimization_barrier", c1="results have the types of the operands")
def _optimization_barrier(given: Given) -> Results:
    return [tensor_of(kind) or kind for kind in given.operands]


@checks("optimization_barrier")
def _check_optimization_barrier(given: Given) -> None:
    if given.operands != given.results:  # c1
        raise given.error(
            1, f"operands are {_types(given.operands)}, results {_types(given.results)}"
        )


_NAMESPACED = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+\Z")


@checks(
    "composite",
    c1="name has a namespace: my_namespace.my_op",
    c2="decomposition is a function of the module",
    c3="operands have the types of the decomposition's inputs",
    c4="results have the types of the decomposition's outputs",
)
def _check_composite(given: Given) -> None:
    if not _NAMESPACED.match(given.str("name")):  # c1
        raise given.error(
            1,
            f"'{given.str('name')}' has no namespace, as my_namespace.my_op has",
            attribute="name",
        )
    callee = _function(given, given.str("decomposition"))
    if callee is None:  # c2
        raise given.error(
            2, f"there is no function @{given.str('decomposition')}", attribute="decomposition"
        )
    inputs, outputs = tuple(callee.inputs.data), tuple(callee.outputs.data)
    if tuple(given.operands) != inputs:  # c3
        raise given.error(
            3, f"operands are {_types(given.operands)}, the decomposition takes {_types(inputs)}"
        )
    if tuple(given.results) != outputs:  # c4
        raise given.error(
            4, f"results are {_types(given.results)}, the decomposition returns {_types(outputs)}"
        )


def _function(given: Given, name: str) -> FunctionType | None:
    op: Operation | None = given.op
    while op is not None and not op.has_trait(SymbolTable):
        op = op.parent_op()
    if op is None:
        return None
    for inner in op.regions[0].block.ops:
        symbol = inner.properties.get("sym_name")
        if inner.name == "func.func" and isinstance(symbol, StringAttr) and symbol.data == name:
            return cast(FunctionType, inner.properties["function_type"])
    return None


@infers("tuple", c1="the result is the tuple of the operands' types")
def _tuple(given: Given) -> Results:
    return (TupleType(ArrayAttr(cast(Any, list(given.operands)))),)


@infers(
    "get_tuple_element",
    c1="index is within the tuple",
    c2="the result has the type of the element",
    result=(2, 2),
)
def _get_tuple_element(given: Given) -> Results | None:
    kind = given.operands[0]
    if not isinstance(kind, TupleType):
        return None
    index, types = given.int("index"), kind.types.data
    if not 0 <= index < len(types):  # c1
        raise given.error(
            1, f"index {index} is beyond the {len(types)} elements", attribute="index"
        )
    return (tensor_of(types[index]) or types[index],)


@checks(
    "infeed",
    c1="there is a result",
    c2="results before the last are tensors of static shape",
    c3="the last result is a token",
)
def _check_infeed(given: Given) -> None:
    _check_received(given, (1, 2, 3))
    layout = given.properties.get("layout")
    if layout is not None and len(given.array("layout")) != len(given.results) - 1:
        raise given.error(
            "i3", f"layout has {len(given.array('layout'))} entries", attribute="layout"
        )


def _check_received(given: Given, numbers: tuple[int, int, int]) -> None:
    results = given.results
    if not results:
        raise given.error(numbers[0], "there is no result, not even a token")
    for kind in results[:-1]:
        tensor = tensor_of(kind)
        if tensor is None or not tensor.is_static:
            raise given.error(
                numbers[1], f"a result before the last is {kind}, not a tensor of static shape"
            )
    if not is_token(results[-1]):
        raise given.error(numbers[2], f"the last result is {results[-1]}, not a token")


_DEVICE_TO_DEVICE, _DEVICE_TO_HOST, _HOST_TO_DEVICE = 1, 2, 3


def _check_channel(given: Given, from_host: int, words: str) -> None:
    kind = cast(int, given.data("channel_handle").type)
    is_host = given.bool("is_host_transfer")
    expected = from_host if is_host else _DEVICE_TO_DEVICE
    if kind != expected:  # c1
        raise given.error(
            1,
            f"the channel's type is {kind}, not {expected}"
            f" ({words if is_host else 'DEVICE_TO_DEVICE'})",
            attribute="channel_handle",
        )


@checks(
    "recv",
    c1="the channel's type is HOST_TO_DEVICE from a host, else DEVICE_TO_DEVICE",
    c2="there is a result",
    c3="results before the last are tensors of static shape",
    c4="the last result is a token",
)
def _check_recv(given: Given) -> None:
    _check_channel(given, _HOST_TO_DEVICE, "HOST_TO_DEVICE")
    _check_received(given, (2, 3, 4))


@checks("send", c1="the channel's type is DEVICE_TO_HOST to a host, else DEVICE_TO_DEVICE")
def _check_send(given: Given) -> None:
    _check_channel(given, _DEVICE_TO_HOST, "DEVICE_TO_HOST")
    if not given.operands or not is_token(given.operands[-1]):
        raise given.error("i2", "the last operand is not a token")


@checks("outfeed")
def _check_outfeed(given: Given) -> None:
    if not given.operands or not is_token(given.operands[-1]):
        raise given.error("i2", "the last operand is not a token")


@checks("async_start")
def _check_async_start(given: Given) -> None:
    for kind in given.declared or ():
        if not isinstance(kind, FutureType):
            raise given.error("o1", f"the result must be a future, not {kind}")


@checks("async_done")
def _check_async_done(given: Given) -> None:
    future = given.operands[0]
    if not isinstance(future, FutureType):
        raise given.error("i1", f"the operand must be a future, not {future}", operand=0)
    if given.declared is not None and tuple(given.declared) != future.data:
        raise given.error("o1", f"results are ({listed(given.declared)}), but {future} was begun")
