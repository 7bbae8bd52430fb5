module @k attributes {mosaic_gpu.arch_major = 9 : i32, mosaic_gpu.arch_minor = 0 : i32} {
  func.func private @mosaic_gpu_init_tma_desc(!llvm.ptr, !llvm.ptr, i64, i64, !llvm.ptr, !llvm.ptr, i64, !llvm.ptr)
  llvm.mlir.global external @global_scratch() {addr_space = 4 : i32} : !llvm.array<0 x i8>
  func.func @k_mosaic_gpu(%arg0: !llvm.ptr, %arg1: !llvm.ptr) attributes {llvm.emit_c_interface} {
    %cst = arith.constant dense<0xFF800000> : vector<64xf32>
    %cst_0 = arith.constant dense<0.000000e+00> : vector<64x64xf32>
    %cst_1 = arith.constant dense<0.000000e+00> : vector<64xf32>
    %cst_2 = arith.constant dense<-1.000000e+30> : vector<64xf32>
    %c7_i32 = arith.constant 7 : i32
    %c2_i32 = arith.constant 2 : i32
    %c10000000_i32 = arith.constant 10000000 : i32
    %c64_i32 = arith.constant 64 : i32
    %c1_i32 = arith.constant 1 : i32
    %c31_i32 = arith.constant 31 : i32
    %c-1_i32 = arith.constant -1 : i32
    %c5_i32 = arith.constant 5 : i32
    %c0_i32 = arith.constant 0 : i32
    %c8_i64 = arith.constant 8 : i64
    %c26632_i32 = arith.constant 26632 : i32
    %c128 = arith.constant 128 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %0 = llvm.mlir.constant(1 : i64) : i64
    %1 = llvm.mlir.constant(64 : i64) : i64
    %2 = llvm.mlir.constant(128 : i64) : i64
    %3 = llvm.mlir.constant(0 : i64) : i64
    %4 = llvm.mlir.undef : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)>
    %5 = builtin.unrealized_conversion_cast %arg0 : !llvm.ptr to !gpu.async.token
    %6 = llvm.load %arg1 : !llvm.ptr -> !llvm.ptr
    %7 = llvm.insertvalue %6, %4[0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %8 = llvm.insertvalue %6, %7[1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %9 = llvm.insertvalue %3, %8[2] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %10 = llvm.insertvalue %2, %9[3, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %11 = llvm.insertvalue %1, %10[3, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %12 = llvm.insertvalue %1, %11[4, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %13 = llvm.insertvalue %0, %12[4, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %14 = builtin.unrealized_conversion_cast %13 : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> to memref<128x64xf16> {mosaic_gpu.from_kernel_arg_idx = 0 : i32, mosaic_gpu.original_kernel_arg}
    %15 = llvm.getelementptr %arg1[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %16 = llvm.load %15 : !llvm.ptr -> !llvm.ptr
    %17 = llvm.insertvalue %16, %4[0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %18 = llvm.insertvalue %16, %17[1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %19 = llvm.insertvalue %3, %18[2] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %20 = llvm.insertvalue %2, %19[3, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %21 = llvm.insertvalue %1, %20[3, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %22 = llvm.insertvalue %1, %21[4, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %23 = llvm.insertvalue %0, %22[4, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %24 = builtin.unrealized_conversion_cast %23 : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> to memref<128x64xf16> {mosaic_gpu.from_kernel_arg_idx = 1 : i32, mosaic_gpu.original_kernel_arg}
    %25 = llvm.getelementptr %arg1[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %26 = llvm.load %25 : !llvm.ptr -> !llvm.ptr
    %27 = llvm.insertvalue %26, %4[0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %28 = llvm.insertvalue %26, %27[1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %29 = llvm.insertvalue %3, %28[2] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %30 = llvm.insertvalue %2, %29[3, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %31 = llvm.insertvalue %1, %30[3, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %32 = llvm.insertvalue %1, %31[4, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %33 = llvm.insertvalue %0, %32[4, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %34 = builtin.unrealized_conversion_cast %33 : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> to memref<128x64xf16> {mosaic_gpu.from_kernel_arg_idx = 2 : i32, mosaic_gpu.original_kernel_arg}
    %35 = llvm.getelementptr %arg1[3] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %36 = llvm.load %35 : !llvm.ptr -> !llvm.ptr
    %37 = llvm.insertvalue %36, %4[0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %38 = llvm.insertvalue %36, %37[1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %39 = llvm.insertvalue %3, %38[2] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %40 = llvm.insertvalue %2, %39[3, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %41 = llvm.insertvalue %1, %40[3, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %42 = llvm.insertvalue %1, %41[4, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %43 = llvm.insertvalue %0, %42[4, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %44 = builtin.unrealized_conversion_cast %43 : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> to memref<128x64xf16> {mosaic_gpu.from_kernel_arg_idx = 3 : i32, mosaic_gpu.original_kernel_arg}
    %45 = gpu.launch async [%5] blocks(%arg2, %arg3, %arg4) in (%arg8 = %c2, %arg9 = %c1, %arg10 = %c1) threads(%arg5, %arg6, %arg7) in (%arg11 = %c128, %arg12 = %c1, %arg13 = %c1) dynamic_shared_memory_size %c26632_i32 {
      %46 = "mosaic_gpu.slice_smem"() <{offset = 26624 : i32}> : () -> memref<1x!mosaic_gpu.barrier, #gpu.address_space<workgroup>>
      %47 = builtin.unrealized_conversion_cast %46 : memref<1x!mosaic_gpu.barrier, #gpu.address_space<workgroup>> to !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)>
      %48 = llvm.extractvalue %47[1] : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> 
      %49 = llvm.extractvalue %47[2] : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> 
      %50 = llvm.mul %49, %c8_i64 : i64
      %51 = llvm.ptrtoint %48 : !llvm.ptr<3> to i64
      %52 = llvm.add %51, %50 : i64
      %53 = llvm.inttoptr %52 : i64 to !llvm.ptr<3>
      "mosaic_gpu.initialize_barrier"(%53) <{arrival_count = 1 : i64, num_barriers = 1 : i32, orders_tensor_core = false}> : (!llvm.ptr<3>) -> ()
      %alloca = memref.alloca() : memref<i32>
      memref.store %c0_i32, %alloca[] : memref<i32>
      nvvm.fence.mbarrier.init
      gpu.barrier
      %54 = nvvm.elect.sync -> i1
      %thread_id_x = gpu.thread_id x
      %55 = arith.index_cast %thread_id_x : index to i32
      %block_dim_x = gpu.block_dim x
      %56 = arith.index_cast %block_dim_x : index to i32
      %thread_id_y = gpu.thread_id y
      %57 = arith.index_cast %thread_id_y : index to i32
      %58 = arith.muli %57, %56 : i32
      %59 = arith.addi %55, %58 : i32
      %block_dim_y = gpu.block_dim y
      %60 = arith.index_cast %block_dim_y : index to i32
      %61 = arith.muli %56, %60 : i32
      %thread_id_z = gpu.thread_id z
      %62 = arith.index_cast %thread_id_z : index to i32
      %63 = arith.muli %62, %61 : i32
      %64 = arith.addi %59, %63 : i32
      %65 = arith.shrui %64, %c5_i32 : i32
      %66 = nvvm.shfl.sync idx %c-1_i32, %65, %c0_i32, %c31_i32 : i32 -> i32
      %67 = nvvm.elect.sync -> i1
      %block_id_x = gpu.block_id x
      %68 = arith.index_cast %block_id_x : index to i32
      %69 = arith.muli %68, %c64_i32 : i32
      %70 = "mosaic_gpu.slice_smem"() <{offset = 0 : i32}> : () -> memref<64x64xf16, #gpu.address_space<workgroup>>
      %71 = "mosaic_gpu.with_transforms"(%70) <{transforms = [#mosaic_gpu.tile<[8, 64]>, #mosaic_gpu.swizzle<128 : i32>]}> : (memref<64x64xf16, #gpu.address_space<workgroup>>) -> memref<64x64xf16, #gpu.address_space<workgroup>>
      %72 = builtin.unrealized_conversion_cast %53 : !llvm.ptr<3> to memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>
      mosaic_gpu.arrive_expect_tx barrier(%72 : memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) 8192
      "mosaic_gpu.async_load"(%14, %71, %72, %69, %c0_i32) <{collective = [], oob_fill_mode = 2 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 2, 0>, slice_lengths = array<i64: 64, 64>}> : (memref<128x64xf16>, memref<64x64xf16, #gpu.address_space<workgroup>>, memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, i32, i32) -> ()
      %73 = memref.load %alloca[] : memref<i32>
      %74 = arith.andi %73, %c1_i32 : i32
      %75 = arith.cmpi ne, %74, %c0_i32 : i32
      %76 = arith.xori %73, %c1_i32 : i32
      memref.store %76, %alloca[] : memref<i32>
      %77 = arith.extui %75 : i1 to i32
      nvvm.mbarrier.try_wait.parity %53, %77, %c10000000_i32 : !llvm.ptr<3>, i32, i32
      %78 = mosaic_gpu.layout_cast x(%cst_2 : vector<64xf32>) {new_layout = #mosaic_gpu.TiledLayout<[[64], [16], [8], [1]], warp_dims = [-4], lane_dims = [-2, #mosaic_gpu.Replicated<times = 4>], vector_dim = -1>}
      %79 = mosaic_gpu.layout_cast x(%cst_1 : vector<64xf32>) {new_layout = #mosaic_gpu.TiledLayout<[[64], [16], [8], [1]], warp_dims = [-4], lane_dims = [-2, #mosaic_gpu.Replicated<times = 4>], vector_dim = -1>}
      %80 = mosaic_gpu.layout_cast x(%cst_0 : vector<64x64xf32>) {new_layout = #mosaic_gpu.TiledLayout<[[64, 8], [16, 8], [8, 8], [2]], warp_dims = [-7], lane_dims = [-3, -2], vector_dim = -1>}
      %81:3 = scf.for %arg14 = %c0_i32 to %c2_i32 step %c1_i32 iter_args(%arg15 = %78, %arg16 = %79, %arg17 = %80) -> (vector<64xf32>, vector<64xf32>, vector<64x64xf32>)  : i32 {
        %91 = arith.muli %arg14, %c64_i32 : i32
        %92 = "mosaic_gpu.slice_smem"() <{offset = 8192 : i32}> : () -> memref<64x64xf16, #gpu.address_space<workgroup>>
        %93 = "mosaic_gpu.with_transforms"(%92) <{transforms = [#mosaic_gpu.tile<[8, 64]>, #mosaic_gpu.swizzle<128 : i32>]}> : (memref<64x64xf16, #gpu.address_space<workgroup>>) -> memref<64x64xf16, #gpu.address_space<workgroup>>
        mosaic_gpu.arrive_expect_tx barrier(%72 : memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) 8192
        "mosaic_gpu.async_load"(%24, %93, %72, %91, %c0_i32) <{collective = [], oob_fill_mode = 2 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 2, 0>, slice_lengths = array<i64: 64, 64>}> : (memref<128x64xf16>, memref<64x64xf16, #gpu.address_space<workgroup>>, memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, i32, i32) -> ()
        %94 = memref.load %alloca[] : memref<i32>
        %95 = arith.andi %94, %c1_i32 : i32
        %96 = arith.cmpi ne, %95, %c0_i32 : i32
        %97 = arith.xori %94, %c1_i32 : i32
        memref.store %97, %alloca[] : memref<i32>
        %98 = arith.extui %96 : i1 to i32
        nvvm.mbarrier.try_wait.parity %53, %98, %c10000000_i32 : !llvm.ptr<3>, i32, i32
        %99 = "mosaic_gpu.slice_smem"() <{offset = 16384 : i32}> : () -> memref<64x64xf16, #gpu.address_space<workgroup>>
        %100 = "mosaic_gpu.with_transforms"(%99) <{transforms = [#mosaic_gpu.tile<[8, 64]>, #mosaic_gpu.swizzle<128 : i32>]}> : (memref<64x64xf16, #gpu.address_space<workgroup>>) -> memref<64x64xf16, #gpu.address_space<workgroup>>
        mosaic_gpu.arrive_expect_tx barrier(%72 : memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) 8192
        "mosaic_gpu.async_load"(%34, %100, %72, %91, %c0_i32) <{collective = [], oob_fill_mode = 2 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 2, 0>, slice_lengths = array<i64: 64, 64>}> : (memref<128x64xf16>, memref<64x64xf16, #gpu.address_space<workgroup>>, memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, i32, i32) -> ()
        %101 = memref.load %alloca[] : memref<i32>
        %102 = arith.andi %101, %c1_i32 : i32
        %103 = arith.cmpi ne, %102, %c0_i32 : i32
        %104 = arith.xori %101, %c1_i32 : i32
        memref.store %104, %alloca[] : memref<i32>
        %105 = arith.extui %103 : i1 to i32
        nvvm.mbarrier.try_wait.parity %53, %105, %c10000000_i32 : !llvm.ptr<3>, i32, i32
        %106 = "mosaic_gpu.optimization_barrier"(%cst_0) : (vector<64x64xf32>) -> vector<64x64xf32>
        nvvm.wgmma.fence.aligned
        %107 = "mosaic_gpu.with_transforms"(%70) <{transforms = [#mosaic_gpu.tile<[8, 64]>, #mosaic_gpu.swizzle<128 : i32>]}> : (memref<64x64xf16, #gpu.address_space<workgroup>>) -> memref<64x64xf16, #gpu.address_space<workgroup>>
        %108 = "mosaic_gpu.with_transforms"(%92) <{transforms = [#mosaic_gpu.tile<[8, 64]>, #mosaic_gpu.swizzle<128 : i32>]}> : (memref<64x64xf16, #gpu.address_space<workgroup>>) -> memref<64x64xf16, #gpu.address_space<workgroup>>
        %transpose = memref.transpose %108 (d0, d1) -> (d1, d0) : memref<64x64xf16, #gpu.address_space<workgroup>> to memref<64x64xf16, strided<[1, 64]>, #gpu.address_space<workgroup>>
        %109 = mosaic_gpu.wgmma accumulator(%106 : vector<64x64xf32>) a(%107 : memref<64x64xf16, #gpu.address_space<workgroup>>) b(%transpose : memref<64x64xf16, strided<[1, 64]>, #gpu.address_space<workgroup>>) -> vector<64x64xf32>
        nvvm.wgmma.commit.group.sync.aligned
        nvvm.wgmma.wait.group.sync.aligned 0
        %110 = vector.multi_reduction <maximumf>, %109, %cst {offset = 24576 : i32, scratch_size = 2048 : i32} [1] : vector<64x64xf32> to vector<64xf32>
        %111 = arith.maximumf %arg15, %110 : vector<64xf32>
        %112 = arith.subf %arg15, %111 : vector<64xf32>
        %113 = math.exp %112 : vector<64xf32>
        %114 = mosaic_gpu.broadcast_in_dim(%111 : vector<64xf32>) {broadcast_dimensions = array<i64: 0>} -> vector<64x64xf32>
        %115 = arith.subf %109, %114 : vector<64x64xf32>
        %116 = math.exp %115 : vector<64x64xf32>
        %117 = arith.mulf %arg16, %113 : vector<64xf32>
        %118 = vector.multi_reduction <add>, %116, %cst_1 {offset = 24576 : i32, scratch_size = 2048 : i32} [1] : vector<64x64xf32> to vector<64xf32>
        %119 = arith.addf %117, %118 : vector<64xf32>
        %120 = mosaic_gpu.broadcast_in_dim(%113 : vector<64xf32>) {broadcast_dimensions = array<i64: 0>} -> vector<64x64xf32>
        %121 = arith.mulf %arg17, %120 : vector<64x64xf32>
        %122 = "mosaic_gpu.optimization_barrier"(%121) : (vector<64x64xf32>) -> vector<64x64xf32>
        nvvm.wgmma.fence.aligned
        %123 = arith.truncf %116 : vector<64x64xf32> to vector<64x64xf16>
        %124 = "mosaic_gpu.with_transforms"(%99) <{transforms = [#mosaic_gpu.tile<[8, 64]>, #mosaic_gpu.swizzle<128 : i32>]}> : (memref<64x64xf16, #gpu.address_space<workgroup>>) -> memref<64x64xf16, #gpu.address_space<workgroup>>
        %125 = mosaic_gpu.wgmma accumulator(%122 : vector<64x64xf32>) a(%123 : vector<64x64xf16>) b(%124 : memref<64x64xf16, #gpu.address_space<workgroup>>) -> vector<64x64xf32>
        nvvm.wgmma.commit.group.sync.aligned
        nvvm.wgmma.wait.group.sync.aligned 0
        nvvm.wgmma.wait.group.sync.aligned 0
        scf.yield %111, %119, %125 : vector<64xf32>, vector<64xf32>, vector<64x64xf32>
      }
      %82 = mosaic_gpu.broadcast_in_dim(%81#1 : vector<64xf32>) {broadcast_dimensions = array<i64: 0>} -> vector<64x64xf32>
      %83 = arith.divf %81#2, %82 : vector<64x64xf32>
      %84 = arith.truncf %83 : vector<64x64xf32> to vector<64x64xf16>
      %85 = "mosaic_gpu.with_transforms"(%70) <{transforms = [#mosaic_gpu.tile<[8, 64]>, #mosaic_gpu.swizzle<128 : i32>]}> : (memref<64x64xf16, #gpu.address_space<workgroup>>) -> memref<64x64xf16, #gpu.address_space<workgroup>>
      "mosaic_gpu.vector_store"(%84, %85) <{multimem = false}> : (vector<64x64xf16>, memref<64x64xf16, #gpu.address_space<workgroup>>) -> ()
      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
      %86 = arith.shrui %64, %c7_i32 : i32
      %87 = arith.addi %86, %c1_i32 : i32
      %88 = llvm.inline_asm has_side_effects "bar.sync $0, 128;", "r" %87 : (i32) -> !llvm.void
      %89 = "mosaic_gpu.with_transforms"(%70) <{transforms = [#mosaic_gpu.tile<[8, 64]>, #mosaic_gpu.swizzle<128 : i32>]}> : (memref<64x64xf16, #gpu.address_space<workgroup>>) -> memref<64x64xf16, #gpu.address_space<workgroup>>
      "mosaic_gpu.async_store"(%89, %44, %69, %c0_i32) <{commit_group = true, is_global_broadcast = false, operandSegmentSizes = array<i32: 1, 1, 2, 0, 0>, slice_lengths = array<i64: 64, 64>}> : (memref<64x64xf16, #gpu.address_space<workgroup>>, memref<128x64xf16>, i32, i32) -> ()
      nvvm.cp.async.bulk.wait_group 0
      %90 = llvm.inline_asm has_side_effects "bar.sync $0, 128;", "r" %87 : (i32) -> !llvm.void
      gpu.terminator
    }
    return
  }
}
