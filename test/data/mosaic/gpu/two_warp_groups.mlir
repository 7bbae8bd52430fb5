module @body attributes {mosaic_gpu.arch_major = 9 : i32, mosaic_gpu.arch_minor = 0 : i32} {
  func.func private @mosaic_gpu_init_tma_desc(!llvm.ptr, !llvm.ptr, i64, i64, !llvm.ptr, !llvm.ptr, i64, !llvm.ptr)
  llvm.mlir.global external @global_scratch() {addr_space = 4 : i32} : !llvm.array<0 x i8>
  func.func @body_mosaic_gpu(%arg0: !llvm.ptr, %arg1: !llvm.ptr) attributes {llvm.emit_c_interface} {
    %0 = builtin.unrealized_conversion_cast %arg0 : !llvm.ptr to !gpu.async.token
    %1 = llvm.getelementptr %arg1[0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %2 = llvm.load %1 : !llvm.ptr -> !llvm.ptr
    %3 = llvm.mlir.undef : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)>
    %4 = llvm.insertvalue %2, %3[0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %5 = llvm.insertvalue %2, %4[1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %6 = llvm.mlir.constant(0 : i64) : i64
    %7 = llvm.insertvalue %6, %5[2] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %8 = llvm.mlir.constant(4 : i64) : i64
    %9 = llvm.insertvalue %8, %7[3, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %10 = llvm.mlir.constant(128 : i64) : i64
    %11 = llvm.insertvalue %10, %9[3, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %12 = llvm.mlir.constant(128 : i64) : i64
    %13 = llvm.insertvalue %12, %11[4, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %14 = llvm.mlir.constant(1 : i64) : i64
    %15 = llvm.insertvalue %14, %13[4, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %16 = builtin.unrealized_conversion_cast %15 : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> to memref<4x128xf32> {mosaic_gpu.from_kernel_arg_idx = 0 : i32, mosaic_gpu.original_kernel_arg}
    %17 = llvm.getelementptr %arg1[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
    %18 = llvm.load %17 : !llvm.ptr -> !llvm.ptr
    %19 = llvm.mlir.undef : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)>
    %20 = llvm.insertvalue %18, %19[0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %21 = llvm.insertvalue %18, %20[1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %22 = llvm.mlir.constant(0 : i64) : i64
    %23 = llvm.insertvalue %22, %21[2] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %24 = llvm.mlir.constant(4 : i64) : i64
    %25 = llvm.insertvalue %24, %23[3, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %26 = llvm.mlir.constant(128 : i64) : i64
    %27 = llvm.insertvalue %26, %25[3, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %28 = llvm.mlir.constant(128 : i64) : i64
    %29 = llvm.insertvalue %28, %27[4, 0] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %30 = llvm.mlir.constant(1 : i64) : i64
    %31 = llvm.insertvalue %30, %29[4, 1] : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> 
    %32 = builtin.unrealized_conversion_cast %31 : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> to memref<4x128xf32> {mosaic_gpu.from_kernel_arg_idx = 1 : i32, mosaic_gpu.original_kernel_arg}
    %c1 = arith.constant 1 : index
    %c1_0 = arith.constant 1 : index
    %c1_1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %c1_2 = arith.constant 1 : index
    %c1_3 = arith.constant 1 : index
    %c1040_i32 = arith.constant 1040 : i32
    %c1_i64 = arith.constant 1 : i64
    %33 = llvm.alloca %c1_i64 x !llvm.array<128 x i8> {alignment = 64 : i64, mosaic_gpu_smem_alloc} : (i64) -> !llvm.ptr
    %34 = llvm.getelementptr %33[0] : (!llvm.ptr) -> !llvm.ptr, i8
    %transpose = memref.transpose %16 (d0, d1) -> (d0, d1) : memref<4x128xf32> to memref<4x128xf32, strided<[128, 1]>>
    %reinterpret_cast = memref.reinterpret_cast %transpose to offset: [0], sizes: [4, 128], strides: [128, 1] : memref<4x128xf32, strided<[128, 1]>> to memref<4x128xf32, strided<[128, 1]>>
    %base_buffer, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %reinterpret_cast : memref<4x128xf32, strided<[128, 1]>> -> memref<f32>, index, index, index, index, index
    %intptr = memref.extract_aligned_pointer_as_index %reinterpret_cast : memref<4x128xf32, strided<[128, 1]>> -> index
    %35 = arith.index_cast %intptr : index to i64
    %36 = llvm.inttoptr %35 : i64 to !llvm.ptr
    %37 = arith.index_cast %offset : index to i64
    %38 = llvm.getelementptr %36[%37] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %c6_i64 = arith.constant 6 : i64
    %c2_i64 = arith.constant 2 : i64
    %39 = arith.index_cast %sizes#0 : index to i64
    %40 = arith.index_cast %sizes#1 : index to i64
    %c2_i64_4 = arith.constant 2 : i64
    %41 = llvm.alloca %c2_i64_4 x i64 : (i64) -> !llvm.ptr
    %42 = llvm.getelementptr %41[0] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.store %39, %42 : i64, !llvm.ptr
    %43 = llvm.getelementptr %41[1] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.store %40, %43 : i64, !llvm.ptr
    %44 = arith.index_cast %strides#0 : index to i64
    %45 = arith.index_cast %strides#1 : index to i64
    %c2_i64_5 = arith.constant 2 : i64
    %46 = llvm.alloca %c2_i64_5 x i64 : (i64) -> !llvm.ptr
    %47 = llvm.getelementptr %46[0] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.store %44, %47 : i64, !llvm.ptr
    %48 = llvm.getelementptr %46[1] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.store %45, %48 : i64, !llvm.ptr
    %c16_i64 = arith.constant 16 : i64
    %c1_i64_6 = arith.constant 1 : i64
    %c128_i64 = arith.constant 128 : i64
    %c2_i64_7 = arith.constant 2 : i64
    %49 = llvm.alloca %c2_i64_7 x i64 : (i64) -> !llvm.ptr
    %50 = llvm.getelementptr %49[0] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.store %c1_i64_6, %50 : i64, !llvm.ptr
    %51 = llvm.getelementptr %49[1] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.store %c128_i64, %51 : i64, !llvm.ptr
    call @mosaic_gpu_init_tma_desc(%34, %38, %c6_i64, %c2_i64, %41, %46, %c16_i64, %49) : (!llvm.ptr, !llvm.ptr, i64, i64, !llvm.ptr, !llvm.ptr, i64, !llvm.ptr) -> ()
    %52 = llvm.load %33 : !llvm.ptr -> !llvm.array<128 x i8>
    %53 = gpu.launch async [%0] blocks(%arg2, %arg3, %arg4) in (%arg8 = %c1, %arg9 = %c1_0, %arg10 = %c1_1) threads(%arg5, %arg6, %arg7) in (%arg11 = %c256, %arg12 = %c1_2, %arg13 = %c1_3) dynamic_shared_memory_size %c1040_i32 {
      %54 = builtin.unrealized_conversion_cast %52 : !llvm.array<128 x i8> to !llvm.ptr
      %55 = llvm.getelementptr %54[0] : (!llvm.ptr) -> !llvm.ptr, i8
      %56 = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %c0 = arith.constant 0 : index
      %view = memref.view %56[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<1024xi8, #gpu.address_space<workgroup>>
      %c1024 = arith.constant 1024 : index
      %view_8 = memref.view %56[%c1024][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<1xi64, #gpu.address_space<workgroup>>
      %57 = builtin.unrealized_conversion_cast %view_8 : memref<1xi64, #gpu.address_space<workgroup>> to !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)>
      %58 = llvm.extractvalue %57[1] : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> 
      %59 = llvm.extractvalue %57[2] : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> 
      %c8_i64 = arith.constant 8 : i64
      %60 = llvm.mul %59, %c8_i64 : i64
      %61 = llvm.ptrtoint %58 : !llvm.ptr<3> to i64
      %62 = llvm.add %61, %60 : i64
      %63 = llvm.inttoptr %62 : i64 to !llvm.ptr<3>
      %alloca = memref.alloca() : memref<i32>
      %c0_i32 = arith.constant 0 : i32
      memref.store %c0_i32, %alloca[] : memref<i32>
      %64 = nvvm.elect.sync -> i1
      %thread_id_x = gpu.thread_id x
      %65 = arith.index_cast %thread_id_x : index to i32
      %block_dim_x = gpu.block_dim x
      %66 = arith.index_cast %block_dim_x : index to i32
      %thread_id_y = gpu.thread_id y
      %67 = arith.index_cast %thread_id_y : index to i32
      %68 = arith.muli %67, %66 : i32
      %69 = arith.addi %65, %68 : i32
      %block_dim_y = gpu.block_dim y
      %70 = arith.index_cast %block_dim_y : index to i32
      %71 = arith.muli %66, %70 : i32
      %thread_id_z = gpu.thread_id z
      %72 = arith.index_cast %thread_id_z : index to i32
      %73 = arith.muli %72, %71 : i32
      %74 = arith.addi %69, %73 : i32
      %block_dim_z = gpu.block_dim z
      %75 = arith.index_cast %block_dim_z : index to i32
      %76 = arith.muli %71, %75 : i32
      %c5_i32 = arith.constant 5 : i32
      %77 = arith.shrui %74, %c5_i32 : i32
      %c-1_i32 = arith.constant -1 : i32
      %c0_i32_9 = arith.constant 0 : i32
      %c31_i32 = arith.constant 31 : i32
      %78 = nvvm.shfl.sync idx %c-1_i32, %77, %c0_i32_9, %c31_i32 : i32 -> i32
      %c0_i32_10 = arith.constant 0 : i32
      %79 = arith.cmpi eq, %78, %c0_i32_10 : i32
      %80 = arith.andi %79, %64 : i1
      %81 = llvm.getelementptr %63[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
      %c128_i32 = arith.constant 128 : i32
      nvvm.mbarrier.init %81, %c128_i32, predicate = %80 : !llvm.ptr<3>, i32, i1
      %c0_i32_11 = arith.constant 0 : i32
      %c1032 = arith.constant 1032 : index
      %view_12 = memref.view %56[%c1032][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<1xi64, #gpu.address_space<workgroup>>
      %82 = builtin.unrealized_conversion_cast %view_12 : memref<1xi64, #gpu.address_space<workgroup>> to !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)>
      %83 = llvm.extractvalue %82[1] : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> 
      %84 = llvm.extractvalue %82[2] : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> 
      %c8_i64_13 = arith.constant 8 : i64
      %85 = llvm.mul %84, %c8_i64_13 : i64
      %86 = llvm.ptrtoint %83 : !llvm.ptr<3> to i64
      %87 = llvm.add %86, %85 : i64
      %88 = llvm.inttoptr %87 : i64 to !llvm.ptr<3>
      %alloca_14 = memref.alloca() : memref<i32>
      %c0_i32_15 = arith.constant 0 : i32
      memref.store %c0_i32_15, %alloca_14[] : memref<i32>
      %89 = nvvm.elect.sync -> i1
      %thread_id_x_16 = gpu.thread_id x
      %90 = arith.index_cast %thread_id_x_16 : index to i32
      %block_dim_x_17 = gpu.block_dim x
      %91 = arith.index_cast %block_dim_x_17 : index to i32
      %thread_id_y_18 = gpu.thread_id y
      %92 = arith.index_cast %thread_id_y_18 : index to i32
      %93 = arith.muli %92, %91 : i32
      %94 = arith.addi %90, %93 : i32
      %block_dim_y_19 = gpu.block_dim y
      %95 = arith.index_cast %block_dim_y_19 : index to i32
      %96 = arith.muli %91, %95 : i32
      %thread_id_z_20 = gpu.thread_id z
      %97 = arith.index_cast %thread_id_z_20 : index to i32
      %98 = arith.muli %97, %96 : i32
      %99 = arith.addi %94, %98 : i32
      %block_dim_z_21 = gpu.block_dim z
      %100 = arith.index_cast %block_dim_z_21 : index to i32
      %101 = arith.muli %96, %100 : i32
      %c5_i32_22 = arith.constant 5 : i32
      %102 = arith.shrui %99, %c5_i32_22 : i32
      %c-1_i32_23 = arith.constant -1 : i32
      %c0_i32_24 = arith.constant 0 : i32
      %c31_i32_25 = arith.constant 31 : i32
      %103 = nvvm.shfl.sync idx %c-1_i32_23, %102, %c0_i32_24, %c31_i32_25 : i32 -> i32
      %c0_i32_26 = arith.constant 0 : i32
      %104 = arith.cmpi eq, %103, %c0_i32_26 : i32
      %105 = arith.andi %104, %89 : i1
      %106 = llvm.getelementptr %88[0] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
      %c128_i32_27 = arith.constant 128 : i32
      nvvm.mbarrier.init %106, %c128_i32_27, predicate = %105 : !llvm.ptr<3>, i32, i1
      %c0_i32_28 = arith.constant 0 : i32
      nvvm.fence.mbarrier.init
      gpu.barrier
      %107 = nvvm.elect.sync -> i1
      %thread_id_x_29 = gpu.thread_id x
      %108 = arith.index_cast %thread_id_x_29 : index to i32
      %block_dim_x_30 = gpu.block_dim x
      %109 = arith.index_cast %block_dim_x_30 : index to i32
      %thread_id_y_31 = gpu.thread_id y
      %110 = arith.index_cast %thread_id_y_31 : index to i32
      %111 = arith.muli %110, %109 : i32
      %112 = arith.addi %108, %111 : i32
      %block_dim_y_32 = gpu.block_dim y
      %113 = arith.index_cast %block_dim_y_32 : index to i32
      %114 = arith.muli %109, %113 : i32
      %thread_id_z_33 = gpu.thread_id z
      %115 = arith.index_cast %thread_id_z_33 : index to i32
      %116 = arith.muli %115, %114 : i32
      %117 = arith.addi %112, %116 : i32
      %block_dim_z_34 = gpu.block_dim z
      %118 = arith.index_cast %block_dim_z_34 : index to i32
      %119 = arith.muli %114, %118 : i32
      %c5_i32_35 = arith.constant 5 : i32
      %120 = arith.shrui %117, %c5_i32_35 : i32
      %c-1_i32_36 = arith.constant -1 : i32
      %c0_i32_37 = arith.constant 0 : i32
      %c31_i32_38 = arith.constant 31 : i32
      %121 = nvvm.shfl.sync idx %c-1_i32_36, %120, %c0_i32_37, %c31_i32_38 : i32 -> i32
      %c4_i32 = arith.constant 4 : i32
      %122 = arith.remui %121, %c4_i32 : i32
      %c0_i32_39 = arith.constant 0 : i32
      %123 = arith.cmpi eq, %122, %c0_i32_39 : i32
      %124 = arith.andi %123, %107 : i1
      %125 = nvvm.elect.sync -> i1
      %block_id_x = gpu.block_id x
      %126 = arith.index_cast %block_id_x : index to i32
      gpu.barrier
      %c0_i32_40 = arith.constant 0 : i32
      %c0_i32_41 = arith.constant 0 : i32
      %c1_i32 = arith.constant 1 : i32
      %127 = arith.muli %c0_i32_41, %c1_i32 : i32
      %128 = arith.addi %127, %c0_i32_40 : i32
      %c0_i32_42 = arith.constant 0 : i32
      %129 = arith.addi %128, %c0_i32_42 : i32
      %c1_i32_43 = arith.constant 1 : i32
      %130 = arith.addi %c0_i32_40, %c1_i32_43 : i32
      %c0_i32_44 = arith.constant 0 : i32
      %c0_i32_45 = arith.constant 0 : i32
      %c1_i32_46 = arith.constant 1 : i32
      %131 = arith.muli %c0_i32_45, %c1_i32_46 : i32
      %132 = arith.addi %131, %c0_i32_44 : i32
      %c0_i32_47 = arith.constant 0 : i32
      %133 = arith.addi %132, %c0_i32_47 : i32
      %c1_i32_48 = arith.constant 1 : i32
      %134 = arith.remsi %133, %c1_i32_48 : i32
      %block_id_x_49 = gpu.block_id x
      %135 = arith.index_cast %block_id_x_49 : index to i32
      gpu.barrier
      %136 = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %c0_50 = arith.constant 0 : index
      %view_51 = memref.view %136[%c0_50][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<128xf32, #gpu.address_space<workgroup>>
      %thread_id_x_52 = gpu.thread_id x
      %137 = arith.index_cast %thread_id_x_52 : index to i32
      %block_dim_x_53 = gpu.block_dim x
      %138 = arith.index_cast %block_dim_x_53 : index to i32
      %thread_id_y_54 = gpu.thread_id y
      %139 = arith.index_cast %thread_id_y_54 : index to i32
      %140 = arith.muli %139, %138 : i32
      %141 = arith.addi %137, %140 : i32
      %block_dim_y_55 = gpu.block_dim y
      %142 = arith.index_cast %block_dim_y_55 : index to i32
      %143 = arith.muli %138, %142 : i32
      %thread_id_z_56 = gpu.thread_id z
      %144 = arith.index_cast %thread_id_z_56 : index to i32
      %145 = arith.muli %144, %143 : i32
      %146 = arith.addi %141, %145 : i32
      %block_dim_z_57 = gpu.block_dim z
      %147 = arith.index_cast %block_dim_z_57 : index to i32
      %148 = arith.muli %143, %147 : i32
      %c7_i32 = arith.constant 7 : i32
      %149 = arith.shrui %146, %c7_i32 : i32
      %c-1_i32_58 = arith.constant -1 : i32
      %c0_i32_59 = arith.constant 0 : i32
      %c31_i32_60 = arith.constant 31 : i32
      %150 = nvvm.shfl.sync idx %c-1_i32_58, %149, %c0_i32_59, %c31_i32_60 : i32 -> i32
      %c0_i32_61 = arith.constant 0 : i32
      %151 = arith.cmpi eq, %150, %c0_i32_61 : i32
      %152 = arith.extui %151 : i1 to i32
      %153 = arith.index_cast %152 : i32 to index
      scf.index_switch %153 
      case 0 {
        scf.yield
      }
      default {
        nvvm.setmaxregister decrease 40
        %c0_i32_68 = arith.constant 0 : i32
        %c4_i32_69 = arith.constant 4 : i32
        %c0_i32_70 = arith.constant 0 : i32
        %c1_i32_71 = arith.constant 1 : i32
        scf.for %arg14 = %c0_i32_70 to %c4_i32_69 step %c1_i32_71  : i32 {
          %c1_i32_73 = arith.constant 1 : i32
          %166 = arith.muli %arg14, %c1_i32_73 : i32
          %167 = arith.addi %166, %c0_i32_68 : i32
          %c0_i32_74 = arith.constant 0 : i32
          %168 = arith.addi %167, %c0_i32_74 : i32
          %c1_i32_75 = arith.constant 1 : i32
          %169 = arith.muli %168, %c1_i32_75 : i32
          %c0_i32_76 = arith.constant 0 : i32
          %170 = arith.addi %c0_i32_76, %169 : i32
          %171 = memref.load %alloca[] : memref<i32>
          %c1_i32_77 = arith.constant 1 : i32
          %172 = arith.shli %c1_i32_77, %c0_i32_11 : i32
          %173 = arith.andi %171, %172 : i32
          %c0_i32_78 = arith.constant 0 : i32
          %174 = arith.cmpi ne, %173, %c0_i32_78 : i32
          %175 = arith.xori %171, %172 : i32
          memref.store %175, %alloca[] : memref<i32>
          %c10000000_i32 = arith.constant 10000000 : i32
          %176 = arith.extui %174 : i1 to i32
          %177 = llvm.getelementptr %63[%c0_i32_11] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          nvvm.mbarrier.try_wait.parity %177, %176, %c10000000_i32 : !llvm.ptr<3>, i32, i32
          %178 = arith.index_cast %170 : i32 to index
          %thread_id_x_79 = gpu.thread_id x
          %179 = arith.index_cast %thread_id_x_79 : index to i32
          %block_dim_x_80 = gpu.block_dim x
          %180 = arith.index_cast %block_dim_x_80 : index to i32
          %thread_id_y_81 = gpu.thread_id y
          %181 = arith.index_cast %thread_id_y_81 : index to i32
          %182 = arith.muli %181, %180 : i32
          %183 = arith.addi %179, %182 : i32
          %block_dim_y_82 = gpu.block_dim y
          %184 = arith.index_cast %block_dim_y_82 : index to i32
          %185 = arith.muli %180, %184 : i32
          %thread_id_z_83 = gpu.thread_id z
          %186 = arith.index_cast %thread_id_z_83 : index to i32
          %187 = arith.muli %186, %185 : i32
          %188 = arith.addi %183, %187 : i32
          %block_dim_z_84 = gpu.block_dim z
          %189 = arith.index_cast %block_dim_z_84 : index to i32
          %190 = arith.muli %185, %189 : i32
          %c7_i32_85 = arith.constant 7 : i32
          %191 = arith.shrui %188, %c7_i32_85 : i32
          %c1_i32_86 = arith.constant 1 : i32
          %192 = arith.addi %191, %c1_i32_86 : i32
          %193 = llvm.inline_asm has_side_effects "bar.sync $0, 128;", "r" %192 : (i32) -> !llvm.void
          %c4_i32_87 = arith.constant 4 : i32
          %194 = llvm.getelementptr %88[%c0_i32_28] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          %195 = nvvm.mbarrier.arrive.expect_tx %194, %c4_i32_87 : !llvm.ptr<3>, i32 -> i64
          %c0_88 = arith.constant 0 : index
          %reinterpret_cast_89 = memref.reinterpret_cast %view_51 to offset: [0], sizes: [128], strides: [1] : memref<128xf32, #gpu.address_space<workgroup>> to memref<128xf32, strided<[1]>, #gpu.address_space<workgroup>>
          %c512_i32 = arith.constant 512 : i32
          %196 = builtin.unrealized_conversion_cast %reinterpret_cast_89 : memref<128xf32, strided<[1]>, #gpu.address_space<workgroup>> to !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)>
          %197 = llvm.extractvalue %196[1] : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> 
          %198 = llvm.extractvalue %196[2] : !llvm.struct<(ptr<3>, ptr<3>, i64, array<1 x i64>, array<1 x i64>)> 
          %c4_i64 = arith.constant 4 : i64
          %199 = llvm.mul %198, %c4_i64 : i64
          %200 = llvm.ptrtoint %197 : !llvm.ptr<3> to i64
          %201 = llvm.add %200, %199 : i64
          %202 = llvm.inttoptr %201 : i64 to !llvm.ptr<3>
          %transpose_90 = memref.transpose %16 (d0, d1) -> (d0, d1) : memref<4x128xf32> to memref<4x128xf32, strided<[128, 1]>>
          %reinterpret_cast_91 = memref.reinterpret_cast %transpose_90 to offset: [0], sizes: [4, 128], strides: [128, 1] : memref<4x128xf32, strided<[128, 1]>> to memref<4x128xf32, strided<[128, 1]>>
          %203 = arith.index_cast %c0_88 : index to i32
          %204 = arith.index_cast %178 : index to i32
          %205 = llvm.getelementptr %88[%c0_i32_28] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          nvvm.cp.async.bulk.tensor.shared.cluster.global %202, %55, %205, box[%203, %204] predicate = %124 : !llvm.ptr<3>, !llvm.ptr
        }
        %c4_i32_72 = arith.constant 4 : i32
        %165 = arith.addi %c0_i32_68, %c4_i32_72 : i32
      }
      %c1_i32_62 = arith.constant 1 : i32
      %154 = arith.cmpi eq, %150, %c1_i32_62 : i32
      %155 = arith.extui %154 : i1 to i32
      %156 = arith.index_cast %155 : i32 to index
      scf.index_switch %156 
      case 0 {
        scf.yield
      }
      default {
        nvvm.setmaxregister increase 240
        %165 = llvm.getelementptr %63[%c0_i32_11] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
        %166 = llvm.inline_asm has_side_effects " mbarrier.arrive.release.cta.shared::cta.b64 $0, [$1], 1;", "=l,r" %165 : (!llvm.ptr<3>) -> i64
        %c0_i32_68 = arith.constant 0 : i32
        %c4_i32_69 = arith.constant 4 : i32
        %c0_i32_70 = arith.constant 0 : i32
        %c1_i32_71 = arith.constant 1 : i32
        scf.for %arg14 = %c0_i32_70 to %c4_i32_69 step %c1_i32_71  : i32 {
          %c1_i32_73 = arith.constant 1 : i32
          %168 = arith.muli %arg14, %c1_i32_73 : i32
          %169 = arith.addi %168, %c0_i32_68 : i32
          %c0_i32_74 = arith.constant 0 : i32
          %170 = arith.addi %169, %c0_i32_74 : i32
          %c1_i32_75 = arith.constant 1 : i32
          %171 = arith.muli %170, %c1_i32_75 : i32
          %c0_i32_76 = arith.constant 0 : i32
          %172 = arith.addi %c0_i32_76, %171 : i32
          %173 = memref.load %alloca_14[] : memref<i32>
          %c1_i32_77 = arith.constant 1 : i32
          %174 = arith.shli %c1_i32_77, %c0_i32_28 : i32
          %175 = arith.andi %173, %174 : i32
          %c0_i32_78 = arith.constant 0 : i32
          %176 = arith.cmpi ne, %175, %c0_i32_78 : i32
          %177 = arith.xori %173, %174 : i32
          memref.store %177, %alloca_14[] : memref<i32>
          %c10000000_i32 = arith.constant 10000000 : i32
          %178 = arith.extui %176 : i1 to i32
          %179 = llvm.getelementptr %88[%c0_i32_28] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          nvvm.mbarrier.try_wait.parity %179, %178, %c10000000_i32 : !llvm.ptr<3>, i32, i32
          %collapse_shape = memref.collapse_shape %view_51 [[0]] : memref<128xf32, #gpu.address_space<workgroup>> into memref<128xf32, #gpu.address_space<workgroup>>
          %thread_id_x_79 = gpu.thread_id x
          %c128 = arith.constant 128 : index
          %180 = arith.remui %thread_id_x_79, %c128 : index
          %c1_80 = arith.constant 1 : index
          %181 = arith.muli %180, %c1_80 : index
          %c0_81 = arith.constant 0 : index
          %182 = arith.addi %181, %c0_81 : index
          %183 = vector.load %collapse_shape[%182] : memref<128xf32, #gpu.address_space<workgroup>>, vector<1xf32>
          %184 = llvm.getelementptr %63[%c0_i32_11] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
          %185 = llvm.inline_asm has_side_effects " mbarrier.arrive.release.cta.shared::cta.b64 $0, [$1], 1;", "=l,r" %184 : (!llvm.ptr<3>) -> i64
          %186 = arith.index_cast %172 : i32 to index
          %subview = memref.subview %32[%186, 0] [1, 128] [1, 1] : memref<4x128xf32> to memref<128xf32, strided<[1], offset: ?>>
          %thread_id_x_82 = gpu.thread_id x
          %187 = arith.index_cast %thread_id_x_82 : index to i32
          %block_dim_x_83 = gpu.block_dim x
          %188 = arith.index_cast %block_dim_x_83 : index to i32
          %thread_id_y_84 = gpu.thread_id y
          %189 = arith.index_cast %thread_id_y_84 : index to i32
          %190 = arith.muli %189, %188 : i32
          %191 = arith.addi %187, %190 : i32
          %block_dim_y_85 = gpu.block_dim y
          %192 = arith.index_cast %block_dim_y_85 : index to i32
          %193 = arith.muli %188, %192 : i32
          %thread_id_z_86 = gpu.thread_id z
          %194 = arith.index_cast %thread_id_z_86 : index to i32
          %195 = arith.muli %194, %193 : i32
          %196 = arith.addi %191, %195 : i32
          %block_dim_z_87 = gpu.block_dim z
          %197 = arith.index_cast %block_dim_z_87 : index to i32
          %198 = arith.muli %193, %197 : i32
          %c7_i32_88 = arith.constant 7 : i32
          %199 = arith.shrui %196, %c7_i32_88 : i32
          %c1_i32_89 = arith.constant 1 : i32
          %200 = arith.addi %199, %c1_i32_89 : i32
          %201 = llvm.inline_asm has_side_effects "bar.sync $0, 128;", "r" %200 : (i32) -> !llvm.void
          %collapse_shape_90 = memref.collapse_shape %subview [[0]] : memref<128xf32, strided<[1], offset: ?>> into memref<128xf32, strided<[1], offset: ?>>
          %thread_id_x_91 = gpu.thread_id x
          %c128_92 = arith.constant 128 : index
          %202 = arith.remui %thread_id_x_91, %c128_92 : index
          %c1_93 = arith.constant 1 : index
          %203 = arith.muli %202, %c1_93 : index
          %c0_94 = arith.constant 0 : index
          %204 = arith.addi %203, %c0_94 : index
          %205 = vector.load %collapse_shape_90[%204] : memref<128xf32, strided<[1], offset: ?>>, vector<1xf32>
          %collapse_shape_95 = memref.collapse_shape %subview [[0]] : memref<128xf32, strided<[1], offset: ?>> into memref<128xf32, strided<[1], offset: ?>>
          %thread_id_x_96 = gpu.thread_id x
          %c128_97 = arith.constant 128 : index
          %206 = arith.remui %thread_id_x_96, %c128_97 : index
          %c1_98 = arith.constant 1 : index
          %207 = arith.muli %206, %c1_98 : index
          %c0_99 = arith.constant 0 : index
          %208 = arith.addi %207, %c0_99 : index
          vector.store %183, %collapse_shape_95[%208] : memref<128xf32, strided<[1], offset: ?>>, vector<1xf32>
          %thread_id_x_100 = gpu.thread_id x
          %209 = arith.index_cast %thread_id_x_100 : index to i32
          %block_dim_x_101 = gpu.block_dim x
          %210 = arith.index_cast %block_dim_x_101 : index to i32
          %thread_id_y_102 = gpu.thread_id y
          %211 = arith.index_cast %thread_id_y_102 : index to i32
          %212 = arith.muli %211, %210 : i32
          %213 = arith.addi %209, %212 : i32
          %block_dim_y_103 = gpu.block_dim y
          %214 = arith.index_cast %block_dim_y_103 : index to i32
          %215 = arith.muli %210, %214 : i32
          %thread_id_z_104 = gpu.thread_id z
          %216 = arith.index_cast %thread_id_z_104 : index to i32
          %217 = arith.muli %216, %215 : i32
          %218 = arith.addi %213, %217 : i32
          %block_dim_z_105 = gpu.block_dim z
          %219 = arith.index_cast %block_dim_z_105 : index to i32
          %220 = arith.muli %215, %219 : i32
          %c7_i32_106 = arith.constant 7 : i32
          %221 = arith.shrui %218, %c7_i32_106 : i32
          %c1_i32_107 = arith.constant 1 : i32
          %222 = arith.addi %221, %c1_i32_107 : i32
          %223 = llvm.inline_asm has_side_effects "bar.sync $0, 128;", "r" %222 : (i32) -> !llvm.void
        }
        %c4_i32_72 = arith.constant 4 : i32
        %167 = arith.addi %c0_i32_68, %c4_i32_72 : i32
      }
      %c1_i32_63 = arith.constant 1 : i32
      %157 = arith.addi %133, %c1_i32_63 : i32
      %c1_i32_64 = arith.constant 1 : i32
      %158 = arith.remsi %157, %c1_i32_64 : i32
      %c0_i32_65 = arith.constant 0 : i32
      %159 = arith.cmpi sge, %133, %c0_i32_65 : i32
      %c1_i32_66 = arith.constant 1 : i32
      %160 = arith.cmpi slt, %157, %c1_i32_66 : i32
      %161 = arith.andi %159, %160 : i1
      %162 = arith.extui %161 : i1 to i32
      %163 = arith.index_cast %162 : i32 to index
      scf.index_switch %163 
      case 0 {
        scf.yield
      }
      default {
      }
      %c1_i32_67 = arith.constant 1 : i32
      %164 = arith.addi %c0_i32_44, %c1_i32_67 : i32
      gpu.terminator
    }
    return
  }
}
