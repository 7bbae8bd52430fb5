"""Rows of the dialects that kernels for GPUs are lowered to: gpu, nvvm, llvm, and more of memref."""

from __future__ import annotations

from mlirhlo.dialects.tpu.rows import Row, row


def _family(dialect: str, names: str, signature: str, form: str, attributes: str = "") -> list[Row]:
    return [row(f"{dialect}.{name}", signature, form, attributes) for name in names.split()]


_CAST = " {arg}{dict} : {:arg} to {:res}"
_BINARY = "lhs=res, rhs=res -> res"
_OVERFLOW = "overflowFlags=#llvm.overflow<none>"

_LLVM = [
    row(
        "llvm.mlir.global",
        "",
        "!global",
        "sym_name, global_type, linkage, visibility_=0 : i64, addr_space?, value?, constant?, "
        "unnamed_addr?, alignment?, section?, dso_local?, thread_local_?, comdat?, externally_initialized?",
        regions=1,
    ),
    row("llvm.mlir.constant", "-> res", "({value:attribute}){dict} : {:res}", "value"),
    *_family("llvm", "mlir.undef mlir.poison mlir.zero", "-> res", "{dict} : {:res}"),
    row(
        "llvm.load",
        "addr -> res",
        "(? {volatile_:word.volatile}?) {addr}{dict} : {:addr} -> {:res}",
        "volatile_?, ordering=0 : i64, alignment?, nontemporal?, invariant?, syncscope?",
    ),
    row(
        "llvm.store",
        "value, addr",
        "(? {volatile_:word.volatile}?) {value}, {addr}{dict} : {:value}, {:addr}",
        "volatile_?, ordering=0 : i64, alignment?, nontemporal?, syncscope?",
    ),
    row(
        "llvm.alloca",
        "arraySize -> res",
        " {arraySize} x {elem_type:attribute}{dict} : {fn}",
        "elem_type, alignment?, inalloca?",
    ),
    row(
        "llvm.getelementptr",
        "base, *dynamicIndices -> res",
        " {base}[{rawConstantIndices:mixed32.dynamicIndices}]{dict} : {fn}, {elem_type:attribute}",
        "rawConstantIndices, elem_type, noWrapFlags=0 : i32",
    ),
    row(
        "llvm.insertvalue",
        "container, value -> res=container",
        " {value}, {container}{position:i64s}{dict} : {:container} ",
        "position",
    ),
    row("llvm.extractvalue", "container -> res", "!extractvalue", "position"),
    row(
        "llvm.insertelement",
        "vector, value, position -> res=vector",
        " {value}, {vector}[{position} : {:position}]{dict} : {:vector}",
    ),
    row(
        "llvm.extractelement",
        "vector, position -> res=element(vector)",
        " {vector}[{position} : {:position}]{dict} : {:vector}",
    ),
    *_family(
        "llvm",
        "add sub mul shl",
        _BINARY,
        " {lhs}, {rhs}(? overflow{overflowFlags:case.llvm.overflow}?){dict} : {:res}",
        _OVERFLOW,
    ),
    *_family(
        "llvm", "and or xor lshr ashr udiv sdiv urem srem", _BINARY, " {lhs}, {rhs}{dict} : {:res}"
    ),
    *_family(
        "llvm",
        "fadd fsub fmul fdiv frem",
        _BINARY,
        " {lhs}, {rhs}{dict} : {:res}",
        "fastmathFlags=#llvm.fastmath<none>",
    ),
    *_family(
        "llvm",
        "ptrtoint inttoptr bitcast addrspacecast zext sext trunc fpext fptrunc sitofp uitofp fptosi fptoui",
        "arg -> res",
        _CAST,
    ),
    row(
        "llvm.icmp",
        "lhs, rhs=lhs -> res=i1(lhs)",
        " {predicate:icmp} {lhs}, {rhs}{dict} : {:lhs}",
        "predicate",
    ),
    row(
        "llvm.select",
        "condition, trueValue=res, falseValue=res -> res",
        " {condition}, {trueValue}, {falseValue}{dict} : {:condition}, {:res}",
        "fastmathFlags=#llvm.fastmath<none>",
    ),
    row(
        "llvm.inline_asm",
        "*operands_ -> ?res",
        "(? {has_side_effects:word.has_side_effects}?)(? {is_align_stack:word.is_align_stack}?)"
        "(? asm_dialect = {asm_dialect:asm_dialect}?){dict} {asm_string:text}, {constraints:text}"
        " {operands_} : {fn}",
        "asm_string, constraints, has_side_effects?, is_align_stack?, "
        "tail_call_kind=#llvm.tailcallkind<none>, asm_dialect?, operand_attrs?",
    ),
    row(
        "llvm.atomicrmw",
        "ptr, val -> res=val",
        " {bin_op:atomic} {ptr}, {val} {ordering:ordering}{dict} : {:ptr}, {:val}",
        "bin_op, ordering, syncscope?, alignment?, volatile_?",
    ),
    *_family(
        "llvm",
        "intr.fma intr.fmuladd",
        "a, b, c -> res",
        "({a}, {b}, {c}){dict} : {fn}",
        "fastmathFlags=#llvm.fastmath<none>",
    ),
    row("llvm.return", "?arg", "{dict}(? {arg} : {:arg}?)", terminator=True),
]

_DIMENSIONS = (
    "thread_id block_id block_dim grid_dim global_id cluster_id cluster_dim cluster_block_id "
    "cluster_dim_blocks"
)
_GPU = [
    *_family(
        "gpu",
        _DIMENSIONS,
        "-> result=index",
        " {dimension:of.gpu.dim}{dict}",
        "dimension, upper_bound?",
    ),
    row("gpu.lane_id", "-> result=index", "{dict}", "upper_bound?"),
    row(
        "gpu.barrier",
        "",
        "(? memfence {address_spaces:attribute}?){dict}",
        "address_spaces?, scope=#gpu.barrier_scope<workgroup>",
    ),
    row("gpu.dynamic_shared_memory", "-> result", "{dict} : {:result}"),
    row(
        "gpu.shuffle",
        "value=shuffleResult, offset=i32, width=i32 -> shuffleResult, valid=i1",
        " {mode:of.gpu.shuffle_mode} {value}, {offset}, {width}{dict} : {:shuffleResult}",
        "mode",
    ),
    row("gpu.printf", "*args", " {format:text}{dict}(?, {args} : {:args}?)", "format"),
    row(
        "gpu.launch",
        "*asyncDependencies, gridSizeX=index, gridSizeY=index, gridSizeZ=index, blockSizeX=index, "
        "blockSizeY=index, blockSizeZ=index, ?clusterSizeX=index, ?clusterSizeY=index, ?clusterSizeZ=index, "
        "?dynamicSharedMemorySize=i32 -> ?asyncToken",
        "!launch",
        segments=True,
        regions=1,
    ),
    row("gpu.terminator", "", "{dict}", terminator=True),
]

_NVVM = [
    *_family(
        "nvvm",
        "wgmma.fence.aligned wgmma.commit.group.sync.aligned fence.mbarrier.init "
        "fence.sc.cluster breakpoint cp.async.commit.group",
        "",
        "{dict}",
    ),
    *_family(
        "nvvm", "cluster.arrive cluster.arrive.relaxed cluster.wait", "", "{dict}", "aligned?"
    ),
    row("nvvm.cp.async.bulk.commit.group", "", "{dict}"),
    row("nvvm.wgmma.wait.group.sync.aligned", "", "{dict} {group:i64}", "group"),
    row("nvvm.cp.async.bulk.wait_group", "", " {group:i32}{dict}", "group, read?"),
    row("nvvm.cp.async.wait.group", "", " {n:i32}{dict}", "n"),
    row("nvvm.fence.proxy", "", "{dict}", "kind, space?"),
    row("nvvm.griddepcontrol", "", " {kind:of.nvvm.grid_dep_action}{dict}", "kind"),
    row(
        "nvvm.setmaxregister",
        "",
        " {action:of.nvvm.action} {regCount:i32}{dict}",
        "action, regCount",
    ),
    row("nvvm.elect.sync", "?membermask -> pred", "(? {membermask}?){dict} -> {:pred}"),
    row(
        "nvvm.shfl.sync",
        "thread_mask=i32, val, offset=i32, mask_and_clamp=i32 -> res",
        " {kind:of.nvvm.shfl_kind} {thread_mask}, {val}, {offset}, {mask_and_clamp}{dict}"
        " : {:val} -> {:res}",
        "kind, return_value_and_is_valid?",
    ),
    row(
        "nvvm.mbarrier.init",
        "addr, count, ?predicate",
        " {addr}, {count}(?, predicate = {predicate}?){dict} : {:all}",
    ),
    row("nvvm.mbarrier.inval", "addr", " {addr}{dict} : {:addr}"),
    *_family(
        "nvvm",
        "mbarrier.arrive mbarrier.arrive.nocomplete",
        "addr, ?count -> ?res",
        " {addr}(?, {count}?){dict} : {:all}(? -> {:res}?)",
        "relaxed=false, scope=#nvvm.mem_scope<cta>",
    ),
    row(
        "nvvm.mbarrier.arrive.expect_tx",
        "addr, txcount, ?predicate -> ?res",
        " {addr}, {txcount}(?, predicate = {predicate}?){dict} : {:all}(? -> {:res}?)",
        "relaxed=false, scope=#nvvm.mem_scope<cta>",
    ),
    row(
        "nvvm.mbarrier.try_wait.parity",
        "addr, phase, ticks",
        " {addr}, {phase}, {ticks}{dict} : {:all}",
    ),
    row(
        "nvvm.mbarrier.test.wait",
        "addr, state -> res",
        " {addr}, {state}{dict} : {:all} -> {:res}",
        "relaxed=false, scope=#nvvm.mem_scope<cta>",
    ),
    row("nvvm.mapa", "a, b=i32 -> res", " {a}, {b}{dict} : {:a} -> {:res}"),
    row(
        "nvvm.cp.async.bulk.tensor.shared.cluster.global",
        "dstMem, tmaDescriptor, *coordinates=i32, mbar, *im2colOffsets, ?multicastMask, ?l2CacheHint, ?predicate",
        " {dstMem}, {tmaDescriptor}, {mbar}, box[{coordinates}](? im2col[{im2colOffsets}]?)"
        "(? multicast_mask = {multicastMask}?)(? l2_cache_hint = {l2CacheHint}?)"
        "(? predicate = {predicate}?){dict} : {:dstMem}, {:tmaDescriptor}",
        "mode=#nvvm.tma_load_mode<tile>, isCTAOnly=false, group?",
        segments=True,
    ),
    row(
        "nvvm.cp.async.bulk.tensor.global.shared.cta",
        "tmaDescriptor, srcMem, *coordinates=i32, ?l2CacheHint, ?predicate",
        " {tmaDescriptor}, {srcMem}, box[{coordinates}](? l2_cache_hint = {l2CacheHint}?)"
        "(?, predicate = {predicate}?){dict} : {:tmaDescriptor}, <3>",
        "mode=#nvvm.tma_store_mode<tile>",
        segments=True,
    ),
    row(
        "nvvm.cp.async.bulk.tensor.prefetch",
        "tmaDescriptor, *coordinates=i32, *im2colOffsets, ?l2CacheHint",
        " {tmaDescriptor}, box[{coordinates}](? im2col[{im2colOffsets}]?)"
        "(? l2_cache_hint = {l2CacheHint}?){dict} : {:tmaDescriptor}",
        "mode=#nvvm.tma_load_mode<tile>",
        segments=True,
    ),
    *_family(
        "nvvm",
        "tcgen05.alloc tcgen05.dealloc",
        "addr, nCols",
        " {addr}, {nCols}{dict} : {:all}",
        "group=#nvvm.cta_group<cta_1>",
    ),
    row("nvvm.tcgen05.relinquish_alloc_permit", "", "{dict}", "group=#nvvm.cta_group<cta_1>"),
    row("nvvm.tcgen05.fence", "", " {kind:case.nvvm.tcgen05_fence}{dict}", "kind"),
    row(
        "nvvm.tcgen05.commit",
        "addr, ?multicastMask",
        " {addr}(?, multicast_mask = {multicastMask}?){dict} : {:all}",
        "group=#nvvm.cta_group<cta_1>",
    ),
    row("nvvm.tcgen05.wait", "", " {kind:case.nvvm.tcgen05_wait}{dict}", "kind"),
]

_METADATA = "source -> base_buffer, offset, *sizes, *strides"
_MEMREF = [
    row(
        "memref.reinterpret_cast",
        "source, *offsets=index, *sizes=index, *strides=index -> result",
        " {source} to offset: [{static_offsets:mixed.offsets}], sizes: [{static_sizes:mixed.sizes}],"
        " strides: [{static_strides:mixed.strides}]{dict} : {:source} to {:result}",
        "static_offsets, static_sizes, static_strides",
        segments=True,
    ),
    row(
        "memref.expand_shape",
        "src, *output_shape=index -> result",
        " {src} {reassociation:nested} output_shape [{static_output_shape:mixed.output_shape}]{dict}"
        " : {:src} into {:result}",
        "reassociation, static_output_shape",
    ),
    row(
        "memref.collapse_shape",
        "src -> result",
        " {src} {reassociation:nested}{dict} : {:src} into {:result}",
        "reassociation",
    ),
    row(
        "memref.transpose",
        "in -> result",
        " {in} {permutation:map}{dict} : {:in} to {:result}",
        "permutation",
    ),
    row(
        "memref.view",
        "source, byte_shift=index, *sizes=index -> result",
        " {source}[{byte_shift}][{sizes}]{dict} : {:source} to {:result}",
    ),
    row("memref.extract_strided_metadata", _METADATA, " {source}{dict} : {:source} -> {:outs}"),
    row(
        "memref.reshape",
        "source, shape -> result",
        " {source}({shape}){dict} : {fn}",
    ),
    row(
        "memref.assume_alignment",
        "memref=result -> result",
        " {memref}, {alignment:i32}{dict} : {:result}",
        "alignment",
    ),
]

_BUILTIN = [
    row(
        "builtin.unrealized_conversion_cast",
        "*inputs -> *outputs",
        "(? {inputs} : {:inputs}?) to {:outputs}{dict}",
    ),
]

OTHERS: tuple[Row, ...] = (*_LLVM, *_GPU, *_NVVM, *_MEMREF, *_BUILTIN)
"""All of them."""
