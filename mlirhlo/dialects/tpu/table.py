"""All rows: Mosaic's own ops here, those of other dialects in `common.py`."""

from __future__ import annotations

from collections.abc import Mapping

from mlirhlo.dialects.effects import Effect
from mlirhlo.dialects.mosaic_gpu.others import OTHERS
from mlirhlo.dialects.mosaic_gpu.table import ROWS as MOSAIC_GPU_ROWS
from mlirhlo.dialects.tpu.common import COMMON
from mlirhlo.dialects.tpu.rows import Row, row

_UNARY = " {input}{dict} : {:input} -> {:result}"
_MEMREF = " {mem_ref}{dict} : {:mem_ref} -> {:result}"
_LOAD = " {base}[{indices}]{dict} : {:base}, {:result}"
_STORE = " {base}[{indices}], {value}{dict} : {:base}, {:value}"
_LONE = "{dict} : {:result}"
_SEMAPHORES = (
    "(? source_semaphore({source_semaphore} : {:source_semaphore})?)"
    "(? target_semaphore({target_semaphore} : {:target_semaphore})?)"
    "(? device_id({device_id})?)(? core_id({core_id})?)(? subcore_id({subcore_id})?){dict}"
)
_COPY = " source({source} : {:source}) target({target} : {:target})" + _SEMAPHORES
_COPY_OPERANDS = (
    "source, ?source_semaphore, target, ?target_semaphore, "
    "?device_id=i32, ?core_id=i32, ?subcore_id=i32"
)


def _unary(*names: str, attributes: str = "") -> list[Row]:
    return [row(name, "input -> result", _UNARY, attributes) for name in names]


_MEMORY = [
    row(
        "tpu.vector_load",
        "base, *indices=index, ?mask -> result",
        " {base}[{indices}](? masked {mask}?){dict} : {:base}, {:result}, {:mask}",
        "strides",
        segments=True,
        effect=Effect.READ,
    ),
    row(
        "tpu.vector_store",
        "value, base, *indices=index, ?mask",
        " {base}[{indices}], {value}(? masked {mask}?){dict} : {:base}, {:value}, {:mask}",
        "strides, add=false",
        segments=True,
    ),
    row("tpu.strided_load", "base, *indices=index -> result", _LOAD, "strides", effect=Effect.READ),
    row("tpu.strided_store", "value, base, *indices=index", _STORE, "strides"),
    row(
        "tpu.vector_load_idx",
        "base, *indices, ?mask -> result",
        " {base}[{indices}](? masked {mask}?){dict} : {:base}[{:indices}], {:result}, {:mask}",
        segments=True,
        effect=Effect.READ,
    ),
    row(
        "tpu.vector_store_idx",
        "value, base, *indices, ?mask",
        " {base}[{indices}], {value}(? masked {mask}?){dict}"
        " : {:base}[{:indices}], {:value}, {:mask}",
        "add=false",
        segments=True,
    ),
    row(
        "tpu.load",
        "base, *indices=index -> result",
        " {base}[{indices}] sublanes {sublane_mask:flags}(? sublane_stride {sublane_stride:i32}?)"
        "{dict} : {:base}, {:result}",
        "sublane_mask, sublane_stride=1 : i32",
        effect=Effect.READ,
    ),
    row(
        "tpu.store",
        "value, base, *indices=index, ?mask",
        " {base}[{indices}], {value}(? masked {mask}?) sublanes {sublane_mask:flags}"
        "(? sublane_stride {sublane_stride:i32}?){dict} : {:base}, {:value}, {:mask}",
        "sublane_mask, sublane_stride=1 : i32, add=false",
        segments=True,
    ),
    row(
        "tpu.shuffled_load",
        "base, *indices=index -> result",
        _LOAD,
        "sublane_mask, sublane_offsets",
        effect=Effect.READ,
    ),
    row(
        "tpu.shuffled_store", "value, base, *indices=index", _STORE, "sublane_mask, sublane_offsets"
    ),
]

_VECTORS = [
    *_unary(
        "tpu.reshape",
        "tpu.bitcast",
        "tpu.bitcast_vreg",
        "tpu.mask_cast",
        "tpu.assume_layout",
        "tpu.extf",
        "tpu.weird",
        "tpu.logistic",
        "mosaic_tc.relayout",
    ),
    *_unary(
        "tpu.fptosi",
        "tpu.fptoui",
        "tpu.sitofp",
        "tpu.uitofp",
        "tpu.truncf",
        attributes="rounding_mode",
    ),
    *_unary("tpu.reciprocal", attributes="approx=false, full_range=true"),
    *_unary("tpu.all_reduce", attributes="dim, kind"),
    *_unary("tpu.reduce_index", attributes="axis, kind"),
    row("tpu.iota", "-> result", _LONE, "dimensions"),
    row(
        "tpu.concatenate",
        "*sources -> result",
        " {sources} in {dimension:i32}{dict} : {:sources} -> {:result}",
        "dimension",
    ),
    row(
        "tpu.transpose",
        "input -> result",
        " {input}, {permutation:i64s}{dict} : {:input} -> {:result}",
        "permutation",
    ),
    row(
        "tpu.repeat",
        "input -> result",
        " {input}, {dimension:i32} x {times:i32}{dict} : {:input} -> {:result}",
        "dimension, times",
    ),
    row(
        "tpu.dynamic_rotate",
        "value, amount -> result",
        " {value} by {amount} dim {dimension:si32}{dict} : {:value}, {:amount} -> {:result}",
        "dimension, stride?, stride_dimension?",
    ),
    row(
        "tpu.dynamic_gather",
        "source, indices -> result",
        " {source}[{indices}] in {dimensions:i32s}{dict} : {:source}, {:indices} -> {:result}",
        "dimensions",
    ),
    row(
        "tpu.gather",
        "source -> result",
        " {source}[{indices:i32s}] in {dimension:i32}{dict} : {:source} -> {:result}",
        "indices, dimension",
    ),
    row(
        "tpu.broadcast_in_sublanes",
        "input -> result",
        " {input}, {lane:i32}{dict} : {:input} -> {:result}",
        "lane",
    ),
    row(
        "tpu.sublane_shuffle",
        "lhs, rhs -> result",
        " {lhs}, {rhs}, {pattern:i32s}{dict} : {:lhs}, {:rhs} -> {:result}",
        "pattern",
    ),
    row("tpu.roll_vectors", "*inputs -> result", " {inputs}{dict} : {:inputs} -> {:result}"),
    row("tpu.unroll_vectors", "input -> *outputs", " {input}{dict} : {:input} -> {:outputs}"),
    row(
        "tpu.create_mask", "*low=index, *high=index -> result", "[{low}] [{high}]{dict} : {:result}"
    ),
    row(
        "tpu.create_subelement_mask",
        "-> result",
        " {from:i32}, {to:i32}{dict} : {:result}",
        "from, to",
    ),
    row(
        "tpu.pack_vmsk",
        "*sources -> result",
        " {sources}{dict} : {:sources} -> {:result}",
        "positions?",
    ),
    row(
        "tpu.reduce",
        "source -> result",
        " {kind:case.tpu.reduction_kind}, {source} {dimensions:i64s}{dict} : {:source} -> {:result}",
        "kind, dimensions",
    ),
    row(
        "tpu.sort",
        "keys, values, ?mask -> output_mask, sorted_keys, sorted_values",
        " {keys}, {values}(? masked {mask}?){dict} : {fn}",
        "descending=false",
    ),
    row(
        "tpu.scan",
        "input, ?mask -> output",
        " {kind:case.tpu.reduction_kind}, {input}(? masked {mask}?){dict}"
        " : {:input}, {:mask} -> {:output}",
        "kind",
    ),
    row(
        "tpu.scan_count",
        "mask, value -> out_mask, counts",
        " mask({mask} : {:mask}) value({value} : {:value}){dict} : {:out_mask}, {:counts}",
    ),
]

_ARITHMETIC = [
    row(
        "tpu.matmul",
        "lhs, rhs, acc -> result",
        " {lhs}, {rhs}, {acc}{dict} : {:lhs}, {:rhs}, {:acc} -> {:result}",
        "dimension_numbers?, precision?, transpose_lhs=false, transpose_lhs_hint, transpose_rhs=false",
    ),
    row(
        "tpu.matmul_push_rhs",
        "rhs",
        " {rhs}{dict} : {:rhs}",
        "mxu_index, staging_register=0 : i32, transpose=false",
    ),
    row(
        "tpu.matmul_acc_lhs",
        "lhs",
        " {acc:i32}, {lhs}{dict} : {:lhs}",
        "acc, mxu_index, load_staged_rhs?",
    ),
    row(
        "tpu.matmul_pop",
        "-> result",
        " {acc:i32}{dict} : {:result}",
        "acc, mxu_index",
        effect=Effect.WRITE,
    ),
    row("tpu.matmul_lhs_fifo", "lhs", None, "mxu_index?, load_staged_rhs?"),
    row("tpu.matmul_pop_fifo", "-> result", None, "mxu_index?", effect=Effect.WRITE),
    row(
        "tpu.stochastic_convert",
        "input, random -> result",
        " {input}, {random}{dict} : {:input}, {:random} -> {:result}",
    ),
    row(
        "tpu.stochastic_convert_elementwise",
        "input, random -> result",
        " {input}, {random}{dict} : {:input}, {:random} -> {:result}",
        "dst_type",
    ),
    row(
        "tpu.pack_elementwise",
        "*sources -> result",
        " {sources}{dict} : {:sources} -> {:result}",
        "target_type",
    ),
    row(
        "tpu.unpack_elementwise",
        "input -> result",
        " {input}, {index:i32}{dict} : {:input} -> {:result}",
        "index, source_type",
    ),
    row(
        "tpu.pack_subelements",
        "*sources -> result",
        " {sources}{dict} : {:sources} -> {:result}",
        "pack_format, positions, unsigned_integers?",
    ),
    row(
        "tpu.unpack_subelements",
        "input -> result",
        " {input}, {index:i32}{dict} : {:input} -> {:result}",
        "index, pack_format, integer_extended=true, unsigned_integers=false",
    ),
    row("tpu.prng_set_seed_32", "*seeds=i32", None),
    row("tpu.prng_random_bits", "-> result", None, effect=Effect.WRITE),
]

_REFERENCES = [
    row(
        "tpu.memref_slice",
        "mem_ref, *base_idx=i32, *dynamic_sizes=i32 -> result",
        " {mem_ref}[{base_idx}](? <{dynamic_sizes}>?){dict} : {:mem_ref} -> {:result}",
        segments=True,
    ),
    row("tpu.memref_squeeze", "mem_ref -> result", _MEMREF),
    row("tpu.memref_reshape", "mem_ref -> result", _MEMREF),
    row("tpu.memref_bitcast", "mem_ref -> result", _MEMREF),
    row("tpu.erase_memref_layout", "mem_ref -> result", _MEMREF),
    row(
        "tpu.reinterpret_cast",
        "mem_ref, ?offset, *dynamic_sizes=i32 -> result",
        " {mem_ref}(? {offset}?)(? <{dynamic_sizes}>?){dict} : {:mem_ref} -> {:result}",
        segments=True,
    ),
    row(
        "tpu.assume_multiple",
        "value -> result=value",
        " {value}, {multiple:i32}{dict} : {:value}",
        "multiple",
    ),
]

_CONTROL = [
    row(
        "tpu.enqueue_dma",
        _COPY_OPERANDS,
        _COPY,
        "priority=0 : i32, strict_ordering=false",
        segments=True,
    ),
    row(
        "tpu.wait_dma",
        _COPY_OPERANDS,
        _COPY,
        "priority=0 : i32, strict_ordering=false, wait_target?",
        segments=True,
    ),
    row(
        "tpu.wait_dma2",
        "semaphore, src, dst, ?device_id=i32, ?core_id=i32",
        " semaphore({semaphore} : {:semaphore}) src({src} : {:src}) dst({dst} : {:dst})"
        "(? device_id({device_id})?)(? core_id({core_id})?){dict}",
        "strict_ordering=false",
        segments=True,
    ),
    row(
        "tpu.enqueue_indirect_dma",
        "source, target, offsets, semaphore, ?offset_filter=i32",
        " source({source} : {:source}) target({target} : {:target}) offsets({offsets} : {:offsets})"
        "(? offset_filter({offset_filter})?) semaphore({semaphore} : {:semaphore}){dict}",
        "add=false",
    ),
    row(
        "tpu.wait_indirect_dma",
        "semaphore, src, dst",
        " semaphore({semaphore} : {:semaphore}) src({src} : {:src}) dst({dst} : {:dst}){dict}",
    ),
    row("tpu.sem_alloc", "-> result", _LONE, effect=Effect.WRITE),
    row("tpu.sem_barrier", "-> result", _LONE),
    row(
        "tpu.sem_signal",
        "semaphore, amount=i32, ?device_id=i32, ?core_id=i32, ?subcore_id=i32",
        " {semaphore}, {amount}(? device_id {device_id}?)(? core_id {core_id}?)"
        "(? subcore_id {subcore_id}?){dict} : {:semaphore}",
        segments=True,
    ),
    row("tpu.sem_wait", "semaphore, amount=i32", " {semaphore}, {amount}{dict} : {:semaphore}"),
    row(
        "tpu.sem_read",
        "semaphore -> result",
        " {semaphore}{dict} : {:semaphore} -> {:result}",
        effect=Effect.READ,
    ),
    row("tpu.device_id", "-> result", _LONE),
    row("tpu.core_id", "-> result", _LONE),
    row("tpu.subcore_id", "-> result", _LONE),
    row("tpu.barrier", "barrier_id=index", " barrier_id({barrier_id}){dict}"),
    row(
        "tpu.fetch_and_add_sync",
        "base, *indices=i32, value, core=i32 -> result",
        " {base}[{indices}], {value}, {core}{dict} : {:base}, {:value} -> {:result}",
        effect=Effect.WRITE,
    ),
    row("tpu.iteration_bound", "-> result", " {dim:i32}{dict} : {:result}", "dim"),
    row("tpu.internal_scratch", "-> result", _LONE),
    row("tpu.delay", "nanos=i32", " {nanos}{dict}"),
    row("tpu.region", "-> *results", None, regions=1),
    row("tpu.yield", "*results", "{dict}(? {results} : {:results}?)", terminator=True),
    row("tpu.trace", "-> *results", None, "message, level", regions=1),
    row("tpu.trace_start", "", None, "message, level"),
    row("tpu.trace_stop", "", None),
    row("tpu.trace_value", "value", " {value}, {label:text}{dict} : {:value}", "label"),
    row(
        "tpu.log",
        "*inputs",
        " {tag:text}{dict}(? : [{inputs}] : {:inputs}?)",
        "tag, formatted=false",
    ),
    row("tpu.log_buffer", "input", " {tag:text}{dict} : {input} : {:input}", "tag, shape"),
]

_COMPILER = [
    row("llo.core_index", "-> result", _LONE),
    row(
        "mosaic_sc.relayout",
        "input -> result=input",
        " {input} from {in_layouts:attribute} to {out_layouts:attribute}{dict} : {:input}",
        "in_layouts, out_layouts",
    ),
]
"""What the compiler's passes leave in the text before they lower it."""

_SPARSE_CORE = [
    row(
        "sc_tpu.enqueue_transfer",
        "source, target, ?tgt_sflag",
        " source({source} : {:source}) target({target} : {:target})"
        "(? tgt_sflag({tgt_sflag} : {:tgt_sflag})?)(? sync_mode {sync_mode:case.sc_tpu.sync_mode}?)"
        "{dict}",
        "sync_mode?",
    ),
    row(
        "sc_tpu.transfer_wait",
        "source, target, ?tgt_sflag",
        " source({source} : {:source}) target({target} : {:target})"
        "(? tgt_sflag({tgt_sflag} : {:tgt_sflag})?)(? wait_target {wait_target:bool}?){dict}",
        "wait_target~true",
    ),
    row(
        "sc_tpu.vector_load",
        "base, *indices=index -> result",
        " base({base} : {:base}) [{indices}]{dict} : {:result}",
        effect=Effect.READ,
    ),
    row(
        "sc_tpu.vector_store",
        "value, base, *indices=index",
        " value({value} : {:value}) base({base} : {:base}) [{indices}]{dict}",
    ),
]

ROWS: Mapping[str, Row] = {
    found.name: found
    for found in (
        *_MEMORY,
        *_VECTORS,
        *_ARITHMETIC,
        *_REFERENCES,
        *_CONTROL,
        *_SPARSE_CORE,
        *_COMPILER,
        *COMMON,
        *MOSAIC_GPU_ROWS,
        *OTHERS,
    )
}
"""Every row by the name of its op."""
