module @IrToHlo.134 attributes {mhlo.cross_program_prefetches = [], mhlo.input_output_alias = [], mhlo.is_dynamic = false, mhlo.use_auto_spmd_partitioning = false} {
  func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<1x4xi64>, %arg2: tensor<7x8xf32>, %arg3: tensor<24x8xf32>, %arg4: tensor<f32>, %arg5: tensor<4x4xi1>, %arg6: tensor<8xf32>) -> (tensor<1x4x8xf32>, tensor<1x4xi64>, tensor<1x4xf32>) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<4xf32>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<1x4x4xf32>
    %cst_2 = stablehlo.constant dense<-3.40282347E+38> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst_3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.not %arg5 : tensor<4x4xi1>
    %1 = stablehlo.reshape %0 : (tensor<4x4xi1>) -> tensor<1x4x4xi1>
    %2 = stablehlo.reshape %arg1 : (tensor<1x4xi64>) -> tensor<4xi64>
    %3 = stablehlo.convert %2 : (tensor<4xi64>) -> tensor<4xui32>
    %4 = "stablehlo.gather"(%arg2, %3) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 8>}> : (tensor<7x8xf32>, tensor<4xui32>) -> tensor<4x8xf32>
    %5 = stablehlo.reshape %4 : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
    %6 = stablehlo.transpose %arg3, dims = [1, 0] {result_layout = dense<[0, 1]> : tensor<2xindex>, xla_shape = "f32[8,24]{0,1}"} : (tensor<24x8xf32>) -> tensor<8x24xf32>
    %7 = stablehlo.dot_general %4, %6, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x8xf32>, tensor<8x24xf32>) -> tensor<4x24xf32>
    %8 = stablehlo.reshape %7 : (tensor<4x24xf32>) -> tensor<1x4x24xf32>
    %9 = stablehlo.slice %8 [0:1, 0:4, 0:8] : (tensor<1x4x24xf32>) -> tensor<1x4x8xf32>
    %10 = stablehlo.slice %8 [0:1, 0:4, 8:16] : (tensor<1x4x24xf32>) -> tensor<1x4x8xf32>
    %11 = stablehlo.transpose %10, dims = [0, 2, 1] {result_layout = dense<[1, 2, 0]> : tensor<3xindex>, xla_shape = "f32[1,8,4]{1,2,0}"} : (tensor<1x4x8xf32>) -> tensor<1x8x4xf32>
    %12 = stablehlo.dot_general %9, %11, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x4x8xf32>, tensor<1x8x4xf32>) -> tensor<1x4x4xf32>
    %13 = stablehlo.broadcast_in_dim %arg4, dims = [] : (tensor<f32>) -> tensor<1x4x4xf32>
    %14 = stablehlo.multiply %12, %13 : tensor<1x4x4xf32>
    %15 = stablehlo.select %1, %cst_1, %14 : tensor<1x4x4xi1>, tensor<1x4x4xf32>
    %16 = stablehlo.reduce(%15 init: %cst_3) applies stablehlo.maximum across dimensions = [2] : (tensor<1x4x4xf32>, tensor<f32>) -> tensor<1x4xf32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<1x4x4xf32>
    %18 = stablehlo.subtract %15, %17 : tensor<1x4x4xf32>
    %19 = stablehlo.exponential %18 : tensor<1x4x4xf32>
    %20 = stablehlo.reduce(%19 init: %cst_4) applies stablehlo.add across dimensions = [2] : (tensor<1x4x4xf32>, tensor<f32>) -> tensor<1x4xf32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<1x4x4xf32>
    %22 = stablehlo.divide %19, %21 : tensor<1x4x4xf32>
    %23 = stablehlo.slice %8 [0:1, 0:4, 16:24] : (tensor<1x4x24xf32>) -> tensor<1x4x8xf32>
    %24 = stablehlo.dot_general %22, %23, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<1x4x4xf32>, tensor<1x4x8xf32>) -> tensor<1x4x8xf32>
    %25 = stablehlo.add %24, %5 : tensor<1x4x8xf32>
    %output, %batch_mean, %batch_var = "stablehlo.batch_norm_training"(%25, %cst_0, %cst) <{epsilon = 9.99999974E-6 : f32, feature_index = 1 : i64}> : (tensor<1x4x8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<1x4x8xf32>, tensor<4xf32>, tensor<4xf32>)
    %26 = stablehlo.broadcast_in_dim %arg6, dims = [2] : (tensor<8xf32>) -> tensor<1x4x8xf32>
    %27 = stablehlo.broadcast_in_dim %arg0, dims = [2] : (tensor<8xf32>) -> tensor<1x4x8xf32>
    %28 = stablehlo.multiply %output, %27 : tensor<1x4x8xf32>
    %29 = stablehlo.add %26, %28 : tensor<1x4x8xf32>
    %30 = stablehlo.iota dim = 0 : tensor<4xi32>
    %31 = stablehlo.broadcast_in_dim %30, dims = [2] : (tensor<4xi32>) -> tensor<1x4x4xi32>
    %32:2 = stablehlo.reduce(%22 init: %cst_3), (%31 init: %c) across dimensions = [2] : (tensor<1x4x4xf32>, tensor<1x4x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<1x4xf32>, tensor<1x4xi32>)
     reducer(%arg7: tensor<f32>, %arg9: tensor<f32>) (%arg8: tensor<i32>, %arg10: tensor<i32>)  {
      %35 = stablehlo.compare  GE, %arg7, %arg9 : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %36 = stablehlo.select %35, %arg7, %arg9 : tensor<i1>, tensor<f32>
      %37 = stablehlo.compare  EQ, %arg7, %arg9 : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %38 = stablehlo.minimum %arg8, %arg10 : tensor<i32>
      %39 = stablehlo.select %35, %arg8, %arg10 : tensor<i1>, tensor<i32>
      %40 = stablehlo.select %37, %38, %39 : tensor<i1>, tensor<i32>
      stablehlo.return %36, %40 : tensor<f32>, tensor<i32>
    }
    %33 = stablehlo.convert %32#1 : (tensor<1x4xi32>) -> tensor<1x4xi64>
    %34 = stablehlo.reduce(%22 init: %cst_2) applies stablehlo.maximum across dimensions = [2] : (tensor<1x4x4xf32>, tensor<f32>) -> tensor<1x4xf32>
    return %29, %33, %34 : tensor<1x4x8xf32>, tensor<1x4xi64>, tensor<1x4xf32>
  }
}
