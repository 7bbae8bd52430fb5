// RUN: hlo-opt --passes=stablehlo-legalize-to-hlo --emit=hlo --split-input-file %s | filecheck %s
// RUN: hlo-opt --emit=hlo --split-input-file %s | filecheck %s
// RUN: hlo-opt --passes=stablehlo-to-hlo --emit=hlo --split-input-file %s | filecheck %s

// A region becomes a computation; names are those XLA gives.
// CHECK-LABEL: HloModule sum
module @sum {
  // CHECK: %region_0.1 (Arg_0.2: f32[], Arg_1.2: f32[]) -> f32[] {
  // CHECK: ROOT %add.1 = f32[] add(%Arg_0.2, %Arg_1.2)
  // CHECK: ENTRY %main.2 (Arg_0.3: f32[4], Arg_1.3: f32[]) -> f32[] {
  // CHECK: ROOT %reduce.1 = f32[] reduce(%Arg_0.3, %Arg_1.3), dimensions={0}, to_apply=%region_0.1
  func.func public @main(%x: tensor<4xf32>, %zero: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// Values from outside become parts of a loop's state, constants are made again inside.
// CHECK-LABEL: HloModule loop
module @loop {
  // CHECK: %region_0.1 (arg_tuple.1: (s32[], f32[], f32[])) -> (s32[], f32[], f32[]) {
  // CHECK: %constant.{{[0-9]+}} = s32[] constant(1)
  // CHECK: %region_1.2 (arg_tuple.3: (s32[], f32[], f32[])) -> pred[] {
  // CHECK: %constant.{{[0-9]+}} = s32[] constant(10)
  // CHECK: ENTRY %main.3 (Arg_0.1: f32[], Arg_1.1: f32[]) -> f32[] {
  // CHECK: while(%{{[a-z0-9.]+}}), condition=%region_1.2, body=%region_0.1
  func.func public @main(%x: tensor<f32>, %step: tensor<f32>) -> tensor<f32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %ten = stablehlo.constant dense<10> : tensor<i32>
    %0:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<f32>
      cond {
        %1 = stablehlo.compare LT, %i, %ten, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      } do {
        %1 = stablehlo.add %i, %one : tensor<i32>
        %2 = stablehlo.add %s, %step : tensor<f32>
        stablehlo.return %1, %2 : tensor<i32>, tensor<f32>
      }
    return %0#1 : tensor<f32>
  }
}

// -----

// Aliases and donors go to the header, several results to a tuple.
// CHECK-LABEL: HloModule aliases, input_output_alias={ {1}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }
module @aliases {
  // CHECK: ROOT %tuple.1 = (f32[2]{0}, f32[2]{0}) tuple(%Arg_1.1, %Arg_0.1)
  func.func public @main(%a: tensor<2xf32> {tf.aliasing_output = 1 : i32}, %b: tensor<2xf32> {jax.buffer_donor = true}) -> (tensor<2xf32>, tensor<2xf32>) {
    return %b, %a : tensor<2xf32>, tensor<2xf32>
  }
}

// -----

// CHECK-LABEL: HloModule calls
module @calls {
  // CHECK: custom-call(%Arg_0.{{[0-9]+}}), custom_call_target="target", custom_call_has_side_effect=true, api_version=API_VERSION_TYPED_FFI, frontend_attributes={k="v"}, backend_config={a = 1 : i32, b = "q"}
  // CHECK: call(%{{[a-z0-9.-]+}}), to_apply=%impl.{{[0-9]+}}, is_composite=true, frontend_attributes={composite.attributes={n = 2 : i32},composite.name="my.op",composite.version="3"}
  func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.custom_call @target(%x) {api_version = 4 : i32, backend_config = {a = 1 : i32, b = "q"}, has_side_effect = true, mhlo.frontend_attributes = {k = "v"}} : (tensor<2xf32>) -> tensor<2xf32>
    %1 = stablehlo.composite "my.op" %0 {composite_attributes = {n = 2 : i32}, decomposition = @impl, version = 3 : i32} : (tensor<2xf32>) -> tensor<2xf32>
    return %1 : tensor<2xf32>
  }
  func.func private @impl(%x: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.negate %x : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}

// -----

// What is private and never called is left out.
// CHECK-LABEL: HloModule unused
module @unused {
  // CHECK-NOT: nobody
  // CHECK: ENTRY %main.1
  func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
  func.func private @nobody(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
}

// -----

// Shardy's shardings: tiles where HLO has them, the text as a frontend attribute.
// CHECK-LABEL: HloModule sharded
// CHECK-SAME: frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["data"=2, "model"=4]>}}
module @sharded {
  sdy.mesh @mesh = <["data"=2, "model"=4]>
  // CHECK: parameter(0), sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}, frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"data\"}, {}]>"}
  func.func public @main(%x: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> tensor<4x6xf32> {
    return %x : tensor<4x6xf32>
  }
}
