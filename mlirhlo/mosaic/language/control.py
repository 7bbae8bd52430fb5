"""Branches and loops that the kernel takes when it runs."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from xdsl.ir import Attribute, Block, Operation, Region

from mlirhlo.mosaic.language.elements import BOOL, I32
from mlirhlo.mosaic.language.faults import bad_carry, bad_spec
from mlirhlo.mosaic.language.functions.arithmetic import cast, cast_bool, clip, is_natural
from mlirhlo.mosaic.language.indexing import scalar
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.scratch import MemoryRef, scratch_of
from mlirhlo.mosaic.language.trace import (
    current,
    emit,
    emit_one,
    into,
    ints,
    memref_type,
    parameter_names,
    vector_type,
)
from mlirhlo.mosaic.language.tree import check_same, flatten
from mlirhlo.mosaic.language.value import ArrayLike, Value, as_value, is_number

Body = Callable[..., Any]


def when(condition: ArrayLike) -> Callable[[Body], None]:
    """Decorator: the function without arguments runs where the condition holds.

    A condition that Python knows decides at once.
    """

    def run(body: Body) -> None:
        if is_number(condition):
            if condition:
                body()
            return
        cond(condition, body, lambda: None)

    return run


def _truth(condition: ArrayLike) -> Value:
    value = as_value(condition)
    if value.shape:
        raise bad_carry(
            f"a condition is one boolean, not {value!r}", "reduce it with .any() or .all()"
        )
    return value if value.dtype == BOOL else cast_bool(value)


def _carried(leaves: Sequence[Any]) -> list[Value]:
    """Leaves as values; masks travel as i32."""
    return [as_value(leaf) for leaf in leaves]


def _outside(value: Value) -> Value:
    return cast(value, I32) if value.dtype == BOOL and value.shape else value


def _inside(value: Value, like: Value) -> Value:
    return cast(value, BOOL) if value.dtype != like.dtype else value


def _described(values: Sequence[Value]) -> str:
    return ", ".join(f"{v.dtype.name}{list(v.shape)}" for v in values)


def _same_types(first: Sequence[Value], second: Sequence[Value], what: str) -> None:
    if [(v.shape, v.dtype) for v in first] != [(v.shape, v.dtype) for v in second]:
        raise bad_carry(
            f"{what} have other types: {_described(first)} and {_described(second)}",
            "cast with astype, or broadcast, so that both are alike",
        )


def cond(predicate: ArrayLike, true_fun: Body, false_fun: Body, *operands: Any) -> Any:
    """What one of two functions gives for the operands."""
    if is_number(predicate):
        return (true_fun if predicate else false_fun)(*operands)
    holds = _truth(predicate)
    blocks = [Block(), Block()]
    results: list[list[Value]] = []
    trees: list[Any] = []
    for block, function in zip(blocks, (true_fun, false_fun), strict=True):
        with into(block):
            tree = function(*operands)
            trees.append(tree)
            results.append(_carried(flatten(tree)[0]))
    check_same(trees[0], trees[1], "the two branches")
    weak_leaves = [flatten(tree)[0] for tree in trees]
    for side in (0, 1):
        # A number takes the type of the other branch.
        for at, leaf in enumerate(weak_leaves[side]):
            other = results[1 - side][at]
            if is_number(leaf) and not is_number(weak_leaves[1 - side][at]):
                with into(blocks[side]):
                    results[side][at] = cast(results[side][at], other.dtype)
    _same_types(results[0], results[1], "the two branches")
    for block, values in zip(blocks, results, strict=True):
        with into(block):
            emit("scf.yield", [_outside(value).ssa for value in values])
    op = emit("scf.if", [holds.ssa], _types_of(results[0]), {}, [Region(b) for b in blocks])
    return flatten(trees[0])[1](_results(op, results[0]))


def _types_of(values: Sequence[Value]) -> list[Attribute]:
    return [
        vector_type(value.shape, I32 if value.dtype == BOOL and value.shape else value.dtype)
        for value in values
    ]


def _results(op: Operation, like: Sequence[Value]) -> list[Any]:
    return [
        _inside(
            Value(ssa, value.shape, I32 if value.dtype == BOOL and value.shape else value.dtype),
            value,
        )
        for ssa, value in zip(op.results, like, strict=True)
    ]


def switch(index: ArrayLike, branches: Sequence[Body], *operands: Any) -> Any:
    """What the function of that number gives; numbers outside take the nearest."""
    if is_number(index):
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    at = scalar(clip(index, 0, len(branches) - 1))

    def choose(first: int) -> Any:
        if first == len(branches) - 1:
            return branches[first](*operands)
        return cond(at == first, lambda: branches[first](*operands), lambda: choose(first + 1))

    return choose(0)


def _block(values: Sequence[Value], leading: Sequence[Attribute] = ()) -> Block:
    return Block(arg_types=[*leading, *_types_of(values)])


def _arguments(block: Block, like: Sequence[Value], skip: int = 0) -> list[Any]:
    found: list[Any] = []
    for ssa, value in zip(block.args[skip:], like, strict=True):
        is_mask = value.dtype == BOOL and bool(value.shape)
        found.append(_inside(Value(ssa, value.shape, I32 if is_mask else value.dtype), value))
    return found


def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Body,
    init_val: Any = None,
    *,
    step: int = 1,
    unroll: int | bool | None = None,
) -> Any:
    """`val = body_fun(i, val)` for i from lower up to, not including, upper.

    `unroll=True` writes the body out for bounds that Python knows.
    """
    known = is_number(lower) and is_number(upper)
    if unroll is True or (known and unroll is not None and unroll >= (upper - lower) // step):
        if not known:
            raise bad_carry("a loop is unrolled whose bounds are known when the kernel runs")
        for i in range(int(lower), int(upper), step):
            init_val = body_fun(i, init_val)
        return init_val
    leaves, rebuild = flatten(init_val)
    start = _carried(leaves)
    bounds = [scalar(bound, "a bound of a loop").ssa for bound in (lower, upper, step)]

    block = _block(start, [vector_type((), I32)])
    block.args[0].name_hint = "i"
    trace = current()
    if (is_number(lower) and lower >= 0) or (isinstance(lower, Value) and is_natural(lower)):
        trace.natural.add(block.args[0])
    with into(block):
        counter = Value(block.args[0], (), I32)
        result = body_fun(counter, rebuild(_arguments(block, start, 1)))
        _yield_like(result, init_val, start)
    initial = [_outside(value).ssa for value in start]
    op = emit("scf.for", [*bounds, *initial], _types_of(start), {}, [Region(block)])
    return rebuild(_results(op, start))


def _yield_like(result: Any, initial: Any, start: Sequence[Value]) -> None:
    check_same(result, initial, "what the loop starts with and what its body gives")
    leaves = flatten(result)[0]
    after = [
        cast(as_value(leaf), value.dtype) if is_number(leaf) else as_value(leaf)
        for leaf, value in zip(leaves, start, strict=True)
    ]
    _same_types(start, after, "what the loop starts with and what its body gives")
    emit("scf.yield", [_outside(value).ssa for value in after])


def loop(
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    init_carry: Any = None,
    step: int = 1,
    unroll: Any = None,
) -> Any:
    """Decorator: the function runs for each i from lower up to upper; with `init_carry` it is given what
    it gave before, too, and its name is what it gave last.
    """

    def run(body: Body) -> Any:
        takes = (lambda i, _: body(i)) if init_carry is None else body
        return fori_loop(lower, upper, takes, init_carry, step=step, unroll=unroll)

    return run


def while_loop(cond_fun: Body, body_fun: Body, init_val: Any) -> Any:
    """`val = body_fun(val)` while `cond_fun(val)` holds."""
    leaves, rebuild = flatten(init_val)
    start = _carried(leaves)
    before, after = _block(start), _block(start)
    with into(before):
        arguments = _arguments(before, start)
        holds = _truth(cond_fun(rebuild(arguments)))
        emit("scf.condition", [holds.ssa, *before.args])
    with into(after):
        _yield_like(body_fun(rebuild(_arguments(after, start))), init_val, start)
    initial = [_outside(value).ssa for value in start]
    op = emit("scf.while", initial, _types_of(start), {}, [Region(before), Region(after)])
    return rebuild(_results(op, start))


def with_scoped(
    *shapes: Any, collective_axes: Any = (), **named: Any
) -> Callable[[Body], Callable[..., Any]]:
    """Decorator: the function is given references to memory after its own arguments; see `run_scoped`."""

    def decorated(body: Body) -> Callable[..., Any]:
        def run(*given: Any, **more: Any) -> Any:
            bound = partial(body, *given, **more)
            return run_scoped(bound, *shapes, collective_axes=collective_axes, **named)

        return run

    return decorated


def _run_on_gpu(body: Body, shapes: Sequence[Any], named: Any) -> Any:
    """`run_scoped` of a kernel for GPUs, where memory has its address before the kernel runs."""
    cache = current().cache

    def made(tree: Any, name: str | None) -> Any:
        leaves, rebuild = flatten(tree)
        return rebuild([cache["allocate"](leaf, name) for leaf in leaves])

    titles = [*parameter_names(body), *[None] * len(shapes)]
    with cache["scope"]():
        given = [made(shape, name) for shape, name in zip(shapes, titles, strict=False)]
        more = {name: made(shape, name) for name, shape in named.items()}
        if cache.pop("barriers_made", False):
            cache["ready"]()
        return body(*given, **more)


def run_scoped(body: Body, *shapes: Any, collective_axes: Any = (), **named: Any) -> Any:
    """What the function gives for references to memory that is there while it runs: `pltpu.VMEM(…)`,
    `pltpu.SMEM(…)`, `pltpu.SemaphoreType.DMA`, also in tuples, lists and dictionaries.

    Raises `HloError` HLO0726 for `collective_axes`: TensorCores share no memory of a kernel's own.
    """
    if "allocate" in current("run_scoped").cache:
        return _run_on_gpu(body, shapes, named)
    if collective_axes:
        raise bad_spec(
            f"memory that the threads of {collective_axes!r} share",
            "TensorCores share HBM alone: pass an array of it to the call",
        )

    block = Block()
    titles = [*parameter_names(body), *[None] * len(shapes)]

    def allocated(tree: Any, name: str | None) -> Any:
        leaves, rebuild = flatten(tree)
        return rebuild([allocated_one(leaf, name) for leaf in leaves])

    def allocated_one(shape: Any, name: str | None) -> Ref:
        what: MemoryRef = scratch_of(shape)
        type_ = memref_type(what.shape, what.element, what.space)
        if what.semaphore:
            ssa = emit_one("tpu.sem_alloc", [], type_)
        else:
            segments = {"operandSegmentSizes": ints([0, 0], 32)}
            ssa = emit_one("memref.alloca", [], type_, segments)
        ssa.name_hint = name
        return Ref(ssa, what.shape, what.dtype, what.space, semaphore=what.semaphore)

    with into(block):
        result = body(
            *(allocated(shape, name) for shape, name in zip(shapes, titles, strict=False)),
            **{name: allocated(shape, name) for name, shape in named.items()},
        )
        leaves, rebuild = flatten(result)
        values = _carried(leaves)
        emit("tpu.yield", [_outside(value).ssa for value in values])
    op = emit("tpu.region", [], _types_of(values), {}, [Region(block)])
    return rebuild(_results(op, values))
