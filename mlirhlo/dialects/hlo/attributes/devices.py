"""Orders of devices: explicit lists, and `iota` reshaped and transposed; shared by shardings,
meshes and replica groups.

Source: HLO text, "Shardings: meaning and canonical printing".
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirhlo.dialects.hlo.syntax import Cursor, SyntaxProblem

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_DEVICES = 1 << 24
"""Largest number of devices that is ever listed one by one."""


@dataclass(frozen=True, slots=True)
class Iota:
    """Device numbers 0, 1, 2, … reshaped to `reshape`, transposed by `permutation`, read row-major.

    Make one with `Iota.of`, which brings it to the form that XLA prints.
    """

    reshape: tuple[int, ...]
    permutation: tuple[int, ...]

    @staticmethod
    def of(reshape: Sequence[int], permutation: Sequence[int] | None = None) -> Iota:
        """In canonical form: no dimension of size 1, none that stays next to its neighbour."""
        permutation = tuple(range(len(reshape))) if permutation is None else permutation
        runs: list[list[int]] = []
        for dim in permutation:
            if reshape[dim] == 1:
                continue
            # Dimensions of size 1 between two others do not keep them apart.
            if (
                runs
                and all(reshape[d] == 1 for d in range(runs[-1][-1] + 1, dim))
                and dim > runs[-1][-1]
            ):
                runs[-1].append(dim)
            else:
                runs.append([dim])
        if len(runs) <= 1:
            return Iota((math.prod(reshape),), (0,))
        order = sorted(range(len(runs)), key=lambda run: runs[run][0])
        sizes = tuple(math.prod(reshape[d] for d in runs[run]) for run in order)
        place = {run: position for position, run in enumerate(order)}
        return Iota(sizes, tuple(place[run] for run in range(len(runs))))

    @property
    def size(self) -> int:
        """Number of devices."""
        return math.prod(self.reshape)

    @property
    def is_identity(self) -> bool:
        """Whether it is plain 0, 1, 2, …"""
        return len(self.reshape) == 1

    def ids(self) -> tuple[int, ...]:
        """Every device in order."""
        return _iota_ids(self.reshape, self.permutation)

    def transpose(self, dimensions: Sequence[int], permutation: Sequence[int]) -> Iota | None:
        """This order seen as a grid of `dimensions`, transposed; None when no iota says that."""
        sizes = [self.reshape[d] for d in self.permutation]
        pieces = _common_pieces(sizes, dimensions)
        if pieces is None:
            return None
        of_sizes, of_dimensions = pieces
        # Cut every reshape dimension into its pieces, numbered in reshape order.
        first = [0] * len(self.reshape)
        cut: list[int] = []
        for dim in range(len(self.reshape)):
            first[dim] = len(cut)
            cut += of_sizes[self.permutation.index(dim)]
        flat = [
            first[dim] + k
            for position, dim in enumerate(self.permutation)
            for k in range(len(of_sizes[position]))
        ]
        groups: list[list[int]] = []
        for parts in of_dimensions:
            groups.append(flat[: len(parts)])
            flat = flat[len(parts) :]
        return Iota.of(cut, [piece for dim in permutation for piece in groups[dim]])

    def __str__(self) -> str:
        text = "[" + ",".join(map(str, self.reshape)) + "]"
        return text if self.is_identity else f"{text}T({','.join(map(str, self.permutation))})"


def _common_pieces(
    left: Sequence[int], right: Sequence[int]
) -> tuple[list[list[int]], list[list[int]]] | None:
    """Both factorisations of one number, cut into the same pieces; None when they do not fit."""
    cuts_left: list[list[int]] = [[] for _ in left]
    cuts_right: list[list[int]] = [[] for _ in right]
    i, j = 0, 0
    rest_left = left[0] if left else 1
    rest_right = right[0] if right else 1
    while i < len(left) and j < len(right):
        small, large = sorted((rest_left, rest_right))
        if small == 0 or large % small:
            return None
        if small > 1:
            cuts_left[i].append(small)
            cuts_right[j].append(small)
        rest_left, rest_right = rest_left // small, rest_right // small
        if rest_left == 1:
            i += 1
            rest_left = left[i] if i < len(left) else 1
        if rest_right == 1:
            j += 1
            rest_right = right[j] if j < len(right) else 1
    return cuts_left, cuts_right


@functools.lru_cache(maxsize=256)
def _iota_ids(reshape: tuple[int, ...], permutation: tuple[int, ...]) -> tuple[int, ...]:
    strides = [math.prod(reshape[dim + 1 :]) for dim in range(len(reshape))]
    ids = [0]
    for dim in permutation:
        steps = range(0, reshape[dim] * strides[dim], strides[dim]) if strides[dim] else ()
        ids = [base + step for base in ids for step in steps]
    return tuple(ids)


Order: TypeAlias = Iota | tuple[int, ...]
"""Devices in an order."""


@dataclass(frozen=True, slots=True)
class TileAssignment:
    """Which device has which tile: a grid of `dimensions` filled row-major from `order`."""

    dimensions: tuple[int, ...]
    order: Order

    def ids(self) -> tuple[int, ...]:
        """Devices, row-major."""
        return self.order.ids() if isinstance(self.order, Iota) else self.order

    @property
    def size(self) -> int:
        """Number of devices."""
        return math.prod(self.dimensions)

    @property
    def array(self) -> NDArray[Any]:
        """Devices as an int64 array of `dimensions`."""
        import numpy as np

        if isinstance(self.order, Iota):
            ids = np.arange(self.size).reshape(self.order.reshape)
            return ids.transpose(self.order.permutation).reshape(self.dimensions)
        return np.array(self.order, dtype=np.int64).reshape(self.dimensions)

    def reshape(self, dimensions: Sequence[int]) -> TileAssignment:
        """The same order in another grid of as many tiles."""
        return TileAssignment(tuple(dimensions), self.order)

    def transpose(self, permutation: Sequence[int]) -> TileAssignment:
        """The grid with its dimensions permuted; stays an iota where one can say it."""
        dimensions = tuple(self.dimensions[d] for d in permutation)
        moved = [d for d in permutation if self.dimensions[d] != 1]
        if moved == sorted(moved):
            return TileAssignment(dimensions, self.order)
        if isinstance(self.order, Iota):
            iota = self.order.transpose(self.dimensions, permutation)
            if iota is not None:
                return TileAssignment(dimensions, iota)
        strides = [math.prod(self.dimensions[dim + 1 :]) for dim in range(len(self.dimensions))]
        places, ids = [0], self.ids()
        for dim in permutation:
            places = [p + k * strides[dim] for p in places for k in range(self.dimensions[dim])]
        return TileAssignment(dimensions, tuple(ids[place] for place in places))

    def sorted_groups(self, group: int) -> TileAssignment:
        """Devices sorted inside every run of `group`; an iota stays one where it can."""
        if isinstance(self.order, Iota):
            iota = _sort_iota_groups(self.order, group)
            if iota is not None:
                return TileAssignment(self.dimensions, iota)
        ids = self.ids()
        parts = [sorted(ids[k : k + group]) for k in range(0, len(ids), group)]
        return TileAssignment(self.dimensions, tuple(d for part in parts for d in part))

    def __str__(self) -> str:
        grid = "[" + ",".join(map(str, self.dimensions)) + "]"
        if isinstance(self.order, Iota):
            return f"{grid}<={self.order}"
        return grid + ",".join(map(str, self.order))


def _sort_iota_groups(iota: Iota, group: int) -> Iota | None:
    sizes = [iota.reshape[d] for d in iota.permutation]
    count = math.prod(sizes)
    pieces = _common_pieces(sizes, (count // group, group)) if group else None
    if pieces is None:
        return None
    cut, inner = pieces[0], len(pieces[1][1])
    sizes = [size for parts in cut for size in parts]
    split = iota.transpose(sizes, range(len(sizes)))
    assert split is not None
    # Number the pieces in reshape order, then let the pieces of a group stand in that order.
    order = [
        (dim, k) for position, dim in enumerate(iota.permutation) for k in range(len(cut[position]))
    ]
    numbered = {piece: number for number, piece in enumerate(sorted(order))}
    permutation = [numbered[piece] for piece in order]
    reshape = [0] * len(sizes)
    for position, piece in enumerate(order):
        reshape[numbered[piece]] = sizes[position]
    return Iota.of(
        reshape, permutation[: len(sizes) - inner] + sorted(permutation[len(sizes) - inner :])
    )


# ---------------------------------------------------------------- reading


def read_iota_dimensions(cursor: Cursor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Reads `[4,2]T(1,0)` or `[8]`: sizes and permutation as written. Raises `SyntaxProblem`."""
    start = cursor.skip()
    reshape = cursor.integers("[", "]")
    if not reshape or any(size < 0 for size in reshape):
        raise SyntaxProblem(start, "expects sizes such as [4,2]", cursor.position - start)
    if len(reshape) == 1:
        return reshape, (0,)
    if not cursor.accept("T"):
        raise cursor.problem("expected 'T(' to start sharding devices iota_transpose_perm")
    permutation = cursor.integers("(", ")")
    if len(permutation) != len(reshape):
        raise SyntaxProblem(
            start,
            "iota_transpose_perm should have the same rank as iota_reshape_dims : expected"
            f" {len(reshape)}, saw {len(permutation)}.",
            cursor.position - start,
        )
    if sorted(permutation) != list(range(len(reshape))):
        raise SyntaxProblem(start, f"T({','.join(map(str, permutation))}) is not a permutation")
    return reshape, permutation


def read_tiles(cursor: Cursor) -> TileAssignment:
    """Reads `[2,2]0,1,2,3` or `[2,2]<=[2,2]T(1,0)`. Raises `SyntaxProblem`."""
    start = cursor.skip()
    dimensions = cursor.integers("[", "]")
    if not dimensions or any(size < 1 for size in dimensions):
        raise SyntaxProblem(start, "tile dimensions are positive", cursor.position - start)
    count = math.prod(dimensions)
    if cursor.accept("<="):
        iota = Iota.of(*read_iota_dimensions(cursor))
        if iota.size != count:
            raise SyntaxProblem(
                start,
                f"a grid of {count} tiles cannot take {iota.size} devices",
                cursor.position - start,
            )
        return TileAssignment(dimensions, iota)
    devices = [cursor.integer()]
    while cursor.accept(","):
        devices.append(cursor.integer())
    if len(devices) != count:
        raise SyntaxProblem(
            start,
            f"a grid of {count} tiles cannot take {len(devices)} devices",
            cursor.position - start,
        )
    return TileAssignment(dimensions, tuple(devices))
