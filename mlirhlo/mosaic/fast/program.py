"""A kernel's module as one StableHLO function of its arrays."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from xdsl.dialects.builtin import MemRefType

from mlirhlo.formats.stablehlo.attribute_text import symbol_text
from mlirhlo.mosaic.attributes import dictionaries_of, integer_of, integers, plain
from mlirhlo.mosaic.fast.control import Program
from mlirhlo.mosaic.fast.grid import Grid, Window, windows_of
from mlirhlo.mosaic.fast.random import draws, new_state
from mlirhlo.mosaic.fast.writer import Val, Writer, has_no_program, tensor, type_of
from mlirhlo.mosaic.interpreter import Kernel
from mlirhlo.mosaic.interpreter.memory import dtype_in, poison
from mlirhlo.mosaic.interpreter.numbers import is_float

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute, SSAValue

    from mlirhlo.mosaic.fast.memories import View


_MESSAGES = frozenset({"tpu.log", "tpu.log_buffer", "cf.assert"})

Typed: TypeAlias = "tuple[tuple[int, ...], str]"
"""Shape and element type, as MLIR spells it, of an array."""


def fits(module: ModuleOp, inputs: Sequence[Typed], results: Sequence[Typed]) -> bool:
    """Whether a call with these arrays, dynamic bounds first, is one of the kernel."""
    kernel = Kernel(module)
    given = sum(bound < 0 for bound in kernel.bounds)
    parameters = kernel.op.regions[0].blocks[0].args[len(kernel.bounds) :]
    arrays = [*inputs[given:], *results]
    windows = dictionaries_of(kernel.op, "window_params") or ()
    if len(parameters) != len(arrays) + integer_of(kernel.op, "scratch_operands"):
        return False
    for number, ((shape, element), parameter) in enumerate(zip(arrays, parameters, strict=False)):
        if not isinstance(parameter.type, MemRefType):
            return False
        have, kind = type_of(parameter.type)
        at = number - kernel.prefetches
        window = windows[at] if 0 <= at < len(windows) else {}
        if "transform_indices" in window:
            is_fit = len(integers(window["window_bounds"])) == len(shape)
        else:
            is_fit = have == tuple(shape)
        if not is_fit or element.removeprefix("u") != kind:
            return False
    return all(one == ((), "i32") for one in inputs[:given])


def program_of(
    module: ModuleOp,
    inputs: Sequence[Typed],
    results: Sequence[Typed],
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
    for op in module.walk():
        if op.name in _MESSAGES:
            raise has_no_program(op, "only the simulator prints and checks")
    kernel = Kernel(module)
    kernel.tell_ahead()
    given = sum(bound < 0 for bound in kernel.bounds)
    writer = Writer(
        rounds_matmul_operands=rounds_matmul_operands, multiplies_pairs=multiplies_pairs
    )
    arguments = [Val(f"%arg{at}", *one) for at, one in enumerate(inputs)]
    sizes = iter(arguments)
    bounds = [bound if bound >= 0 else next(sizes) for bound in kernel.bounds]
    p = Program(writer, bounds)
    p.counts_semaphores = any(op.name == "tpu.sem_read" for op in kernel.op.walk())
    if draws(kernel.op):
        p.random = new_state(p)
    parameters = kernel.op.regions[0].blocks[0].args[len(kernel.bounds) :]
    # Arrays of the call may say that their integers have no sign, references do not.
    arrays = [
        _as_kind(writer, value, parameter)
        for value, parameter in zip(arguments[given:], parameters, strict=False)
    ]
    for number, (shape, _) in enumerate(results):
        shared, parameter = (aliases or {}).get(number), parameters[len(arrays)]
        if shared is not None:
            arrays.append(_as_kind(writer, arguments[shared], parameter))
        else:
            kind = type_of(parameter.type)[1]
            arrays.append(p.w.constant(_unwritten(parameter.type), kind, shape))
    functions = {str(plain(op.properties["sym_name"])): op for op in module.body.ops}
    windows = windows_of(p, kernel, functions, arrays, len(inputs) - given, aliases or {})
    whole = {at: p.memory(arrays[at]) for at, window in enumerate(windows) if window is None}
    for result, operand in (aliases or {}).items():
        at, number = len(inputs) - given + result, operand - given
        mine, other = windows[at], windows[number]
        if mine is None or other is None or not other.is_read_before(mine, kernel.bounds):
            _share(kernel, windows, whole, at, number)
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
    told = f" {', '.join(v.name for v in outs)} : {', '.join(v.type for v in outs)}" if outs else ""
    p.w.lines.append(f"return{told}")
    named = ", ".join(f"{value.name}: {value.type}" for value in arguments)
    # Row-major, as a kernel's arrays are: the result of a transpose would be a turned view of its operand.
    types = ", ".join(f"{tensor(*one)} {_row_major(one[0])}" for one in results)
    lines = "\n".join(f"    {line}" for line in p.w.lines)
    function = f"func.func public @main({named}) -> ({types}) {{\n{lines}\n  }}"
    return f"module {symbol_text(kernel.name)} {{\n  {function}\n}}\n"


def _row_major(shape: Sequence[int]) -> str:
    order = ",".join(map(str, reversed(range(len(shape)))))
    return f'{{mhlo.layout_mode = "{{{order}}}"}}'


def _share(
    kernel: Kernel, windows: list[Window | None], whole: dict[int, View], at: int, number: int
) -> None:
    """Lets array `number` be one memory with array `at`: what is stored to either is seen in both."""
    mine, other = windows[at], windows[number]
    view = whole[at] if mine is None else mine.array
    old = whole[number] if other is None else other.array
    low = [None if w is None or not any(w.low) else w.low for w in (mine, other)]
    if view.sizes != old.sizes or low[0] != low[1]:
        raise has_no_program(kernel.op, "with an array seen in parts of two sizes")
    if other is None:
        whole[number] = view
    else:
        other.array = view


def _as_kind(w: Writer, value: Val, parameter: SSAValue) -> Val:
    """An array as its reference has it."""
    element = type_of(parameter.type)[1]
    same = value.element == element or value.element.lstrip("u") != element
    return value if same else w.bits(value, value.shape, element)


def _unwritten(type_: Attribute) -> str:
    """What stands in results where nobody writes, as in the simulator's."""
    dtype = dtype_in(type_)
    value = np.array(poison(dtype), dtype)
    if is_float(dtype):
        return f"0x{value.tobytes()[::-1].hex().upper()}"
    return str(int(value)) if dtype.kind != "b" else "false"
