"""`run_hlo_module`: run a module or a snapshot and compare the result with a reference."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlirhlo.cli import inputs as files
from mlirhlo.cli.compiled import CPU, Compiled, use_threads
from mlirhlo.cli.options import flag, help_text, parse
from mlirhlo.cli.report import (
    CURRENT_INPUT,
    DONE,
    INPUT_AT_FAULT,
    UsageError,
    report,
    run_tool,
    usage_error,
)
from mlirhlo.diagnostics import HloError
from mlirhlo.lowering.observer import SILENT

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.dump import CompilationDump
    from mlirhlo.debug.options import Flags
    from mlirhlo.debug.replay import Inputs
    from mlirhlo.formats import Loaded
    from mlirhlo.formats.arrays import Archive
    from mlirhlo.interp.registry import Value

PURPOSE = "run_hlo_module: run an HLO module or snapshot, and compare the result with a reference"
USAGE = "run_hlo_module --platform=Interpreter|CPU [options] FILE..."
EXAMPLES = (
    "echo 'f32[4] add(f32[4] x, f32[4] y)' | run_hlo_module --platform=Interpreter -",
    "echo 's8[] abs(s8[] x)' | run_hlo_module --platform=Interpreter --print_literals -",
    "echo 's32[3] iota(), iota_dimension=0' | run_hlo_module --platform=Interpreter --trace -",
)

MISCOMPARED = 255
"""XLA's tool returns -1."""

_INTERPRETER = "Interpreter"
_SEED = 42

_TEST = "Test"
_DATA = "Inputs"
_LOOK = "Looking"


@dataclass
class Options:
    """The command line of run_hlo_module."""

    platform: str = flag("", group=_TEST, metavar="Interpreter|CPU", help="what runs it")
    reference_platform: str = flag(
        "default",
        "reference_platform",
        group=_TEST,
        metavar="P",
        help="compare with; '' = only run",
    )
    threads: int = flag(
        0, group=_TEST, metavar="N", help="of compiled code [OMP_NUM_THREADS, else all]"
    )
    passes: tuple[str, ...] = flag(
        (), "p", group=_TEST, metavar="a,b", help="passes on the tested module, not the reference"
    )
    load_pass: tuple[str, ...] = flag(
        (), group=_TEST, metavar="FILE.py", help="passes of your own, for --passes"
    )
    iterations: int = flag(1, group=_TEST, metavar="N", help="runs, each with new data")
    abs_error_bound: float = flag(
        1e-3, "abs_error_bound", group=_TEST, metavar="X", help="absolute"
    )
    rel_error_bound: float = flag(
        1e-3, "rel_error_bound", group=_TEST, metavar="X", help="relative; either one is enough"
    )
    isolate_instructions: bool = flag(
        False, "isolate_instructions", group=_TEST, help="each instruction as a module of its own"
    )
    num_replicas: int = flag(0, "num_replicas", group=_TEST, metavar="N", help="", rare=True)
    num_partitions: int = flag(
        0,
        "num_partitions",
        group=_TEST,
        metavar="N",
        help="simulated devices [as module and inputs say]",
    )
    input_format: str | None = flag(
        None,
        "input_format",
        "format",
        "f",
        group=_DATA,
        metavar="F",
        help="of the module (by content)",
    )
    input_module: str | None = flag(
        None, "input_module", group=_DATA, metavar="FILE", help="the module, as without the flag"
    )
    input_npz: str | None = flag(
        None,
        "input_npz",
        group=_DATA,
        metavar="FILE",
        help="arrays in0, in1, … (in0.p3: of partition 3)",
    )
    output_npz: str | None = flag(
        None, "output_npz", group=_DATA, metavar="FILE", help="write results as out0, out1, …"
    )
    input_literals_file: str | None = flag(
        None, "input_literals_file", group=_DATA, metavar="FILE", help="RunHloModuleLiterals proto"
    )
    output_literals_file: str | None = flag(
        None, "output_literals_file", group=_DATA, metavar="FILE", help="the same, written"
    )
    force_fake_data: bool = flag(
        False, "force_fake_data", group=_DATA, help="leave the inputs of a snapshot aside"
    )
    use_large_float_range: bool = flag(
        False, "use_large_float_range", group=_DATA, help="fake floats from all of the range"
    )
    random_init_input_literals: bool = flag(
        True, "random_init_input_literals", group=_DATA, help="false: fake data are zeros"
    )
    different_random_seeds: bool = flag(
        False, "different_random_seeds", group=_DATA, help="seed = number of the iteration"
    )
    seed: int = flag(_SEED, group=_DATA, metavar="N", help="of fake data and of rng")
    print_literals: bool = flag(
        False, "print_literals", group=_LOOK, help="inputs and results, to stdout"
    )
    trace: bool = flag(False, group=_LOOK, help="every instruction and its value, to stderr")
    step: bool = flag(False, group=_LOOK, help="the same, waiting for a key after each")
    verify: bool = flag(True, group=_LOOK, help="check the module: --no-verify turns it off")
    timing: bool = flag(False, "profile_execution", group=_LOOK, help="", rare=True)
    help: bool = flag(False, "h", group="Help", help="")
    help_all: bool = flag(False, group="Help", help="", rare=True)
    version: bool = flag(False, "v", group="Help", help="")
    debug: bool = flag(False, group="Help", help="Python traceback of an error")
    # Compiler switches of XLA's tool; interpreting has no use for them.
    run_test_hlo_passes: bool = flag(True, group="Help", help="")
    run_reference_hlo_passes: bool = flag(True, group="Help", help="")
    flatten_control_flow: bool = flag(False, group="Help", help="")
    treat_gte_as_data_formatting: bool = flag(False, group="Help", help="")
    use_buffer_assignment_from_proto: bool = flag(False, group="Help", help="")
    run_xla_backend_only: bool = flag(False, group="Help", help="")


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    return run_tool("run_hlo_module", _run, argv)


def _run(argv: Sequence[str]) -> int:
    parsed = parse(Options, argv)
    options = parsed.options
    if options.help or options.help_all:
        print(help_text(Options, PURPOSE, USAGE, EXAMPLES, everything=options.help_all))
        return DONE
    if options.version:
        import mlirhlo

        print(f"run_hlo_module of mlirhlo {mlirhlo.__version__}")
        return DONE
    from mlirhlo.cli.xla_flags import read_flags

    xla = read_flags(parsed.xla)
    paths = [*([options.input_module] if options.input_module else []), *parsed.files]
    if not paths:
        raise usage_error("no module to run", help="name a file, or '-' for standard input")
    options.platform = _platform("--platform", options.platform)
    if options.platform != _INTERPRETER and (options.trace or options.step):
        raise usage_error(f"--trace and --step need --platform={_INTERPRETER}")
    if options.threads:
        use_threads(options.threads)
    reference = _reference(options)
    files.check_format(options.input_format)
    if options.iterations < 1:
        raise usage_error(f"--iterations={options.iterations}: at least one is needed")
    one_only = [
        name
        for name in ("input_npz", "output_npz", "input_literals_file", "output_literals_file")
        if getattr(options, name) is not None
    ]
    if one_only and len(paths) > 1:
        raise usage_error(f"--{one_only[0]} goes with one module, {len(paths)} are given")
    if options.load_pass:
        from mlirhlo.rewrites.registry import load_pass_file

        for path in options.load_pass:
            load_pass_file(path)
    miscompared = runs = 0
    for path in paths:
        if len(paths) > 1:
            print(f"** Running {path} **", file=sys.stderr)
        try:
            tally = Replay(path, options, xla, reference).run()
        except UsageError:
            raise
        except HloError as problem:
            name = CURRENT_INPUT.name or path
            raise HloError(*(files.named(d, name) for d in problem.diagnostics)) from problem
        miscompared += tally.miscompared
        runs += tally.compared
    if runs:
        print(f"{miscompared}/{runs} runs miscompared.", file=sys.stderr)
    return MISCOMPARED if miscompared else DONE


def _platform(name: str, value: str) -> str:
    if value.lower() in ("interpreter", "interp"):
        return _INTERPRETER
    if value.lower() in ("cpu", "host"):
        return CPU
    if not value:
        raise usage_error(f"{name} is missing", help=f"say {name}={_INTERPRETER} or {name}={CPU}")
    raise usage_error(
        f"{name}={value}: no such platform here", help=f"there are: {_INTERPRETER}, {CPU}"
    )


def _reference(options: Options) -> str:
    """Name of the reference platform; empty for none."""
    value = options.reference_platform
    return (
        ""
        if not value
        else _platform("--reference_platform", "interp" if value == "default" else value)
    )


@dataclass(slots=True)
class Tally:
    """How the runs of a file ended."""

    compared: int = 0
    miscompared: int = 0

    def add(self, mismatches: Sequence[object]) -> None:
        """Counts one comparison."""
        self.compared += 1
        self.miscompared += bool(mismatches)


@dataclass(slots=True)
class Given:
    """Inputs of one run, and results they are known to give."""

    inputs: Inputs
    origin: str
    """Where the inputs are from, for messages."""
    expected: Value | None = None
    expected_from: str = ""
    expected_parts: Sequence[Sequence[Value]] | None = None
    """Arrays per partition, from an npz file."""


def joined(values: Sequence[Value]) -> Value:
    """Values of several devices (or arrays of a result) as one; one alone stays what it is."""
    return values[0] if len(values) == 1 else tuple(values)


@dataclass(slots=True)
class Replay:
    """All runs of one file."""

    path: str
    options: Options
    xla: Flags
    reference: str
    tally: Tally = field(default_factory=Tally)
    compiled: Compiled = field(default_factory=Compiled)
    dump: CompilationDump | None = None
    """What the flags have dumped of the tested module."""

    def run(self) -> Tally:
        """Runs every iteration. Raises `HloError`."""
        options = self.options
        loaded = self._load()
        if loaded is None:
            return self.tally
        module = loaded.module
        if options.isolate_instructions:
            from mlirhlo.cli.isolated import run_isolated

            return run_isolated(self, module)
        self.compiled.flags = self.xla
        self.dump = self._dump(loaded)
        tested = self._transformed(loaded)
        archive = self._archive()
        literals = self._stored_iterations()
        records: list[tuple[Inputs, list[Value], list[Value] | None]] = []
        for iteration in range(1, options.iterations + 1):
            if options.iterations > 1:
                print(f"\n=== Iteration {iteration}", file=sys.stderr)
            given = self._given(loaded, archive, literals, iteration)
            results, expected = self._iteration(tested, module, given, iteration)
            records.append((given.inputs, results, expected))
            if options.output_npz is not None:
                self._write_npz(module, given.inputs, results)
        if options.output_literals_file is not None:
            from mlirhlo.cli.literals import write_literals

            write_literals(options.output_literals_file, module, records)
        return self.tally

    def _checks(self, loaded: Loaded) -> bool:
        """Runs the checks that a StableHLO program makes of itself; whether there are any."""
        from mlirhlo.debug.checks import run_checks, test_functions

        if not test_functions(loaded.module):
            return False
        made = run_checks(loaded.module, file=loaded.name)
        if made.failures:
            report(made.failures)
        functions = ", ".join(f"@{name}" for name in made.functions)
        print(f"** {functions}: {made.passed} of {made.total} checks hold. **", file=sys.stderr)
        self.tally.add(made.failures)
        return True

    def _load(self) -> Loaded | None:
        """The module to run; None when it was a program of checks, which have been made."""
        from mlirhlo.formats import load

        data, name = files.read_input(self.path)
        loaded = load(data, self.options.input_format, name=name)
        problems = files.verify(loaded) if self.options.verify else []
        if problems:
            raise HloError(*problems)
        if files.is_stablehlo(loaded) and self._checks(loaded):
            return None
        loaded = files.as_hlo(loaded)
        files.check_entry(loaded)
        return loaded

    def _transformed(self, loaded: Loaded) -> ModuleOp:
        """The module to test: another copy when passes shall change it."""
        if not self.options.passes:
            self._tell_optimized(loaded.module)
            return loaded.module
        from mlirhlo.formats import load
        from mlirhlo.rewrites.pipeline import parse_pipeline, run_pipeline

        try:
            passes = parse_pipeline(",".join(self.options.passes))
        except HloError as problem:
            raise UsageError(*problem.diagnostics) from None
        assert CURRENT_INPUT.data is not None
        copied = load(CURRENT_INPUT.data, self.options.input_format, name=loaded.name)
        copy = files.as_hlo(copied).module
        run_pipeline(copy, passes, () if self.dump is None else self.dump.passes())
        self._tell_optimized(copy)
        return copy

    def _dump(self, loaded: Loaded) -> CompilationDump | None:
        from mlirhlo.debug.dump import dumping

        dump = dumping(loaded.module, self.xla, self.options.platform.lower())
        if dump is not None:
            dump.given(loaded.module)
        return dump

    def _tell_optimized(self, tested: ModuleOp) -> None:
        """The interpreter runs the module as it is; what is compiled tells of itself."""
        if self.dump is not None and self.options.platform != CPU:
            self.dump.optimized(tested)

    # -------------------------------------------------------------- inputs

    def _archive(self) -> Archive | None:
        if self.options.input_npz is None:
            return None
        from mlirhlo.formats.arrays import read_npz

        return read_npz(self.options.input_npz)

    def _stored_iterations(self) -> list[Any]:
        if self.options.input_literals_file is None:
            return []
        from mlirhlo.cli.literals import read_literals

        return read_literals(self.options.input_literals_file)

    def seed(self, iteration: int) -> int:
        """Seed of an iteration, by XLA's rule."""
        return iteration if self.options.different_random_seeds else self.options.seed

    def _given(
        self, loaded: Loaded, archive: Archive | None, stored: list[Any], iteration: int
    ) -> Given:
        from mlirhlo.debug import replay

        options, module = self.options, loaded.module
        replicas, partitions = options.num_replicas, options.num_partitions
        if archive is not None:
            inputs = replay.inputs_from_archive(module, archive, replicas, partitions)
            return self._with_outputs(Given(inputs, archive.name), module, archive)
        if stored:
            row = stored[(iteration - 1) % len(stored)]
            inputs = replay.inputs_from_literals(module, [row.arguments], replicas, partitions)
            return Given(inputs, str(options.input_literals_file))
        arguments = () if options.force_fake_data else loaded.arguments
        if arguments:
            inputs = replay.inputs_from_literals(module, arguments, replicas, partitions)
            given = Given(inputs, "the snapshot")
            result = loaded.result
            if result is not None and not result.is_elided:
                from mlirhlo.interp.values import value_of_literal

                given.expected, given.expected_from = value_of_literal(result), "the snapshot"
            return given
        return self.fake(module, iteration)

    def fake(self, module: ModuleOp, iteration: int) -> Given:
        """Fake data, drawn anew for each iteration."""
        from mlirhlo.debug.replay import inputs_from_values
        from mlirhlo.dialects.hlo.module import HloModule
        from mlirhlo.interp.async_ops import zeros
        from mlirhlo.interp.fake_data import make_fake_arguments

        options, view = self.options, HloModule(module)
        seed = self.seed(iteration) + (0 if options.different_random_seeds else iteration - 1)
        if options.random_init_input_literals:
            arguments = make_fake_arguments(module, seed, options.use_large_float_range)
        else:
            arguments = [zeros(parameter.shape) for parameter in view.entry.parameters]
        inputs = inputs_from_values(
            module, [arguments], options.num_replicas, options.num_partitions
        )
        kind = f"fake data, seed {seed}" if options.random_init_input_literals else "zeros"
        return Given(inputs, kind)

    @staticmethod
    def _with_outputs(given: Given, module: ModuleOp, archive: Archive) -> Given:
        """Adds the results that an npz file holds beside the inputs."""
        if "out0" not in archive.arrays and "out0.p0" not in archive.arrays:
            return given
        from mlirhlo.dialects.hlo.module import HloModule

        shapes = [HloModule(module).entry.root.shape]
        inputs = given.inputs
        if inputs.partitions == 1 or inputs.is_whole:
            given.expected_parts = [archive.leaves("out", shapes, None)]
        else:
            parts = range(inputs.partitions)
            given.expected_parts = [archive.leaves("out", shapes, p) for p in parts]
        given.expected_from = archive.name
        return given

    # -------------------------------------------------------------- running

    def _iteration(
        self, tested: ModuleOp, module: ModuleOp, given: Given, iteration: int
    ) -> tuple[list[Value], list[Value] | None]:
        options = self.options
        print(f"inputs: {given.origin}", file=sys.stderr)
        if options.print_literals:
            self._print_inputs(module, given.inputs)
        seed = self.seed(iteration)
        results = self.execute(tested, given.inputs, seed, options.platform, watch=True)
        if options.print_literals:
            self._print_results("test", options.platform, tested, given.inputs, results)
        expected = None
        if self.reference:
            expected = self.execute(module, given.inputs, seed, self.reference)
            if options.print_literals:
                self._print_results("reference", self.reference, module, given.inputs, expected)
            self.compare(joined(expected), joined(results), self.reference)
        if given.expected is not None:
            self.compare(given.expected, results[0], given.expected_from)
        if given.expected_parts is not None:
            from mlirhlo.debug.replay import arrays_per_partition

            got = arrays_per_partition(given.inputs, results)
            want = joined([joined(part) for part in given.expected_parts])
            self.compare(want, joined([joined(part) for part in got]), given.expected_from)
        return results, expected

    def execute(
        self, module: ModuleOp, inputs: Inputs, seed: int, platform: str, *, watch: bool = False
    ) -> list[Value]:
        """One run on all devices."""
        options = self.options
        dump = self.dump if watch else None
        run = None
        if platform == CPU:
            run = self.compiled.prepare(module, inputs, seed, SILENT if dump is None else dump)
        done = None if dump is None else dump.run_of(inputs)
        start = time.perf_counter()
        if run is not None:
            results = run()
        else:
            from mlirhlo.cli.progress import watching
            from mlirhlo.debug import replay

            trace, step = watch and options.trace, watch and options.step
            with watching(module, trace=trace, step=step) as hook:
                results = replay.run(module, inputs, seed=seed, hook=hook)
        if done is not None:
            done(results[0])
        if options.timing:
            print(f"ran in {time.perf_counter() - start:.3f} s", file=sys.stderr)
        return results

    def compare(self, expected: Value, actual: Value, name: str) -> None:
        """Compares and says so, in XLA's words."""
        from mlirhlo.debug.near import Bounds, compare

        bounds = Bounds(self.options.abs_error_bound, self.options.rel_error_bound)
        mismatches = list(compare(expected, actual, bounds))
        self.tally.add(mismatches)
        for mismatch in mismatches:
            print(mismatch, file=sys.stderr)
        verdict = "differ" if mismatches else "are close enough"
        print(f"** Results on {self.options.platform} and {name} {verdict}. **", file=sys.stderr)

    # -------------------------------------------------------------- output

    @staticmethod
    def _print_inputs(module: ModuleOp, inputs: Inputs) -> None:
        from mlirhlo.cli.literals import value_text
        from mlirhlo.dialects.hlo.module import HloModule
        from mlirhlo.interp.engine import Interpreter

        parameters = HloModule(module).entry.parameters
        reader = Interpreter(module)
        for device, given in enumerate(inputs.per_device):
            suffix = f" on device {device}" if len(inputs.per_device) > 1 else ""
            for parameter, value in zip(parameters, reader.inputs(given), strict=True):
                print(f"** Input %{parameter.instruction_name}{suffix} **")
                print(value_text(value, parameter.shape))

    @staticmethod
    def _print_results(
        role: str, platform: str, module: ModuleOp, inputs: Inputs, results: Sequence[Value]
    ) -> None:
        from mlirhlo.cli.literals import value_text
        from mlirhlo.dialects.hlo.module import HloModule

        shape = HloModule(module).entry.root.shape
        shown = results[:1] if inputs.is_whole else results
        for device, value in enumerate(shown):
            suffix = f" on device {device}" if len(shown) > 1 else ""
            print(f"** Result with {role} runner {platform}{suffix} **")
            print(value_text(value, shape))

    def _write_npz(self, module: ModuleOp, inputs: Inputs, results: Sequence[Value]) -> None:
        from mlirhlo.debug.replay import arrays_per_partition
        from mlirhlo.dialects.hlo.module import HloModule
        from mlirhlo.formats.arrays import write_npz

        assert self.options.output_npz is not None
        shape = HloModule(module).entry.root.shape
        write_npz(self.options.output_npz, "out", arrays_per_partition(inputs, results), shape)


__all__ = ["INPUT_AT_FAULT", "Options", "Replay", "main", "report"]

if __name__ == "__main__":
    sys.exit(main())
