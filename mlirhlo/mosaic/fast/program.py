"""A kernel's module as one StableHLO function of its arrays."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlirhlo.mosaic.attributes import plain
from mlirhlo.mosaic.fast.control import Program
from mlirhlo.mosaic.fast.grid import Grid, windows_of
from mlirhlo.mosaic.fast.writer import Val, Writer, tensor, type_of
from mlirhlo.mosaic.interpreter import Kernel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import SSAValue


def program_of(
    module: ModuleOp,
    inputs: Sequence[tuple[tuple[int, ...], str]],
    results: Sequence[tuple[tuple[int, ...], str]],
    aliases: Mapping[int, int] | None = None,
    *,
    rounds_matmul_operands: bool = False,
    multiplies_pairs: bool = False,
) -> str:
    """The text of a StableHLO module whose function `main` takes and gives the kernel's arrays; types
    are shapes and element types as MLIR spells them.

    `rounds_matmul_operands`: as the interpreter's option of that name. `multiplies_pairs`: whether the
    processor multiplies pairs of bf16, so that what it multiplies by is worth laying out for that.

    Raises `HloError` HLO0738 for operations that only the simulator has.
    """
    kernel = Kernel(module)
    given = sum(bound < 0 for bound in kernel.bounds)
    writer = Writer(
        rounds_matmul_operands=rounds_matmul_operands, multiplies_pairs=multiplies_pairs
    )
    arguments = [Val(f"%arg{at}", *one) for at, one in enumerate(inputs)]
    sizes = iter(arguments)
    bounds = [bound if bound >= 0 else next(sizes) for bound in kernel.bounds]
    p = Program(writer, bounds)
    parameters = kernel.op.regions[0].blocks[0].args[len(kernel.bounds) :]
    # Arrays of the call may say that their integers have no sign, references do not.
    arrays = [
        _as_kind(writer, value, parameter)
        for value, parameter in zip(arguments[given:], parameters, strict=False)
    ]
    for number, (shape, element) in enumerate(results):
        shared = (aliases or {}).get(number)
        value = arguments[shared] if shared is not None else p.w.constant(0, element, shape)
        arrays.append(_as_kind(writer, value, parameters[len(arrays)]))
    functions = {str(plain(op.properties["sym_name"])): op for op in module.body.ops}
    windows = windows_of(p, kernel, functions, arrays, len(inputs) - given, aliases or {})
    whole = {at: p.memory(arrays[at]) for at, window in enumerate(windows) if window is None}
    for at, view in whole.items():
        p.views[parameters[at]] = view
    listed = [window for window in windows if window is not None]
    Grid(p, kernel, listed, parameters[len(arrays) :]).write()
    outs: list[Val] = []
    for at in range(len(inputs) - given, len(arrays)):
        window = windows[at]
        if window is None:
            outs.append(p.read(whole[at]))
            continue
        value = p.read(window.array)
        outs.append(p.w.slice(value, window.low, arrays[at].shape, [1] * len(value.shape)))
    outs = [
        value if value.element == element else writer.bits(value, value.shape, element)
        for value, (_, element) in zip(outs, results, strict=True)
    ]
    p.w.lines.append(
        f"return {', '.join(v.name for v in outs)} : {', '.join(v.type for v in outs)}"
    )
    named = ", ".join(f"{value.name}: {value.type}" for value in arguments)
    types = ", ".join(tensor(*one) for one in results)
    lines = "\n".join(f"    {line}" for line in p.w.lines)
    return f"module @{kernel.name} {{\n  func.func public @main({named}) -> ({types}) {{\n{lines}\n  }}\n}}\n"


def _as_kind(w: Writer, value: Val, parameter: SSAValue) -> Val:
    """An array as its reference has it."""
    element = type_of(parameter.type)[1]
    same = value.element == element or value.element.lstrip("u") != element
    return value if same else w.bits(value, value.shape, element)
