module {
  func.func @mosaic_gpu_arrive_expect_tx_0(%arg0: memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) {
    mosaic_gpu.arrive_expect_tx barrier(%arg0 : memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) 5
    return
  }
  func.func @mosaic_gpu_arrive_1(%arg0: memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) {
    "mosaic_gpu.arrive"(%arg0) <{orders_tensor_core = false}> : (memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) -> ()
    return
  }
  func.func @mosaic_gpu_arrive_2(%arg0: memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) {
    "mosaic_gpu.arrive"(%arg0) <{orders_tensor_core = true}> : (memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) -> ()
    return
  }
  func.func @mosaic_gpu_wait_3(%arg0: memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, %arg1: i1) {
    mosaic_gpu.wait barrier(%arg0 : memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) parity(%arg1 : i1)
    return
  }
  func.func @mosaic_gpu_assume_multiple_4(%arg0: i32) {
    %0 = mosaic_gpu.assume_multiple %arg0, 8 : i32
    return
  }
  func.func @mosaic_gpu_async_load_tmem_5(%arg0: memref<128x128xf32, #mosaic_gpu.tmem>) {
    %0 = "mosaic_gpu.async_load_tmem"(%arg0) : (memref<128x128xf32, #mosaic_gpu.tmem>) -> vector<128x128xf32>
    return
  }
  func.func @mosaic_gpu_async_store_tmem_6(%arg0: vector<128x128xf32>, %arg1: memref<128x128xf32, #mosaic_gpu.tmem>) {
    "mosaic_gpu.async_store_tmem"(%arg0, %arg1) : (vector<128x128xf32>, memref<128x128xf32, #mosaic_gpu.tmem>) -> ()
    return
  }
  func.func @mosaic_gpu_async_prefetch_7(%arg0: memref<64x64xf16>, %arg1: i32, %arg2: i32) {
    "mosaic_gpu.async_prefetch"(%arg0, %arg1, %arg2) <{collective = [], operandSegmentSizes = array<i32: 1, 2, 0>, slice_lengths = array<i64: 64, 64>}> : (memref<64x64xf16>, i32, i32) -> ()
    return
  }
  func.func @mosaic_gpu_async_store_smem_8(%arg0: vector<64x64xf16>, %arg1: memref<64x64xf16, #gpu.address_space<workgroup>>, %arg2: memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, %arg3: i32) {
    "mosaic_gpu.async_store_smem"(%arg0, %arg1, %arg2, %arg3) <{cluster_dim = 0 : i32}> : (vector<64x64xf16>, memref<64x64xf16, #gpu.address_space<workgroup>>, memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, i32) -> ()
    return
  }
  func.func @mosaic_gpu_broadcast_in_dim_9(%arg0: vector<64xf16>) {
    %0 = mosaic_gpu.broadcast_in_dim(%arg0 : vector<64xf16>) {broadcast_dimensions = array<i64: 0>} -> vector<64x64xf16>
    return
  }
  func.func @mosaic_gpu_broadcasted_iota_10() {
    %0 = "mosaic_gpu.broadcasted_iota"() <{dimension = 0 : i32}> : () -> vector<64x64xi32>
    return
  }
  func.func @mosaic_gpu_debug_print_11(%arg0: vector<64x64xf16>) {
    "mosaic_gpu.debug_print"(%arg0) <{format = "x"}> : (vector<64x64xf16>) -> ()
    return
  }
  func.func @mosaic_gpu_print_layout_12(%arg0: vector<64x64xf16>) {
    "mosaic_gpu.print_layout"(%arg0) <{format = "x"}> : (vector<64x64xf16>) -> ()
    return
  }
  func.func @mosaic_gpu_get_cluster_ref_13(%arg0: memref<64x64xf16, #gpu.address_space<workgroup>>, %arg1: i32) {
    %0 = "mosaic_gpu.get_cluster_ref"(%arg0, %arg1) <{operandSegmentSizes = array<i32: 1, 1, 0, 0>}> : (memref<64x64xf16, #gpu.address_space<workgroup>>, i32) -> memref<64x64xf16, #mosaic_gpu.smem_cluster>
    return
  }
  func.func @mosaic_gpu_layout_cast_14(%arg0: vector<64x64xf16>) {
    %0 = mosaic_gpu.layout_cast x(%arg0 : vector<64x64xf16>) {new_layout = #mosaic_gpu.WGStridedFragLayout<[64, 64], 4>}
    return
  }
  func.func @mosaic_gpu_mma_15(%arg0: vector<64x64xf32>, %arg1: vector<64x64xf16>, %arg2: vector<64x64xf16>) {
    %0 = mosaic_gpu.mma accumulator(%arg0 : vector<64x64xf32>) a(%arg1 : vector<64x64xf16>) b(%arg2 : vector<64x64xf16>) -> vector<64x64xf32>
    return
  }
  func.func @mosaic_gpu_multimem_load_reduce_16(%arg0: memref<64x64xf16>) {
    %0 = "mosaic_gpu.multimem_load_reduce"(%arg0) <{reduction_type = 0 : i32}> : (memref<64x64xf16>) -> vector<64x64xf16>
    return
  }
  func.func @mosaic_gpu_optimization_barrier_17(%arg0: vector<64x64xf16>) {
    %0 = "mosaic_gpu.optimization_barrier"(%arg0) : (vector<64x64xf16>) -> vector<64x64xf16>
    return
  }
  func.func @mosaic_gpu_query_cluster_cancel_18(%arg0: memref<16xi8, #gpu.address_space<workgroup>>) {
    %x, %y, %z, %success = "mosaic_gpu.query_cluster_cancel"(%arg0) : (memref<16xi8, #gpu.address_space<workgroup>>) -> (i32, i32, i32, i1)
    return
  }
  func.func @mosaic_gpu_try_cluster_cancel_19(%arg0: memref<16xi8, #gpu.address_space<workgroup>>, %arg1: memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) {
    "mosaic_gpu.try_cluster_cancel"(%arg0, %arg1) : (memref<16xi8, #gpu.address_space<workgroup>>, memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) -> ()
    return
  }
  func.func @mosaic_gpu_try_cluster_cancel_20(%arg0: memref<16xi8, #gpu.address_space<workgroup>>, %arg1: memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, %arg2: i1) {
    "mosaic_gpu.try_cluster_cancel"(%arg0, %arg1, %arg2) : (memref<16xi8, #gpu.address_space<workgroup>>, memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, i1) -> ()
    return
  }
  func.func @mosaic_gpu_slice_smem_21() {
    %0 = "mosaic_gpu.slice_smem"() <{offset = 5 : i32}> : () -> memref<64x64xf16, #gpu.address_space<workgroup>>
    return
  }
  func.func @mosaic_gpu_slice_tmem_22(%arg0: memref<128x128xf32, #mosaic_gpu.tmem>) {
    %0 = "mosaic_gpu.slice_tmem"(%arg0) <{offset = 0 : i32}> : (memref<128x128xf32, #mosaic_gpu.tmem>) -> memref<128x128xf32, #mosaic_gpu.tmem>
    return
  }
  func.func @mosaic_gpu_tcgen05_commit_arrive_23(%arg0: memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) {
    "mosaic_gpu.tcgen05_commit_arrive"(%arg0) <{collective = false}> : (memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) -> ()
    return
  }
  func.func @mosaic_gpu_tcgen05_commit_arrive_24(%arg0: memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) {
    "mosaic_gpu.tcgen05_commit_arrive"(%arg0) <{collective = true}> : (memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) -> ()
    return
  }
  func.func @mosaic_gpu_tmem_alloc_25(%arg0: memref<i32, #gpu.address_space<workgroup>>) {
    %0 = mosaic_gpu.tmem_alloc smem_ptr(%arg0 : memref<i32, #gpu.address_space<workgroup>>) -> memref<128x128xf32, #mosaic_gpu.tmem>
    return
  }
  func.func @mosaic_gpu_tmem_dealloc_26(%arg0: memref<128x128xf32, #mosaic_gpu.tmem>) {
    mosaic_gpu.tmem_dealloc tmem_ref(%arg0 : memref<128x128xf32, #mosaic_gpu.tmem>)
    return
  }
  func.func @mosaic_gpu_tmem_relinquish_alloc_permit_27() {
    "mosaic_gpu.tmem_relinquish_alloc_permit"() <{collective = false}> : () -> ()
    return
  }
  func.func @mosaic_gpu_vector_load_28(%arg0: memref<64x64xf16, #gpu.address_space<workgroup>>) {
    %0 = "mosaic_gpu.vector_load"(%arg0) : (memref<64x64xf16, #gpu.address_space<workgroup>>) -> vector<64x64xf16>
    return
  }
  func.func @mosaic_gpu_vector_load_29(%arg0: memref<64x64xf16, #gpu.address_space<workgroup>>) {
    %0 = "mosaic_gpu.vector_load"(%arg0) <{optimized = true}> : (memref<64x64xf16, #gpu.address_space<workgroup>>) -> vector<64x64xf16>
    return
  }
  func.func @mosaic_gpu_vector_store_30(%arg0: vector<64x64xf16>, %arg1: memref<64x64xf16, #gpu.address_space<workgroup>>) {
    "mosaic_gpu.vector_store"(%arg0, %arg1) <{multimem = false}> : (vector<64x64xf16>, memref<64x64xf16, #gpu.address_space<workgroup>>) -> ()
    return
  }
  func.func @mosaic_gpu_wgmma_31(%arg0: vector<64x64xf32>, %arg1: vector<64x64xf16>, %arg2: memref<64x64xf16, #gpu.address_space<workgroup>>) {
    %0 = mosaic_gpu.wgmma accumulator(%arg0 : vector<64x64xf32>) a(%arg1 : vector<64x64xf16>) b(%arg2 : memref<64x64xf16, #gpu.address_space<workgroup>>) -> vector<64x64xf32>
    return
  }
  func.func @mosaic_gpu_async_load_32(%arg0: memref<64x64xf16>, %arg1: memref<64x64xf16, #gpu.address_space<workgroup>>, %arg2: memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, %arg3: i32, %arg4: i32) {
    "mosaic_gpu.async_load"(%arg0, %arg1, %arg2, %arg3, %arg4) <{collective = [0 : i32], leader_tracked = #mosaic_gpu.copy_partitioned<axis = 0>, oob_fill_mode = 2 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 2, 0>, slice_lengths = array<i64: 64, 64>}> : (memref<64x64xf16>, memref<64x64xf16, #gpu.address_space<workgroup>>, memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, i32, i32) -> ()
    return
  }
  func.func @mosaic_gpu_async_load_33(%arg0: memref<64x64xf16>, %arg1: memref<64x64xf16, #gpu.address_space<workgroup>>, %arg2: memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, %arg3: i32, %arg4: i32, %arg5: i1) {
    "mosaic_gpu.async_load"(%arg0, %arg1, %arg2, %arg3, %arg4, %arg5) <{collective = [], leader_tracked = #mosaic_gpu.copy_replicated, oob_fill_mode = 2 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 2, 1>, slice_lengths = array<i64: 64, 64>}> : (memref<64x64xf16>, memref<64x64xf16, #gpu.address_space<workgroup>>, memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, i32, i32, i1) -> ()
    return
  }
  func.func @mosaic_gpu_async_store_34(%arg0: memref<64x64xf16, #gpu.address_space<workgroup>>, %arg1: memref<64x64xf16>, %arg2: i32, %arg3: i32) {
    "mosaic_gpu.async_store"(%arg0, %arg1, %arg2, %arg3) <{is_global_broadcast = false, operandSegmentSizes = array<i32: 1, 1, 2, 0, 0>, reduction_op = 0 : i32, slice_lengths = array<i64: 64, 64>}> : (memref<64x64xf16, #gpu.address_space<workgroup>>, memref<64x64xf16>, i32, i32) -> ()
    return
  }
  func.func @mosaic_gpu_initialize_barrier_35(%arg0: !llvm.ptr<3>) {
    "mosaic_gpu.initialize_barrier"(%arg0) <{arrival_count = 2 : i64, num_barriers = 1 : i32, orders_tensor_core = false}> : (!llvm.ptr<3>) -> ()
    return
  }
  func.func @nvvm_cluster_arrive_36() {
    nvvm.cluster.arrive
    return
  }
  func.func @nvvm_cluster_arrive_relaxed_37() {
    nvvm.cluster.arrive.relaxed {aligned}
    return
  }
  func.func @nvvm_cluster_wait_38() {
    nvvm.cluster.wait {aligned}
    return
  }
  func.func @nvvm_fence_proxy_39() {
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
    return
  }
  func.func @nvvm_breakpoint_40() {
    nvvm.breakpoint
    return
  }
  func.func @mosaic_gpu_wait_41(%arg0: memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, %arg1: i1) {
    mosaic_gpu.wait barrier(%arg0 : memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) parity(%arg1 : i1)
    return
  }
  func.func @mosaic_gpu_async_load_tmem_42(%arg0: memref<128x64xf32, #mosaic_gpu.tmem>) {
    %0 = "mosaic_gpu.async_load_tmem"(%arg0) : (memref<128x64xf32, #mosaic_gpu.tmem>) -> vector<128x64xf32>
    return
  }
  func.func @mosaic_gpu_async_store_tmem_43(%arg0: vector<128x64xf32>, %arg1: memref<128x64xf32, #mosaic_gpu.tmem>) {
    "mosaic_gpu.async_store_tmem"(%arg0, %arg1) : (vector<128x64xf32>, memref<128x64xf32, #mosaic_gpu.tmem>) -> ()
    return
  }
  func.func @mosaic_gpu_async_store_smem_to_tmem_44(%arg0: memref<128x64xf16, #gpu.address_space<workgroup>>, %arg1: memref<128x64xf16, #mosaic_gpu.tmem>) {
    "mosaic_gpu.async_store_smem_to_tmem"(%arg0, %arg1) <{collective = false}> : (memref<128x64xf16, #gpu.address_space<workgroup>>, memref<128x64xf16, #mosaic_gpu.tmem>) -> ()
    return
  }
  func.func @mosaic_gpu_mma_45(%arg0: vector<128x64xf32>, %arg1: vector<128x16xf16>, %arg2: vector<16x64xf16>) {
    %0 = mosaic_gpu.mma accumulator(%arg0 : vector<128x64xf32>) a(%arg1 : vector<128x16xf16>) b(%arg2 : vector<16x64xf16>) -> vector<128x64xf32>
    return
  }
  func.func @mosaic_gpu_optimization_barrier_46(%arg0: vector<128x64xf16>) {
    %0 = "mosaic_gpu.optimization_barrier"(%arg0) : (vector<128x64xf16>) -> vector<128x64xf16>
    return
  }
  func.func @mosaic_gpu_query_cluster_cancel_47(%arg0: memref<16xi8, #gpu.address_space<workgroup>>) {
    %x, %y, %z, %success = "mosaic_gpu.query_cluster_cancel"(%arg0) : (memref<16xi8, #gpu.address_space<workgroup>>) -> (i32, i32, i32, i1)
    return
  }
  func.func @mosaic_gpu_try_cluster_cancel_48(%arg0: memref<16xi8, #gpu.address_space<workgroup>>, %arg1: memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) {
    "mosaic_gpu.try_cluster_cancel"(%arg0, %arg1) : (memref<16xi8, #gpu.address_space<workgroup>>, memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) -> ()
    return
  }
  func.func @mosaic_gpu_try_cluster_cancel_49(%arg0: memref<16xi8, #gpu.address_space<workgroup>>, %arg1: memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, %arg2: i1) {
    "mosaic_gpu.try_cluster_cancel"(%arg0, %arg1, %arg2) : (memref<16xi8, #gpu.address_space<workgroup>>, memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, i1) -> ()
    return
  }
  func.func @mosaic_gpu_slice_smem_50() {
    %0 = "mosaic_gpu.slice_smem"() <{alias_id = 3 : i32, offset = 5 : i32}> : () -> memref<128x64xf16, #gpu.address_space<workgroup>>
    return
  }
  func.func @mosaic_gpu_tcgen05_mma_51(%arg0: memref<128x64xf32, #mosaic_gpu.tmem>, %arg1: memref<128x64xf16, #gpu.address_space<workgroup>>, %arg2: memref<64x64xf16, #gpu.address_space<workgroup>>, %arg3: i1) {
    "mosaic_gpu.tcgen05_mma"(%arg0, %arg1, %arg2, %arg3) <{collective = false, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0>}> : (memref<128x64xf32, #mosaic_gpu.tmem>, memref<128x64xf16, #gpu.address_space<workgroup>>, memref<64x64xf16, #gpu.address_space<workgroup>>, i1) -> ()
    return
  }
  func.func @mosaic_gpu_tmem_alloc_52(%arg0: memref<i32, #gpu.address_space<workgroup>>) {
    %0 = mosaic_gpu.tmem_alloc smem_ptr(%arg0 : memref<i32, #gpu.address_space<workgroup>>) {collective = true, packing = 2 : i32} -> memref<128x64xf16, #mosaic_gpu.tmem>
    return
  }
  func.func @mosaic_gpu_tmem_dealloc_53(%arg0: memref<128x64xf32, #mosaic_gpu.tmem>) {
    mosaic_gpu.tmem_dealloc tmem_ref(%arg0 : memref<128x64xf32, #mosaic_gpu.tmem>)
    return
  }
  func.func @mosaic_gpu_tmem_layout_cast_54(%arg0: memref<128x64xf32, #mosaic_gpu.tmem>) {
    %0 = "mosaic_gpu.tmem_layout_cast"(%arg0) <{new_layout = #mosaic_gpu.TiledLayout<[[128, 8], [32, 8], [8, 8], [2]], warp_dims = [-8], lane_dims = [-3, #mosaic_gpu.Replicated<times = 4>], vector_dim = -1>}> : (memref<128x64xf32, #mosaic_gpu.tmem>) -> memref<128x64xf32, #mosaic_gpu.tmem>
    return
  }
  func.func @mosaic_gpu_vector_store_55(%arg0: vector<64x64xf16>, %arg1: memref<64x64xf16>) {
    "mosaic_gpu.vector_store"(%arg0, %arg1) <{atomic_type = 0 : i32, multimem = true, optimized = true}> : (vector<64x64xf16>, memref<64x64xf16>) -> ()
    return
  }
  func.func @mosaic_gpu_wgmma_56(%arg0: vector<128x64xf32>, %arg1: vector<128x64xf16>, %arg2: memref<64x64xf16, #gpu.address_space<workgroup>>) {
    %0 = mosaic_gpu.wgmma accumulator(%arg0 : vector<128x64xf32>) a(%arg1 : vector<128x64xf16>) b(%arg2 : memref<64x64xf16, #gpu.address_space<workgroup>>) -> vector<128x64xf32>
    return
  }
  func.func @mosaic_gpu_with_transforms_57(%arg0: memref<128x64xf16, #gpu.address_space<workgroup>>) {
    %0 = "mosaic_gpu.with_transforms"(%arg0) <{transforms = [#mosaic_gpu.tile<[8, 64]>, #mosaic_gpu.swizzle<64 : i32>]}> : (memref<128x64xf16, #gpu.address_space<workgroup>>) -> memref<128x64xf16, #gpu.address_space<workgroup>>
    return
  }
  func.func @nvvm_breakpoint_58() {
    nvvm.breakpoint
    return
  }
  func.func @nvvm_wgmma_wait_group_sync_aligned_59() {
    nvvm.wgmma.wait.group.sync.aligned 2
    return
  }
  func.func @nvvm_cp_async_bulk_wait_group_60() {
    nvvm.cp.async.bulk.wait_group 2 {read}
    return
  }
  func.func @nvvm_mapa_61(%arg0: !llvm.ptr<3>, %arg1: i32) {
    %0 = nvvm.mapa %arg0, %arg1 : !llvm.ptr<3> -> !llvm.ptr<7>
    return
  }
  func.func @nvvm_shfl_sync_63(%arg0: i32, %arg1: i32, %arg2: i32, %arg3: i32) {
    %0 = nvvm.shfl.sync bfly %arg0, %arg1, %arg2, %arg3 : i32 -> i32
    return
  }
  func.func @gpu_shuffle_64(%arg0: f32, %arg1: i32, %arg2: i32) {
    %shuffleResult, %valid = gpu.shuffle xor %arg0, %arg1, %arg2 : f32
    return
  }
  func.func @gpu_barrier_65() {
    gpu.barrier
    return
  }
  func.func @gpu_grid_dim_66() {
    %grid_dim_x = gpu.grid_dim x
    return
  }
  func.func @gpu_lane_id_67() {
    %0 = gpu.lane_id
    return
  }
  func.func @gpu_global_id_68() {
    %global_id_x = gpu.global_id x
    return
  }
  func.func @gpu_printf_69(%arg0: i32) {
    gpu.printf "a", %arg0 : i32
    return
  }
  func.func @llvm_atomicrmw_70(%arg0: !llvm.ptr, %arg1: f32) {
    %0 = llvm.atomicrmw fadd %arg0, %arg1 acquire : !llvm.ptr, f32
    return
  }
  func.func @llvm_intr_fma_71(%arg0: f32, %arg1: f32, %arg2: f32) {
    %0 = llvm.intr.fma(%arg0, %arg1, %arg2) : (f32, f32, f32) -> f32
    return
  }
  func.func @llvm_fadd_72(%arg0: f32, %arg1: f32) {
    %0 = llvm.fadd %arg0, %arg1 : f32
    return
  }
  func.func @llvm_add_73(%arg0: i32, %arg1: i32) {
    %0 = llvm.add %arg0, %arg1 overflow<nsw> : i32
    return
  }
  func.func @llvm_icmp_74(%arg0: i32, %arg1: i32) {
    %0 = llvm.icmp "slt" %arg0, %arg1 : i32
    return
  }
  func.func @llvm_select_75(%arg0: i1, %arg1: i32, %arg2: i32) {
    %0 = llvm.select %arg0, %arg1, %arg2 : i1, i32
    return
  }
  func.func @llvm_extractelement_76(%arg0: vector<2xi32>, %arg1: i32) {
    %0 = llvm.extractelement %arg0[%arg1 : i32] : vector<2xi32>
    return
  }
  func.func @llvm_zext_77(%arg0: i32) {
    %0 = llvm.zext %arg0 : i32 to i64
    return
  }
  func.func @llvm_trunc_78(%arg0: i64) {
    %0 = llvm.trunc %arg0 : i64 to i32
    return
  }
  func.func @llvm_addrspacecast_79(%arg0: !llvm.ptr<3>) {
    %0 = llvm.addrspacecast %arg0 : !llvm.ptr<3> to !llvm.ptr
    return
  }
  func.func @llvm_load_80(%arg0: !llvm.ptr) {
    %0 = llvm.load volatile %arg0 {alignment = 4 : i64} : !llvm.ptr -> i32
    return
  }
  func.func @llvm_store_81(%arg0: i32, %arg1: !llvm.ptr) {
    llvm.store %arg0, %arg1 {alignment = 4 : i64} : i32, !llvm.ptr
    return
  }
  func.func @llvm_mlir_zero_82() {
    %0 = llvm.mlir.zero : !llvm.ptr
    return
  }
  func.func @llvm_mlir_poison_83() {
    %0 = llvm.mlir.poison : !llvm.ptr
    return
  }
  func.func @memref_reshape_84(%arg0: memref<4xf32>, %arg1: memref<1xindex>) {
    %reshape = memref.reshape %arg0(%arg1) : (memref<4xf32>, memref<1xindex>) -> memref<?xf32>
    return
  }
  func.func @memref_assume_alignment_85(%arg0: memref<4xf32>) {
    %assume_align = memref.assume_alignment %arg0, 4 : memref<4xf32>
    return
  }
  func.func @vector_reduction_86(%arg0: vector<2xi32>) {
    %0 = vector.reduction <add>, %arg0 : vector<2xi32> into i32
    return
  }
}
