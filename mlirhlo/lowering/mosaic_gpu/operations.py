"""What each operation of the language is for one thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, cast

from xdsl.dialects import scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, Float32Type, IntegerType, f32, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from mlirhlo.dialects.mosaic_gpu.attributes import BarrierType, SwizzleAttr
from mlirhlo.dialects.quick import append, create_op, new_block, region_of
from mlirhlo.dialects.tpu.op_classes import groups
from mlirhlo.dialects.tpu.table import ROWS
from mlirhlo.lowering.builder import INDEX, Index
from mlirhlo.lowering.gpu.kernel import MapParameter
from mlirhlo.lowering.gpu.nvvm_warp_groups import WGMMA
from mlirhlo.lowering.mosaic_gpu.fragments import (
    COLUMN,
    FLAT,
    ROW,
    SPLAT,
    TILE,
    Fragment,
    offsets,
    reduced_dims,
    spread_of,
    squeezed,
)
from mlirhlo.lowering.mosaic_gpu.places import Place
from mlirhlo.lowering.mosaic_gpu.writer import GROUP, Writer, bytes_of, unfit
from mlirhlo.mosaic.attributes import integer_of, integers_of

_ATOMICS = (("addf", "addi"), ("minimumf", "mins"), ("maximumf", "maxs"), *[("", n) for n in ("andi", "ori", "xori")])
_MOST_BOX = 256


def _parts(w: Writer, op: Operation) -> dict[str, tuple[Any, ...]]:
    row = ROWS[op.name]
    found = groups(op, row, row.operands, tuple(op.operands))
    return {name: tuple(w.values[v] for v in values) for name, values in found.items()}


# ---------------------------------------------------------------- control


def _flat(values: Sequence[Any]) -> list[SSAValue]:
    found: list[SSAValue] = []
    for value in values:
        found += value.registers if isinstance(value, Fragment) else [value]
    return found


def _rebuilt(like: Sequence[Any], registers: Sequence[SSAValue]) -> list[Any]:
    found: list[Any] = []
    rest = list(registers)
    for value in like:
        if isinstance(value, Fragment):
            count = len(value.registers)
            found.append(replace(value, registers=rest[:count]))
            rest = rest[count:]
        else:
            found.append(rest.pop(0))
    return found


def _carried(w: Writer, values: Sequence[SSAValue]) -> list[Any]:
    return [w.fragment(v) if squeezed(v.type) else w.values[v] for v in values]


def _for(w: Writer, op: Operation) -> Sequence[Any]:
    b = w.b
    lower, upper, step = (w.values[v] for v in op.operands[:3])
    source = op.regions[0].blocks[0]
    initial = _carried(w, op.operands[3:])
    registers = _flat(initial)
    block = new_block([i32, *(r.type for r in registers)])
    outer, b.block = b.block, block
    w.values[source.args[0]] = block.args[0]
    for argument, value in zip(source.args[1:], _rebuilt(initial, block.args[1:]), strict=True):
        w.values[argument] = value
    with _own_constants(w):
        w.block(source)
        last: Any = source.last_op
        append(b.block, create_op(scf.YieldOp, _flat(_carried(w, last.operands))))
    b.block = outer
    types = [r.type for r in registers]
    made = create_op(scf.ForOp, [lower, upper, step, *registers], types, regions=[region_of(block)])
    append(outer, made)
    return _rebuilt(initial, made.results)


class _own_constants:  # noqa: N801  (a context)
    """Nothing to keep apart: constants stand at the head of the kernel."""

    def __init__(self, w: Writer) -> None:
        self.w = w

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _if(w: Writer, op: Operation) -> Sequence[Any]:
    b = w.b
    outer = b.block
    blocks, like = [], list[Any]()
    for region in op.regions:
        block = new_block()
        b.block = block
        if region.blocks:
            source = region.blocks[0]
            w.block(source)
            last: Any = source.last_op
            like = _carried(w, last.operands)
            like = [
                w.held(v, w.layout(r)) if isinstance(v, Fragment) else v
                for v, r in zip(like, op.results, strict=True)
            ]
            append(b.block, create_op(scf.YieldOp, _flat(like)))
        else:
            append(b.block, create_op(scf.YieldOp))
        blocks.append(block)
    b.block = outer
    condition = w.values[op.operands[0]]
    types = [r.type for r in _flat(like)]
    made = create_op(scf.IfOp, [condition], types, regions=[region_of(x) for x in blocks])
    append(outer, made)
    return _rebuilt(like, made.results)


# ---------------------------------------------------------------- vectors


def _broadcast(w: Writer, op: Operation) -> Sequence[Any]:
    result = op.results[0]
    shape, element = squeezed(result.type), cast(Any, result.type).element_type
    source = w.values[op.operands[0]]
    if not isinstance(source, Fragment):
        return [Fragment(shape, SPLAT, [source], element)]
    if source.layout == SPLAT or not source.shape:
        return [replace(source, shape=shape, layout=SPLAT)]
    if source.shape == shape:
        return [source]
    layout = w.layout(result)
    (dim,) = spread_of(op)
    if layout != TILE:
        raise unfit(f"{list(source.shape)} is broadcast to {list(shape)}")
    source = w.held(source, ROW if dim == 0 else COLUMN)
    by_index = dict(zip([o[0] for o in offsets(source.layout, source.shape)], source.registers, strict=True))
    registers = [by_index[o[dim]] for o in offsets(TILE, shape)]
    return [Fragment(shape, TILE, registers, element)]


def _shape_cast(w: Writer, op: Operation) -> Sequence[Any]:
    source, shape = w.values[op.operands[0]], squeezed(op.results[0].type)
    if isinstance(source, Fragment) and source.layout == SPLAT:
        return [replace(source, shape=shape)]
    if squeezed(op.operands[0].type) != shape:
        raise unfit(f"{list(squeezed(op.operands[0].type))} is reshaped to {list(shape)}")
    return [source]


def _extract(w: Writer, op: Operation) -> Sequence[Any]:
    source: Fragment = w.values[op.operands[0]]
    if source.layout != SPLAT:
        raise unfit("one element of a value is taken", "load it from memory, or reduce")
    return [source.registers[0]]


def _iota(w: Writer, op: Operation) -> Sequence[Any]:
    result = op.results[0]
    shape, layout = squeezed(result.type), w.layout(result)
    full = cast(Any, result.type).get_shape()
    dims = integers_of(op, "dimensions") or (integer_of(op, "dimension"),)
    if full[dims[0]] == 1:
        return [Fragment(shape, SPLAT, [w.b.constant(0, i32)], i32)]
    dim = sum(size != 1 for size in full[: dims[0]])
    registers = [
        w.b.cast_index(w.b.index(index[dim]), i32) for index in w.indices(layout, shape)
    ]
    return [Fragment(shape, layout, registers, i32)]


_KINDS: Mapping[str, tuple[str, str]] = {
    "add": ("addf", "addi"),
    "maximumf": ("maximumf", ""),
    "minimumf": ("minimumf", ""),
    "maxsi": ("", "maxsi"),
    "minsi": ("", "minsi"),
    "maxui": ("", "maxui"),
    "minui": ("", "minui"),
}


def _combine(w: Writer, kind: str, x: SSAValue, y: SSAValue) -> SSAValue:
    from xdsl.dialects import arith

    b = w.b
    is_integer = isinstance(x.type, IntegerType)
    match kind:
        case "add":
            return b.addi(x, y) if is_integer else b.addf(x, y)
        case "maximumf" | "maxnumf":
            return b.maximumf(x, y)
        case "minimumf" | "minnumf":
            return b.minimumf(x, y)
        case "maxsi" | "minsi" | "maxui" | "minui":
            cls = {"maxsi": arith.MaxSIOp, "minsi": arith.MinSIOp, "maxui": arith.MaxUIOp, "minui": arith.MinUIOp}
            return b.emit(cls[kind], (x, y), x.type)
        case "and" | "or" | "xor":
            return {"and": b.andi, "or": b.ori, "xor": b.xori}[kind](x, y)
        case _:
            raise unfit(f"a reduction by {kind}")


def _reduce(w: Writer, op: Operation) -> Sequence[Any]:
    attribute: Any = op.properties["kind"]
    kind = str(getattr(attribute, "data", attribute))
    kind = kind.partition("<")[2].rstrip(">") or kind
    source: Fragment = w.values[op.operands[0]]
    start: Fragment = w.fragment(op.operands[1])
    dims = reduced_dims(op)
    shape = squeezed(op.results[0].type)
    if source.layout == SPLAT:
        source = w.fragment(op.operands[0])
    if source.element not in (f32, i32):
        raise unfit(f"a reduction of {source.element}", "cast to f32 first")
    if not shape:
        made = _all(w, kind, source)
    elif source.layout == TILE and len(dims) == 1:
        made = _along(w, kind, source, dims[0])
    else:
        raise unfit(f"{list(source.shape)} is reduced over {list(dims)}", "give it 64 rows and 8 columns, or multiples")
    start = w.held(start, made.layout)
    registers = [_combine(w, kind, x, y) for x, y in zip(made.registers, start.registers, strict=True)]
    result = replace(made, registers=registers)
    if not shape:
        return [result]
    return [w.held(result, w.layout(op.results[0]))]


def _shuffled(w: Writer, kind: str, x: SSAValue, distances: Sequence[int]) -> SSAValue:
    for distance in distances:
        x = _combine(w, kind, x, w.b.warp_shuffle("xor", x, distance))
    return x


def _along(w: Writer, kind: str, source: Fragment, dim: int) -> Fragment:
    kept = 1 - dim
    sums: dict[int, SSAValue] = {}
    for index, register in zip(offsets(TILE, source.shape), source.registers, strict=True):
        at = index[kept]
        sums[at] = register if at not in sums else _combine(w, kind, sums[at], register)
    layout = ROW if dim == 1 else COLUMN
    shape = (source.shape[kept],)
    order = [o[0] for o in offsets(layout, shape)]
    if dim == 1:
        registers = [_shuffled(w, kind, sums[at], (1, 2)) for at in order]
        return Fragment(shape, ROW, registers, source.element)
    registers = [_shuffled(w, kind, sums[at], (4, 8, 16)) for at in order]
    return _between_warps(w, kind, Fragment(shape, COLUMN, registers, source.element))


def _between_warps(w: Writer, kind: str, found: Fragment) -> Fragment:
    """Combines what the four warps have, which lanes below four hold."""
    b = w.b
    place = w.scratch((4, *found.shape), found.element)
    indices = w.indices(found.layout, found.shape)
    lanes = 4 if found.layout == COLUMN else 1
    with w.only(b.cmpi("ult", w.lane, b.index(lanes))):
        for register, index in zip(found.registers, indices, strict=True):
            b.store(register, cast(Any, place).buffer, [place.linear((w.warp, *index), b)])
    w.meet()
    registers: list[SSAValue] = []
    for index in indices:
        parts = [b.load(cast(Any, place).buffer, [place.linear((n, *index), b)]) for n in range(4)]
        total = parts[0]
        for part in parts[1:]:
            total = _combine(w, kind, total, part)
        registers.append(total)
    w.meet()
    return replace(found, registers=registers)


def _all(w: Writer, kind: str, source: Fragment) -> Fragment:
    total = source.registers[0]
    for register in source.registers[1:]:
        total = _combine(w, kind, total, register)
    distances = {TILE: (1, 2, 4, 8, 16), FLAT: (1, 2, 4, 8, 16), ROW: (4, 8, 16), COLUMN: (1, 2)}
    total = _shuffled(w, kind, total, distances[source.layout])
    found = Fragment((), SPLAT, [total], source.element)
    return found if source.layout == COLUMN else _between_warps(w, kind, found)


def _cast_layout(w: Writer, op: Operation) -> Sequence[Any]:
    return [w.held(w.values[op.operands[0]], w.layout(op.results[0]))]


# ---------------------------------------------------------------- references


def _slice_smem(w: Writer, op: Operation) -> Sequence[Any]:
    type_: Any = op.results[0].type
    shape, offset = tuple(type_.get_shape()), integer_of(op, "offset")
    is_barrier = isinstance(type_.element_type, BarrierType)
    element: Any = i64 if is_barrier else type_.element_type
    dims = tuple(range(len(shape)))
    return [
        Place(
            "smem",
            shape,
            element,
            bytes_of(element),
            (0,) * len(shape),
            dims,
            shape,
            w.shared_view(offset, element),
            offset,
        )
    ]


def _with_transforms(w: Writer, op: Operation) -> Sequence[Any]:
    place: Place = w.values[op.operands[0]]
    transforms: Any = op.properties["transforms"]
    swizzle = next((one.data for one in transforms.data if isinstance(one, SwizzleAttr)), 0)
    return [replace(place, swizzle=swizzle)]


def _subview(w: Writer, op: Operation) -> Sequence[Any]:
    place: Place = w.values[op.operands[0]]
    dynamic = iter(w.values[v] for v in op.operands[1:])
    offsets_, sizes = (integers_of(op, f"static_{n}") or () for n in ("offsets", "sizes"))
    starts: list[Index] = [
        w.to_index(next(dynamic)) if offset == DYNAMIC_INDEX else offset for offset in offsets_
    ]
    rest = list(cast(Any, op.results[0].type).get_shape())
    kept: list[int] = []
    drops = len(sizes) - len(rest)
    for dim, size in enumerate(sizes):
        if drops > 0 and size == 1 and (not rest or rest[0] != 1 or drops == len(sizes) - dim):
            drops -= 1
        else:
            kept.append(dim)
            rest.pop(0)
    return [place.part(starts, kept, [sizes[d] for d in kept], w.b)]


def _transpose(w: Writer, op: Operation) -> Sequence[Any]:
    return [replace(w.values[op.operands[0]], is_transposed=True)]


def _cluster_ref(w: Writer, op: Operation) -> Sequence[Any]:
    b = w.b
    parts = _parts(w, op)
    (place,) = parts["source"]
    sizes = w.kernel.launch.cluster
    own = b.rem(b.block_id(), prod(sizes))
    rank: Index = 0
    for dim, size in enumerate(sizes):
        given = parts["xyz"[dim]]
        after = prod(sizes[dim + 1 :])
        at: Index = w.to_index(given[0]) if given else b.rem(b.div(own, after), size)
        rank = b.add(b.mul(rank, size), at)
    return [replace(place, space="cluster", rank=b.cast_index(b.index(rank), i32))]


def _alloca(w: Writer, op: Operation) -> Sequence[Any]:
    type_: Any = op.results[0].type
    shape = tuple(type_.get_shape())
    if not shape:
        return [Place("stack", (), i32, 4, (), (), (), w.b.scratch([1], i32))]
    layout = TILE if len(shape) == 2 else FLAT
    count = len(offsets(layout, shape))
    buffer = w.b.scratch([count], type_.element_type)
    element: Any = type_.element_type
    return [
        Place(
            "regs", shape, element, bytes_of(element), (0,) * len(shape), tuple(range(len(shape))), shape, buffer
        )
    ]


def _scalar_load(w: Writer, op: Operation) -> Sequence[Any]:
    place: Place = w.values[op.operands[0]]
    if place.space == "stack":
        return [w.b.load(cast(SSAValue, place.buffer), [0])]
    return [w.b.load(cast(SSAValue, place.buffer), [place.linear((), w.b)])]


def _scalar_store(w: Writer, op: Operation) -> Sequence[Any]:
    value, place = (w.values[v] for v in op.operands)
    value = value.registers[0] if isinstance(value, Fragment) else value
    if place.space == "stack":
        w.b.store(value, place.buffer, [0])
    else:
        with w.only(w.is_leader):
            w.b.store(value, place.buffer, [place.linear((), w.b)])
    return ()


def _vector_load(w: Writer, op: Operation) -> Sequence[Any]:
    result = op.results[0]
    place: Place = w.values[op.operands[0]]
    element: Any = cast(Any, result.type).element_type
    layout = TILE if place.space == "regs" and len(place.sizes) == 2 else w.layout(result)
    return [w.held(w.load(place, squeezed(result.type), layout, element), w.layout(result))]


def _vector_store(w: Writer, op: Operation) -> Sequence[Any]:
    value, place = op.operands
    target: Place = w.values[place]
    found: Fragment = w.values[value]
    if found.layout == SPLAT:
        found = w.fragment(value)
    if target.space == "regs":
        w.store(w.held(found, TILE if len(target.sizes) == 2 else FLAT), target)
        return ()
    atomic: Any = op.properties.get("atomic_type")
    name = None
    if atomic is not None:
        names = _ATOMICS[atomic.value.data]
        name = names[isinstance(found.element, IntegerType)]
    if found.layout in (ROW, COLUMN):
        with w.only(w.owns(found.layout)):
            w.store(found, target, name)
    else:
        w.store(found, target, name)
    return ()


# ---------------------------------------------------------------- barriers


def _initialize(w: Writer, op: Operation) -> Sequence[Any]:
    place: Place = w.values[op.operands[0]]
    b = w.b
    is_first = b.cmpi("eq", b.index(b.thread_id()), b.index(0))
    with w.only(is_first):
        for n in range(integer_of(op, "num_barriers")):
            b.barrier_init(cast(SSAValue, place.buffer), n, integer_of(op, "arrival_count"))
    return ()


def _arrive(w: Writer, op: Operation) -> Sequence[Any]:
    place: Place = w.values[op.operands[0]]
    b = w.b
    w.meet()
    at = place.linear((), b)
    with w.only(w.is_leader):
        if place.space == "cluster":
            assert place.rank is not None
            where = w.address(b.add(b.mul(at, 8), place.offset))
            w.ptx(
                "{ .reg .b32 a; mapa.shared::cluster.u32 a, $0, $1; "
                "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a]; }",
                [where, place.rank],
            )
        else:
            b.barrier_arrive(cast(SSAValue, place.buffer), at)
    return ()


def _expect(w: Writer, op: Operation) -> Sequence[Any]:
    place: Place = w.values[op.operands[0]]
    b = w.b
    w.meet()
    with w.only(w.is_leader):
        b.barrier_arrive(cast(SSAValue, place.buffer), place.linear((), b), integer_of(op, "expect_tx"))
    return ()


def _wait(w: Writer, op: Operation) -> Sequence[Any]:
    place, parity = (w.values[v] for v in op.operands)
    b = w.b
    from xdsl.dialects import arith

    number = b.cast(arith.ExtUIOp, parity, i32)
    if w.kernel.launch.cluster_size > 1:
        where = w.address(b.add(b.mul(place.linear((), b), 8), place.offset))
        w.ptx(
            "{ .reg .pred p; $$again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [$0], $1; "
            "@!p bra $$again; }".replace("$$again", "again_${:uid}"),
            [where, number],
        )
    else:
        b.barrier_wait(place.buffer, place.linear((), b), b.cast_index(number, INDEX))
    return ()


# ---------------------------------------------------------------- copies


def _boxes(place: Place) -> tuple[tuple[int, ...], list[tuple[tuple[int, ...], int]]]:
    """The box of a copy, in the dimensions of shared memory, and for each copy its start there, with bytes."""
    sizes = place.sizes
    limits = [_MOST_BOX] * len(sizes)
    if place.swizzle:
        limits[-1] = place.swizzle // place.bytes
    box = tuple(_largest(size, limit) for size, limit in zip(sizes, limits, strict=True))
    found: list[tuple[tuple[int, ...], int]] = [((), 0)]
    starts: list[tuple[int, ...]] = [()]
    for size, part in zip(sizes, box, strict=True):
        starts = [(*s, at) for s in starts for at in range(0, size, part)]
    found = [(s, 0) for s in starts]
    return box, found


def _largest(size: int, limit: int) -> int:
    return next(n for n in range(min(size, limit), 0, -1) if size % n == 0)


def _copy(w: Writer, op: Operation, *, is_load: bool) -> None:
    b = w.b
    parts = _parts(w, op)
    gmem, smem = (parts[n][0] for n in (("source", "destination") if is_load else ("destination", "source")))
    lengths = integers_of(op, "slice_lengths") or ()
    collective: Any = op.properties.get("collective")
    if collective is not None and collective.data:
        raise unfit("a copy to all blocks of a cluster at once", "copy in each block")
    box, starts = _boxes(smem)
    width, rank = gmem.bytes, len(gmem.whole)
    kept = [dim for dim, length in enumerate(lengths) if length != -1]
    full_box = [1] * rank
    for dim, size in zip(kept, box, strict=True):
        full_box[dim] = size
    strides = [prod(gmem.whole[dim + 1 :]) * width for dim in range(rank)]
    if full_box[-1] * width % 16 or any(s % 16 for s in strides[:-1]):
        raise unfit(
            f"rows of {full_box[-1] * width} bytes are copied from {list(gmem.whole)}",
            "rows of the array and of the part have a multiple of 16 bytes",
        )
    described = MapParameter(
        gmem.argument,
        width,
        tuple(reversed(gmem.whole)),
        tuple(reversed(strides[:-1])),
        tuple(reversed(full_box)),
        smem.swizzle,
    )
    tensor_map = next(
        (v for m, v in w.__dict__.setdefault("maps", []) if m == described), None
    )
    if tensor_map is None:
        tensor_map = b.tensor_map(described)
        w.__dict__["maps"].append((described, tensor_map))
    first = [w.to_index(v) for v in parts["indices"]]
    if not is_load:
        w.meet()
    with w.only(w.is_leader):
        for start, _ in starts:
            coordinates: list[Index] = list(first)
            for dim, at in zip(kept, start, strict=True):
                coordinates[dim] = b.add(coordinates[dim], at)
            where = w.address(smem.part(start, range(len(start)), box, b).start_bytes(b))
            numbers = [b.cast_index(b.index(c), i32) for c in reversed(coordinates)]
            if is_load:
                barrier: Place = parts["barrier"][0]
                at_bytes = b.add(b.mul(barrier.linear((), b), 8), barrier.offset)
                _bring(w, where, tensor_map, numbers, w.address(at_bytes))
            else:
                listed = ", ".join(f"${n + 2}" for n in range(rank))
                w.ptx(
                    f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [$1, {{{listed}}}], [$0];",
                    [where, tensor_map, *numbers],
                )


def _bring(
    w: Writer, where: SSAValue, tensor_map: SSAValue, numbers: Sequence[SSAValue], barrier: SSAValue
) -> None:
    listed = ", ".join(f"${n + 3}" for n in range(len(numbers)))
    w.ptx(
        f"cp.async.bulk.tensor.{len(numbers)}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        f"[$0], [$1, {{{listed}}}], [$2];",
        [where, tensor_map, barrier, *numbers],
    )


def _async_load(w: Writer, op: Operation) -> Sequence[Any]:
    _copy(w, op, is_load=True)
    return ()


def _async_store(w: Writer, op: Operation) -> Sequence[Any]:
    _copy(w, op, is_load=False)
    commit: Any = op.properties.get("commit_group")
    if commit is None or commit.value.data:
        _commit(w, op)
    return ()


def _commit(w: Writer, op: Operation) -> Sequence[Any]:
    del op
    with w.only(w.is_leader):
        w.ptx("cp.async.bulk.commit_group;")
    return ()


def _wait_group(w: Writer, op: Operation) -> Sequence[Any]:
    read = ".read" if "read" in op.properties else ""
    with w.only(w.is_leader):
        w.ptx(f"cp.async.bulk.wait_group{read} {integer_of(op, 'group')};")
    return ()


# ---------------------------------------------------------------- products


def _descriptor(w: Writer, place: Place, row: Index, column: Index) -> SSAValue:
    """Of a factor in swizzled panels, from a row and a column on."""
    from xdsl.dialects import arith

    b = w.b
    if place.swizzle != 128:
        raise unfit("a factor of wgmma that is not swizzled", "give its SMEM TilingTransform and SwizzleTransform(128)")
    rows = place.whole[-2]
    start = place.part(
        [*[0] * (len(place.kept) - 2), row, column], range(len(place.kept)), place.sizes, b
    ).start_bytes(b)
    units = b.shrui(w.address(start), b.constant(4, i32))
    fixed = 1 << 62 | (1024 // 16) << 32 | (rows * 128 // 16) << 16
    return b.addi(b.cast(arith.ExtUIOp, units, i64), b.constant(fixed, i64))


_NAMES = {"f16": "f16", "bf16": "bf16", "f8E4M3FN": "f8e4m3fn", "f8E5M2": "f8e5m2", "i8": "s8"}


def _wgmma(w: Writer, op: Operation) -> Sequence[Any]:
    b = w.b
    sums, a, factor = (w.values[v] for v in op.operands)
    sums = w.held(sums, TILE) if sums.layout != SPLAT else w.held(sums, TILE)
    name = _NAMES.get(str(factor.element))
    if name is None:
        raise unfit(f"wgmma of {factor.element}")
    row = WGMMA[name]
    (m, n), k = sums.shape, (a.sizes[-1] if isinstance(a, Place) else a.shape[-1])
    width = factor.bytes
    if isinstance(a, Place) and a.is_transposed:
        raise unfit("a transposed left factor of wgmma", "transpose the product")
    across = factor.is_transposed
    if not across and not row.can_transpose:
        raise unfit(f"a right factor of {factor.element} whose columns are side by side", "pass its transpose, and .T")
    lanes = n // 2
    made: list[SSAValue] = []
    held = isinstance(a, Fragment)
    if held:
        a = w.held(a, TILE)
    for block in range(m // 64):
        part = sums.registers[block * lanes : (block + 1) * lanes]
        for step in range(k // row.terms):
            at = step * row.terms
            right = _descriptor(w, factor, *((0, at) if across else (at, 0)))
            left = (
                _packed(w, a, block, step, k)
                if held
                else [_descriptor(w, a, block * 64, at)]
            )
            part = _issue(w, part, left, right, n, row, transposed=not across, in_registers=held)
        made += part
    del width
    return [replace(sums, registers=made)]


def _packed(w: Writer, a: Fragment, block: int, step: int, k: int) -> list[SSAValue]:
    """Four registers with two numbers of 16 bits each."""
    from xdsl.dialects import arith

    b = w.b
    i16 = IntegerType(16)
    first = block * (k // 2) + step * 8
    found: list[SSAValue] = []
    for at in range(first, first + 8, 2):
        low, high = (b.cast(arith.ExtUIOp, b.bitcast(r, i16), i32) for r in a.registers[at : at + 2])
        found.append(b.ori(low, b.shli(high, b.constant(16, i32))))
    return found


def _issue(
    w: Writer,
    part: Sequence[SSAValue],
    left: Sequence[SSAValue],
    right: SSAValue,
    n: int,
    row: Any,
    *,
    transposed: bool,
    in_registers: bool,
) -> list[SSAValue]:
    count = len(part)
    registers = ", ".join(f"${i}" for i in range(count))
    factors = [f"${count + i + count}" for i in range(len(left))]
    first = f"{{{', '.join(factors)}}}" if in_registers else factors[0]
    flags = ["1"] * row.signs
    if row.can_transpose:
        flags += ([] if in_registers else ["0"]) + [str(int(transposed))]
    after = 2 * count + len(left)
    text = ", ".join(
        [
            f"wgmma.mma_async.sync.aligned.m64n{n}k{row.terms}.{row.types} {{{registers}}}",
            first,
            f"${after}",
            "1",
            *flags,
        ]
    )
    return list(
        w.ptx(f"{text};", [*part, *left, right], [row.element] * count, ties=count)
    )


# ---------------------------------------------------------------- others


def _index_cast(w: Writer, op: Operation) -> Sequence[Any]:
    type_ = op.results[0].type
    return [w.b.cast_index(w.values[op.operands[0]], type_)]


def _identity(kind: str) -> Callable[[Writer, Operation], Sequence[Any]]:
    return lambda w, op: [w.b.index(getattr(w.b, kind)())]


def _text(text: str) -> Callable[[Writer, Operation], Sequence[Any]]:
    def write(w: Writer, op: Operation) -> Sequence[Any]:
        del op
        w.ptx(text)
        return ()

    return write


def _meet(w: Writer, op: Operation) -> Sequence[Any]:
    del op
    w.meet()
    return [None]


def _registers(w: Writer, op: Operation) -> Sequence[Any]:
    action = "inc" if "increase" in str(op.properties["action"]) else "dec"
    w.ptx(f"setmaxnreg.{action}.sync.aligned.u32 {integer_of(op, 'regCount')};")
    return ()


def _wait_products(w: Writer, op: Operation) -> Sequence[Any]:
    w.ptx(f"wgmma.wait_group.sync.aligned {integer_of(op, 'group')};")
    return ()


def _same(w: Writer, op: Operation) -> Sequence[Any]:
    return [w.values[op.operands[0]]]


def _fence_init(w: Writer, op: Operation) -> Sequence[Any]:
    del op
    w.b.barrier_fence()
    return ()


def _block_barrier(w: Writer, op: Operation) -> Sequence[Any]:
    del op
    w.b.barrier()
    return ()


OPERATIONS: Mapping[str, Callable[[Writer, Operation], Sequence[Any]]] = {
    "scf.for": _for,
    "scf.if": _if,
    "vector.broadcast": _broadcast,
    "vector.shape_cast": _shape_cast,
    "vector.extract": _extract,
    "vector.multi_reduction": _reduce,
    "tpu.iota": _iota,
    "tpu.assume_multiple": _same,
    "arith.index_cast": _index_cast,
    "builtin.unrealized_conversion_cast": _same,
    "gpu.block_id": _identity("block_id"),
    "gpu.thread_id": _identity("thread_id"),
    "gpu.barrier": _block_barrier,
    "llvm.inline_asm": _meet,
    "memref.alloca": _alloca,
    "memref.load": _scalar_load,
    "memref.store": _scalar_store,
    "memref.subview": _subview,
    "memref.transpose": _transpose,
    "mosaic_gpu.arrive": _arrive,
    "mosaic_gpu.arrive_expect_tx": _expect,
    "mosaic_gpu.async_load": _async_load,
    "mosaic_gpu.async_prefetch": lambda w, op: (),
    "mosaic_gpu.async_store": _async_store,
    "mosaic_gpu.broadcasted_iota": _iota,
    "mosaic_gpu.get_cluster_ref": _cluster_ref,
    "mosaic_gpu.initialize_barrier": _initialize,
    "mosaic_gpu.layout_cast": _cast_layout,
    "mosaic_gpu.slice_smem": _slice_smem,
    "mosaic_gpu.vector_load": _vector_load,
    "mosaic_gpu.vector_store": _vector_store,
    "mosaic_gpu.wait": _wait,
    "mosaic_gpu.wgmma": _wgmma,
    "mosaic_gpu.with_transforms": _with_transforms,
    "nvvm.cluster.arrive": _text("barrier.cluster.arrive.release.aligned;"),
    "nvvm.cluster.wait": _text("barrier.cluster.wait.acquire.aligned;"),
    "nvvm.cp.async.bulk.commit.group": _commit,
    "nvvm.cp.async.bulk.wait_group": _wait_group,
    "nvvm.fence.mbarrier.init": _fence_init,
    "nvvm.fence.proxy": _text("fence.proxy.async.shared::cta;"),
    "nvvm.setmaxregister": _registers,
    "nvvm.wgmma.commit.group.sync.aligned": _text("wgmma.commit_group.sync.aligned;"),
    "nvvm.wgmma.fence.aligned": _text("wgmma.fence.sync.aligned;"),
    "nvvm.wgmma.wait.group.sync.aligned": _wait_products,
}
"""What writes each operation."""
_USED = (GROUP, Float32Type, _KINDS, Attribute)
