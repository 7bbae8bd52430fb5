"""Rows of the ops of the `mosaic_gpu` dialect. See `dialects/tpu/rows.py`."""

from __future__ import annotations

from mlirhlo.dialects.effects import Effect
from mlirhlo.dialects.tpu.rows import Row, row

_PRODUCT = (
    " accumulator({accumulator} : {:accumulator}) a({a} : {:a}) b({b} : {:b}){dict} -> {:result}"
)

_BARRIERS = [
    row(
        "mosaic_gpu.initialize_barrier",
        "base_pointer",
        None,
        "arrival_count, num_barriers, orders_tensor_core",
    ),
    row("mosaic_gpu.arrive", "barrier", None, "orders_tensor_core"),
    row(
        "mosaic_gpu.arrive_expect_tx",
        "barrier",
        " barrier({barrier} : {:barrier}) {expect_tx:i32}{dict}",
        "expect_tx",
    ),
    row(
        "mosaic_gpu.wait",
        "barrier, parity",
        " barrier({barrier} : {:barrier}) parity({parity} : {:parity}){dict}",
    ),
]

_COPIES = [
    row(
        "mosaic_gpu.async_load",
        "source, destination, barrier, *indices, ?predicate",
        None,
        "slice_lengths, collective, leader_tracked?, oob_fill_mode=2 : i32",
        segments=True,
    ),
    row(
        "mosaic_gpu.async_prefetch",
        "source, *indices, ?predicate",
        None,
        "slice_lengths, collective",
        segments=True,
    ),
    row(
        "mosaic_gpu.async_store",
        "source, destination, *indices, ?predicate, ?gmem_peer_id",
        None,
        "slice_lengths, commit_group?, reduction_op?, is_global_broadcast=false",
        segments=True,
    ),
    row(
        "mosaic_gpu.async_store_smem",
        "valueToStore, destination, barrier, cluster_idx",
        None,
        "cluster_dim, atomic_type?, optimized?",
    ),
    row(
        "mosaic_gpu.multimem_load_reduce",
        "source -> result",
        None,
        "reduction_type",
        effect=Effect.READ,
    ),
]

_VECTORS = [
    row("mosaic_gpu.vector_load", "source -> result", None, "optimized?", effect=Effect.READ),
    row(
        "mosaic_gpu.vector_store",
        "valueToStore, destination",
        None,
        "optimized?, atomic_type?, multimem=false",
    ),
    row(
        "mosaic_gpu.broadcast_in_dim",
        "operand -> result",
        "({operand} : {:operand}){dict} -> {:result}",
        "broadcast_dimensions",
    ),
    row("mosaic_gpu.broadcasted_iota", "-> result", None, "dimension"),
    row("mosaic_gpu.layout_cast", "x -> result=x", " x({x} : {:x}){dict}", "new_layout"),
    row("mosaic_gpu.optimization_barrier", "*operands_ -> *results", None),
    row("mosaic_gpu.vector_concat", "*sources -> result", None, "dimension"),
    row("mosaic_gpu.wgmma", "accumulator, a, b -> result", _PRODUCT, effect=Effect.WRITE),
    row("mosaic_gpu.mma", "accumulator, a, b -> result", _PRODUCT),
    row("mosaic_gpu.debug_print", "value", None, "format"),
    row("mosaic_gpu.print_layout", "value", None, "format"),
]

_REFERENCES = [
    row("mosaic_gpu.slice_smem", "-> result", None, "offset, alias_id?"),
    row("mosaic_gpu.with_transforms", "ref -> result", None, "transforms"),
    row("mosaic_gpu.reinterpret_cast", "source -> result", None),
    row(
        "mosaic_gpu.get_cluster_ref",
        "source, ?x, ?y, ?z -> result",
        None,
        segments=True,
    ),
    row(
        "mosaic_gpu.assume_multiple",
        "value=result -> result",
        " {value}, {multiple:i32}{dict} : {:result}",
        "multiple",
    ),
]

_TENSOR_MEMORY = [
    row(
        "mosaic_gpu.tmem_alloc",
        "smem_ptr -> result",
        " smem_ptr({smem_ptr} : {:smem_ptr}){dict} -> {:result}",
        "collective=false, packing=1 : i32",
        effect=Effect.WRITE,
    ),
    row("mosaic_gpu.tmem_dealloc", "tmem_ref", " tmem_ref({tmem_ref} : {:tmem_ref}){dict}"),
    row("mosaic_gpu.tmem_relinquish_alloc_permit", "", None, "collective=false"),
    row("mosaic_gpu.tmem_layout_cast", "ref -> result", None, "new_layout"),
    row("mosaic_gpu.slice_tmem", "source -> result", None, "offset"),
    row("mosaic_gpu.async_load_tmem", "source -> result", None, effect=Effect.READ),
    row("mosaic_gpu.async_store_tmem", "source, destination", None),
    *(
        row(
            f"mosaic_gpu.async_store_{what}smem_to_tmem",
            "source, destination",
            None,
            "collective=false",
        )
        for what in ("", "scales_", "sparse_metadata_")
    ),
    row(
        "mosaic_gpu.tcgen05_mma",
        "accumulator, a, b, accumulate, ?a_scale, ?b_scale, ?a_sparse_metadata",
        None,
        "collective=false",
        segments=True,
    ),
    row("mosaic_gpu.tcgen05_commit_arrive", "barrier", None, "collective=false"),
]

_CONTROL = [
    row(
        "mosaic_gpu.custom_primitive",
        "*operands_ -> *results",
        None,
        "in_layouts, in_transforms, out_layouts",
        regions=1,
        effect=Effect.WRITE,
    ),
    row(
        "mosaic_gpu.return",
        "*operands_",
        "{dict}(? {operands_} : {:operands_}?)",
        terminator=True,
    ),
    row("mosaic_gpu.warp_map", "*operands_", None, regions=1),
    row("mosaic_gpu.try_cluster_cancel", "cancellation_result, barrier, ?predicate", None),
    row(
        "mosaic_gpu.query_cluster_cancel",
        "cancellation_result -> x, y, z, success",
        None,
        effect=Effect.READ,
    ),
]

ROWS: tuple[Row, ...] = (
    *_BARRIERS,
    *_COPIES,
    *_VECTORS,
    *_REFERENCES,
    *_TENSOR_MEMORY,
    *_CONTROL,
)
"""A row for every op of the dialect."""
