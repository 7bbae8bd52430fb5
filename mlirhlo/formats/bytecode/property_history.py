"""Properties that operations had in earlier versions of MLIR, the latest first.

Bytecode tells no version of the operations it holds, so what does not fit the layout of
today may fit one of these. Written by `tools/bytecode_properties.py --earlier`.
"""

from __future__ import annotations

EARLIER: dict[str, tuple[str, ...]] = {
    "arith.addf": ("fastmath?",),
    "arith.cmpf": ("predicate",),
    "arith.divf": ("fastmath?",),
    "arith.mulf": ("fastmath?",),
    "arith.subf": ("fastmath?",),
    "arith.truncf": ("roundingmode?",),
    "cf.cond_br": ("operandSegments=3",),
    "chlo.scan": ("dimension is_associative? is_reverse? operandSegments=2 resultSegments=2",),
    "func.call": ("callee",),
    "func.func": ("arg_attrs? function_type res_attrs? sym_name sym_visibility?",),
    "gpu.barrier": ("address_spaces?",),
    "gpu.block_dim": ("dimension",),
    "gpu.block_id": ("dimension",),
    "gpu.cluster_block_id": ("dimension",),
    "gpu.cluster_dim": ("dimension",),
    "gpu.cluster_dim_blocks": ("dimension",),
    "gpu.cluster_id": ("dimension",),
    "gpu.func": (
        (
            "arg_attrs? function_type known_block_size? known_cluster_size? known_grid_size? "
            "private_attrib_attrs? res_attrs? workgroup_attrib_attrs?"
        ),
        (
            "arg_attrs? function_type known_block_size? known_grid_size? private_attrib_attrs? "
            "res_attrs? workgroup_attrib_attrs?"
        ),
        "arg_attrs? function_type private_attrib_attrs? res_attrs? workgroup_attrib_attrs?",
    ),
    "gpu.global_id": ("dimension",),
    "gpu.grid_dim": ("dimension",),
    "gpu.launch": (
        "function? module? operandSegments=11",
        "kernelFunc? kernelModule? operandSegments=11",
        "operandSegments=11",
    ),
    "gpu.launch_func": ("kernel operandSegments=13",),
    "gpu.subgroup_reduce": ("op uniform?",),
    "gpu.thread_id": ("dimension",),
    "llvm.call": (
        (
            "CConv? TailCallKind? access_groups? alias_scopes? allocsize? always_inline? "
            "arg_attrs? callee? cold? convergent? default_func_attrs? fastmathFlags? hot? "
            "inline_hint? memory_effects? minsize? modular_format? no_caller_saved_registers? "
            "no_inline? no_unwind? noalias_scopes? nobuiltin? nobuiltins? nocallback? "
            "noduplicate? noreturn? op_bundle_sizes op_bundle_tags? optsize? res_attrs? "
            "returns_twice? save_reg_params? tbaa? trap_func_name? var_callee_type? will_return? "
            "zero_call_used_regs? operandSegments=2"
        ),
        (
            "CConv? TailCallKind? access_groups? alias_scopes? always_inline? arg_attrs? callee? "
            "convergent? fastmathFlags? inline_hint? memory_effects? no_inline? no_unwind? "
            "noalias_scopes? op_bundle_sizes op_bundle_tags? res_attrs? tbaa? var_callee_type? "
            "will_return? operandSegments=2"
        ),
        (
            "CConv? TailCallKind? access_groups? alias_scopes? always_inline? arg_attrs? "
            "branch_weights? callee? convergent? fastmathFlags? inline_hint? memory_effects? "
            "no_inline? no_unwind? noalias_scopes? op_bundle_sizes op_bundle_tags? res_attrs? "
            "tbaa? var_callee_type? will_return? operandSegments=2"
        ),
        (
            "CConv? TailCallKind? access_groups? alias_scopes? arg_attrs? branch_weights? callee? "
            "convergent? fastmathFlags? memory_effects? no_unwind? noalias_scopes? "
            "op_bundle_sizes op_bundle_tags? res_attrs? tbaa? var_callee_type? will_return? "
            "operandSegments=2"
        ),
        (
            "CConv? TailCallKind? access_groups? alias_scopes? branch_weights? callee? "
            "convergent? fastmathFlags? memory_effects? no_unwind? noalias_scopes? "
            "op_bundle_sizes op_bundle_tags? tbaa? var_callee_type? will_return? "
            "operandSegments=2"
        ),
        (
            "CConv? access_groups? alias_scopes? branch_weights? callee? callee_type? "
            "fastmathFlags? noalias_scopes? tbaa?"
        ),
    ),
    "llvm.call_intrinsic": (
        "fastmathFlags? intrin op_bundle_sizes op_bundle_tags? operandSegments=2",
        "fastmathFlags? intrin",
    ),
    "llvm.func": (
        (
            "CConv? alignment? allocsize? always_inline? arg_attrs? arm_in_za? arm_inout_za? "
            "arm_locally_streaming? arm_new_za? arm_out_za? arm_preserves_za? arm_streaming? "
            "arm_streaming_compatible? cold? comdat? convergent? default_func_attrs? "
            "denormal_fpenv? dso_local? fp_contract? frame_pointer? function_entry_count? "
            "function_type garbageCollector? hot? inline_hint? instrument_function_entry? "
            "instrument_function_exit? intel_reqd_sub_group_size? linkage? memory_effects? "
            "minsize? modular_format? no_caller_saved_registers? no_inline? no_nans_fp_math? "
            "no_signed_zeros_fp_math? no_unwind? nobuiltins? nocallback? noduplicate? noreturn? "
            "optimize_none? optsize? passthrough? personality? prefer_vector_width? "
            "reciprocal_estimates? reqd_work_group_size? res_attrs? returns_twice? "
            "save_reg_params? section? sym_name sym_visibility? target_cpu? target_features? "
            "tune_cpu? unnamed_addr? uwtable_kind? vec_type_hint? visibility_? vscale_range? "
            "will_return? work_group_size_hint? zero_call_used_regs?"
        ),
        (
            "CConv? alignment? always_inline? arg_attrs? arm_in_za? arm_inout_za? "
            "arm_locally_streaming? arm_new_za? arm_out_za? arm_preserves_za? arm_streaming? "
            "arm_streaming_compatible? comdat? convergent? denormal_fp_math? "
            "denormal_fp_math_f32? dso_local? fp_contract? frame_pointer? function_entry_count? "
            "function_type garbageCollector? inline_hint? instrument_function_entry? "
            "instrument_function_exit? intel_reqd_sub_group_size? linkage? memory_effects? "
            "no_infs_fp_math? no_inline? no_nans_fp_math? no_signed_zeros_fp_math? no_unwind? "
            "optimize_none? passthrough? personality? prefer_vector_width? reciprocal_estimates? "
            "reqd_work_group_size? res_attrs? section? sym_name sym_visibility? target_cpu? "
            "target_features? tune_cpu? unnamed_addr? uwtable_kind? vec_type_hint? visibility_? "
            "vscale_range? will_return? work_group_size_hint?"
        ),
        (
            "CConv? alignment? always_inline? approx_func_fp_math? arg_attrs? arm_in_za? "
            "arm_inout_za? arm_locally_streaming? arm_new_za? arm_out_za? arm_preserves_za? "
            "arm_streaming? arm_streaming_compatible? comdat? convergent? denormal_fp_math? "
            "denormal_fp_math_f32? dso_local? fp_contract? frame_pointer? function_entry_count? "
            "function_type garbageCollector? instrument_function_entry? instrument_function_exit? "
            "intel_reqd_sub_group_size? linkage? memory_effects? no_infs_fp_math? no_inline? "
            "no_nans_fp_math? no_signed_zeros_fp_math? no_unwind? optimize_none? passthrough? "
            "personality? prefer_vector_width? reciprocal_estimates? reqd_work_group_size? "
            "res_attrs? section? sym_name sym_visibility? target_cpu? target_features? tune_cpu? "
            "unnamed_addr? unsafe_fp_math? uwtable_kind? vec_type_hint? visibility_? "
            "vscale_range? will_return? work_group_size_hint?"
        ),
        (
            "CConv? alignment? always_inline? approx_func_fp_math? arg_attrs? arm_in_za? "
            "arm_inout_za? arm_locally_streaming? arm_new_za? arm_out_za? arm_preserves_za? "
            "arm_streaming? arm_streaming_compatible? comdat? convergent? denormal_fp_math? "
            "denormal_fp_math_f32? dso_local? fp_contract? frame_pointer? function_entry_count? "
            "function_type garbageCollector? intel_reqd_sub_group_size? linkage? memory_effects? "
            "no_infs_fp_math? no_inline? no_nans_fp_math? no_signed_zeros_fp_math? no_unwind? "
            "optimize_none? passthrough? personality? reqd_work_group_size? res_attrs? section? "
            "sym_name sym_visibility? target_cpu? target_features? tune_cpu? unnamed_addr? "
            "unsafe_fp_math? vec_type_hint? visibility_? vscale_range? will_return? "
            "work_group_size_hint?"
        ),
        (
            "CConv? alignment? always_inline? approx_func_fp_math? arg_attrs? arm_in_za? "
            "arm_inout_za? arm_locally_streaming? arm_new_za? arm_out_za? arm_preserves_za? "
            "arm_streaming? arm_streaming_compatible? comdat? dso_local? frame_pointer? "
            "function_entry_count? function_type garbageCollector? linkage? memory? "
            "no_infs_fp_math? no_inline? no_nans_fp_math? no_signed_zeros_fp_math? optimize_none? "
            "passthrough? personality? res_attrs? section? sym_name sym_visibility? target_cpu? "
            "target_features? unnamed_addr? unsafe_fp_math? visibility_? vscale_range?"
        ),
    ),
    "llvm.getelementptr": ("elem_type inbounds? rawConstantIndices",),
    "llvm.inline_asm": (
        ("asm_dialect? asm_string constraints has_side_effects? is_align_stack? operand_attrs?"),
    ),
    "llvm.intr.masked.load": ("alignment",),
    "llvm.intr.memcpy": ("access_groups? alias_scopes? isVolatile noalias_scopes? tbaa?",),
    "llvm.intr.memcpy.inline": (
        "access_groups? alias_scopes? isVolatile len noalias_scopes? tbaa?",
    ),
    "llvm.intr.memmove": ("access_groups? alias_scopes? isVolatile noalias_scopes? tbaa?",),
    "llvm.intr.memset": ("access_groups? alias_scopes? isVolatile noalias_scopes? tbaa?",),
    "llvm.intr.memset.inline": (
        "access_groups? alias_scopes? isVolatile len noalias_scopes? tbaa?",
    ),
    "llvm.invoke": (
        (
            "CConv? branch_weights? callee? op_bundle_sizes op_bundle_tags? var_callee_type? "
            "operandSegments=4"
        ),
        "CConv? branch_weights? callee? callee_type? operandSegments=3",
    ),
    "llvm.load": (
        (
            "access_groups? alias_scopes? alignment? invariant? invariantGroup? noalias_scopes? "
            "nontemporal? ordering? syncscope? tbaa? volatile_?"
        ),
        (
            "access_groups? alias_scopes? alignment? invariant? noalias_scopes? nontemporal? "
            "ordering? syncscope? tbaa? volatile_?"
        ),
    ),
    "llvm.mlir.global": (
        (
            "addr_space? alignment? comdat? constant? dbg_exprs? dso_local? "
            "externally_initialized? global_type linkage section? sym_name thread_local_? "
            "unnamed_addr? value? visibility_?"
        ),
        (
            "addr_space? alignment? comdat? constant? dbg_expr? dso_local? global_type linkage "
            "section? sym_name thread_local_? unnamed_addr? value? visibility_?"
        ),
    ),
    "llvm.mlir.global_ctors": ("ctors priorities",),
    "llvm.mlir.global_dtors": ("dtors priorities",),
    "llvm.store": (
        (
            "access_groups? alias_scopes? alignment? noalias_scopes? nontemporal? ordering? "
            "syncscope? tbaa? volatile_?"
        ),
    ),
    "math.fma": ("fastmath?",),
    "memref.expand_shape": ("reassociation",),
    "memref.load": ("nontemporal?",),
    "memref.store": ("nontemporal?",),
    "mhlo.async_start": ("called_computation execution_thread group_id?",),
    "mhlo.dot_general": ("dot_dimension_numbers precision_config?",),
    "mhlo.recv": ("channel_handle is_host_transfer?",),
    "mhlo.scan": ("dimension is_associative? is_reverse? operandSegments=2 resultSegments=2",),
    "mhlo.send": ("channel_handle is_host_transfer?",),
    "mhlo.topk": ("k",),
    "nvgpu.rcp": ("ftz? rounding?",),
    "nvvm.barrier": ("reductionOp? operandSegments=3",),
    "nvvm.convert.bf16x2.to.f8x2": (
        "dstTy rnd? sat?",
        "rnd? sat? type",
    ),
    "nvvm.convert.f16x2.to.f8x2": ("relu? type",),
    "nvvm.convert.f32x2.to.f6x2": ("relu? type",),
    "nvvm.convert.f32x2.to.f8x2": ("relu? rnd? sat? type",),
    "nvvm.cp.async.bulk.tensor.global.shared.cta": ("operandSegments=4",),
    "nvvm.cp.async.bulk.tensor.prefetch": ("operandSegments=4",),
    "nvvm.cp.async.bulk.tensor.shared.cluster.global": ("operandSegments=8",),
    "nvvm.inline_ptx": ("ptxCode operandSegments=2",),
    "nvvm.ldmatrix": ("layout num",),
    "nvvm.prefetch": ("cacheLevel evictPriority? uniform?",),
    "nvvm.redux.sync": ("kind",),
    "nvvm.stmatrix": ("layout",),
    "sdy.all_gather": ("gatheringAxes outSharding",),
    "sdy.all_to_all": ("axes out_sharding src_dim tgt_dim",),
    "sparse_tensor.sort": ("algorithm operandSegments=3",),
    "stablehlo.dot_general": ("dot_dimension_numbers precision_config?",),
    "stablehlo.dynamic_conv": (
        (
            "batch_group_count dimension_numbers feature_group_count lhs_dilation? padding? "
            "precision_config? rhs_dilation? window_reversal? window_strides?"
        ),
    ),
    "stablehlo.recv": ("channel_handle is_host_transfer?",),
    "stablehlo.send": ("channel_handle is_host_transfer?",),
    "vector.contract": ("indexing_maps iterator_types kind?",),
    "vector.load": ("nontemporal?",),
    "vector.store": ("nontemporal?",),
    "vector.transfer_read": ("in_bounds? permutation_map operandSegments=4",),
    "vector.transfer_write": ("in_bounds? permutation_map operandSegments=4",),
    "vector.transpose": ("transp",),
}
