"""`mosaic-opt`: kernels in, kernels out, in any of their forms."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlirhlo.cli import inputs
from mlirhlo.cli.options import answered, flag, parse
from mlirhlo.cli.report import DONE, run_tool, usage_error
from mlirhlo.cli.xla_flags import read_flags
from mlirhlo.formats import write_file
from mlirhlo.formats.mosaic.stable import is_for_gpus
from mlirhlo.importing import LATE
from mlirhlo.mosaic.decode import read_kernel
from mlirhlo.mosaic.forms import check_roundtrip, render
from mlirhlo.mosaic.target import check_target

with LATE:
    from mlirhlo.mosaic import pipeline, verifier
    from mlirhlo.mosaic.gpu import host
    from mlirhlo.mosaic.pipeline import dumps


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.options import DebugOptions

PURPOSE = "mosaic-opt: read a kernel of the tpu or mosaic_gpu dialect and print it"
USAGE = "mosaic-opt [options] [FILE|-]    (FILE: MLIR text, or the bytecode of a call of a kernel)"
EXAMPLES = (
    "mosaic-opt kernel.mlir",
    "mosaic-opt --emit=stable kernel.mlir",
    "mosaic-opt --emit=bytecode kernel.mlir -o kernel.bc",
    "mosaic-opt --target=v5e --memory kernel.mlir",
    "mosaic-opt --stop-after=infer-vector-layout kernel.mlir",
    "mosaic-opt --start-after=relayout-insertion --stop-after=all TS-0014-mosaic-dump-k-post-relayout-insertion.txt",
    "mosaic-opt --xla_mosaic_dump_to=stages kernel.mlir",
    "mosaic-opt --verify-roundtrip TS-0012-mosaic-dump-anonymous-post-tiling-propagation.txt",
)
FORMS = ("pretty", "generic", "stable", "bytecode")


@dataclass
class Options:
    """The command line of mosaic-opt."""

    output: str = flag("-", "o", group="Output", metavar="FILE", help="where to write")
    emit: str = flag("pretty", group="Output", choices=FORMS, help="the form to print")
    keep_names: bool = flag(
        True, group="Output", help="values keep the names of the text: --no-keep-names numbers them"
    )
    mlir_print_debuginfo: bool = flag(False, group="Output", help="print source places")
    stop_after: str = flag(
        "",
        group="Stages",
        metavar="STAGE",
        help="run the stages up to this one; 'all' runs them all",
    )
    start_after: str = flag(
        "",
        group="Stages",
        metavar="STAGE",
        help="the file is what this stage wrote: go on from there",
    )
    list_stages: bool = flag(False, group="Stages", help="names of all stages")
    verify_roundtrip: bool = flag(
        False, group="Checks", help="every form of the kernel has to be read as the same kernel"
    )
    verify: bool = flag(
        True, group="Checks", help="constraints of operations: --no-verify skips them"
    )
    target: str = flag(
        "",
        group="Checks",
        metavar="GENERATION",
        help="refuse what v4, v5e, v5p, v6e or tpu7x does not take; stages are as for it (or for v5e)",
    )
    memory: bool = flag(
        False, group="Checks", help="with --target: print who uses which memory, to standard error"
    )
    collective_id: int = flag(
        -1, group="Checks", rare=True, metavar="N", help="with --target: the call's collective_id"
    )
    vmem_limit_bytes: int = flag(
        0, group="Checks", rare=True, metavar="BYTES", help="with --target: the call's VMEM limit"
    )
    help: bool = flag(False, "h", group="Help", help="")
    help_all: bool = flag(False, group="Help", help="", rare=True)
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    return run_tool("mosaic-opt", _run, argv)


def _run_stages(module: ModuleOp, options: Options, xla: DebugOptions) -> None:
    """The stages that were asked for; all of them where only their files were."""
    folder = xla.xla_mosaic_dump_to
    if not (options.stop_after or options.start_after or folder):
        return

    if is_for_gpus(module):
        _dump_for_gpus(module, options, folder)
        return

    debug_info = xla.xla_mosaic_enable_dump_debug_info
    generation = options.target or "v5e"
    if not (options.stop_after or options.start_after):
        pipeline.dump_stages(module, folder, debug_info=debug_info, generation=generation)
        return
    dump = (
        pipeline.StageDump(folder, dumps.kernel_name(module), debug_info=debug_info)
        if folder
        else None
    )
    pipeline.run_pipeline(
        module,
        start_after=options.start_after or None,
        stop_after=None if options.stop_after in ("", "all") else options.stop_after,
        observe=dump,
        generation=generation,
    )


def _dump_for_gpus(module: ModuleOp, options: Options, folder: str) -> None:
    """Writes the module, LLVM assembly and PTX of a kernel for GPUs."""
    if options.stop_after or options.start_after:
        raise usage_error(
            "a kernel for GPUs has no stages of the TPU compiler",
            help="--xla_mosaic_dump_to=FOLDER writes its LLVM assembly and PTX",
        )

    kernel = host.imported(module)
    kernel.dump(folder, kernel.default_gpu)


def _check(module: ModuleOp, options: Options) -> None:
    """Raises what the target does not take."""
    report = check_target(
        module,
        options.target,
        collective_id=options.collective_id if options.collective_id >= 0 else None,
        vmem_limit_bytes=options.vmem_limit_bytes or None,
    )
    if options.memory:
        sys.stderr.write(report.memory.table(report.generation) + "\n")
    report.require()


def _run(argv: Sequence[str]) -> int:
    parsed = parse(Options, argv, lambda options, name, value: False)
    options = parsed.options
    if answered("mosaic-opt", options, PURPOSE, USAGE, EXAMPLES):
        return DONE
    if options.list_stages:
        for stage in pipeline.STAGES:
            print(f"{stage.number:04d} {stage.name}")
        return DONE
    data, name = inputs.read_input(inputs.single_file(parsed.files))
    module = read_kernel(data, name)
    if options.verify_roundtrip:
        check_roundtrip(module, name)
    if options.verify:
        verifier.verify_kernel(module)
    if options.target:
        _check(module, options)
    _run_stages(module, options, read_flags(parsed.xla).options)
    written = render(
        module,
        options.emit,
        keep_names=options.keep_names,
        debug_info=options.mlir_print_debuginfo,
    )
    if options.output != "-":
        write_file(options.output, written)
        return DONE
    if options.emit == "bytecode" and sys.stdout.isatty():
        raise usage_error("a binary file does not go to a terminal", help="use -o FILE")
    sys.stdout.flush()
    sys.stdout.buffer.write(written)
    sys.stdout.buffer.flush()
    return DONE


if __name__ == "__main__":
    sys.exit(main())
