"""Choices and loops that depend on values: `cond`, `while_loop`, `fori_loop`, `scan`.

Inside of `jit` they become HLO's `conditional` and `while`; outside they run in Python, with the
same checks. What a branch or body uses of the surroundings becomes one of its operands.
"""

# Narrowing by isinstance leaves the parameters of numpy's types and of containers open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.ir import SSAValue

from mlirhlo.dialects.hlo.attributes.base import symbol
from mlirhlo.dialects.hlo.build import create
from mlirhlo.dialects.hlo.ops import OP_CLASSES
from mlirhlo.dialects.hlo.shapes import TupleShape
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.dialects.quick import replace
from mlirhlo.numpy import dtypes as dt
from mlirhlo.numpy.array import Array
from mlirhlo.numpy.creation import zeros
from mlirhlo.numpy.dtypes import DType
from mlirhlo.numpy.errors import HloTypeError, problem
from mlirhlo.numpy.jit import jit
from mlirhlo.numpy.manipulation import astype, stack
from mlirhlo.numpy.operands import as_array
from mlirhlo.numpy.tracing.trace import Trace, active, current, type_for
from mlirhlo.numpy.tracing.tree import Structure, flatten, unflatten

Leaves = list[Array]
Spec = tuple[DType, tuple[int, ...]]
Capture = tuple[Array, SSAValue]


def _leaves(tree: Any, what: str) -> tuple[Leaves, Structure]:
    leaves, structure = flatten(tree)
    return [_strong(as_array(leaf, what)) for leaf in leaves], structure


def _strong(array: Array) -> Array:
    """An array that promotes by its type: one value of a loop has one type."""
    if array.weak is None or array.trace is None:
        return array
    return Array.traced(array.trace, array.value, array.dtype, array.shape)


def _check(what: str, wanted: Leaves, form: Structure, got: Leaves, got_form: Structure) -> Leaves:
    """`got`, which has the types and shapes of `wanted`. Raises HLO0624."""
    if form != got_form:
        raise problem(
            HloTypeError,
            "HLO0624",
            f"{what}: gives {got_form!r} where {form!r} is expected",
            help="give a tree of the same form",
        )
    for index, (a, b) in enumerate(zip(wanted, got, strict=True)):
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            raise problem(
                HloTypeError,
                "HLO0624",
                f"{what}: value {index} is {b.describe()} where {a.describe()} is expected",
                help="convert it, e.g. mlirhlo.numpy.astype(x, dtype), or give the first value"
                " the type it ends with",
            )
    return got


class Inner:
    """A computation with one tuple parameter: its own values first, then what it captures."""

    def __init__(self, outer: Trace, stem: str) -> None:
        self.stem = stem
        self.trace = Trace(outer.builder, outer)
        self.results: Leaves = []
        self._own: list[SSAValue] = []

    def parameters(self, specs: Sequence[Spec]) -> Leaves:
        """Traced arrays for the values it is given."""
        arrays: Leaves = []
        for dtype, shape in specs:
            # Stand-ins outside of the block, until `finish` knows the whole parameter.
            stand_in = create(OP_CLASSES["parameter"], (), type_for(dtype, shape), {}).results[0]
            self._own.append(stand_in)
            arrays.append(Array.traced(self.trace, stand_in, dtype, shape))
        return arrays

    def finish(self, captured: Sequence[Capture], result: str) -> str:
        """Closes the computation over the captures of all computations that share its operand.

        `result`: `tuple` of the results, `carry` for them and the captures, `value` for the one.
        """
        inner = self.trace
        values = [inner.value(one) for one in self.results]
        mine = {id(outer.value): stand_in for outer, stand_in in inner.captures.values()}
        stand_ins = [*self._own, *(mine.get(id(outer.value)) for outer, _ in captured)]
        types = [value.type for value in self._own] + [value.type for _, value in captured]
        # The parameter comes first: what is there already goes behind it.
        ops = list(inner.block.ops)
        for op in ops:
            op.detach()
        parameter = inner.parameter(0, TupleShape(tuple(shape_of(type_) for type_ in types)))
        real = [inner.element(parameter, index) for index in range(len(types))]
        for op in ops:
            inner.block.add_op(op)
        replaced: dict[int, SSAValue] = {}
        for stand_in, value in zip(stand_ins, real, strict=True):
            if stand_in is not None:
                replaced[id(stand_in)] = value
                replace(stand_in, value)
        values = [replaced.get(id(value), value) for value in values]
        if result == "carry":
            values += real[len(self._own) :]
        root = values[0] if result == "value" else inner.tuple(values)
        name = inner.builder.unique(self.stem)
        inner.builder.add(name, inner.block, root)
        return name


def _specs(arrays: Sequence[Array]) -> list[Spec]:
    return [(array.dtype, array.shape) for array in arrays]


def _shared_captures(inners: Sequence[Inner]) -> list[Capture]:
    """What any of the computations captures, each once."""
    found: dict[int, Capture] = {}
    for inner in inners:
        for outer, stand_in in inner.trace.captures.values():
            found.setdefault(id(outer.value), (outer, stand_in))
    return list(found.values())


def _called(function: Callable[..., Any], arguments: Any, what: str) -> tuple[Leaves, Structure]:
    return _leaves(function(*arguments), what)


# ------------------------------------------------------------------ cond


def cond(
    pred: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    /,
    *operands: Any,
) -> Any:
    """`true_fn(*operands)` if `pred` holds, else `false_fn(*operands)`; just one of them runs.

    Both give trees of one form with the same shapes and types (HLO0624).
    """
    test = as_array(pred, "cond")
    if test.shape or test.dtype != dt.bool:
        raise problem(
            HloTypeError,
            "HLO0624",
            f"cond: the condition is one boolean, not {test.describe()}",
            help="fold it with any(x) or all(x), or choose by element with where",
        )
    outer = current()
    if outer is None:
        return (true_fn if bool(test) else false_fn)(*operands)
    before = outer.enter("cond")
    try:
        return _cond(outer, test, (true_fn, false_fn), operands)
    finally:
        outer.scope = before


def _cond(
    outer: Trace,
    test: Array,
    functions: tuple[Callable[..., Any], Callable[..., Any]],
    operands: tuple[Any, ...],
) -> Any:
    given, form = _leaves(operands, "cond")
    inners: list[Inner] = []
    forms: list[Structure] = []
    for function, stem in zip(functions, ("true_branch", "false_branch"), strict=True):
        inner = Inner(outer, stem)
        with inner.trace:
            arguments = unflatten(form, iter(inner.parameters(_specs(given))))
            inner.results, found = _called(function, arguments, "cond")
            for result in inner.results:
                inner.trace.value(result)
            forms.append(found)
        inners.append(inner)
    first, second = inners
    _check("cond: the second branch", first.results, forms[0], second.results, forms[1])
    captured = _shared_captures(inners)
    names = [inner.finish(captured, "tuple") for inner in inners]
    operand = outer.tuple(
        [*(outer.value(x) for x in given), *(outer.value(x) for x, _ in captured)]
    )
    shape = TupleShape(tuple(shape_of(type_for(r.dtype, r.shape)) for r in first.results))
    value = outer.emit(
        "conditional",
        (outer.value(test), operand, operand),
        type_of(shape),
        {"true_computation": symbol(names[0]), "false_computation": symbol(names[1])},
    )
    return unflatten(forms[0], iter(_elements(outer, value, first.results)))


def _elements(outer: Trace, value: SSAValue, like: Sequence[Array]) -> Leaves:
    return [
        Array.traced(outer, outer.element(value, index), array.dtype, array.shape)
        for index, array in enumerate(like)
    ]


# ------------------------------------------------------------------ loops


def while_loop(cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], init: Any, /) -> Any:
    """`body_fn` applied to a tree of arrays as long as `cond_fn` holds of it.

    The body gives a tree of the same form, shapes and types (HLO0624).
    """
    outer = current()
    if outer is None:
        return _while_in_python(cond_fn, body_fn, init)
    before = outer.enter("while_loop")
    try:
        return _while(outer, cond_fn, body_fn, init)
    finally:
        outer.scope = before


def _while_in_python(
    cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], init: Any
) -> Any:
    values, form = _leaves(init, "while_loop")
    while True:
        state = unflatten(form, iter(values))
        if not bool(_predicate(cond_fn(state))):
            return state
        got, got_form = _leaves(body_fn(state), "while_loop")
        values = _check("while_loop: the body", values, form, got, got_form)


def _predicate(given: Any) -> Array:
    test = as_array(given, "while_loop")
    if test.shape or test.dtype != dt.bool:
        raise problem(
            HloTypeError,
            "HLO0624",
            f"while_loop: the condition is one boolean, not {test.describe()}",
            help="fold it with any(x) or all(x)",
        )
    return test


def _while(
    outer: Trace, cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], init: Any
) -> Any:
    given, form = _leaves(init, "while_loop")
    test, body = Inner(outer, "while_condition"), Inner(outer, "while_body")
    with test.trace:
        state = unflatten(form, iter(test.parameters(_specs(given))))
        test.results = [_predicate(cond_fn(state))]
        test.trace.value(test.results[0])
    with body.trace:
        state = unflatten(form, iter(body.parameters(_specs(given))))
        got, got_form = _leaves(body_fn(state), "while_loop")
        body.results = _check("while_loop: the body", given, form, got, got_form)
        for result in body.results:
            body.trace.value(result)
    captured = _shared_captures((test, body))
    names = test.finish(captured, "value"), body.finish(captured, "carry")
    operand = outer.tuple(
        [*(outer.value(x) for x in given), *(outer.value(x) for x, _ in captured)]
    )
    value = outer.emit(
        "while",
        (operand,),
        operand.type,
        {"condition": symbol(names[0]), "body": symbol(names[1])},
    )
    return unflatten(form, iter(_elements(outer, value, given)))


def fori_loop(lower: Any, upper: Any, body_fn: Callable[[Any, Any], Any], init: Any, /) -> Any:
    """`x = body_fn(i, x)` for i from `lower` up to, and without, `upper`."""
    first, last = (as_array(bound, "fori_loop") for bound in (lower, upper))
    first, last = astype(first, dt.int64), astype(last, dt.int64)

    def goes_on(state: Any) -> Any:
        return state[0] < state[1]

    def step(state: Any) -> Any:
        index, end, value = state
        return index + 1, end, body_fn(index, value)

    return while_loop(goes_on, step, (first, last, init))[2]


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    /,
    *,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """`carry, y = f(carry, x)` for each slice x of `xs` along the first dimension.

    The result is the last carry, and the ys stacked. `length` says how often where `xs` is None.
    """
    inputs, form = _leaves(xs, "scan")
    sizes = {x.shape[0] if x.shape else -1 for x in inputs} | (
        {length} if length is not None else set()
    )
    if len(sizes) != 1 or -1 in sizes:
        raise problem(
            HloTypeError,
            "HLO0624",
            f"scan: the first dimensions have sizes {sorted(map(str, sizes))}",
            help="all arrays of xs have one first dimension; give length where there are none",
        )
    (count,) = cast("set[int]", sizes)
    outer = current()
    if outer is None and count == 0:
        # Nothing runs, but the ys have shapes, which only tracing tells.
        def nothing(start: Any, rows: Any) -> Any:
            return scan(f, start, rows, length=0)

        found: tuple[Any, Any] = jit(nothing)(init, xs)
        return found
    if outer is None:
        return _scan_in_python(f, init, inputs, form, count, reverse)
    return _scan(f, init, inputs, form, count, reverse)


def _scan_in_python(
    f: Callable[..., Any], init: Any, inputs: Leaves, form: Structure, count: int, reverse: bool
) -> tuple[Any, Any]:
    carry, ys, y_form = init, list[Leaves](), form
    values, carry_form = _leaves(init, "scan")
    for index in reversed(range(count)) if reverse else range(count):
        carry, y = f(carry, unflatten(form, iter([x[index] for x in inputs])))
        got, got_form = _leaves(carry, "scan")
        values = _check("scan: the carry", values, carry_form, got, got_form)
        leaves, y_form = _leaves(y, "scan")
        ys.append(leaves)
    ys = ys[::-1] if reverse else ys
    stacked = [stack([row[k] for row in ys]) for k in range(len(ys[0]))]
    return unflatten(carry_form, iter(values)), unflatten(y_form, iter(stacked))


def _scan(
    f: Callable[..., Any], init: Any, inputs: Leaves, form: Structure, count: int, reverse: bool
) -> tuple[Any, Any]:
    start, carry_form = _leaves(init, "scan")
    # What the ys look like is found by tracing one step for nothing.
    probe = Inner(active(), "scan_probe")
    state = probe.trace.builder.checkpoint()
    with probe.trace:
        rows: list[Spec] = [(x.dtype, x.shape[1:]) for x in inputs]
        given = probe.parameters([*_specs(start), *rows])
        carry, y = f(
            unflatten(carry_form, iter(given[: len(start)])),
            unflatten(form, iter(given[len(start) :])),
        )
        got, got_form = _leaves(carry, "scan")
        _check("scan: the carry", start, carry_form, got, got_form)
        outputs, y_form = _leaves(y, "scan")
    probe.trace.builder.restore(state)
    ys = [zeros((count, *y.shape), dtype=y.dtype) for y in outputs]

    def step(index: Any, state: Any) -> Any:
        values, results = state
        place = (count - 1) - index if reverse else index
        carry, y = f(
            unflatten(carry_form, iter(values)),
            unflatten(form, iter([x[place] for x in inputs])),
        )
        rows, _ = _leaves(y, "scan")
        kept = [old.snapshot() for old in results]
        for old, row in zip(kept, rows, strict=True):
            old[place] = row
        return _leaves(carry, "scan")[0], kept

    if count == 0:
        return unflatten(carry_form, iter(start)), unflatten(y_form, iter(ys))
    values, stacked = fori_loop(0, count, step, (start, ys))
    return unflatten(carry_form, iter(values)), unflatten(y_form, iter(stacked))
