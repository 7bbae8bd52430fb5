"""Rules of the ops that exchange data between replicas and partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirhlo.analysis.shape_inference.base import fits
from mlirhlo.analysis.stablehlo.base import Given, Results, check_range, check_wide, checks, infers
from mlirhlo.analysis.stablehlo.reducers import check_reducer, reduced_elements
from mlirhlo.analysis.stablehlo.tensors import (
    DYNAMIC,
    Tensor,
    unsigned,
)


def _groups(
    given: Given, unique: int, within: int, *, uniform: bool, global_ids: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Shape and ids of `replica_groups`, checked; None for groups given by axes of a mesh."""
    shape, key = given.shape_of("replica_groups"), "replica_groups"
    check_wide(given, key)
    if not shape:
        return None
    if len(shape) != 2:
        raise given.error("form", f"replica_groups has rank {len(shape)}, not 2", attribute=key)
    if global_ids and 0 in shape:
        raise given.error(
            "form", "replica_groups is empty beside use_global_device_ids", attribute=key
        )
    ids = given.ints(key)
    known = [number for number in ids if number != -1]
    if uniform and len(known) != len(ids):
        raise given.error(within, "replica_groups has -1 in groups of one size", attribute=key)
    if len(set(known)) != len(known):
        twice = next(number for number in known if known.count(number) > 1)
        raise given.error(unique, f"replica_groups has {twice} twice", attribute=key)
    if set(known) != set(range(len(known))):
        missing = next(number for number in range(len(known)) if number not in known)
        raise given.error(within, f"replica_groups lacks {missing}", attribute=key)
    return shape, ids


def _channel(given: Given) -> int:
    handle: Any = given.data("channel_handle")
    return 0 if handle is None else int(handle.handle)


def _check_global_ids(given: Given, number: int, least: int) -> None:
    if given.has("use_global_device_ids") and _channel(given) < least:
        raise given.error(
            number,
            f"use_global_device_ids needs a channel of {least} or more, not {_channel(given)}",
            attribute="channel_handle",
        )


@checks(
    "all_gather",
    c1="all_gather_dim is a dimension of the operands",
    c2="replica_groups are unique",
    c3="replica_groups has every replica, or process",
    c4="replica_groups are numbered from 0",
    c5="with use_global_device_ids there is a channel",
    c6="results are the operands times the size of a group along all_gather_dim",
)
def _check_all_gather(given: Given) -> None:
    dim = given.int("all_gather_dim")
    found = _groups(given, 2, 4, uniform=True, global_ids=given.has("use_global_device_ids"))
    _check_global_ids(given, 5, 0)
    if len(given.results) != len(given.operands):  # c6
        raise given.error(6, f"{len(given.operands)} operands give {len(given.results)} results")
    for index, operand in enumerate(given.tensors()):
        result = given.result(index)
        check_range(given, [dim], operand.rank, 1, "all_gather_dim", "dimensions")  # c1
        if operand.sizes[dim] == 0:  # c1
            raise given.error(1, f"dimension {dim} is empty", attribute="all_gather_dim")
        size = operand.sizes[dim]
        if (
            result.rank != operand.rank
            or result.element != operand.element
            or any(
                not fits(a, b)
                for d, (a, b) in enumerate(zip(operand.sizes, result.sizes, strict=True))
                if d != dim
            )
        ):  # c6
            raise given.error(6, f"{operand} does not gather to {result}")
        times = None if found is None else found[0][1]
        gathered = result.sizes[dim]
        if DYNAMIC not in (size, gathered) and gathered % size:  # c6
            raise given.error(6, f"{gathered} elements are no multiple of {size}")
        if times and DYNAMIC not in (size, gathered) and gathered != size * times:  # c6
            raise given.error(6, f"{times} times {size} elements are not {gathered}")


@infers(
    "all_reduce",
    c1="replica_groups are unique",
    c2="replica_groups has every replica, or process",
    c3="replica_groups are numbered from 0",
    c4="with use_global_device_ids there is a channel",
    c5="the computation takes and returns scalars that the operands are promotable to",
    c6="operands and results have one shape",
    c7="results have the element type that the computation returns",
    result=(6, 7),
)
def _all_reduce(given: Given) -> Results:
    has_ids = given.has("use_global_device_ids")
    _groups(given, 1, 3, uniform=False, global_ids=has_ids)
    _check_global_ids(given, 4, 1)
    for operand in given.tensors():
        check_reducer(given, 0, [operand], [operand.with_sizes(())], (), (5, 5))  # c5
    element = reduced_elements(given, 0, 1, 5)[0]
    return [operand.with_element(element) for operand in given.tensors()]


@infers(
    "all_to_all",
    c1="split_dimension is a dimension of the operands",
    c2="split_count divides the size of split_dimension",
    c3="concat_dimension is a dimension of the operands",
    c4="split_count is positive",
    c5="replica_groups are unique",
    c6="replica_groups has every replica, or process",
    c7="replica_groups are numbered from 0",
    c8="groups have split_count members",
    c9="results are smaller along split_dimension and larger along concat_dimension",
    result=(9, 9),
)
def _all_to_all(given: Given) -> Results:
    split, join = given.int("split_dimension"), given.int("concat_dimension")
    count = given.int("split_count")
    if count < 1:  # c4
        raise given.error(4, f"split_count is {count}", attribute="split_count")
    found = _groups(given, 5, 7, uniform=True)
    if found is not None and found[0][0] and found[0][1] != count:  # c8
        raise given.error(
            8, f"groups have {found[0][1]} members, not {count}", attribute="replica_groups"
        )
    results: list[Tensor] = []
    for operand in given.tensors():
        check_range(given, [split], operand.rank, 1, "split_dimension", "dimensions")  # c1
        check_range(given, [join], operand.rank, 3, "concat_dimension", "dimensions")  # c3
        sizes, bounds = list(operand.sizes), [operand.bound(d) for d in range(operand.rank)]
        if sizes[split] != DYNAMIC and sizes[split] % count:  # c2
            raise given.error(
                2, f"{sizes[split]} elements do not split into {count}", attribute="split_count"
            )
        for values in (sizes, bounds):
            values[split] = values[split] if values[split] == DYNAMIC else values[split] // count
            values[join] = values[join] if values[join] == DYNAMIC else values[join] * count
        results.append(operand.with_sizes(sizes, bounds))
    return results


@infers(
    "collective_broadcast",
    c1="replica_groups are unique",
    c2="replica_groups are not negative",
    c3="operand and result have one type",
    result=(3, 3),
)
def _collective_broadcast(given: Given) -> Results:
    check_wide(given, "replica_groups")
    shape = given.shape_of("replica_groups")
    ids = given.ints("replica_groups") if shape else ()
    if shape and len(shape) != 2:
        raise given.error(
            "form", f"replica_groups has rank {len(shape)}, not 2", attribute="replica_groups"
        )
    if any(number < 0 for number in ids):  # c2
        raise given.error(2, f"replica_groups has {min(ids)}", attribute="replica_groups")
    if len(set(ids)) != len(ids):  # c1
        raise given.error(1, "replica_groups has a replica twice", attribute="replica_groups")
    return given.tensors()


@infers(
    "collective_permute",
    c1="source_target_pairs are pairs",
    c2="sources are unique",
    c3="targets are unique",
    c4="replicas are not negative",
    c5="operand and result have one type",
    result=(5, 5),
)
def _collective_permute(given: Given) -> Results:
    key = "source_target_pairs"
    check_wide(given, key)
    shape, pairs = given.shape_of(key), given.ints(key)
    if len(shape) != 2 or shape[1] != 2:  # c1
        raise given.error(1, f"source_target_pairs has shape {list(shape)}", attribute=key)
    if any(number < 0 for number in pairs):  # c4
        raise given.error(4, f"source_target_pairs has {min(pairs)}", attribute=key)
    for number, side, name in ((2, pairs[::2], "source"), (3, pairs[1::2], "target")):  # c2, c3
        if len(set(side)) != len(side):
            raise given.error(
                number, f"a {name} stands twice in source_target_pairs", attribute=key
            )
    return given.tensors()


@checks(
    "reduce_scatter",
    c1="the size of scatter_dimension divides by the size of a group",
    c2="scatter_dimension is a dimension of the operand",
    c3="replica_groups are unique",
    c4="replica_groups has every replica, or process",
    c5="replica_groups are numbered from 0",
    c6="with use_global_device_ids there is a channel",
    c7="the computation takes and returns scalars that the operand is promotable to",
    c8="the result is the operand divided by the size of a group along scatter_dimension",
    c9="the result has the element type that the computation returns",
)
def _check_reduce_scatter(given: Given) -> None:
    operand, result = given.tensor(0), given.result()
    dim = given.int("scatter_dimension")
    has_ids = given.has("use_global_device_ids")
    found = _groups(given, 3, 5, uniform=True, global_ids=has_ids)
    check_reducer(given, 0, [operand], [operand.with_sizes(())], (), (7, 7))  # c7
    check_range(given, [dim], operand.rank, 2, "scatter_dimension", "dimensions")  # c2
    _check_global_ids(given, 6, 1)
    if operand.rank != result.rank or any(
        not fits(a, b)
        for d, (a, b) in enumerate(zip(operand.sizes, result.sizes, strict=True))
        if d != dim
    ):  # c8
        raise given.error(8, f"{operand} does not scatter to {result}")
    element = reduced_elements(given, 0, 1, 7)[0]
    if result.element != element:  # c9
        raise given.error(9, f"the result has elements {result.element}, not {element}")
    before, after = operand.sizes[dim], result.sizes[dim]
    if DYNAMIC in (before, after):
        return
    if 0 in (before, after) or before % after:  # c8
        raise given.error(8, f"{before} elements do not scatter to {after}")
    members = _members(found)
    if members and before % members:  # c1
        raise given.error(1, f"{before} elements do not divide by groups of {members}")
    if members and before != after * members:  # c8
        raise given.error(8, f"{before} elements over {members} members are not {after}")


def _members(found: tuple[Sequence[int], Sequence[int]] | None) -> int:
    return 0 if found is None else found[0][1]


@infers("cross-replica-sum", c1="operand and result have one type")
def _cross_replica_sum(given: Given) -> Results:
    return given.tensors()


@infers("partition_id", "replica_id")
def _id(given: Given) -> Results:
    return (Tensor(unsigned(32), ()),)
