"""Left sides for rules of `algsimp` about where elements stand: broadcasts, reshapes, slices, pads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unit.rewrites.algsimp_cases import X
from unit.rewrites.rule_proofs import ALL, Case

ONE = ("",)
SOME = ("f32", "bf16", "s8", "u64", "pred", "c64")
NUMERIC = ("f32", "bf16", "s8", "u64")


def lines(*texts: str, types: Sequence[str] = SOME, fires: bool = True, **more: object) -> Case:
    """One left side with shapes written out."""
    return Case("\n".join(texts), types, ONE, fires=fires, **more)  # type: ignore[arg-type]


CASES: Mapping[str, tuple[Case, ...]] = {
    "broadcast_of_broadcast": (
        lines(
            "x: T[2]",
            "a = T[2,3] broadcast(x), dimensions={0}",
            "T[4,3,2] broadcast(a), dimensions={2,1}",
        ),
        lines("x: T[2]", "T[2,3] broadcast(x), dimensions={0}", fires=False),
    ),
    "broadcast_of_iota": (
        lines(
            "a = T[2,3] iota(), iota_dimension=1",
            "T[3,2,4] broadcast(a), dimensions={1,0}",
            types=NUMERIC,
        ),
    ),
    "broadcast_of_inserting_reshape": (
        lines("x: T[2]", "a = T[1,2] reshape(x)", "T[1,3,2] broadcast(a), dimensions={0,2}"),
        lines(
            "x: T[4]",
            "a = T[2,2] reshape(x)",
            "T[3,2,2] broadcast(a), dimensions={1,2}",
            fires=False,
        ),
    ),
    "broadcast_that_transposes": (
        lines("x: T[2,3]", "T[3,2] broadcast(x), dimensions={1,0}"),
        lines("x: T[2,3]", "T[2,3] broadcast(x), dimensions={0,1}", fires=False),
    ),
    "broadcast_of_same_count": (
        lines("x: T[2,3]", "T[2,1,3] broadcast(x), dimensions={0,2}"),
        lines("x: T[0]", "T[0,3] broadcast(x), dimensions={0}"),
        lines("x: T[]", "T[1] broadcast(x), dimensions={}"),
        lines("x: T[2]", "T[2,3] broadcast(x), dimensions={0}", fires=False),
    ),
    "broadcast_of_degenerate": (
        lines("x: T[2,1]", "T[2,1,3] broadcast(x), dimensions={0,1}"),
        lines("x: T[1]", "T[1,3] broadcast(x), dimensions={0}"),
        lines("x: T[2]", "T[2,3] broadcast(x), dimensions={0}", fires=False),
    ),
    "movement_of_scalar_broadcast": (
        lines("x: T[]", "a = T[6] broadcast(x), dimensions={}", "T[2,3] reshape(a)"),
        lines("x: T[]", "a = T[1] broadcast(x), dimensions={}", "T[] reshape(a)"),
        lines(
            "x: T[]",
            "a = T[2,3] broadcast(x), dimensions={}",
            "T[3,2] transpose(a), dimensions={1,0}",
        ),
        lines(
            "x: T[]", "a = T[2,3] broadcast(x), dimensions={}", "T[2,3] reverse(a), dimensions={1}"
        ),
        lines("x: T[]", "a = T[5] broadcast(x), dimensions={}", "T[2] slice(a), slice={[1:4:2]}"),
        lines(
            "x: T[]",
            "i: s32[]",
            "a = T[5] broadcast(x), dimensions={}",
            "T[2] dynamic-slice(a, i), dynamic_slice_sizes={2}",
        ),
        lines("x: T[6]", "T[2,3] reshape(x)", fires=False),
    ),
    "elementwise_of_broadcasts": (
        lines(
            "x y: T[]",
            "a = T[5] broadcast(x), dimensions={}",
            "b = T[5] broadcast(y), dimensions={}",
            "T[5] multiply(a, b)",
        ),
        lines(
            "x y: T[3]",
            "a = T[3,2] broadcast(x), dimensions={0}",
            "b = T[3,2] broadcast(y), dimensions={0}",
            "pred[3,2] compare(a, b), direction=EQ",
        ),
        lines("x: T[]", "a = T[5] broadcast(x), dimensions={}", "T[5] negate(a)", types=NUMERIC),
        lines(
            "x: T[3]",
            "y: T[]",
            "a = T[3,2] broadcast(x), dimensions={0}",
            "b = T[3,2] broadcast(y), dimensions={}",
            "T[3,2] subtract(b, a)",
            types=NUMERIC,
        ),
        lines(
            "x y: T[3]",
            "a = T[3,3] broadcast(x), dimensions={0}",
            "b = T[3,3] broadcast(y), dimensions={1}",
            "T[3,3] add(a, b)",
            fires=False,
        ),
    ),
    "reshape_of_empty": (
        lines("x: T[0,2]", "T[3,0] reshape(x)"),
        lines("x: T[3,2]", "T[6] reshape(x)", fires=False),
    ),
    "reshape_to_same_shape": (
        Case(X + "T[S] reshape(x)", ALL),
        lines("x: T[3,2]", "T[6] reshape(x)", fires=False),
    ),
    "reshape_of_reshape": (
        lines("x: T[3,2]", "a = T[6] reshape(x)", "T[2,3] reshape(a)"),
        lines("x: T[0,2]", "a = T[0] reshape(x)", "T[2,0] reshape(a)"),
    ),
    "reshape_of_broadcast": (
        lines("x: T[2]", "a = T[2,12] broadcast(x), dimensions={0}", "T[2,3,4] reshape(a)"),
        lines("x: T[4]", "a = T[6,4] broadcast(x), dimensions={1}", "T[2,3,4] reshape(a)"),
        lines(
            "x: T[4]", "a = T[6,4] broadcast(x), dimensions={1}", "T[24] reshape(a)", fires=False
        ),
        lines("x: T[1]", "a = T[1,2,1] broadcast(x), dimensions={2}", "T[2,1] reshape(a)"),
    ),
    "reshape_of_iota": (
        lines("a = T[2,12] iota(), iota_dimension=0", "T[2,3,4] reshape(a)", types=NUMERIC),
        lines(
            "a = T[2,12] iota(), iota_dimension=1",
            "T[2,3,4] reshape(a)",
            types=NUMERIC,
            fires=False,
        ),
    ),
    "transpose_by_identity": (
        lines("x: T[2,3]", "T[2,3] transpose(x), dimensions={0,1}"),
        lines("x: T[2,2]", "T[2,2] transpose(x), dimensions={1,0}", fires=False),
    ),
    "transpose_of_transpose": (
        lines(
            "x: T[2,3,4]",
            "a = T[3,4,2] transpose(x), dimensions={1,2,0}",
            "T[2,4,3] transpose(a), dimensions={2,1,0}",
        ),
        lines(
            "x: T[0,3]",
            "a = T[3,0] transpose(x), dimensions={1,0}",
            "T[0,3] transpose(a), dimensions={1,0}",
        ),
    ),
    "transpose_of_ones": (
        lines("x: T[1,3,4]", "T[3,1,4] transpose(x), dimensions={1,0,2}"),
        lines("x: T[1,3,4]", "T[4,1,3] transpose(x), dimensions={2,0,1}", fires=False),
    ),
    "transpose_of_broadcast": (
        lines(
            "x: T[2]",
            "a = T[2,3] broadcast(x), dimensions={0}",
            "T[3,2] transpose(a), dimensions={1,0}",
        ),
        lines(
            "x: T[2,3]",
            "a = T[2,3,4] broadcast(x), dimensions={0,1}",
            "T[3,2,4] transpose(a), dimensions={1,0,2}",
            fires=False,
        ),
    ),
    "transpose_of_dot": (
        lines(
            "x: T[2,3]",
            "y: T[3,4]",
            "d = T[2,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            "T[4,2] transpose(d), dimensions={1,0}",
            types=("f32", "s32"),
        ),
        lines(
            "x: T[5,2,3]",
            "y: T[5,3,4]",
            "d = T[5,2,4] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, "
            "lhs_contracting_dims={2}, rhs_contracting_dims={1}",
            "T[5,4,2] transpose(d), dimensions={0,2,1}",
            types=("f32", "s32"),
        ),
        lines(
            "x: T[5,2,3]",
            "y: T[5,3,4]",
            "d = T[5,2,4] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, "
            "lhs_contracting_dims={2}, rhs_contracting_dims={1}",
            "T[2,5,4] transpose(d), dimensions={1,0,2}",
            types=("f32",),
            fires=False,
        ),
    ),
    "reverse_of_ones": (
        lines("x: T[1,3]", "T[1,3] reverse(x), dimensions={0}"),
        lines("x: T[1,3]", "T[1,3] reverse(x), dimensions={0,1}", fires=False),
    ),
    "reverse_of_reverse": (
        lines(
            "x: T[2,3]",
            "a = T[2,3] reverse(x), dimensions={0}",
            "T[2,3] reverse(a), dimensions={0,1}",
        ),
        lines(
            "x: T[2,3]",
            "a = T[2,3] reverse(x), dimensions={0}",
            "T[2,3] reverse(a), dimensions={0}",
        ),
    ),
    "reverse_of_binary_with_scalar": (
        lines(
            "x: T[5]",
            "y: T[]",
            "b = T[5] broadcast(y), dimensions={}",
            "a = T[5] subtract(x, b)",
            "T[5] reverse(a), dimensions={0}",
            types=NUMERIC,
        ),
        lines(
            "x: T[5]",
            "y: T[]",
            "b = T[5] broadcast(y), dimensions={}",
            "a = T[5] subtract(b, x)",
            "T[5] reverse(a), dimensions={0}",
            types=NUMERIC,
        ),
        lines(
            "x y: T[5]",
            "a = T[5] subtract(y, x)",
            "T[5] reverse(a), dimensions={0}",
            types=NUMERIC,
            fires=False,
        ),
    ),
    "reverse_of_inserting_reshape": (
        lines("x: T[2,3]", "a = T[2,1,3] reshape(x)", "T[2,1,3] reverse(a), dimensions={1,2}"),
        lines("x: T[6]", "a = T[2,3] reshape(x)", "T[2,3] reverse(a), dimensions={1}", fires=False),
    ),
    "copy_of_copy": (Case(X + "a = T[S] copy(x)\nT[S] copy(a)", ALL),),
    "copy_in_same_layout": (
        Case(X + "T[S] copy(x)", ALL),
        Case(X + "T[S] copy(x)", ALL, options={"is_layout_sensitive": True}),
        lines(
            "x: T[2,3]{1,0}",
            "T[2,3]{0,1} copy(x)",
            options={"is_layout_sensitive": True},
            fires=False,
        ),
    ),
    "slice_of_all": (
        lines("x: T[3,2]", "T[3,2] slice(x), slice={[0:3], [0:2]}"),
        lines("x: T[3,2]", "T[3,1] slice(x), slice={[0:3], [1:2]}", fires=False),
    ),
    "slice_of_one_with_stride": (
        lines("x: T[5]", "T[1] slice(x), slice={[1:4:3]}"),
        lines("x: T[5]", "T[2] slice(x), slice={[1:5:3]}", fires=False),
    ),
    "slice_of_slice": (
        lines(
            "x: T[7,3]",
            "a = T[4,2] slice(x), slice={[2:6], [1:3]}",
            "T[2,1] slice(a), slice={[1:3], [0:1]}",
        ),
        lines(
            "x: T[7]",
            "a = T[4] slice(x), slice={[0:7:2]}",
            "T[2] slice(a), slice={[1:3]}",
            fires=False,
        ),
    ),
    "slice_of_broadcast": (
        lines(
            "x: T[4]",
            "a = T[3,4] broadcast(x), dimensions={1}",
            "T[2,4] slice(a), slice={[1:3], [0:4]}",
        ),
        lines(
            "x: T[4]",
            "a = T[3,4] broadcast(x), dimensions={1}",
            "T[2,2] slice(a), slice={[1:3], [0:3:2]}",
        ),
    ),
    "slice_of_pad": (
        lines(
            "x: T[4]", "v: T[]", "a = T[9] pad(x, v), padding=2_3", "T[2] slice(a), slice={[0:2]}"
        ),
        lines(
            "x: T[4]", "v: T[]", "a = T[9] pad(x, v), padding=2_3", "T[4] slice(a), slice={[2:6]}"
        ),
        lines(
            "x: T[4]", "v: T[]", "a = T[9] pad(x, v), padding=2_3", "T[2] slice(a), slice={[2:6:2]}"
        ),
        lines(
            "x: T[4]",
            "v: T[]",
            "a = T[9] pad(x, v), padding=2_3",
            "T[4] slice(a), slice={[1:5]}",
            fires=False,
        ),
    ),
    "slice_of_concatenate": (
        lines(
            "x: T[2]",
            "y: T[3]",
            "a = T[5] concatenate(x, y), dimensions={0}",
            "T[2] slice(a), slice={[2:4]}",
        ),
        lines(
            "x y z: T[2]",
            "a = T[6] concatenate(x, y, z), dimensions={0}",
            "T[2] slice(a), slice={[3:5]}",
        ),
        lines(
            "x y: T[2]",
            "a = T[4] concatenate(x, y), dimensions={0}",
            "T[2] slice(a), slice={[1:3]}",
            fires=False,
        ),
    ),
    "slice_of_reverse": (
        lines(
            "x: T[7,2]",
            "a = T[7,2] reverse(x), dimensions={0}",
            "T[2,1] slice(a), slice={[1:5:3], [1:2]}",
        ),
    ),
    "slice_of_reshape": (
        lines("x: T[6,2]", "a = T[3,4] reshape(x)", "T[2,4] slice(a), slice={[1:3], [0:4]}"),
        lines("x: T[3,4]", "a = T[12] reshape(x)", "T[2] slice(a), slice={[5:7]}"),
        lines("x: T[3,4]", "a = T[12] reshape(x)", "T[2] slice(a), slice={[3:5]}", fires=False),
        lines(
            "x: T[4,3]",
            "a = T[6,2] reshape(x)",
            "T[2,2] slice(a), slice={[1:3], [0:2]}",
            fires=False,
        ),
    ),
    "concatenate_of_one": (lines("x: T[3]", "T[3] concatenate(x), dimensions={0}"),),
    "concatenate_of_empty": (
        lines("x: T[3]", "y: T[0]", "T[3] concatenate(x, y), dimensions={0}"),
        lines("x z: T[3]", "y: T[0]", "T[6] concatenate(x, y, z), dimensions={0}"),
        lines("x y: T[0]", "T[0] concatenate(x, y), dimensions={0}"),
        lines("x y: T[1]", "T[2] concatenate(x, y), dimensions={0}", fires=False),
    ),
    "concatenate_of_concatenate": (
        lines(
            "x y z: T[2,1]",
            "a = T[2,2] concatenate(y, z), dimensions={1}",
            "T[2,3] concatenate(x, a), dimensions={1}",
        ),
        lines(
            "x: T[4,1]",
            "y z: T[2,1]",
            "a = T[4,1] concatenate(y, z), dimensions={0}",
            "T[4,2] concatenate(x, a), dimensions={1}",
            fires=False,
        ),
    ),
    "concatenate_of_abutting_slices": (
        lines(
            "x: T[7]",
            "a = T[2] slice(x), slice={[1:3]}",
            "b = T[3] slice(x), slice={[3:6]}",
            "T[5] concatenate(a, b), dimensions={0}",
        ),
        lines(
            "x: T[7]",
            "a = T[2] slice(x), slice={[1:3]}",
            "b = T[2] slice(x), slice={[4:6]}",
            "T[4] concatenate(a, b), dimensions={0}",
            fires=False,
        ),
    ),
    "concatenate_of_same": (
        lines("x: T[2,1]", "T[2,3] concatenate(x, x, x), dimensions={1}"),
        lines("x: T[2]", "T[4] concatenate(x, x), dimensions={0}", fires=False),
    ),
    "concatenate_with_scalar_broadcast": (
        lines(
            "x: T[2,3]",
            "v: T[]",
            "a = T[2,2] broadcast(v), dimensions={}",
            "T[2,5] concatenate(x, a), dimensions={1}",
        ),
        lines(
            "x: T[2,3]",
            "v: T[]",
            "a = T[2,2] broadcast(v), dimensions={}",
            "T[2,5] concatenate(a, x), dimensions={1}",
        ),
    ),
    "pad_of_empty": (
        lines("x: T[0]", "v: T[]", "T[3] pad(x, v), padding=1_2"),
        lines("x: T[1]", "v: T[]", "T[4] pad(x, v), padding=1_2", fires=False),
    ),
    "pad_by_nothing": (
        lines("x: T[3]", "v: T[]", "T[3] pad(x, v), padding=0_0"),
        lines("x: T[3]", "v: T[]", "T[4] pad(x, v), padding=0_1", fires=False),
    ),
    "pad_between_one_element": (
        lines("x: T[1,2]", "v: T[]", "T[2,3] pad(x, v), padding=1_0_2x0_0_1"),
        lines("x: T[2]", "v: T[]", "T[3] pad(x, v), padding=0_0_1", fires=False),
    ),
    "pad_by_negative_edges": (
        lines("x: T[5,2]", "v: T[]", "T[3,4] pad(x, v), padding=-1_-1x1_1"),
        lines("x: T[5]", "v: T[]", "T[7] pad(x, v), padding=-2_0_1"),
        lines("x: T[5]", "v: T[]", "T[7] pad(x, v), padding=1_1", fires=False),
    ),
    "pad_of_broadcast": (
        lines(
            "x v: T[]",
            "a = T[2,3,4] broadcast(x), dimensions={}",
            "T[2,5,4] pad(a, v), padding=0_0x1_1x0_0",
        ),
        lines(
            "x: T[3]",
            "v: T[]",
            "a = T[2,3] broadcast(x), dimensions={1}",
            "T[2,5] pad(a, v), padding=0_0x1_1",
        ),
        lines(
            "x: T[3]",
            "v: T[]",
            "a = T[2,3] broadcast(x), dimensions={1}",
            "T[4,3] pad(a, v), padding=1_1x0_0",
            fires=False,
        ),
    ),
}
