"""`mosaic-run`: run a kernel on the checking simulator, or ask the real TPU compiler about it."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlirhlo.cli import inputs
from mlirhlo.cli.options import answered, flag, parse, split_commas
from mlirhlo.cli.report import DONE, run_tool, usage_error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo import formats
    from mlirhlo.formats import arrays as formats_arrays
    from mlirhlo.mosaic import decode, interpreter, runs, tpu_compiler
    from mlirhlo.mosaic import timeline as mosaic_timeline


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.mosaic.runs import ArrayType

PURPOSE = "mosaic-run: run a kernel of the tpu dialect, with every access checked"
USAGE = "mosaic-run [options] [FILE|-]    (FILE: MLIR text, or the bytecode of a tpu_custom_call)"
EXAMPLES = (
    "mosaic-run kernel.mlir",
    "mosaic-run kernel.mlir --operands=f32[32,128],f32[32,128] --results=f32[32,128]",
    "mosaic-run kernel.mlir --inputs=x.npz -o out.npz --dma=random --seed=3",
    "mosaic-run kernel.mlir --timeline=trace.json --target=v6e",
    "mosaic-run kernel.mlir --compile=v5e,v6e",
)


@dataclass
class Options:
    """The command line of mosaic-run."""

    output: str = flag("", "o", group="Arrays", metavar="FILE.npz", help="write the results there")
    operands: str = flag("", group="Arrays", metavar="TYPES", help="operands, such as f32[32,128]")
    results: str = flag("", group="Arrays", metavar="TYPES", help="results")
    inputs: str = flag(
        "", group="Arrays", metavar="FILE.npz", help="operands, by order in the file"
    )
    seed: int = flag(0, group="Simulator", least=0, help="of random operands and of the schedule")
    checks: bool = flag(
        True, group="Simulator", help="--no-checks: only what stops a kernel anyway"
    )
    dma: str = flag(
        "on_wait",
        group="Simulator",
        choices=("on_wait", "eager", "random"),
        help="when copies move bytes",
    )
    devices: int = flag(
        1,
        group="Simulator",
        least=1,
        help="how many; operands then begin with that many shards",
    )
    cores: int = flag(
        1,
        group="Simulator",
        least=1,
        help="of each device; the first parallel dimension is split",
    )
    target: str = flag(
        "v5e", group="Simulator", help="the generation whose VMEM and cycles there are"
    )
    exact: bool = flag(
        True, group="Simulator", help="--no-exact: f32 products round to bf16, as on the chip"
    )
    timeline: str = flag(
        "",
        group="Simulator",
        metavar="FILE",
        help="modelled cycles of --target: FILE.json for Perfetto, FILE.svg, - for the summary alone",
    )
    compile: str = flag("", group="Compiler", metavar="v5e,v6e", help="ask the real TPU compiler")
    help: bool = flag(False, "h", group="Help", help="")
    help_all: bool = flag(False, group="Help", help="", rare=True)
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    return run_tool("mosaic-run", _run, argv)


def _run(argv: Sequence[str]) -> int:
    parsed = parse(Options, argv, lambda options, name, value: False)
    options = parsed.options
    if answered("mosaic-run", options, PURPOSE, USAGE, EXAMPLES):
        return DONE

    data, name = inputs.read_input(inputs.single_file(parsed.files))
    module = decode.read_kernel(data, name)
    operands, results = _arrays(options, module)
    if options.compile:
        return _compile(options, module, [_shard(a, options) for a in operands], results)
    return _simulate(options, module, operands, results)


def _arrays(options: Any, module: ModuleOp) -> tuple[list[Any], list[ArrayType]]:
    stated = [runs.parse_type(text) for text in split_commas(options.operands)]
    results = [runs.parse_type(text) for text in split_commas(options.results)]
    given: list[Any] = []
    if options.inputs:
        given = list(formats_arrays.read_npz(options.inputs).arrays.values())
    if not results or not (stated or given):
        whole = runs.types_of_arguments(interpreter.Kernel(module))
        count = len(results) or (len(whole) - len(given or stated) if (given or stated) else 1)
        results = results or whole[len(whole) - count :]
        stated = stated or whole[: len(whole) - count]
    if not given:
        given = runs.random_arrays(stated, options.seed)
        if options.devices > 1:
            import numpy as np

            shards = [
                runs.random_arrays(stated, options.seed + at) for at in range(options.devices)
            ]
            given = [np.stack(parts) for parts in zip(*shards, strict=True)]
    return given, results


def _shard(array: Any, options: Any) -> Any:
    return array[0] if options.devices > 1 else array


def _simulate(options: Any, module: ModuleOp, operands: list[Any], results: list[ArrayType]) -> int:
    timeline = mosaic_timeline.Timeline(options.target) if options.timeline else None
    params = interpreter.InterpretParams(
        timeline=timeline,
        checks=options.checks,
        dma_execution_mode=options.dma,
        random_seed=options.seed,
        num_cores_or_threads=options.cores,
        target=options.target,
        rounds_matmul_operands=not options.exact,
    )
    begin = time.perf_counter()
    found = runs.run_module(module, operands, results, devices=options.devices, options=params)
    sys.stderr.write(f"ran in {time.perf_counter() - begin:.3f} s\n")
    import numpy as np

    for device, arrays in enumerate(found):
        for number, (array, type_) in enumerate(zip(arrays, results, strict=True)):
            wide = np.asarray(array).astype(np.float64)
            where = f"device {device} " if options.devices > 1 else ""
            print(
                f"{where}result {number}: {type_}  least {wide.min():.6g}  mean {wide.mean():.6g}  "
                f"greatest {wide.max():.6g}"
            )
    if timeline is not None:
        print(timeline.summary())
        if options.timeline != "-":
            timeline.write(options.timeline)
    if options.output:
        import io

        whole = [
            np.stack(parts) if options.devices > 1 else parts[0]
            for parts in zip(*found, strict=True)
        ]
        named: dict[str, Any] = {f"result{n}": array for n, array in enumerate(whole)}
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **named)
        formats.write_file(options.output, buffer.getvalue())
    return DONE


def _compile(options: Any, module: ModuleOp, operands: list[Any], results: list[ArrayType]) -> int:
    import base64
    import json

    body = base64.b64encode(decode.write_stable(module)).decode()
    call = {"body": body, "serialization_format": 1, "needs_layout_passes": True}
    config = json.dumps({"custom_call_config": call})
    generations = split_commas(options.compile)
    if not generations:
        raise usage_error("--compile needs a generation", help=", ".join(tpu_compiler.TOPOLOGIES))
    for generation in generations:
        if generation.partition(":")[0] not in tpu_compiler.TOPOLOGIES:
            raise usage_error(
                f"--compile={generation}: no generation of TPUs",
                help=f"there are {', '.join(tpu_compiler.TOPOLOGIES)}, and topologies such as v5e:2x2",
            )
    jobs = [
        tpu_compiler.Job(
            config,
            [(array.dtype.name, array.shape) for array in operands],
            [(one.dtype.name, one.shape) for one in results],
            devices=options.devices,
            topology=tpu_compiler.TOPOLOGIES.get(generation, generation),
        )
        for generation in generations
    ]
    refused = 0
    for generation, verdict in zip(generations, tpu_compiler.compile_all(jobs), strict=True):
        if verdict.is_accepted:
            print(f"PASS {generation} vmem={verdict.vmem_bytes}")
        else:
            refused += 1
            print(f"FAIL {generation} {verdict.message}")
    return 1 if refused else DONE


if __name__ == "__main__":
    sys.exit(main())
