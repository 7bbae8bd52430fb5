"""`convert_to_hlo`: a StableHLO program as a module of the hlo dialect."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Region

from mlirhlo.diagnostics import error
from mlirhlo.dialects.hlo.attributes.header import StackFramesAttr
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.names import legal_name
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.rewrites.stablehlo_to_hlo import shardy, shardy_ops
from mlirhlo.rewrites.stablehlo_to_hlo.core import Exporter
from mlirhlo.rewrites.stablehlo_to_hlo.entry import Function, device_counts
from mlirhlo.rewrites.stablehlo_to_hlo.frontend_attributes import read_common
from mlirhlo.rewrites.stablehlo_to_hlo.marked import marked_handler, restore
from mlirhlo.rewrites.stablehlo_to_hlo.ops import (
    asynchronous,
    chlo_ops,
    collectives,
    control_flow,
    custom_calls,
    data_movement,
    elementwise,
    indexing,
    linear_algebra,
    mhlo_ops,
    random,
    reduction,
    tokens,
)

FAMILIES = (
    asynchronous,
    chlo_ops,
    collectives,
    control_flow,
    custom_calls,
    data_movement,
    elementwise,
    indexing,
    linear_algebra,
    mhlo_ops,
    random,
    reduction,
    shardy,
    shardy_ops,
    tokens,
)
"""Modules with handlers; importing them registers the handlers."""


def export(
    module: ModuleOp,
    *,
    use_tuple_args: bool = False,
    return_tuple: bool = False,
    with_device_counts: bool = False,
) -> ModuleOp:
    """The HLO of a program whose ops all have an HLO form; `module` stays as it is.

    Raises `HloError` HLO0420 to HLO0426.
    """
    exporter = Exporter(
        module,
        lambda exporter, function: Function(exporter, function).convert(),
        marked_handler,
        restore,
    )
    exporter.common_readers += [read_common, shardy.read_shardy]
    main = exporter.functions.get("main")
    if main is None:
        found = ", ".join(f"@{name}" for name in exporter.functions) or "none"
        raise error(
            "HLO0424",
            f"the program has no function @main to begin with; its functions: {found}",
            help="call the entry @main",
        )
    entry = Function(
        exporter, main, is_entry=True, tupled=use_tuple_args, return_tuple=return_tuple
    )
    exporter.lower_deep()
    for name in exporter.functions:
        if name == "main":
            exporter.lowered[name] = entry.convert()
        else:
            exporter.function(name, main)
    result = ModuleOp(Region(Block(call_order(exporter.computations))))
    view = HloModule(result)
    given = module.sym_name
    view.name = legal_name(given.data) if isinstance(given, StringAttr) and given.data else "main"
    entry.header(view)
    frames = exporter.locations.stack_frames
    if frames is not None:
        view.set("stack_frames", StackFramesAttr(frames))
    if with_device_counts:
        device_counts(module, view)
    return result


def call_order(computations: Sequence[ComputationOp]) -> list[ComputationOp]:
    """Computations in XLA's printing order: callees before callers, each where it is first called."""
    by_name = {c.computation_name: c for c in computations}
    order = {name: index for index, name in enumerate(by_name)}
    called = {
        caller: [
            name
            for op in c.instructions
            if op.calling_keys
            for name in sorted(op.called_computations, key=order.__getitem__)
        ]
        for caller, c in by_name.items()
    }
    embedded = {name for names in called.values() for name in names}
    done: dict[str, ComputationOp] = {}
    for root in by_name:
        if root in embedded:
            continue
        stack = [(root, iter(called[root]))]
        while stack:
            name, rest = stack[-1]
            following = next((n for n in rest if n not in done), None)
            if following is None:
                done[name] = by_name[name]
                stack.pop()
            else:
                stack.append((following, iter(called[following])))
    return list(done.values())
