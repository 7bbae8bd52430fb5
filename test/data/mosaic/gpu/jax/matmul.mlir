module @k attributes {mosaic_gpu.arch_major = 9 : i32, mosaic_gpu.arch_minor = 0 : i32} {
  func.func private @mosaic_gpu_init_tma_desc(!llvm.ptr, !llvm.ptr, i64, i64, !llvm.ptr, !llvm.ptr, i64, !llvm.ptr)
  llvm.mlir.global external @global_scratch() {addr_space = 4 : i32} : !llvm.array<0 x i8>
  func.func @k_mosaic_gpu(%arg0: !llvm.ptr, %arg1: !llvm.ptr) attributes {llvm.emit_c_interface} {
    %cst = arith.constant dense<0.000000e+00> : vector<64x64xf32>
    %c7_i32 = arith.constant 7 : i32
    %c10000000_i32 = arith.constant 10000000 : i32
    %c64_i32 = arith.constant 64 : i32
    %c1_i32 = arith.constant 1 : i32
    %c4_i32 = arith.constant 4 : i32
    %c31_i32 = arith.constant 31 : i32
    %c-1_i32 = arith.constant -1 : i32
    %c5_i32 = arith.constant 5 : i32
    %c0_i32 = arith.constant 0 : i32
    %c8_i64 = arith.constant 8 : i64
    %c24584_i32 = arith.constant 24584 : i32
    %c128 = arith.constant 128 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %0 = llvm.mlir.constant(1 : i64) : i64
    %1 = llvm.mlir.constant(256 : i64) : i64
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
    %14 = builtin.unrealized_conversion_cast %13 : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> to memref<128x256xf16> {mosaic_gpu.from_kernel_arg_idx = 0 : i32, mosaic_gpu.original_kernel_arg}
    %15 = llvm.getelementptr %arg1[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %16 = llvm.load %15 : !llvm.ptr -> !llvm.ptr
    %17 = llvm.insertvalue %16, %4[0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %18 = llvm.insertvalue %16, %17[1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %19 = llvm.insertvalue %3, %18[2] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %20 = llvm.insertvalue %1, %19[3, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %21 = llvm.insertvalue %2, %20[3, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %22 = llvm.insertvalue %2, %21[4, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %23 = llvm.insertvalue %0, %22[4, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %24 = builtin.unrealized_conversion_cast %23 : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> to memref<256x128xf16> {mosaic_gpu.from_kernel_arg_idx = 1 : i32, mosaic_gpu.original_kernel_arg}
    %25 = llvm.getelementptr %arg1[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %26 = llvm.load %25 : !llvm.ptr -> !llvm.ptr
    %27 = llvm.insertvalue %26, %4[0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %28 = llvm.insertvalue %26, %27[1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %29 = llvm.insertvalue %3, %28[2] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %30 = llvm.insertvalue %2, %29[3, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %31 = llvm.insertvalue %2, %30[3, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %32 = llvm.insertvalue %2, %31[4, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %33 = llvm.insertvalue %0, %32[4, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %34 = builtin.unrealized_conversion_cast %33 : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> to memref<128x128xf16> {mosaic_gpu.from_kernel_arg_idx = 2 : i32, mosaic_gpu.original_kernel_arg}
    %35 = gpu.launch async [%5] blocks(%arg2, %arg3, %arg4) in (%arg8 = %c2, %arg9 = %c2, %arg10 = %c1) threads(%arg5, %arg6, %arg7) in (%arg11 = %c128, %arg12 = %c1, %arg13 = %c1) dynamic_shared_memory_size %c24584_i32 {
      %36 = "mosaic_gpu.slice_smem"() <{offset = 24576 : i32}> : () -> memref<1x!mosaic_gpu.barrier, #gpu.address_space<workgroup>>
      %37 = builtin.unrealized_conversion_cast %36 : memref<1x!mosaic_gpu.barrier, #gpu.address_space<workgroup>> to !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)>
      %38 = llvm.extractvalue %37[1] : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> 
      %39 = llvm.extractvalue %37[2] : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> 
      %40 = llvm.mul %39, %c8_i64 : i64
      %41 = llvm.ptrtoint %38 : !llvm.ptr<3> to i64
      %42 = llvm.add %41, %40 : i64
      %43 = llvm.inttoptr %42 : i64 to !llvm.ptr<3>
      "mosaic_gpu.initialize_barrier"(%43) <{arrival_count = 2 : i64, num_barriers = 1 : i32, orders_tensor_core = false}> : (!llvm.ptr<3>) -> ()
      %alloca = memref.alloca() : memref<i32>
      memref.store %c0_i32, %alloca[] : memref<i32>
      nvvm.fence.mbarrier.init
      gpu.barrier
      %44 = nvvm.elect.sync -> i1
      %thread_id_x = gpu.thread_id x
      %45 = arith.index_cast %thread_id_x : index to i32
      %block_dim_x = gpu.block_dim x
      %46 = arith.index_cast %block_dim_x : index to i32
      %thread_id_y = gpu.thread_id y
      %47 = arith.index_cast %thread_id_y : index to i32
      %48 = arith.muli %47, %46 : i32
      %49 = arith.addi %45, %48 : i32
      %block_dim_y = gpu.block_dim y
      %50 = arith.index_cast %block_dim_y : index to i32
      %51 = arith.muli %46, %50 : i32
      %thread_id_z = gpu.thread_id z
      %52 = arith.index_cast %thread_id_z : index to i32
      %53 = arith.muli %52, %51 : i32
      %54 = arith.addi %49, %53 : i32
      %55 = arith.shrui %54, %c5_i32 : i32
      %56 = nvvm.shfl.sync idx %c-1_i32, %55, %c0_i32, %c31_i32 : i32 -> i32
      %57 = nvvm.elect.sync -> i1
      %block_id_y = gpu.block_id y
      %58 = arith.index_cast %block_id_y : index to i32
      %block_id_x = gpu.block_id x
      %59 = arith.index_cast %block_id_x : index to i32
      %60 = "mosaic_gpu.optimization_barrier"(%cst) : (vector<64x64xf32>) -> vector<64x64xf32>
      nvvm.wgmma.fence.aligned
      %61:2 = scf.for %arg14 = %c0_i32 to %c4_i32 step %c1_i32 iter_args(%arg15 = %60, %arg16 = %c0_i32) -> (vector<64x64xf32>, i32)  : i32 {
        %72 = arith.addi %arg16, %c1_i32 : i32
        %73 = arith.muli %58, %c64_i32 : i32
        %74 = arith.muli %arg16, %c64_i32 : i32
        %75 = "mosaic_gpu.slice_smem"() <{offset = 0 : i32}> : () -> memref<64x64xf16, #gpu.address_space<workgroup>>
        %76 = "mosaic_gpu.with_transforms"(%75) <{transforms = [#mosaic_gpu.tile<[8, 64]>, #mosaic_gpu.swizzle<128 : i32>]}> : (memref<64x64xf16, #gpu.address_space<workgroup>>) -> memref<64x64xf16, #gpu.address_space<workgroup>>
        %77 = builtin.unrealized_conversion_cast %43 : !llvm.ptr<3> to memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>
        mosaic_gpu.arrive_expect_tx barrier(%77 : memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) 8192
        "mosaic_gpu.async_load"(%14, %76, %77, %73, %74) <{collective = [], oob_fill_mode = 2 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 2, 0>, slice_lengths = array<i64: 64, 64>}> : (memref<128x256xf16>, memref<64x64xf16, #gpu.address_space<workgroup>>, memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, i32, i32) -> ()
        %78 = arith.muli %59, %c64_i32 : i32
        %79 = "mosaic_gpu.slice_smem"() <{offset = 8192 : i32}> : () -> memref<64x64xf16, #gpu.address_space<workgroup>>
        %80 = "mosaic_gpu.with_transforms"(%79) <{transforms = [#mosaic_gpu.tile<[8, 64]>, #mosaic_gpu.swizzle<128 : i32>]}> : (memref<64x64xf16, #gpu.address_space<workgroup>>) -> memref<64x64xf16, #gpu.address_space<workgroup>>
        mosaic_gpu.arrive_expect_tx barrier(%77 : memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) 8192
        "mosaic_gpu.async_load"(%24, %80, %77, %74, %78) <{collective = [], oob_fill_mode = 2 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 2, 0>, slice_lengths = array<i64: 64, 64>}> : (memref<256x128xf16>, memref<64x64xf16, #gpu.address_space<workgroup>>, memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, i32, i32) -> ()
        %81 = memref.load %alloca[] : memref<i32>
        %82 = arith.andi %81, %c1_i32 : i32
        %83 = arith.cmpi ne, %82, %c0_i32 : i32
        %84 = arith.xori %81, %c1_i32 : i32
        memref.store %84, %alloca[] : memref<i32>
        %85 = arith.extui %83 : i1 to i32
        nvvm.mbarrier.try_wait.parity %43, %85, %c10000000_i32 : !llvm.ptr<3>, i32, i32
        %86 = "mosaic_gpu.with_transforms"(%75) <{transforms = [#mosaic_gpu.tile<[8, 64]>, #mosaic_gpu.swizzle<128 : i32>]}> : (memref<64x64xf16, #gpu.address_space<workgroup>>) -> memref<64x64xf16, #gpu.address_space<workgroup>>
        %87 = "mosaic_gpu.with_transforms"(%79) <{transforms = [#mosaic_gpu.tile<[8, 64]>, #mosaic_gpu.swizzle<128 : i32>]}> : (memref<64x64xf16, #gpu.address_space<workgroup>>) -> memref<64x64xf16, #gpu.address_space<workgroup>>
        %88 = mosaic_gpu.wgmma accumulator(%arg15 : vector<64x64xf32>) a(%86 : memref<64x64xf16, #gpu.address_space<workgroup>>) b(%87 : memref<64x64xf16, #gpu.address_space<workgroup>>) -> vector<64x64xf32>
        nvvm.wgmma.commit.group.sync.aligned
        nvvm.wgmma.wait.group.sync.aligned 0
        scf.yield %88, %72 : vector<64x64xf32>, i32
      }
      nvvm.wgmma.wait.group.sync.aligned 0
      %62 = arith.truncf %61#0 : vector<64x64xf32> to vector<64x64xf16>
      %63 = "mosaic_gpu.slice_smem"() <{offset = 16384 : i32}> : () -> memref<64x64xf16, #gpu.address_space<workgroup>>
      %64 = "mosaic_gpu.with_transforms"(%63) <{transforms = [#mosaic_gpu.tile<[8, 64]>, #mosaic_gpu.swizzle<128 : i32>]}> : (memref<64x64xf16, #gpu.address_space<workgroup>>) -> memref<64x64xf16, #gpu.address_space<workgroup>>
      "mosaic_gpu.vector_store"(%62, %64) <{multimem = false}> : (vector<64x64xf16>, memref<64x64xf16, #gpu.address_space<workgroup>>) -> ()
      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
      %65 = arith.shrui %54, %c7_i32 : i32
      %66 = arith.addi %65, %c1_i32 : i32
      %67 = llvm.inline_asm has_side_effects "bar.sync $0, 128;", "r" %66 : (i32) -> !llvm.void
      %68 = arith.muli %58, %c64_i32 : i32
      %69 = arith.muli %59, %c64_i32 : i32
      %70 = "mosaic_gpu.with_transforms"(%63) <{transforms = [#mosaic_gpu.tile<[8, 64]>, #mosaic_gpu.swizzle<128 : i32>]}> : (memref<64x64xf16, #gpu.address_space<workgroup>>) -> memref<64x64xf16, #gpu.address_space<workgroup>>
      "mosaic_gpu.async_store"(%70, %34, %68, %69) <{commit_group = true, is_global_broadcast = false, operandSegmentSizes = array<i32: 1, 1, 2, 0, 0>, slice_lengths = array<i64: 64, 64>}> : (memref<64x64xf16, #gpu.address_space<workgroup>>, memref<128x128xf16>, i32, i32) -> ()
      nvvm.cp.async.bulk.wait_group 0
      %71 = llvm.inline_asm has_side_effects "bar.sync $0, 128;", "r" %66 : (i32) -> !llvm.void
      gpu.terminator
    }
    return
  }
}
