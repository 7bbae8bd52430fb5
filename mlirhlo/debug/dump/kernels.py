"""Dumps of code generation: LLVM assembly, objects, stages of kernels, the list of what runs.

Source: dumps reference, "Fixed suffixes", "Emitter files", "Thunks".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from xdsl.printer import Printer

from mlirhlo.lowering.plan.plan import Plan
from mlirhlo.lowering.plan.steps import (
    Branch,
    Buffer,
    Callback,
    Copy,
    Kernel,
    Repeat,
    Slice,
    Step,
    While,
)
from mlirhlo.runtime.jit import compile_assembly, optimize_assembly

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.dump.writer import ModuleDump


def unit_name(name: str) -> str:
    """A unit of code in file names."""
    return name.replace("/", "_")


def dump_stages(dump: ModuleDump, name: str, loops: ModuleOp, llvm: ModuleOp) -> None:
    """The MLIR stages of a unit that the expression for emitters asks for."""
    if not (dump.wants_files and dump.settings.emitters(name)):
        return
    stem = dump.stem(unit_name(name))
    generic = not dump.options.xla_dump_enable_mlir_pretty_form
    dump.write(f"{stem}-pre-optimization.mlir", lambda: mlir_text(loops, generic=generic))
    dump.write(f"{stem}-post-lowering.mlir", lambda: mlir_text(llvm, generic=generic))


def dump_assembly(dump: ModuleDump, name: str, text: str) -> None:
    """LLVM assembly as it is compiled, and what LLVM's passes over its IR leave of it."""
    if dump.wants_files:
        stem = dump.stem(unit_name(name))
        dump.write(f"{stem}.ir-no-opt.ll", lambda: text)
        dump.write(f"{stem}.ir-with-opt.ll", lambda: optimize_assembly(text))


def dump_object(dump: ModuleDump, name: str, text: str, code: bytes) -> None:
    """The object file, and with emitters its assembly to read."""
    if not dump.wants_files:
        return
    dump.write(f"{dump.stem(f'obj-file.{unit_name(name)}')}.o", lambda: code, is_text=False)
    if dump.settings.emitters(name):
        dump.write(f"{dump.stem(unit_name(name))}.s", lambda: compile_assembly(text))


def dump_thunks(dump: ModuleDump, plan: Plan) -> None:
    """What runs, in order; asked for with emitters, since XLA:CPU writes no such list."""
    if dump.wants_files and not dump.settings.emitters.matches_none:
        dump.write(dump.stem("thunk_sequence.txt"), lambda: thunk_text(plan))


def mlir_text(module: ModuleOp, *, generic: bool) -> str:
    """A module of loops or of the llvm dialect."""
    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    return f"{stream.getvalue()}\n"


# ---------------------------------------------------------------- what runs


def thunk_text(plan: Plan) -> str:
    """`NNN: KIND label arguments`, one line a step, what is inside of loops and branches indented."""
    rows = list(_rows(plan.steps, ""))
    width = max((len(kind) for kind, _ in rows), default=0)
    return "".join(f"{at:03d}: {kind:<{width}} {rest}\n" for at, (kind, rest) in enumerate(rows, 1))


def _rows(steps: Sequence[Step], indent: str) -> Iterator[tuple[str, str]]:
    for step in steps:
        match step:
            case Kernel():
                yield f"{indent}kKernel", f"{step.name} {_arguments(step.reads, step.writes)}"
            case Slice():
                yield f"{indent}kSlice", _arguments(step.reads, [step.target])
            case Copy():
                yield f"{indent}kCopy", _arguments([step.source], [step.target])
            case Callback():
                yield f"{indent}kCustomCall", _arguments(step.reads, step.writes)
            case While():
                yield f"{indent}kWhile", f"while {_place(step.test)}"
                yield from _rows(step.condition, f"{indent}  ")
                yield from _rows(step.body, f"{indent}  ")
            case Repeat():
                yield f"{indent}kWhile", f"{step.rounds} rounds"
                yield from _rows(step.body, f"{indent}  ")
            case Branch():
                yield f"{indent}kConditional", f"{len(step.branches)} by {_place(step.selector)}"
                for number, branch in enumerate(step.branches):
                    yield f"{indent}  branch", str(number)
                    yield from _rows(branch, f"{indent}    ")


def _arguments(reads: Sequence[Buffer], writes: Sequence[Buffer]) -> str:
    return f"({', '.join(map(_place, reads))}) -> ({', '.join(map(_place, writes))})"


def _place(buffer: Buffer) -> str:
    shape = buffer.shape.to_string(layout=False)
    if buffer.parameter is not None:
        return f"{shape} parameter {buffer.parameter}"
    if buffer.result is not None:
        return f"{shape} result {buffer.result}"
    if buffer.literal is not None:
        return f"{shape} constant"
    return f"{shape} temp+{buffer.offset}"
