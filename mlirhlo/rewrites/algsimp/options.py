"""Options of `algsimp`, under XLA's names and with XLA's defaults."""

from __future__ import annotations

from dataclasses import dataclass

from mlirhlo.rewrites.rules import RulePass


@dataclass(frozen=True)
class AlgsimpOptions(RulePass):
    """What `AlgebraicSimplifierPass` may be told; rules read it from their rewriter."""

    is_layout_sensitive: bool = False
    """Layouts are part of shapes, as after layout assignment."""
    run_to_fixed_point: bool = True
    """Looks at what rewrites made until nothing matches; otherwise at each instruction once."""
    enable_fast_math: bool = False
    """Floats may be treated as real numbers where NaN, infinities and rounding would differ."""
    enable_floats_are_real: bool = False
    """Lets `x*c + y*c => (x + y)*c` be done for any floats."""
    minmax_propagate_nan: bool = True
    """Maximum and minimum of a NaN are NaN."""
    enable_sink_broadcast: bool = True
    """Computes on scalars before they are broadcast, not after."""
    enable_broadcast_degenerate_dimension: bool = True
    """Reshapes dimensions of size 1 away before a broadcast."""
    enable_negative_padding_replacement: bool = True
    """Makes a slice of negative padding."""
    enable_dot_strength_reduction: bool = True
    """Makes a multiply and a reduce of a dot of vectors."""
    enable_dot_to_multiply_rewrite: bool = True
    """Makes a multiply of a dot without contracting dimensions."""
    enable_reduce_of_reshape: bool = True
    """Folds over a reshape into the reduce that reads it."""
    enable_unconditional_reduce_of_concat_replacement: bool = True
    """Reduces the parts of a concatenation whatever their shapes."""
    unconditionally_simplify_reduce_of_transpose_or_reshape: bool = False
    """Moves transposes and reshapes out of a reduce even when others read them."""
    enable_conditional_simplification: bool = False
    """Turns a conditional of two branches on a converted pred into its predicated form."""
    enable_remove_no_op_reduce_precision: bool = False
    """Drops a reduce-precision to the type's own widths."""
    use_convert_constant_folding: bool = False
    """Converts constants to no wider types at compile time."""
    disable_dynamic_slice_to_slice_conversion: bool = False
    """Leaves dynamic slices at constant places dynamic."""
    enable_window_reduce_to_reduce_replacement: bool = True
    """Makes a reduce of windows that are whole."""
    enable_dynamic_update_slice_to_pad: bool = False
    """Makes a pad of an update, at a constant place, of equal numbers."""
    rewrite_no_op_bitcast_convert_to_bitcast: bool = False
    """Makes a bitcast of a bitcast-convert that moves no byte, where layouts count."""
    enable_hoist_transpose_of_reshape: bool = False
    """Transposes last where a reshape merges what a transpose of a reshape moves as one."""
    rewrite_reshape_transpose_as_slice_concatenate: bool = True
    """Makes slices and a concatenation of a transpose that moves few parts of a dimension."""
    enable_conv_simplification: bool = True
    """Makes dots and products of convolutions that are such."""
    enable_conv_operand_swap: bool = True
    """Lets the larger of input and kernel be the input."""
    enable_conv_add_multiply_reorder: bool = False
    """Scales a constant kernel in place of a biased convolution."""
    enable_scalar_multiply_reduction: bool = False
    """Multiplies by a scalar where there are fewest elements: input, kernel or result."""
    enable_move_dot_param_to_rhs: bool = False
    """Swaps the operands of a dot whose left one alone comes from a parameter."""
    use_associative_reordering: bool = False
    """Orders chains of dots, and moves reverses, pads and broadcasts to the other operand, to save flops."""
    associative_reordering_threshold: float = 2.0
    """By how many times the flops or elements must fall for that."""
    raise_slice_and_reduce_through_dot: bool = False
    """Slices and sums the operands of a dot in place of its result."""
    raise_slice_and_reduce_through_dot_threshold: float = 2.0
    """By how many times the flops must fall for that."""
    executing_on_cpu: bool = False
    """Does what only pays off on a CPU."""
    enable_onednn_support: bool = False
    """oneDNN computes convolutions of bf16 that it has; others are computed in f32. Of a CPU only."""
    enable_fold_transpose_into_scatter: bool = False
    """Transposes operand and updates of a scatter in place of its result."""
    very_small_gather_size: int = 4
    """Gathers from vectors of at most so many elements become selects."""
