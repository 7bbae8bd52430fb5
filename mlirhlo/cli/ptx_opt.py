"""`ptx-opt`: PTX of any compiler in; printed, judged or listed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mlirhlo.cli import inputs
from mlirhlo.cli.options import answered, flag, parse
from mlirhlo.cli.report import DONE, INPUT_AT_FAULT, report, run_tool, usage_error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo import formats
    from mlirhlo.analysis.ptx import listing as ptx_listing
    from mlirhlo.formats import ptx
    from mlirhlo.lowering.gpu import devices
    from mlirhlo.lowering.gpu import ptx as gpu_ptx


if TYPE_CHECKING:
    from mlirhlo.dialects.ptx import ModuleOp

PURPOSE = (
    "ptx-opt: read PTX, or LLVM IR; print, judge by version and architecture, list what is in it"
)
USAGE = "ptx-opt [options] [FILE|FOLDER|-]    (FOLDER: every .ptx file in it, such as a dump)"
EXAMPLES = (
    "ptx-opt kernel.ptx",
    "ptx-opt --verify kernel.ptx",
    "ptx-opt --list dumps/",
    "ptx-opt --emit=mlir kernel.ptx",
    "ptx-opt --arch=9.0 module_0001.jit_f.ir-with-opt.ll",
)
FORMS = ("ptx", "mlir", "mlir-generic")


@dataclass
class Options:
    """The command line of ptx-opt."""

    arch: str = flag(
        "9.0", group="Input", metavar="NAME", help="what LLVM IR is compiled for: 8.0, sm_90a, h100"
    )
    output: str = flag("-", "o", group="Output", metavar="FILE", help="where to write")
    emit: str = flag("ptx", group="Output", choices=FORMS, help="the form to print")
    only: str = flag(
        "", group="Output", metavar="NAME", help="only this function, and the module's variables"
    )
    verify: bool = flag(
        False,
        group="Checks",
        help="judge instructions, operands, names, version and architecture; prints nothing else",
    )
    verify_roundtrip: bool = flag(
        False, group="Checks", help="what is printed has to be read as the same module"
    )
    list: bool = flag(
        False,
        group="Checks",
        help="registers live at once, instructions by class, memory operations of each function",
    )
    help: bool = flag(False, "h", group="Help", help="")
    help_all: bool = flag(False, group="Help", help="", rare=True)
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    return run_tool("ptx-opt", _run, argv)


def _files(path: str) -> list[str]:
    """The files to read: of a folder, its `.ptx` files in order."""
    folder = Path(path)
    if path == "-" or not folder.is_dir():
        return [path]
    found = sorted(str(file) for file in folder.glob("*.ptx"))
    if not found:
        raise usage_error(
            f"there is no .ptx file in '{path}'", help="name a file, or a dump folder"
        )
    return found


def _modules(path: str, arch: str) -> Iterator[tuple[str, str, ModuleOp]]:
    """Name, text and module of every file; LLVM IR is compiled."""
    for file in _files(path):
        data, name = inputs.read_input(file)
        if ptx.is_llvm_ir(data):
            number = arch.replace(".", "")
            known = devices.device(f"sm_{number}" if number.isdigit() else arch)
            text = gpu_ptx.to_ptx(data.decode("utf-8", "surrogateescape"), known)
        else:
            text = ptx.ptx_text(data, name)
        yield name, text, ptx.parse_ptx(text, name)


def _render(module: ModuleOp, emit: str) -> str:
    if emit == "ptx":
        return ptx.print_ptx(module)
    from io import StringIO

    from xdsl.printer import Printer

    stream = StringIO()
    Printer(stream, print_generic_format=emit == "mlir-generic").print_op(module)
    return stream.getvalue() + "\n"


def _listing(module: ModuleOp) -> str:
    functions = [function for function in module.functions if not function.is_declaration]
    return "".join(f"{ptx_listing.listing(ptx.flat(function))}\n" for function in functions)


def _keep_only(module: ModuleOp, name: str) -> None:
    """Takes other functions with a body away."""
    names = [function.symbol for function in module.functions]
    if name not in names:
        raise usage_error(
            f"there is no function '{name}'", help=f"functions are {', '.join(names)}"
        )
    for function in module.functions:
        if function.symbol != name and not function.is_declaration:
            function.detach()
            function.erase()


def _run(argv: Sequence[str]) -> int:
    parsed = parse(Options, argv, lambda options, name, value: False)
    options = parsed.options
    if answered("ptx-opt", options, PURPOSE, USAGE, EXAMPLES):
        return DONE

    results: list[str] = []
    code = DONE
    path = inputs.single_file(parsed.files)
    for name, text, module in _modules(path, options.arch):
        if options.only:
            _keep_only(module, options.only)
        if options.verify_roundtrip:
            ptx.check_roundtrip(module, name)
        if options.verify:
            found = ptx.verify_ptx(module, text)
            report(found)
            code = INPUT_AT_FAULT if found else code
        if options.list:
            results.append(_listing(module))
        elif not options.verify:
            results.append(_render(module, options.emit))
        if Path(path).is_dir() and results:
            results[-1] = f"// {name}\n{results[-1]}"
    written = "\n".join(results)
    if options.output == "-":
        sys.stdout.write(written)
    else:
        formats.write_file(options.output, written.encode("utf-8", "surrogateescape"))
    return code


if __name__ == "__main__":
    sys.exit(main())
