"""StableHLO programs as HLO, as XLA's importer makes it.

`convert_to_hlo` is the whole of it. The steps, each in a module of its own: dynamic ops whose sizes
are known become static (`stablehlo_refine_shapes`), quantized values integers
(`stablehlo_quant_to_math`), ops of CHLO that HLO does not have are expanded (`chlo_expansion`), what
XLA's importer simplifies is simplified (`stablehlo_simplify`), and the rest is spelled out one
computation after the other (`convert`, and a file a family of ops). Source: the behaviour of jaxlib
0.10.2, which tests compare with.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirhlo.diagnostics import HloError, error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.analysis import stablehlo as _stablehlo
    from mlirhlo.dialects.hlo import build as _build
    from mlirhlo.rewrites.stablehlo_to_hlo import convert as _convert
    from mlirhlo.rewrites.stablehlo_to_hlo import prepare as _prepare


__all__ = ["StablehloLegalizeToHloPass", "convert_to_hlo", "is_stablehlo"]


def is_stablehlo(module: ModuleOp) -> bool:
    """Whether `module` is a program of functions, as StableHLO's are, and not an HLO module."""
    return any(op.name == "func.func" for op in module.ops)


def convert_to_hlo(
    module: ModuleOp,
    *,
    use_tuple_args: bool = False,
    return_tuple: bool = False,
    simplify: bool = True,
    with_device_counts: bool = False,
) -> ModuleOp:
    """A new module of the hlo dialect that means what the StableHLO `module` means.

    `use_tuple_args`: the entry takes one tuple; `return_tuple`: a lone result is returned in a
    tuple; `simplify`: simplify as XLA's importer does; `with_device_counts`: `mhlo.num_partitions`
    and `mhlo.num_replicas` go to the header (XLA keeps them in the compile options instead).
    Raises `HloError` HLO0420 to HLO0426, and the verifier's for a program that breaks constraints.
    """
    try:
        with _build.paused_gc():
            return _convert.export(
                _prepare.prepared(module, simplify=simplify),
                use_tuple_args=use_tuple_args,
                return_tuple=return_tuple,
                with_device_counts=with_device_counts,
            )
    except _MISFITS as found:
        raise _broken(module) from found


_MISFITS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What Python raises where an attribute speaks of dimensions, operands or results that an op does not have."""


def _broken(module: ModuleOp) -> HloError:
    """What the verifier says of a program that ended in one of `_MISFITS`: programs are not verified before."""
    try:
        problems = _stablehlo.verify_module(module)
    except _MISFITS:
        problems = []
    if problems:
        return HloError(*problems)
    return error("HLO0426", "types and attributes of the program do not fit together")


@dataclass(frozen=True)
class StablehloLegalizeToHloPass(ModulePass):
    """
    Makes HLO of a StableHLO program, as XLA's importer does.

    Before:  `func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32>` with StableHLO ops
    After:   `hlo.computation @main.1`, and one computation a function or region
    Keeps: results. Quantized types, CHLO's ops, and dynamic ops whose sizes the program itself tells
    are rewritten first. Needs: known sizes, or bounds (`stablehlo-refine-shapes`).
    """

    name = "stablehlo-legalize-to-hlo"

    use_tuple_args: bool = False
    """Whether the entry takes one tuple."""
    return_tuple: bool = False
    """Whether a lone result is returned in a tuple."""
    simplify: bool = True
    """Whether to fold constants and simplify first, as XLA does."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Puts the HLO into `op`, which keeps nothing of the program."""
        if not is_stablehlo(op):
            return
        made = convert_to_hlo(
            op,
            use_tuple_args=self.use_tuple_args,
            return_tuple=self.return_tuple,
            simplify=self.simplify,
            with_device_counts=True,
        )
        block = op.body.block
        for old in list(block.ops):
            old.detach()
            old.erase(safe_erase=False)
        for new in list(made.body.block.ops):
            new.detach()
            block.add_op(new)
        op.attributes = made.attributes
        op.properties = made.properties


@dataclass(frozen=True)
class StablehloToHloPass(StablehloLegalizeToHloPass):
    """Makes HLO of a StableHLO program; another name of `stablehlo-legalize-to-hlo`."""

    name = "stablehlo-to-hlo"
