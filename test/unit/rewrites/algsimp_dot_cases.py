"""Left sides for rules of `algsimp` about dots."""

from __future__ import annotations

from collections.abc import Mapping

from unit.rewrites.algsimp_data_cases import ADD, ZERO
from unit.rewrites.algsimp_shape_cases import lines
from unit.rewrites.rule_proofs import Case

TYPES = ("f32", "f64", "s32", "u8")
MATRICES = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
BATCHES = (
    "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"
)
CPU = {"executing_on_cpu": True}


def dots(*texts: str, fires: bool = True, **more: object) -> Case:
    """One left side over the element types of dots."""
    return lines(*texts, types=TYPES, fires=fires, **more)


CASES: Mapping[str, tuple[Case, ...]] = {
    "dot_of_vector": (
        dots(
            "x y: T[5]",
            "T[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
            options=CPU,
        ),
        dots("x: T[3,5]", "y: T[5]", f"T[3] dot(x, y), {MATRICES}"),
        dots(
            "x: T[5,2]",
            "y: T[3,5,2]",
            "T[2,3] dot(x, y), lhs_batch_dims={1}, rhs_batch_dims={2}, "
            "lhs_contracting_dims={0}, rhs_contracting_dims={1}",
        ),
        lines(
            "x: T[3,5]",
            "y: T[5]",
            f"T[3] dot(x, y), {MATRICES}",
            types=("bf16", "f16"),
        ),
        dots("x: T[3,5]", "y: T[5]", f"T[3] dot(x, y), {MATRICES}", options=CPU, fires=False),
        dots("x: T[3,5]", "y: T[5,2]", f"T[3,2] dot(x, y), {MATRICES}", fires=False),
    ),
    "dot_of_reordered_contraction": (
        dots(
            "x: T[4,2,3]",
            "t = T[4,3,2] transpose(x), dimensions={0,2,1}",
            "a = T[4,6] reshape(t)",
            "c = T[6,2] constant({{1,2},{3,4},{5,6},{7,8},{9,10},{11,12}})",
            f"T[4,2] dot(a, c), {MATRICES}",
        ),
        dots(
            "x: T[2,3,4]",
            "t = T[3,2,4] transpose(x), dimensions={1,0,2}",
            "a = T[6,4] reshape(t)",
            "c = T[6] constant({1,2,3,4,5,6})",
            "T[4] dot(a, c), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        ),
        dots(
            "x: T[4,2,3]",
            "y: T[6,2]",
            "t = T[4,3,2] transpose(x), dimensions={0,2,1}",
            "a = T[4,6] reshape(t)",
            f"T[4,2] dot(a, y), {MATRICES}",
            fires=False,
        ),
    ),
    "dot_of_concatenate": (
        dots(
            "x: T[4,2]",
            "y: T[4,1]",
            "a = T[4,3] concatenate(x, y), dimensions={1}",
            "c = T[3,2] constant({{1,2},{3,4},{5,6}})",
            f"T[4,2] dot(a, c), {MATRICES}",
        ),
        dots(
            "x y: T[1,4]",
            "a = T[2,4] concatenate(x, y), dimensions={0}",
            "c = T[3,2] constant({{1,2},{3,4},{5,6}})",
            f"T[3,4] dot(c, a), {MATRICES}",
        ),
        dots(
            "x y: T[2,3]",
            "a = T[4,3] concatenate(x, y), dimensions={0}",
            "c = T[3,2] constant({{1,2},{3,4},{5,6}})",
            f"T[4,2] dot(a, c), {MATRICES}",
            fires=False,
        ),
    ),
    "dot_of_slice_of_constant": (
        dots(
            "i j: s32[]",
            "c = T[3,2] constant({{1,2},{3,4},{5,6}})",
            "d = T[2,2] constant({{1,2},{3,4}})",
            "a = T[1,2] dynamic-slice(c, i, j), dynamic_slice_sizes={1,2}",
            f"T[1,2] dot(a, d), {MATRICES}",
        ),
        dots(
            "i j: s32[]",
            "c = T[3,2] constant({{1,2},{3,4},{5,6}})",
            "d = T[2,2] constant({{1,2},{3,4}})",
            "a = T[2,1] dynamic-slice(d, i, j), dynamic_slice_sizes={2,1}",
            f"T[3,1] dot(c, a), {MATRICES}",
        ),
        dots(
            "i j: s32[]",
            "x: T[2,2]",
            "c = T[3,2] constant({{1,2},{3,4},{5,6}})",
            "a = T[1,2] dynamic-slice(c, i, j), dynamic_slice_sizes={1,2}",
            f"T[1,2] dot(a, x), {MATRICES}",
            fires=False,
        ),
    ),
    "dot_of_transposes": (
        dots(
            "x: T[3,4]",
            "y: T[2,3]",
            "a = T[4,3] transpose(x), dimensions={1,0}",
            "b = T[3,2] transpose(y), dimensions={1,0}",
            f"T[4,2] dot(a, b), {MATRICES}, operand_precision={{high,default}}",
        ),
        dots(
            "x: T[2,3,4,5]",
            "y: T[2,3,5,6]",
            "a = T[3,2,4,5] transpose(x), dimensions={1,0,2,3}",
            "b = T[3,2,5,6] transpose(y), dimensions={1,0,2,3}",
            "T[3,2,4,6] dot(a, b), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, "
            "lhs_contracting_dims={3}, rhs_contracting_dims={2}",
        ),
        dots(
            "x: T[2,3,4,5]",
            "y: T[2,3,6,4]",
            "a = T[3,2,5,4] transpose(x), dimensions={1,0,3,2}",
            "b = T[3,2,4,6] transpose(y), dimensions={1,0,3,2}",
            "T[3,2,5,6] dot(a, b), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, "
            "lhs_contracting_dims={3}, rhs_contracting_dims={2}",
        ),
        dots(
            "x: T[3,4]",
            "y: T[3,2]",
            "a = T[4,3] transpose(x), dimensions={1,0}",
            f"T[4,2] dot(a, y), {MATRICES}",
            fires=False,
        ),
    ),
    "dot_of_parameter": (
        dots(
            "x: T[3,4]",
            "y: T[4,2]",
            "n = T[4,2] add(y, y)",
            f"T[3,2] dot(x, n), {MATRICES}, operand_precision={{high,default}}",
        ),
        dots(
            "x: T[2,3,4]",
            "y: T[2,4,6]",
            "n = T[2,4,6] add(y, y)",
            f"T[2,3,6] dot(x, n), {BATCHES}",
        ),
        dots("x: T[3,4]", "y: T[4,2]", f"T[3,2] dot(x, y), {MATRICES}", fires=False),
    ),
    "dot_of_dot_on_the_left": (
        dots(
            "x: T[9,2]",
            "y: T[2,9]",
            "z: T[9,1]",
            f"d = T[9,9] dot(x, y), {MATRICES}",
            f"T[9,1] dot(d, z), {MATRICES}",
        ),
        dots(
            "x: T[9,2]",
            "y: T[9,2,3]",
            "z: T[3,1,9]",
            "d = T[9,9,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
            "T[9,1] dot(d, z), lhs_contracting_dims={1,2}, rhs_contracting_dims={2,0}",
        ),
        dots(
            "x: T[1,9]",
            "y: T[9,9]",
            "z: T[9,9]",
            f"d = T[1,9] dot(x, y), {MATRICES}",
            f"T[1,9] dot(d, z), {MATRICES}",
            fires=False,
        ),
    ),
    "dot_of_dot_on_the_right": (
        dots(
            "x: T[1,9]",
            "y: T[9,2]",
            "z: T[2,9]",
            f"d = T[9,9] dot(y, z), {MATRICES}",
            f"T[1,9] dot(x, d), {MATRICES}",
        ),
        dots(
            "x: T[2,1,3]",
            "y: T[3,1,2]",
            "z: T[9,1]",
            "d = T[3,2,9] dot(y, z), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
            "T[1,9] dot(x, d), lhs_contracting_dims={2,0}, rhs_contracting_dims={0,1}",
        ),
        dots(
            "x: T[9,9]",
            "y: T[9,9]",
            "z: T[9,1]",
            f"d = T[9,1] dot(y, z), {MATRICES}",
            f"T[9,1] dot(x, d), {MATRICES}",
            fires=False,
        ),
    ),
    "dot_of_reverse": (
        dots(
            "x: T[9,4]",
            "y: T[4,2]",
            "a = T[9,4] reverse(x), dimensions={1}",
            f"T[9,2] dot(a, y), {MATRICES}",
        ),
        dots(
            "x: T[2,4]",
            "y: T[4,9]",
            "a = T[4,9] reverse(y), dimensions={0}",
            f"T[2,9] dot(x, a), {MATRICES}",
        ),
        dots(
            "x: T[9,4]",
            "y: T[4,2]",
            "a = T[9,4] reverse(x), dimensions={0}",
            f"T[9,2] dot(a, y), {MATRICES}",
            fires=False,
        ),
    ),
    "dot_of_pad": (
        dots(
            "x: T[3,2]",
            "y: T[8,2]",
            ZERO,
            "a = T[3,8] pad(x, z), padding=0_0x1_4_1",
            f"T[3,2] dot(a, y), {MATRICES}",
        ),
        dots(
            "x: T[3,9]",
            "y: T[4,2]",
            ZERO,
            "a = T[9,2] pad(y, z), padding=5_0x0_0",
            f"T[3,2] dot(x, a), {MATRICES}",
        ),
        dots(
            "x: T[3,7]",
            "y: T[8,2]",
            ZERO,
            "a = T[3,8] pad(x, z), padding=0_0x1_0",
            f"T[3,2] dot(a, y), {MATRICES}",
            fires=False,
        ),
    ),
    "dot_of_broadcast": (
        dots(
            "x: T[3]",
            "y: T[8,2]",
            "a = T[3,8] broadcast(x), dimensions={0}",
            f"T[3,2] dot(a, y), {MATRICES}",
        ),
        dots(
            "x: T[2,3,4]",
            "y: T[2,6]",
            "a = T[2,4,6] broadcast(y), dimensions={0,2}",
            f"T[2,3,6] dot(x, a), {BATCHES}",
        ),
        dots(
            "x: T[8]",
            "y: T[8,2]",
            "a = T[3,8] broadcast(x), dimensions={1}",
            f"T[3,2] dot(a, y), {MATRICES}",
            fires=False,
        ),
    ),
    "slice_of_dot": (
        dots(
            "x: T[2,9,4]",
            "y: T[2,4,9]",
            f"d = T[2,9,9] dot(x, y), {BATCHES}",
            "T[1,3,9] slice(d), slice={[1:2], [1:7:2], [0:9]}",
        ),
        dots(
            "x: T[3,4]",
            "y: T[4,3]",
            f"d = T[3,3] dot(x, y), {MATRICES}",
            "T[3,2] slice(d), slice={[0:3], [1:3]}",
            fires=False,
        ),
    ),
    "reduce_of_dot": (
        dots(
            "x: T[5,3,4]",
            "y: T[4,6]",
            ZERO,
            "d = T[5,3,6] dot(x, y), lhs_contracting_dims={2}, rhs_contracting_dims={0}",
            "T[3] reduce(d, z), dimensions={0,2}, to_apply=f",
            computations=ADD,
        ),
        dots(
            "x: T[3,4]",
            "y: T[4,2]",
            ZERO,
            f"d = T[3,2] dot(x, y), {MATRICES}",
            "T[3] reduce(d, z), dimensions={1}, to_apply=f",
            computations=ADD,
            fires=False,
        ),
    ),
}
