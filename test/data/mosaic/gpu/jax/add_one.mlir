module @add_one attributes {mosaic_gpu.arch_major = 9 : i32, mosaic_gpu.arch_minor = 0 : i32} {
  func.func private @mosaic_gpu_init_tma_desc(!llvm.ptr, !llvm.ptr, i64, i64, !llvm.ptr, !llvm.ptr, i64, !llvm.ptr)
  llvm.mlir.global external @global_scratch() {addr_space = 4 : i32} : !llvm.array<0 x i8>
  func.func @add_one_mosaic_gpu(%arg0: !llvm.ptr, %arg1: !llvm.ptr) attributes {llvm.emit_c_interface} {
    %cst = arith.constant dense<1.000000e+00> : vector<256xf32>
    %c7_i32 = arith.constant 7 : i32
    %c10000000_i32 = arith.constant 10000000 : i32
    %c256_i32 = arith.constant 256 : i32
    %c1_i32 = arith.constant 1 : i32
    %c31_i32 = arith.constant 31 : i32
    %c-1_i32 = arith.constant -1 : i32
    %c5_i32 = arith.constant 5 : i32
    %c0_i32 = arith.constant 0 : i32
    %c8_i64 = arith.constant 8 : i64
    %c2056_i32 = arith.constant 2056 : i32
    %c128 = arith.constant 128 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %0 = llvm.mlir.constant(1 : i64) : i64
    %1 = llvm.mlir.constant(1024 : i64) : i64
    %2 = llvm.mlir.constant(0 : i64) : i64
    %3 = llvm.mlir.undef : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
    %4 = builtin.unrealized_conversion_cast %arg0 : !llvm.ptr to !gpu.async.token
    %5 = llvm.load %arg1 : !llvm.ptr -> !llvm.ptr
    %6 = llvm.insertvalue %5, %3[0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %7 = llvm.insertvalue %5, %6[1] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %8 = llvm.insertvalue %2, %7[2] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %9 = llvm.insertvalue %1, %8[3, 0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %10 = llvm.insertvalue %0, %9[4, 0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %11 = builtin.unrealized_conversion_cast %10 : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> to memref<1024xf32> {mosaic_gpu.from_kernel_arg_idx = 0 : i32, mosaic_gpu.original_kernel_arg}
    %12 = llvm.getelementptr %arg1[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %13 = llvm.load %12 : !llvm.ptr -> !llvm.ptr
    %14 = llvm.insertvalue %13, %3[0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %15 = llvm.insertvalue %13, %14[1] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %16 = llvm.insertvalue %2, %15[2] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %17 = llvm.insertvalue %1, %16[3, 0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %18 = llvm.insertvalue %0, %17[4, 0] : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> 
    %19 = builtin.unrealized_conversion_cast %18 : !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)> to memref<1024xf32> {mosaic_gpu.from_kernel_arg_idx = 1 : i32, mosaic_gpu.original_kernel_arg}
    %20 = gpu.launch async [%4] blocks(%arg2, %arg3, %arg4) in (%arg8 = %c4, %arg9 = %c1, %arg10 = %c1) threads(%arg5, %arg6, %arg7) in (%arg11 = %c128, %arg12 = %c1, %arg13 = %c1) dynamic_shared_memory_size %c2056_i32 {
      %21 = "mosaic_gpu.slice_smem"() <{offset = 2048 : i32}> : () -> memref<1x!mosaic_gpu.barrier, #gpu.address_space<workgroup>>
      %22 = builtin.unrealized_conversion_cast %21 : memref<1x!mosaic_gpu.barrier, #gpu.address_space<workgroup>> to !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)>
      %23 = llvm.extractvalue %22[1] : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> 
      %24 = llvm.extractvalue %22[2] : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> 
      %25 = llvm.mul %24, %c8_i64 : i64
      %26 = llvm.ptrtoint %23 : !llvm.ptr<3> to i64
      %27 = llvm.add %26, %25 : i64
      %28 = llvm.inttoptr %27 : i64 to !llvm.ptr<3>
      "mosaic_gpu.initialize_barrier"(%28) <{arrival_count = 1 : i64, num_barriers = 1 : i32, orders_tensor_core = false}> : (!llvm.ptr<3>) -> ()
      %alloca = memref.alloca() : memref<i32>
      memref.store %c0_i32, %alloca[] : memref<i32>
      nvvm.fence.mbarrier.init
      gpu.barrier
      %29 = nvvm.elect.sync -> i1
      %thread_id_x = gpu.thread_id x
      %30 = arith.index_cast %thread_id_x : index to i32
      %block_dim_x = gpu.block_dim x
      %31 = arith.index_cast %block_dim_x : index to i32
      %thread_id_y = gpu.thread_id y
      %32 = arith.index_cast %thread_id_y : index to i32
      %33 = arith.muli %32, %31 : i32
      %34 = arith.addi %30, %33 : i32
      %block_dim_y = gpu.block_dim y
      %35 = arith.index_cast %block_dim_y : index to i32
      %36 = arith.muli %31, %35 : i32
      %thread_id_z = gpu.thread_id z
      %37 = arith.index_cast %thread_id_z : index to i32
      %38 = arith.muli %37, %36 : i32
      %39 = arith.addi %34, %38 : i32
      %40 = arith.shrui %39, %c5_i32 : i32
      %41 = nvvm.shfl.sync idx %c-1_i32, %40, %c0_i32, %c31_i32 : i32 -> i32
      %42 = nvvm.elect.sync -> i1
      %block_id_x = gpu.block_id x
      %43 = arith.index_cast %block_id_x : index to i32
      %44 = "mosaic_gpu.slice_smem"() <{offset = 0 : i32}> : () -> memref<1x256xf32, #gpu.address_space<workgroup>>
      %45 = "mosaic_gpu.slice_smem"() <{offset = 1024 : i32}> : () -> memref<1x256xf32, #gpu.address_space<workgroup>>
      %46 = arith.muli %43, %c256_i32 : i32
      %subview = memref.subview %44[0, 0] [1, 256] [1, 1] : memref<1x256xf32, #gpu.address_space<workgroup>> to memref<256xf32, strided<[1]>, #gpu.address_space<workgroup>>
      %cast = memref.cast %subview : memref<256xf32, strided<[1]>, #gpu.address_space<workgroup>> to memref<256xf32, strided<[1], offset: ?>, #gpu.address_space<workgroup>>
      %47 = builtin.unrealized_conversion_cast %28 : !llvm.ptr<3> to memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>
      mosaic_gpu.arrive_expect_tx barrier(%47 : memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) 1024
      "mosaic_gpu.async_load"(%11, %cast, %47, %46) <{collective = [], oob_fill_mode = 2 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, slice_lengths = array<i64: 256>}> : (memref<1024xf32>, memref<256xf32, strided<[1], offset: ?>, #gpu.address_space<workgroup>>, memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, i32) -> ()
      %48 = memref.load %alloca[] : memref<i32>
      %49 = arith.andi %48, %c1_i32 : i32
      %50 = arith.cmpi ne, %49, %c0_i32 : i32
      %51 = arith.xori %48, %c1_i32 : i32
      memref.store %51, %alloca[] : memref<i32>
      %52 = arith.extui %50 : i1 to i32
      nvvm.mbarrier.try_wait.parity %28, %52, %c10000000_i32 : !llvm.ptr<3>, i32, i32
      %subview_0 = memref.subview %45[0, 0] [1, 256] [1, 1] : memref<1x256xf32, #gpu.address_space<workgroup>> to memref<256xf32, strided<[1]>, #gpu.address_space<workgroup>>
      %cast_1 = memref.cast %subview_0 : memref<256xf32, strided<[1]>, #gpu.address_space<workgroup>> to memref<256xf32, strided<[1], offset: ?>, #gpu.address_space<workgroup>>
      %53 = "mosaic_gpu.vector_load"(%cast) <{optimized = true}> : (memref<256xf32, strided<[1], offset: ?>, #gpu.address_space<workgroup>>) -> vector<256xf32>
      %54 = arith.addf %53, %cst : vector<256xf32>
      "mosaic_gpu.vector_store"(%54, %cast_1) <{multimem = false}> : (vector<256xf32>, memref<256xf32, strided<[1], offset: ?>, #gpu.address_space<workgroup>>) -> ()
      nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
      %55 = arith.shrui %39, %c7_i32 : i32
      %56 = arith.addi %55, %c1_i32 : i32
      %57 = llvm.inline_asm has_side_effects "bar.sync $0, 128;", "r" %56 : (i32) -> !llvm.void
      "mosaic_gpu.async_store"(%cast_1, %19, %46) <{commit_group = false, is_global_broadcast = false, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, slice_lengths = array<i64: 256>}> : (memref<256xf32, strided<[1], offset: ?>, #gpu.address_space<workgroup>>, memref<1024xf32>, i32) -> ()
      nvvm.cp.async.bulk.commit.group
      nvvm.cp.async.bulk.wait_group 0
      %58 = llvm.inline_asm has_side_effects "bar.sync $0, 128;", "r" %56 : (i32) -> !llvm.void
      gpu.terminator
    }
    return
  }
}
