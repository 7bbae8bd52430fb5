"""Addition, the smallest kernel."""

# Index maps are lambdas whose parameters have no stated type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

from mlirhlo.mosaic.kernels.library import block_of, kernel, rows_of, unfit
from mlirhlo.mosaic.language.call import KernelCall, kernel_call
from mlirhlo.mosaic.language.grid import cdiv
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.specs import BlockSpec, CompilerParams, ShapeDtypeStruct


@kernel
def add(
    x: ShapeDtypeStruct, y: ShapeDtypeStruct, *, block: tuple[int, int] = (256, 512)
) -> KernelCall:
    """x + y, of matrices [m, n] of one type; `block` rows and columns at a time."""
    if x != y or len(x.shape) != 2:
        raise unfit(
            "add", f"operands {list(x.shape)} and {list(y.shape)} are not two like matrices"
        )
    rows = block_of(x.shape[0], block[0], rows_of(x.dtype))
    columns = block_of(x.shape[1], block[1], 128)

    def add_kernel(x_ref: Ref, y_ref: Ref, o_ref: Ref) -> None:
        o_ref[...] = x_ref[...] + y_ref[...]

    spec = BlockSpec((rows, columns), lambda i, j: (i, j))
    return kernel_call(
        add_kernel,
        x,
        grid=(cdiv(x.shape[0], rows), cdiv(x.shape[1], columns)),
        in_specs=[spec, spec],
        out_specs=spec,
        name="add",
        compiler_params=CompilerParams(dimension_semantics=("parallel", "parallel")),
    )
