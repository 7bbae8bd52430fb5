"""`ptx-run`: run a PTX kernel on the checking simulator, without a GPU."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlirhlo.cli import inputs
from mlirhlo.cli.options import answered, flag, parse
from mlirhlo.cli.report import DONE, INPUT_AT_FAULT, report, run_tool, usage_error
from mlirhlo.diagnostics import error
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo import formats, simulator
    from mlirhlo.formats import ptx
    from mlirhlo.lowering.gpu import devices
    from mlirhlo.simulator import arguments as simulator_arguments
    from mlirhlo.simulator import performance


if TYPE_CHECKING:
    from mlirhlo.simulator import Figures, Machine
    from mlirhlo.simulator.arguments import Argument

PURPOSE = "ptx-run: run a PTX kernel on a simulated GPU, with every access checked"
USAGE = "ptx-run [options] [FILE|-]    (FILE: PTX text)"
EXAMPLES = (
    "ptx-run add.ptx --grid=4 --block=256 --arg=f32[1024]:random --arg=f32[1024] --arg=1024",
    "ptx-run kernels.ptx --entry=softmax --grid=16 --block=128 --arg=f32[16,1000]:x.npy --arg=f32[16,1000]",
    "ptx-run tma.ptx --block=128 --shared=2056 --arg=f32[64,64]:iota --arg='map(0,box=64x8)' --figures",
)


@dataclass
class Options:
    """The command line of ptx-run."""

    entry: str = flag("", group="Launch", metavar="NAME", help="the kernel, if there are several")
    grid: str = flag("1", group="Launch", metavar="X,Y,Z", help="blocks")
    block: str = flag("32", group="Launch", metavar="X,Y,Z", help="threads of a block")
    cluster: str = flag("1", group="Launch", metavar="X,Y,Z", help="blocks of a cluster")
    shared: int = flag(0, group="Launch", least=0, help="bytes of dynamic shared memory")
    arg: tuple[str, ...] = flag(
        (),
        group="Launch",
        metavar="ARG",
        help="f32[8]:random|zeros|iota|x.npy, f32[8], 7, 0.5, map(0,box=64x8)",
    )
    output: str = flag("", "o", group="Output", metavar="FILE.npz", help="write the arrays there")
    figures: bool = flag(False, group="Output", help="print instructions, sectors, bank conflicts")
    seed: int = flag(
        0,
        group="Simulator",
        least=0,
        help="of random arrays; not 0: of the order of blocks and warps",
    )
    checks: bool = flag(
        True, group="Simulator", help="--no-checks: only what stops a kernel anyway"
    )
    target: str = flag("", group="Simulator", help="the device's architecture [the PTX's own]")
    memory: int = flag(4096, group="Simulator", least=1, help="MiB of device memory")
    help: bool = flag(False, "h", group="Help", help="")
    help_all: bool = flag(False, group="Help", help="", rare=True)
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    return run_tool("ptx-run", _run, argv)


def _run(argv: Sequence[str]) -> int:
    parsed = parse(Options, argv, lambda options, name, value: False)
    options = parsed.options
    if answered("ptx-run", options, PURPOSE, USAGE, EXAMPLES):
        return DONE
    launch = {name: _three(name, getattr(options, name)) for name in ("grid", "block", "cluster")}
    data, name = inputs.read_input(inputs.single_file(parsed.files))
    return _launch(options, data.decode(errors="replace"), name, launch)


def _three(name: str, text: str) -> tuple[int, ...]:
    try:
        values = tuple(int(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not 1 <= len(values) <= 3 or min(values) < 1:
        raise usage_error(f"--{name}={text}: expects one to three positive numbers")
    return values


def _launch(options: Options, text: str, name: str, launch: dict[str, tuple[int, ...]]) -> int:
    module = ptx.parse_ptx(text, name)
    options.target = options.target or next(
        (one for one in module.targets if one.startswith("sm_")), "sm_90a"
    )
    machine = simulator.Machine(
        options.target, seed=options.seed, checks=options.checks, memory_bytes=options.memory << 20
    )
    program = machine.load(text, name)
    if options.checks and (wrong := ptx.verify_ptx(module, text)):
        report(wrong)
        return INPUT_AT_FAULT
    entry = options.entry
    if not entry:
        if len(program.entries) != 1:
            found = ", ".join(program.entries) or "none"
            raise error(
                "HLO0774", f"{name} has {len(program.entries)} kernels", help=f"--entry: {found}"
            )
        entry = program.entries[0]
    arguments = simulator_arguments.read_arguments(options.arg, machine, options.seed)
    begin = time.perf_counter()
    done = machine.launch(
        program,
        entry,
        launch["grid"],
        launch["block"],
        [one.value for one in arguments],
        options.shared,
        launch["cluster"],
    )
    sys.stderr.write(f"ran in {time.perf_counter() - begin:.3f} s\n")
    _show(options, machine, arguments)
    if options.figures:
        print(_figures(done.figures))
        print(_cost(options, text, entry, launch, done.figures))
    report(done.findings)
    return INPUT_AT_FAULT if done.findings else DONE


def _show(options: Options, machine: Machine, arguments: Sequence[Argument]) -> None:
    arrays = dict[str, Any]()
    for number, argument in enumerate(arguments):
        before = argument.array
        if before is None or not isinstance(argument.value, int):
            continue
        raw = machine.read(argument.value, before.nbytes)
        after = raw.view(before.dtype).reshape(before.shape)
        arrays[f"argument{number}"] = after
        if argument.is_new or after.tobytes() != before.tobytes():
            print(simulator_arguments.summary(argument, number, after))
    if options.output:
        import io

        import numpy as np

        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        formats.write_file(options.output, buffer.getvalue())


def _cost(
    options: Options, text: str, entry: str, launch: dict[str, tuple[int, ...]], figures: Figures
) -> str:
    """Registers, resident blocks and the modelled time; of architectures with a known device."""
    sm = options.target.removesuffix("a")
    gpu = next((one for one in devices.DEVICES.values() if one.sm.removesuffix("a") == sm), None)
    if gpu is None:
        return f"no device of {options.target} is known, so that no time is modelled"
    need = performance.resources(text, gpu, {entry: options.shared})[entry]
    resident = performance.occupancy(gpu, math.prod(launch["block"]), need)
    cost = performance.modelled_time(gpu, math.prod(launch["grid"]), figures, resident)
    registers = (
        f"about {need.registers} registers"
        if need.spill_bytes is None
        else f"{need.registers} registers, {need.spill_bytes} bytes of spills"
    )
    return (
        f"on {gpu.name}  {registers}, {need.shared_bytes} bytes of shared memory: {resident.blocks} blocks a "
        f"multiprocessor, {resident.share:.0%} of its warps, limited by {resident.limit}\n"
        f"modelled time  {cost.nanoseconds / 1000:.1f} µs, bound by {cost.bound}"
    )


def _figures(figures: Figures) -> str:
    rows = [
        f"instructions  {figures.thread_instructions} of threads, {figures.warp_instructions} of warps",
        *(f"  {kind:<14}{count}" for kind, count in sorted(figures.instructions.items())),
    ]
    for name, traffic in (("global", figures.global_memory), ("shared", figures.shared_memory)):
        extra = (
            f"{traffic.sectors} sectors of 32 bytes"
            if name == "global"
            else f"{traffic.bank_conflicts} bank conflicts"
        )
        rows.append(
            f"{name} memory  {traffic.requests} requests, {extra}, {traffic.bytes_read} bytes read, "
            f"{traffic.bytes_written} bytes written"
        )
    return "\n".join(rows)
