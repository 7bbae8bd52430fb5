"""How arrays lie in a TensorCore's memories: the tile the compiler takes for a shape.

Rank one is a row of whole registers. Else the last two dimensions are tiled: lanes by 128, rows by as
many sublanes as the array fills, and narrow elements are packed below them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import MemRefType

from mlirhlo.dialects.tpu.attributes import MemorySpaceAttr, TiledLayoutAttr
from mlirhlo.dialects.tpu.types import DmaSemaphoreType, SemaphoreType
from mlirhlo.dialects.tpu.values import LANES, SUBLANES, TiledLayout

if TYPE_CHECKING:
    from xdsl.ir import Attribute

_WIDTHS = {"index": 32, "i1": 32, "bf16": 16, "tf32": 32}
_LARGE = {8: SUBLANES * 4, 4: SUBLANES * 8, 2: SUBLANES * 16}
"""Rows of the large tile that narrow arrays have where it divides them."""


def element_name(type_: Attribute) -> str:
    """`f32` of `f32`, `vector<8x128xf32>` and `memref<8xf32>`."""
    return str(getattr(type_, "element_type", type_)).removeprefix("!")


def width_in_bits(element: str) -> int:
    """Bits of an element in memory; booleans and indices take a word."""
    if element in _WIDTHS:
        return _WIDTHS[element]
    if element.startswith("tpu.float8_exmy"):
        return 8
    digits = ""
    for character in element[1:]:
        if not character.isdigit():
            break
        digits += character
    return int(digits) if digits else 32


def is_semaphore(type_: Attribute) -> bool:
    """Whether a memref holds semaphores."""
    element = getattr(type_, "element_type", None)
    return isinstance(element, SemaphoreType | DmaSemaphoreType)


def is_memref(type_: Attribute) -> bool:
    """Whether the type is that of a reference."""
    return isinstance(type_, MemRefType)


def space_of(type_: Attribute) -> str:
    """`vmem`, `smem`, …; a reference that says nothing is in VMEM."""
    space = cast("MemRefType[Any]", type_).memory_space
    return space.data.space if isinstance(space, MemorySpaceAttr) else "vmem"


def is_tiled_vmem(type_: Attribute) -> bool:
    """Whether a reference to VMEM says its tiles, as from `infer-memref-layout` on."""
    memref = cast("MemRefType[Any]", type_)
    return isinstance(memref.layout, TiledLayoutAttr) and space_of(type_) == "vmem"


def shape_in(type_: Attribute) -> tuple[int, ...]:
    """The sizes of a vector or memref; none of a scalar."""
    get = getattr(type_, "get_shape", None)
    return tuple(cast("Sequence[int]", get())) if get is not None else ()


def rows_of_tile(rows: int, bits: int) -> int:
    """Rows of the tile of an array of `rows` rows: up to eight sublanes, more where narrow arrays
    divide by more."""
    large = _LARGE.get(bits)
    if large is not None and rows > 0 and rows % large == 0:
        return large
    tile = max(1, 32 // bits)
    while 0 < tile < SUBLANES and (rows < 0 or tile < rows):
        tile *= 2
    return tile


def tiles_for(shape: Sequence[int], bits: int) -> tuple[tuple[int, ...], ...]:
    """The nested tiles of an array of `shape` with elements of `bits` bits."""
    packing = 32 // bits
    inner = ((packing, 1),) if packing > 1 else ()
    if not shape:
        return ()
    if len(shape) == 1:
        return ((LANES * packing,), (LANES,), *inner) if packing > 1 else ((LANES,),)
    return ((rows_of_tile(shape[-2], bits), LANES), *inner)


def layout_for(shape: Sequence[int], bits: int) -> TiledLayout:
    """The layout the compiler infers: `tiles_for`, with strides of a dense array of tiles."""
    tiles = tiles_for(shape, bits)
    return TiledLayout(tiles, dense_strides(shape, tiles))


def dense_strides(shape: Sequence[int], tiles: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Strides in units of the first tile, from the minor dimension outwards."""
    first = tiles[0] if tiles else ()
    plain = len(shape) - len(first)
    strides: list[int] = []
    step = 1
    for dim in range(len(shape) - 1, -1, -1):
        strides.append(step)
        step *= -(-shape[dim] // first[dim - plain]) if dim >= plain else shape[dim]
    return tuple(reversed(strides))


def padded_bytes(shape: Sequence[int], bits: int, *, is_vector_memory: bool = True) -> int:
    """Bytes of an array, with what tiles add at the ends; in scalar memory a word an element."""
    if not is_vector_memory:
        return 4 * prod(shape)
    if not shape:
        return 4
    first = tiles_for(shape, bits)[0]
    plain = len(shape) - len(first)
    counts = (-(-size // tile) * tile for size, tile in zip(shape[plain:], first, strict=True))
    return prod(shape[:plain]) * prod(counts) * bits // 8
