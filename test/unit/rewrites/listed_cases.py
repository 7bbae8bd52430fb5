"""Left sides for rules of the passes that XLA's `hlo-opt` lists and no family of cases has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unit.rewrites.algsimp_data_cases import ADD
from unit.rewrites.algsimp_shape_cases import lines
from unit.rewrites.rule_proofs import REAL, Case

GREATER = (
    "ge {\n  a = T[] parameter(0)\n  b = T[] parameter(1)\n"
    "  ROOT r = pred[] compare(a, b), direction=GE\n}\n"
)
REPLICAS = ", replica_count=4"


def _windows(x: str, source: str, window: str, types: Sequence[str] = REAL) -> Case:
    body = f"T[{x}] select-and-scatter(x, s, i), window={{{window}}}, select=ge, scatter=f"
    computations = GREATER + ADD
    return lines(
        f"x: T[{x}]", f"s: T[{source}]", "i: T[]", body, types=types, computations=computations
    )


def _reduced(type_: str, opcode: str, fires: bool = True, types: tuple[str, ...] = ()) -> Case:
    """A sum over replicas that add their own number."""
    computation = (
        f"f {{\n  a = {type_}[] parameter(0)\n  b = {type_}[] parameter(1)\n"
        f"  ROOT c = {type_}[] {opcode}(a, b)\n}}\n"
    )
    return lines(
        f"x: {type_}[4,3]",
        "i = u32[] replica-id()",
        f"k = {type_}[] convert(i)",
        f"b = {type_}[4,3] broadcast(k), dimensions={{}}",
        f"y = {type_}[4,3] subtract(x, b)",
        f"s = {type_}[4,3] all-reduce(y), replica_groups={{{{0,2}},{{3,1}}}}, to_apply=f",
        f"{type_}[2,3] reduce-scatter(s), replica_groups={{{{0,1}},{{2,3}}}}, dimensions={{0}}, to_apply=f",
        header=REPLICAS,
        computations=computation,
        fires=fires,
        options={"types": types or (type_,)},
    )


def _several(*shapes: str, fires: bool = True, more: str = "") -> Case:
    """One all-reduce of several arrays, of replicas that add their own number."""
    made: list[str] = []
    for number, shape in enumerate(shapes):
        type_ = shape.split("[")[0]
        made += [
            f"x{number}: {shape}",
            f"k{number} = {type_}[] convert(i)",
            f"b{number} = {shape} broadcast(k{number}), dimensions={{}}",
            f"y{number} = {shape} subtract(x{number}, b{number})",
        ]
    values = ", ".join(f"y{n}" for n in range(len(shapes)))
    groups = "replica_groups={{0,2},{3,1}}, to_apply=f"
    whole = f"({', '.join(shapes)}) all-reduce({values}), {groups}{more}"
    parameters = [line for line in made if ": " in line]
    rest = [line for line in made if ": " not in line]
    return lines(
        *parameters,
        "i = u32[] replica-id()",
        *rest,
        whole,
        types=("s16", "f32"),
        header=REPLICAS,
        computations=ADD,
        fires=fires,
    )


def _folded(sizes: str, window: str, fires: bool = True) -> Case:
    body = f"T[{sizes}] reduce-window(x, i), window={{{window}}}, to_apply=f"
    return lines(
        f"x: T[{sizes}]", "i: T[]", body, types=("s32", "f32"), computations=ADD, fires=fires
    )


def _drawn(low: str, high: str, way: str, types: Sequence[str], fires: bool = True) -> Case:
    """Numbers of a distribution of one value."""
    body = (
        f"a = T[] constant({low})\nb = T[] constant({high})\nT[S] rng(a, b), distribution=rng_{way}"
    )
    return Case(body, types, ("", "2,3") if fires else ("0",), fires=fires)


CASES: Mapping[str, Mapping[str, tuple[Case, ...]]] = {
    "all-reduce-promotion": {
        "reduction_of_narrow": (
            *(
                _reduced("s16", opcode)
                for opcode in ("add", "multiply", "maximum", "minimum", "and", "or", "xor")
            ),
            *(_reduced("u16", opcode) for opcode in ("multiply", "minimum")),
            *(_reduced(type_, "add") for type_ in ("s8", "u8", "bf16", "f16")),
            _reduced("s32", "add", fires=False),
            _reduced("s16", "add", fires=False, types=("u16",)),
            _reduced("s16", "subtract", fires=False),
        )
    },
    "select_and_scatter_expander": {
        "select_and_scatter_of_windows": (
            _windows("8", "4", "size=2 stride=2"),
            _windows("6", "4", "size=3"),
            _windows("5", "4", "size=3 stride=2 pad=2_2"),
            _windows("4,6", "2,3", "size=2x2 stride=2x2"),
            _windows("5,4", "4,2", "size=3x3 stride=1x2 pad=1_0x1_1"),
            _windows("3", "4", "size=2 stride=4 pad=3_10", types=("f32", "s32")),
        )
    },
    "rng-expander": {
        "rng_of_philox": (
            _drawn("3", "4", "uniform", ("u8", "u32", "u64")),
            _drawn("-7", "-6", "uniform", ("s8", "s32", "s64")),
            _drawn("2.5", "2.5", "uniform", ("f32", "f64", "bf16")),
            _drawn("-3", "0", "normal", ("f32", "f64", "bf16", "f16")),
            _drawn("1", "1", "uniform", ("pred",)),
            _drawn("0", "1", "uniform", ("f32",), fires=False),
        )
    },
    "all-reduce-contiguous": {
        "reduction_of_several": (
            _several("T[4,3]", "T[4,3]{0,1}", "T[5]"),
            _several("T[4,3]", "T[]", "T[0]"),
            _several("T[4]", "u8[4]", "T[2]", fires=False),
            _several("T[4]", "T[3]", "T[2]", fires=False, more=", constrain_layout=true"),
        )
    },
    "AssumeGatherIndicesInBoundRewriteToCopy": {
        "hint_about_indices": (
            *(
                lines("x: s32[4,1]", f's32[4,1] custom-call(x), custom_call_target="{hint}"')
                for hint in ("AssumeGatherIndicesInBound", "GatherScatterIndicesBitpacked")
            ),
            lines(
                "x: s32[4,1]", 's32[4,1] custom-call(x), custom_call_target="Other"', fires=False
            ),
        )
    },
    "ReduceWindowToReduceAndBroadcast": {
        "window_of_everything": (
            _folded("4,3", "size=1x5 pad=0_0x2_2"),
            _folded("4,3", "size=7x1 pad=3_3x0_0"),
            _folded("1", "size=1", fires=False),
            _folded("4,3", "size=1x5 pad=0_0x3_1", fires=False),
            _folded("3,3", "size=5x5 pad=2_2x2_2", fires=False),
        )
    },
    "dynamic-dimension-simplifier": {
        "concatenate_of_concatenate": (
            lines(
                "x y: T[2,3]",
                "z: T[1,3]",
                "a = T[3,3] concatenate(x, z), dimensions={0}",
                "b = T[4,3] concatenate(y, x), dimensions={0}",
                "T[8,3] concatenate(a, b, z), dimensions={0}",
                types=REAL,
            ),
            lines(
                "x y: T[2,3]",
                "a = T[4,3] concatenate(x, y), dimensions={0}",
                "T[4,6] concatenate(a, a), dimensions={1}",
                fires=False,
            ),
        ),
        "slice_of_vectors": (
            lines(
                "x: T[2]",
                "y: T[3]",
                "a = T[5] concatenate(x, y), dimensions={0}",
                "T[3] slice(a), slice={[2:5]}",
                types=REAL,
            ),
            lines(
                "x: T[2]",
                "y: T[3]",
                "a = T[5] concatenate(x, y), dimensions={0}",
                "T[3] slice(a), slice={[1:4]}",
                fires=False,
            ),
            lines(
                "x y: T[2]",
                "a = T[4] concatenate(x, y), dimensions={0}",
                "T[1] slice(a), slice={[2:4:2]}",
                fires=False,
            ),
        ),
        "reshape_of_broadcast_scalar": (
            lines("x: T[]", "b = T[1] broadcast(x), dimensions={}", "T[] reshape(b)", types=REAL),
            lines(
                "x: T[]", "b = T[4] broadcast(x), dimensions={}", "T[2,2] reshape(b)", fires=False
            ),
        ),
        "reshape_back": (
            lines("x: T[]", "b = T[1] reshape(x)", "T[] reshape(b)", types=REAL),
            lines("x: T[4]", "b = T[2,2] reshape(x)", "T[4] reshape(b)", types=REAL),
            lines("x: T[4]", "b = T[2,2] reshape(x)", "T[4,1] reshape(b)", fires=False),
        ),
        "move_to_itself": (
            Case("x: T[S]\nT[S] convert(x)", types=REAL),
            Case("x: T[S]\nT[S] reshape(x)", types=REAL),
            Case("x: s32[S]\nf32[S] convert(x)", fires=False),
        ),
    },
}
