module @k attributes {mosaic_gpu.arch_major = 9 : i32, mosaic_gpu.arch_minor = 0 : i32} {
  func.func private @mosaic_gpu_init_tma_desc(!llvm.ptr, !llvm.ptr, i64, i64, !llvm.ptr, !llvm.ptr, i64, !llvm.ptr)
  llvm.mlir.global external @global_scratch() {addr_space = 4 : i32} : !llvm.array<0 x i8>
  func.func @k_mosaic_gpu(%arg0: !llvm.ptr, %arg1: !llvm.ptr) attributes {llvm.emit_c_interface} {
    %cst = arith.constant dense<1.000000e+00> : vector<128xf32>
    %c10000000_i32 = arith.constant 10000000 : i32
    %c7_i32 = arith.constant 7 : i32
    %c1_i32 = arith.constant 1 : i32
    %c4_i32 = arith.constant 4 : i32
    %c31_i32 = arith.constant 31 : i32
    %c-1_i32 = arith.constant -1 : i32
    %c5_i32 = arith.constant 5 : i32
    %c0_i32 = arith.constant 0 : i32
    %c8_i64 = arith.constant 8 : i64
    %c1040_i32 = arith.constant 1040 : i32
    %c256 = arith.constant 256 : index
    %c1 = arith.constant 1 : index
    %0 = llvm.mlir.constant(1 : i64) : i64
    %1 = llvm.mlir.constant(128 : i64) : i64
    %2 = llvm.mlir.constant(4 : i64) : i64
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
    %14 = builtin.unrealized_conversion_cast %13 : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> to memref<4x128xf32> {mosaic_gpu.from_kernel_arg_idx = 0 : i32, mosaic_gpu.original_kernel_arg}
    %15 = llvm.getelementptr %arg1[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %16 = llvm.load %15 : !llvm.ptr -> !llvm.ptr
    %17 = llvm.insertvalue %16, %4[0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %18 = llvm.insertvalue %16, %17[1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %19 = llvm.insertvalue %3, %18[2] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %20 = llvm.insertvalue %2, %19[3, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %21 = llvm.insertvalue %1, %20[3, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %22 = llvm.insertvalue %1, %21[4, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %23 = llvm.insertvalue %0, %22[4, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %24 = builtin.unrealized_conversion_cast %23 : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> to memref<4x128xf32> {mosaic_gpu.from_kernel_arg_idx = 1 : i32, mosaic_gpu.original_kernel_arg}
    %25 = gpu.launch async [%5] blocks(%arg2, %arg3, %arg4) in (%arg8 = %c1, %arg9 = %c1, %arg10 = %c1) threads(%arg5, %arg6, %arg7) in (%arg11 = %c256, %arg12 = %c1, %arg13 = %c1) dynamic_shared_memory_size %c1040_i32 {
      %26 = "mosaic_gpu.slice_smem"() <{offset = 1024 : i32}> : () -> memref<1x!mosaic_gpu.barrier, #gpu.address_space<workgroup>>
      %27 = builtin.unrealized_conversion_cast %26 : memref<1x!mosaic_gpu.barrier, #gpu.address_space<workgroup>> to !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)>
      %28 = llvm.extractvalue %27[1] : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> 
      %29 = llvm.extractvalue %27[2] : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> 
      %30 = llvm.mul %29, %c8_i64 : i64
      %31 = llvm.ptrtoint %28 : !llvm.ptr<3> to i64
      %32 = llvm.add %31, %30 : i64
      %33 = llvm.inttoptr %32 : i64 to !llvm.ptr<3>
      "mosaic_gpu.initialize_barrier"(%33) <{arrival_count = 1 : i64, num_barriers = 1 : i32, orders_tensor_core = false}> : (!llvm.ptr<3>) -> ()
      %alloca = memref.alloca() : memref<i32>
      memref.store %c0_i32, %alloca[] : memref<i32>
      %34 = "mosaic_gpu.slice_smem"() <{offset = 1032 : i32}> : () -> memref<1x!mosaic_gpu.barrier, #gpu.address_space<workgroup>>
      %35 = builtin.unrealized_conversion_cast %34 : memref<1x!mosaic_gpu.barrier, #gpu.address_space<workgroup>> to !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)>
      %36 = llvm.extractvalue %35[1] : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> 
      %37 = llvm.extractvalue %35[2] : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> 
      %38 = llvm.mul %37, %c8_i64 : i64
      %39 = llvm.ptrtoint %36 : !llvm.ptr<3> to i64
      %40 = llvm.add %39, %38 : i64
      %41 = llvm.inttoptr %40 : i64 to !llvm.ptr<3>
      "mosaic_gpu.initialize_barrier"(%41) <{arrival_count = 1 : i64, num_barriers = 1 : i32, orders_tensor_core = false}> : (!llvm.ptr<3>) -> ()
      %alloca_0 = memref.alloca() : memref<i32>
      memref.store %c0_i32, %alloca_0[] : memref<i32>
      nvvm.fence.mbarrier.init
      gpu.barrier
      %42 = nvvm.elect.sync -> i1
      %thread_id_x = gpu.thread_id x
      %43 = arith.index_cast %thread_id_x : index to i32
      %block_dim_x = gpu.block_dim x
      %44 = arith.index_cast %block_dim_x : index to i32
      %thread_id_y = gpu.thread_id y
      %45 = arith.index_cast %thread_id_y : index to i32
      %46 = arith.muli %45, %44 : i32
      %47 = arith.addi %43, %46 : i32
      %block_dim_y = gpu.block_dim y
      %48 = arith.index_cast %block_dim_y : index to i32
      %49 = arith.muli %44, %48 : i32
      %thread_id_z = gpu.thread_id z
      %50 = arith.index_cast %thread_id_z : index to i32
      %51 = arith.muli %50, %49 : i32
      %52 = arith.addi %47, %51 : i32
      %53 = arith.shrui %52, %c5_i32 : i32
      %54 = nvvm.shfl.sync idx %c-1_i32, %53, %c0_i32, %c31_i32 : i32 -> i32
      %55 = nvvm.elect.sync -> i1
      gpu.barrier
      %56 = "mosaic_gpu.slice_smem"() <{offset = 0 : i32}> : () -> memref<128xf32, #gpu.address_space<workgroup>>
      %57 = arith.shrui %52, %c7_i32 : i32
      %58 = nvvm.shfl.sync idx %c-1_i32, %57, %c0_i32, %c31_i32 : i32 -> i32
      %59 = arith.cmpi eq, %58, %c0_i32 : i32
      %60 = arith.extui %59 : i1 to i32
      %61 = arith.index_cast %60 : i32 to index
      scf.index_switch %61 
      case 0 {
        scf.yield
      }
      default {
        scf.for %arg14 = %c0_i32 to %c4_i32 step %c1_i32  : i32 {
          %65 = memref.load %alloca[] : memref<i32>
          %66 = arith.andi %65, %c1_i32 : i32
          %67 = arith.cmpi ne, %66, %c0_i32 : i32
          %68 = arith.xori %65, %c1_i32 : i32
          memref.store %68, %alloca[] : memref<i32>
          %69 = arith.extui %67 : i1 to i32
          nvvm.mbarrier.try_wait.parity %33, %69, %c10000000_i32 : !llvm.ptr<3>, i32, i32
          %70 = builtin.unrealized_conversion_cast %41 : !llvm.ptr<3> to memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>
          mosaic_gpu.arrive_expect_tx barrier(%70 : memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) 512
          "mosaic_gpu.async_load"(%14, %56, %70, %arg14, %c0_i32) <{collective = [], oob_fill_mode = 2 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 2, 0>, slice_lengths = array<i64: -1, 128>}> : (memref<4x128xf32>, memref<128xf32, #gpu.address_space<workgroup>>, memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>, i32, i32) -> ()
        }
      }
      %62 = arith.cmpi eq, %58, %c1_i32 : i32
      %63 = arith.extui %62 : i1 to i32
      %64 = arith.index_cast %63 : i32 to index
      scf.index_switch %64 
      case 0 {
        scf.yield
      }
      default {
        %65 = builtin.unrealized_conversion_cast %33 : !llvm.ptr<3> to memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>
        "mosaic_gpu.arrive"(%65) <{orders_tensor_core = false}> : (memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) -> ()
        scf.for %arg14 = %c0_i32 to %c4_i32 step %c1_i32  : i32 {
          %66 = memref.load %alloca_0[] : memref<i32>
          %67 = arith.andi %66, %c1_i32 : i32
          %68 = arith.cmpi ne, %67, %c0_i32 : i32
          %69 = arith.xori %66, %c1_i32 : i32
          memref.store %69, %alloca_0[] : memref<i32>
          %70 = arith.extui %68 : i1 to i32
          nvvm.mbarrier.try_wait.parity %41, %70, %c10000000_i32 : !llvm.ptr<3>, i32, i32
          %71 = "mosaic_gpu.vector_load"(%56) <{optimized = true}> : (memref<128xf32, #gpu.address_space<workgroup>>) -> vector<128xf32>
          "mosaic_gpu.arrive"(%65) <{orders_tensor_core = false}> : (memref<!mosaic_gpu.barrier, #gpu.address_space<workgroup>>) -> ()
          %72 = arith.addf %71, %cst : vector<128xf32>
          %73 = arith.index_cast %arg14 : i32 to index
          %subview = memref.subview %24[%73, 0] [1, 128] [1, 1] : memref<4x128xf32> to memref<128xf32, strided<[1], offset: ?>>
          "mosaic_gpu.vector_store"(%72, %subview) <{multimem = false}> : (vector<128xf32>, memref<128xf32, strided<[1], offset: ?>>) -> ()
        }
      }
      gpu.terminator
    }
    return
  }
}
