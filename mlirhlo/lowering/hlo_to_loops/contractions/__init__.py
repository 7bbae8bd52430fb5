"""Dots and convolutions by generated micro-kernels.

    axes (problem) ──► blocking ──► packing ──► tiles, block by block of the depth ──► finish

| module | what |
| --- | --- |
| `problem` | a contraction by its axes: any dimension numbers, layouts, windows and groups are affine indices |
| `dot`, `convolution` | instructions as such |
| `arithmetic` | the types that are multiplied and added in |
| `blocking` | sizes of tiles and blocks, from the sizes and the `Target` |
| `operands`, `packing` | elements of operands, and their copies in the order of micro-kernels |
| `choice` | sums that a select takes or leaves: tiles of which it takes none are not made |
| `tiles`, `tile_registers` | micro-kernels, shared by all contractions of a module |
| `blocked`, `block` | kernels: tasks in parallel, blocks of the depth, panels, tiles |
| `small` | few products for each place of a batch |
| `shallow` | few products for each element of long rows |
| `inner` | few rows whose right operand runs along the depth |
| `finish` | conversion, fused instructions, the store |
| `kernels` | which instructions and fusions are built so |

**Fusions.** `kernels.contraction_kernel` takes a fused computation, or a part of a module, under these
conditions; everything else it declines:

- one dot or convolution of two operands, without block scales and sparsity; a convolution with feature
  or batch groups has four output features a group at least (others are loops over elements);
- *after it* (on the way to the roots) only elementwise instructions, `convert`, `copy` and `transpose`.
  Their other operands may be computed by anything of the next list, from parameters: a bias that is
  broadcast, a residual, a mask from iotas (where a
  `select` takes sums by it, tiles are left out). Roots are one array or a tuple of arrays, all of the same
  dimensions in the same physical order. What comes after is computed once for an element, while
  the tile is in L1: expensive functions are welcome;
- *before a dot* transposes, slices, and reshapes that add or take dimensions of one element, of what is in
  memory: it is read where it stands, as if it were the operand;
- *before it* elementwise instructions and those of `kernels.BEFORE` (broadcast, convert, copy, iota,
  pad, reshape, reverse, slice, transpose, concatenate, dynamic-slice). Packing computes them, of an
  operand of the right side once, of the left side (the rows; which operand that is follows from
  the result's layout) once for every `block_panels` columns, that is mostly once. So: what is cheap,
  as `rewrites.fusion` understands it; never a reduction. It costs memory traffic nothing where
  operands are packed anyway: both sides of more than 32 rows. An operand that would have been read in
  place (matrix times vector, a few rows) is better left alone, unless what is fused makes it smaller
  in memory (`convert` from a narrower type).

Results do not depend on the number of threads: every element is summed by one task in one order.
"""
