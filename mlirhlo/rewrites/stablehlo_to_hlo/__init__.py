"""StableHLO programs as HLO, as XLA's importer makes it.

`convert_to_hlo` is the whole of it. The steps, each in a module of its own: ops of CHLO that HLO
does not have are expanded (`chlo_expansion`), what XLA's importer simplifies is simplified
(`simplify`), and the rest is spelled out one computation after the other (`convert`, and a file a
family of ops). Source: the behaviour of jaxlib 0.10.2, which tests compare with.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

__all__ = ["convert_to_hlo"]


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
    Raises `HloError` HLO0420 to HLO0426.
    """
    from mlirhlo.rewrites.stablehlo_to_hlo.convert import export
    from mlirhlo.rewrites.stablehlo_to_hlo.prepare import prepared

    return export(
        prepared(module, simplify=simplify),
        use_tuple_args=use_tuple_args,
        return_tuple=return_tuple,
        with_device_counts=with_device_counts,
    )
