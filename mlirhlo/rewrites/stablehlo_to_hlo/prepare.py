"""What is done to a program before it is spelled as HLO."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from mlirhlo.importing import LATE
from mlirhlo.rewrites.stablehlo_refine_shapes import canonicalize_dynamism, refine_shapes
from mlirhlo.rewrites.stablehlo_refine_shapes.ir import is_static
from mlirhlo.rewrites.stablehlo_simplify import simplify_program

with LATE:
    from mlirhlo.rewrites import chlo_expansion, stablehlo_quant_to_math
    from mlirhlo.rewrites.stablehlo_to_hlo import shardy_ops, wrapped


DYNAMIC = frozenset(
    "stablehlo." + name
    for name in (
        "dynamic_broadcast_in_dim",
        "dynamic_conv",
        "dynamic_gather",
        "dynamic_iota",
        "dynamic_pad",
        "dynamic_reshape",
        "real_dynamic_slice",
    )
)
"""Ops that take as operands what HLO takes as attributes."""


def resolve_sizes(module: ModuleOp) -> None:
    """Makes ops of `DYNAMIC` static in place, where the arguments of the program tell the sizes.

    A program whose arguments have unknown sizes is not refined; only constants count there.
    """
    known = all(
        is_static(type_)
        for op in module.ops
        if isinstance(op, FuncOp) and not _is_private(op)
        for type_ in op.function_type.inputs.data
    )
    if known:
        refine_shapes(module)
    else:
        canonicalize_dynamism(module)


def prepared(module: ModuleOp, *, simplify: bool = True) -> ModuleOp:
    """A copy of `module` in which every op has an HLO form. Raises `HloError` HLO0423, HLO0425."""
    copy = module.clone()
    for op, twin in zip(module.walk(), copy.walk(), strict=True):
        source = getattr(op, "text_source", None)
        if source is not None:
            twin.text_source = source  # type: ignore[attr-defined]
    wrapped.unwrap(copy)
    shardy_ops.plain_constants(copy)
    if any(op.name in DYNAMIC for op in copy.walk()):
        resolve_sizes(copy)
    remove_unused_functions(copy)
    stablehlo_quant_to_math.legalize_quantized(copy)
    chlo_expansion.expand_chlo(copy)
    if simplify:
        simplify_program(copy)
    return copy


def remove_unused_functions(module: ModuleOp) -> None:
    """Takes away private functions that no live op names."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    live = {name for name, op in functions.items() if name == "main" or not _is_private(op)}
    for op in module.ops:
        if not isinstance(op, FuncOp):
            live |= _named(op)
    pending = sorted(live)
    while pending:
        function = functions.get(pending.pop())
        if function is None:
            continue
        for name in _named(function):
            if name not in live:
                live.add(name)
                pending.append(name)
    for name, op in functions.items():
        if name not in live:
            op.detach()
            op.erase()


def _is_private(op: FuncOp) -> bool:
    return op.sym_visibility is not None and op.sym_visibility.data == "private"


def _named(op: Operation) -> set[str]:
    """Symbols that the ops below `op` name."""
    found: set[str] = set()
    for inner in op.walk():
        for attribute in (*inner.properties.values(), *inner.attributes.values()):
            _collect(attribute, found)
    return found


def _collect(attribute: Attribute, found: set[str]) -> None:
    from xdsl.dialects.builtin import ArrayAttr, SymbolRefAttr

    if isinstance(attribute, SymbolRefAttr):
        found.add(attribute.root_reference.data)
    elif isinstance(attribute, ArrayAttr):
        for one in cast("ArrayAttr[Attribute]", attribute).data:
            _collect(one, found)
