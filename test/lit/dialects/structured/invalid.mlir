// RUN: hlo-opt --verify-diagnostics --split-input-file %s

// expected-error @+1 {{map 0 of the inputs goes from 1 to 1 dimensions, where 2 and 1 are expected}}
structured.kernel @map_of_other_rank(%x: tensor<4xf32>) -> tensor<4x8xf32> {
  %r = structured.map ins(%x : tensor<4xf32>) maps [affine_map<(d0) -> (d0)>] -> tensor<4x8xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  }
  structured.return %r : tensor<4x8xf32>
}

// -----

// expected-error @+1 {{map 0 of the inputs reads dimension 0 of size 4 at 1 to 4}}
structured.kernel @out_of_bounds(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = structured.map ins(%x : tensor<4xf32>) maps [affine_map<(d0) -> (d0 + 1)>] -> tensor<4xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  }
  structured.return %r : tensor<4xf32>
}

// -----

// expected-error @+1 {{the body takes scalars of other types than the op gives it}}
structured.kernel @body_of_other_type(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = structured.map ins(%x : tensor<4xf32>) maps [affine_map<(d0) -> (d0)>] -> tensor<4xf32> {
  ^bb0(%a: tensor<f64>):
    %b = hlo.convert %a : tensor<f32>
    structured.yield %b : tensor<f32>
  }
  structured.return %r : tensor<4xf32>
}

// -----

// expected-error @+1 {{the body yields other types than the op needs}}
structured.kernel @yields_other_type(%x: tensor<4xf32>) -> tensor<4xf64> {
  %r = structured.map ins(%x : tensor<4xf32>) maps [affine_map<(d0) -> (d0)>] -> tensor<4xf64> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  }
  structured.return %r : tensor<4xf64>
}

// -----

// expected-error @+1 {{the body holds elementwise HLO instructions, not hlo.reverse}}
structured.kernel @not_elementwise(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = structured.map ins(%x : tensor<4xf32>) maps [affine_map<(d0) -> (d0)>] -> tensor<4xf32> {
  ^bb0(%a: tensor<f32>):
    %b = hlo.reverse %a {dimensions = array<i64>} : tensor<f32>
    structured.yield %b : tensor<f32>
  }
  structured.return %r : tensor<4xf32>
}

// -----

// expected-error @+1 {{the body has no dimension 1}}
structured.kernel @index_of_no_dimension() -> tensor<4xi32> {
  %r = structured.map ins() maps [] -> tensor<4xi32> {
    %i = structured.index 1 : tensor<i32>
    structured.yield %i : tensor<i32>
  }
  structured.return %r : tensor<4xi32>
}

// -----

// expected-error @+1 {{a kernel holds structured ops and hlo.constant, not hlo.negate}}
structured.kernel @holds_instructions(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = hlo.negate %x : tensor<4xf32>
  structured.return %r : tensor<4xf32>
}

// -----

// expected-error @+1 {{tensor<4x8xf32, #hlo.layout<"[4,8]{0,1}">> is not static and row-major}}
structured.kernel @layout(%x: tensor<4x8xf32, #hlo.layout<"[4,8]{0,1}">>) -> tensor<4x8xf32, #hlo.layout<"[4,8]{0,1}">> {
  structured.return %x : tensor<4x8xf32, #hlo.layout<"[4,8]{0,1}">>
}

// -----

// expected-error @+1 {{there is an index operand for each dynamic offset}}
structured.kernel @dynamic_offset_without_index(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = structured.assemble pieces(%x : tensor<4xf32>) offsets [array<i64: -9223372036854775808>] strides [array<i64: 1>] -> tensor<4xf32>
  structured.return %r : tensor<4xf32>
}

// -----

// expected-error @+1 {{there is an initial scalar of the element type of each result}}
structured.kernel @fold_without_init(%x: tensor<4x8xf32>, %init: tensor<f64>) -> tensor<4xf32> {
  %r = structured.fold ins(%x : tensor<4x8xf32>) maps [affine_map<(d0, d1) -> (d0, d1)>] inits(%init : tensor<f64>) sizes [8] -> tensor<4xf32> {
  ^bb0(%a: tensor<f32>):
    structured.yield %a : tensor<f32>
  } combiner {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r : tensor<4xf32>
}

// -----

// expected-error @+1 {{the map of the offsets reads dimension 0 of size 1 at 0 to 4}}
structured.kernel @offset_beyond_limit(%x: tensor<9xf32>, %i: tensor<i32>) -> tensor<5xf32> {
  %r = structured.gather %x : tensor<9xf32> indices(%i : tensor<i32>) maps [affine_map<(d0) -> ()>] dimensions [0] limits [8] offsets affine_map<(d0) -> (d0)> -> tensor<5xf32>
  structured.return %r : tensor<5xf32>
}

// -----

// expected-error @+1 {{outputs have the shape of the inputs}}
structured.kernel @scan_of_other_shape(%x: tensor<4x8xf32>, %zero: tensor<4xf32>) -> tensor<4xf32> {
  %sums, %last = structured.scan ins(%x : tensor<4x8xf32>) inits(%zero : tensor<4xf32>) dimension 1 -> tensor<4xf32>, tensor<4xf32> {
  ^bb0(%a: tensor<f32>, %state: tensor<f32>):
    structured.yield %a, %a : tensor<f32>, tensor<f32>
  }
  structured.return %sums : tensor<4xf32>
}

// -----

// expected-error @+1 {{the algorithm is one of}}
structured.kernel @unknown_generator(%state: tensor<2xui64>) -> tensor<5xui32> {
  %next, %bits = structured.random_bits "mersenne" %state : tensor<2xui64> -> tensor<2xui64>, tensor<5xui32>
  structured.return %bits : tensor<5xui32>
}

// -----

// expected-error @unknown {{add: Binary op add with different element types: f32[] and s32[]}}
structured.kernel @instruction_of_two_types(%x: tensor<4xf32>, %y: tensor<4xi32>) -> tensor<4xf32> {
  %r = structured.map ins(%x, %y : tensor<4xf32>, tensor<4xi32>) maps [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>] -> tensor<4xf32> {
  ^bb0(%a: tensor<f32>, %b: tensor<i32>):
    %s = hlo.add %a, %b : tensor<f32>
    structured.yield %s : tensor<f32>
  }
  structured.return %r : tensor<4xf32>
}
