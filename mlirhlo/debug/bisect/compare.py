"""Two stages of one module, run on the same inputs: do they compute the same, but for rounding?

What is allowed is measured on both modules (`trials.rounding`): a stage that computes in bf16 may be off by bf16's
units where its own results move by them. So neither reassociation nor another width of intermediate values is a fault.
"""

# numpy's stubs leave the element types of results open.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from mlirhlo.debug import replay
from mlirhlo.debug.partitioned import Partitioned, shardings_of_leaves
from mlirhlo.debug.replay import Inputs
from mlirhlo.debug.trials import rounding
from mlirhlo.debug.trials.conditions import difference, fields_of, load_module
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.literal import Literal, LiteralAttr
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ConstantOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, TupleShape, leaves
from mlirhlo.formats.arrays import read_npz
from mlirhlo.interp.fake_data import fake_array, make_fake_arguments
from mlirhlo.interp.fake_data_uses import Demands
from mlirhlo.interp.values import arrays_of
from mlirhlo.rewrites.spmd.partitions import partitions_of

if TYPE_CHECKING:
    from mlirhlo.interp.engine import Hook

Array: TypeAlias = np.ndarray[Any, Any]
SEEDS = (42, 43, 44, 45, 46, 47)
_FEWER_SETS = (40_000, 160_000)
"""Characters of a stage above which two sets of inputs fewer are tried."""
SAME, DIFFERS, UNKNOWN = "same", "differs", "unknown"

_LARGER = 8
_PRINTED = 10
"""Elements of a constant that texts of dumps never leave out."""
_SCALARS = (3, 1, 4, 2, 6, 5)
_MAX_COUNT = 1000

_UNDEFINED = frozenset({"AllocateBuffer", "CreateBuffer"})
"""Targets of custom calls whose results are whatever memory holds."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of running two stages."""

    outcome: str
    """`same`, `differs` or `unknown`."""
    detail: str = ""
    side: str = ""
    """Which stage could not be run, of an unknown outcome: `before`, `after` or `both`."""
    is_resized: bool = False
    """Whether the later stage takes or gives arrays of other sizes, as after partitioning."""


@dataclass(frozen=True, slots=True)
class Given:
    """What both stages are run on."""

    reference: str = field(repr=False)
    """Text of the module whose parameters the inputs are made for."""
    seeds: tuple[int, ...] = SEEDS
    """Of inputs; floats are between -0.1 and 0.2, and in every second set `_LARGER` times as large."""
    npz: str = ""
    """A file of inputs instead."""


def compare_stages(before: str, after: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """`compare` as plain data; what worker processes run."""
    return asdict(compare(before, after, Given(**fields_of(given))))


def compare(before: str, after: str, given: Given) -> Comparison:
    """Runs the texts of two stages on the same inputs and compares the results."""
    if before == after:
        return Comparison(SAME, "the text is the same")
    for reading, side in ((before, "before"), (after, "after")):
        if why := _incomparable(reading):
            return Comparison(UNKNOWN, why, side)
    is_resized = _signature(before) != _signature(after)
    found = Comparison(SAME)
    for number in range(1 if given.npz else sets_for(after, given)):
        found = _on_one_set(before, after, given, number, is_resized)
        if found.outcome != SAME:
            break
    return replace(found, is_resized=is_resized)


def sets_for(text: str, given: Given) -> int:
    """How many sets of inputs a stage is run on: small programs run on more."""
    few = len([most for most in _FEWER_SETS if len(text) > most])
    return max(len(given.seeds) - 2 * few, min(2, len(given.seeds)))


def _on_one_set(before: str, after: str, given: Given, number: int, is_resized: bool) -> Comparison:
    if is_resized and (given.npz or _cuts(before) is None):
        return Comparison(UNKNOWN, "it takes or gives other arrays than the stage before", "after")
    keys = _Key(before, given, number), _Key(after, given, number, before if is_resized else "")
    results: list[Sequence[Array]] = []
    for key, side in zip(keys, ("before", "after"), strict=True):
        outcome = _results(key)
        if isinstance(outcome, str):
            return Comparison(UNKNOWN, outcome, side)
        results.append(outcome)
    expected, actual = results

    def movements() -> list[rounding.Movement]:
        before, after = (_movements(key) for key in keys)
        return [a.joined(b) for a, b in zip(before, after, strict=True)]

    # A factorisation of what has none may stop anywhere: where there are NaNs before, their places say nothing.
    if number % 2 or not all(map(_is_finite, expected)):
        expected, actual = _finite(expected, actual)
    found = difference(expected, actual, movements)
    if not found:
        return Comparison(SAME)
    if _elided(before, given) != _elided(after, given):
        return Comparison(UNKNOWN, "constants that the text leaves out were changed", "both")
    return Comparison(DIFFERS, found)


def _finite(
    expected: Sequence[Array], actual: Sequence[Array]
) -> tuple[Sequence[Array], Sequence[Array]]:
    """Both with zeros where either has overflowed: how far sums may go is no pass's promise."""
    if [a.shape for a in expected] != [a.shape for a in actual]:
        return expected, actual
    pairs = [_both_finite(a, b) for a, b in zip(expected, actual, strict=True)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def _is_finite(a: Array) -> bool:
    if a.dtype.kind in "biu" or "int" in a.dtype.name:
        return True
    with np.errstate(all="ignore"):
        return bool(np.isfinite(a).all())


def _both_finite(a: Array, b: Array) -> tuple[Array, Array]:
    if a.dtype.kind in "biu" or "int" in a.dtype.name:
        return a, b
    with np.errstate(all="ignore"):
        is_finite = np.isfinite(a) & np.isfinite(b)
    if is_finite.all():
        return a, b
    zero = np.zeros((), a.dtype)
    return np.where(is_finite, a, zero), np.where(is_finite, b, np.zeros((), b.dtype))


# ---------------------------------------------------------------- running


@dataclass(frozen=True, slots=True)
class _Key:
    """What determines results."""

    text: str
    given: Given
    number: int
    whole: str = ""
    """The stage before, where that takes whole arrays and this one those of a partition."""

    def __hash__(self) -> int:
        return hash((self.text, self.number))


@lru_cache(maxsize=8)
def _results(key: _Key) -> list[Array] | str:
    """Results of a stage, or why there are none."""
    try:
        return _run(key)
    except MemoryError:
        raise
    except HloError as problem:
        return str(problem.diagnostics[0]).split("\n")[0]
    except Exception as problem:  # noqa: BLE001  one stage that fails here must not end the search
        return f"{type(problem).__name__}: {problem}".split("\n")[0]


@lru_cache(maxsize=4)
def _movements(key: _Key) -> list[rounding.Movement]:
    results = _results(key)
    assert not isinstance(results, str)
    noisy = [_run(key, rounding.Noise(run).hook) for run in range(rounding.NOISE_RUNS)]
    return [
        rounding.movement(result, [run[k] for run in noisy]) for k, result in enumerate(results)
    ]


def _run(key: _Key, hook: Hook | None = None) -> list[Array]:
    """Arrays of all devices; of a module that works on parts of arrays, these joined to whole ones."""
    module = load_module(key.text, "stage.hlo")
    fill_elided(HloModule(module), _constants(key.given.reference))
    cuts = _cuts(key.whole) if key.whole else None
    if key.given.npz:
        inputs = replay.inputs_from_archive(module, read_npz(key.given.npz))
    elif cuts is not None:
        whole = Inputs([_arguments(key.given, key.number)], 1, cuts.partitions)
        inputs = cuts.cut(whole)
    else:
        inputs = replay.inputs_from_values(module, [_arguments(key.given, key.number)])
    values = replay.run(module, inputs, hook=hook)
    if cuts is not None:
        values = cuts.joined(values)
    return [a for value in values for a in arrays_of(value)]


def results_of_stage(text: str, given: Given) -> list[Array] | str:
    """Arrays that a stage gives for the first inputs, or why it cannot be run."""
    return _results(_Key(text, given, 0))


def run_recorded(text: str, given: Given, hook: Hook) -> None:
    """Runs a stage once on the first inputs, with a hook."""
    _run(_Key(text, given, 0), hook)


@lru_cache(maxsize=2)
def _cuts(text: str) -> Partitioned | None:
    """Where the arrays of a stage will be after partitioning, by its shardings; None where it says nothing."""
    module = load_module(text, "stage.hlo")
    view = HloModule(module)
    count = partitions_of(view, 0)
    entry = view.entry
    shapes = [leaf for op in (*entry.parameters, entry.root) for _, leaf in leaves(op.shape)]
    if count == 1 or not any(op.sharding for op in (*entry.parameters, entry.root)):
        return None
    if any(not isinstance(s, ArrayShape) or s.is_dynamic for s in shapes):
        return None
    parameters = tuple(s for op in entry.parameters for s in shardings_of_leaves(op))
    return Partitioned(module, count, parameters, shardings_of_leaves(entry.root), entry.root.shape)


@lru_cache(maxsize=4)
def _arguments(given: Given, number: int) -> list[Any]:
    module = load_module(given.reference, "reference.hlo")
    arguments = make_fake_arguments(module, given.seeds[number])
    has_loops = " while(" in given.reference
    return [_tamed(value, number, place, has_loops) for place, value in enumerate(arguments)]


def _tamed(value: Any, number: int, place: int, has_loops: bool) -> Any:
    """Floats are larger in every second set; integers that may be trip counts and sizes are small: scalars, which
    are others in each set, and arrays of programs with loops."""
    if isinstance(value, tuple):
        parts = enumerate(cast("tuple[Any, ...]", value), place)
        return tuple(_tamed(part, number, k, has_loops) for k, part in parts)
    if not isinstance(value, np.ndarray) or value.dtype.kind == "b":
        return value
    if value.dtype.kind not in "iu" and "int" not in value.dtype.name:
        scale = _LARGER if number % 2 else 1
        return (value * np.asarray(scale, value.dtype)).astype(value.dtype)
    if value.ndim == 0:
        return np.asarray(_SCALARS[(number + place) % len(_SCALARS)], value.dtype)
    return (value % _MAX_COUNT + 1).astype(value.dtype) if has_loops and _is_wide(value) else value


def _is_wide(value: Array) -> bool:
    return value.dtype.itemsize >= 4 and bool((value > _MAX_COUNT).any())


def fill_elided(module: HloModule, known: Mapping[str, Array]) -> None:
    """Gives constants that a text leaves out values: all of one type and count of elements the same, in all stages.

    `known`: values by flat shape, of a stage that has them in full.
    """
    for op in module.candidates(ConstantOp):
        shape = op.shape
        if not isinstance(op, ConstantOp) or op.literal is None or not op.literal.is_elided:
            continue
        if not isinstance(shape, ArrayShape):
            continue
        flat = ArrayShape(shape.element_type, (shape.element_count,))
        generator = np.random.default_rng(_seed(flat))
        if str(flat) in known:
            values = known[str(flat)]
        elif shape.element_type.is_integer:
            values = generator.integers(0, 2, shape.element_count).astype(shape.element_type.dtype)
        else:
            values = fake_array(flat, Demands(), generator, False)
        literal = Literal.from_array(shape, values.reshape(shape.dimensions))
        op.properties["literal"] = LiteralAttr(literal)


def _seed(shape: ArrayShape) -> int:
    return int.from_bytes(hashlib.sha256(str(shape).encode()).digest()[:4], "little")


@lru_cache(maxsize=2)
def _constants(text: str) -> dict[str, Array]:
    """Values of constants of more than ten elements, by flat shape, where all of a shape are the same."""
    found: dict[str, Array] = {}
    several: set[str] = set()
    for op in HloModule(load_module(text, "reference.hlo")).candidates(ConstantOp):
        literal, shape = getattr(op, "literal", None), op.shape
        if literal is None or not isinstance(shape, ArrayShape) or shape.element_count <= _PRINTED:
            continue
        key = str(ArrayShape(shape.element_type, (shape.element_count,)))
        values = None if literal.is_elided else literal.array.reshape(-1)
        if values is None or (key in found and not rounding.same(found[key], values)):
            several.add(key)
        else:
            found[key] = values
    return {key: values for key, values in found.items() if key not in several}


@lru_cache(maxsize=8)
def _elided(text: str, given: Given) -> frozenset[str]:
    """Shapes of constants that a text leaves out and no other stage tells."""
    if "{...}" not in text:
        return frozenset()
    known = _constants(given.reference)
    ops = HloModule(load_module(text, "stage.hlo")).candidates(ConstantOp)
    return frozenset(
        op.shape.to_string(layout=False)
        for op in ops
        if isinstance(op, ConstantOp)
        and op.literal is not None
        and op.literal.is_elided
        and isinstance(op.shape, ArrayShape)
        and str(ArrayShape(op.shape.element_type, (op.shape.element_count,))) not in known
    )


@lru_cache(maxsize=8)
def _incomparable(text: str) -> str:
    """Why results of a stage say nothing; empty when they do."""
    try:
        view = HloModule(load_module(text, "stage.hlo"))
    except HloError as problem:
        return str(problem.diagnostics[0]).split("\n")[0]
    for op in view.instructions:
        if op.opcode.varies:
            return f"%{op.instruction_name} ({op.opcode.name}) gives what the machine gives"
        if getattr(op, "custom_call_target", None) in _UNDEFINED:
            return f"%{op.instruction_name} gives memory that nothing has written"
    return ""


@lru_cache(maxsize=8)
def _signature(text: str) -> tuple[str, ...]:
    """Types and sizes of all arrays that a stage takes and gives, without layouts."""
    view = HloModule(load_module(text, "stage.hlo"))
    shapes = TupleShape((*(p.shape for p in view.entry.parameters), view.entry.root.shape))
    return tuple(leaf.to_string(layout=False) for _, leaf in leaves(shapes))
