"""Runs of one file for `run_hlo_module`: inputs, the tested platform, the reference, what is shown."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mlirhlo.cli import inputs as files
from mlirhlo.cli.replay.compiled import COMPILED, CUDA, Compiled
from mlirhlo.cli.report import (
    CURRENT_INPUT,
    UsageError,
    report,
)
from mlirhlo.diagnostics import HloError
from mlirhlo.importing import LATE
from mlirhlo.lowering.observer import SILENT

with LATE:
    from mlirhlo import formats
    from mlirhlo.cli.replay import literals as cli_literals
    from mlirhlo.cli.replay import progress
    from mlirhlo.debug import checks, isolate, near, replay
    from mlirhlo.debug import dump as debug_dump
    from mlirhlo.debug import partitioned as debug_partitioned
    from mlirhlo.dialects.hlo import module as hlo_module
    from mlirhlo.formats import arrays
    from mlirhlo.interp import engine, fake_data
    from mlirhlo.interp import values as interp_values
    from mlirhlo.interp.ops import async_ops
    from mlirhlo.rewrites import pipeline
    from mlirhlo.runtime import profile as runtime_profile
    from mlirhlo.runtime.cuda import devices, figures


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.dump import CompilationDump
    from mlirhlo.debug.options import Flags
    from mlirhlo.debug.partitioned import Partitioned
    from mlirhlo.debug.replay import Inputs
    from mlirhlo.formats import Loaded
    from mlirhlo.formats.arrays import Archive
    from mlirhlo.interp.registry import Value
from mlirhlo.cli.replay.replay_options import Options


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
    partitioned: Partitioned | None = None
    """The tested module, where it is sharded and `--num_partitions` says over how many."""

    def run(self) -> Tally:
        """Runs every iteration. Raises `HloError`."""
        options = self.options
        loaded = self._load()
        if loaded is None:
            return self.tally
        module = loaded.module
        if options.isolate_instructions:
            return _run_isolated(self, module)
        self.compiled.flags, self.compiled.debug = self.xla, options.check_memory
        self.compiled.gpu = options.gpu
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
        if found := self.compiled.findings():
            report(found)
            faults = "fault" if len(found) == 1 else "faults"
            print(f"** The simulator found {len(found)} {faults} of kernels. **", file=sys.stderr)
            self.tally.add(found)
        if options.profile:
            self._profile(tested, records[-1][0])
        if options.output_literals_file is not None:
            cli_literals.write_literals(options.output_literals_file, module, records)
        return self.tally

    def _checks(self, loaded: Loaded) -> bool:
        """Runs the checks that a StableHLO program makes of itself; whether there are any."""
        if not checks.test_functions(loaded.module):
            return False
        made = checks.run_checks(loaded.module, file=loaded.name)
        if made.failures:
            report(made.failures)
        functions = ", ".join(f"@{name}" for name in made.functions)
        print(f"** {functions}: {made.passed} of {made.total} checks hold. **", file=sys.stderr)
        self.tally.add(made.failures)
        return True

    def _load(self) -> Loaded | None:
        """The module to run; None when it was a program of checks, which have been made."""
        data, name = files.read_input(self.path)
        loaded = formats.load(data, self.options.input_format, name=name)
        problems = files.verify(loaded) if self.options.verify else []
        if problems:
            raise HloError(*problems)
        if files.is_stablehlo(loaded) and self._checks(loaded):
            return None
        loaded = files.as_hlo(loaded)
        files.check_entry(loaded)
        if files.unsaid_partitions(loaded):
            files.set_partitions(loaded, self.options.num_partitions)
        count = self._fill_constants(loaded.module)
        if count:
            print(f"{count} constants have fake values, seed {self.options.seed}", file=sys.stderr)
        return loaded

    def _fill_constants(self, module: ModuleOp) -> int:
        """How many constants that the text leaves out got values, where that is asked for."""
        if not self.options.fake_constants:
            return 0

        return len(fake_data.fill_constants(hlo_module.HloModule(module), self.options.seed))

    def _transformed(self, loaded: Loaded) -> ModuleOp:
        """The module to test: another copy when passes shall change it."""
        if not self.options.passes:
            if self.options.num_partitions > 1:
                self.partitioned = debug_partitioned.Partitioned.of(loaded.module)
            tested = loaded.module if self.partitioned is None else self.partitioned.module
            self._tell_optimized(tested)
            return tested

        try:
            passes = pipeline.parse_pipeline(",".join(self.options.passes))
        except HloError as problem:
            raise UsageError(*problem.diagnostics) from None
        assert CURRENT_INPUT.data is not None
        copied = formats.load(CURRENT_INPUT.data, self.options.input_format, name=loaded.name)
        copy = files.as_hlo(copied).module
        self._fill_constants(copy)
        pipeline.run_pipeline(copy, passes, () if self.dump is None else self.dump.passes())
        self._tell_optimized(copy)
        return copy

    def _dump(self, loaded: Loaded) -> CompilationDump | None:
        device = None
        if self.options.platform == CUDA:
            device = devices.device_of(self.options.gpu, self.xla)
        target = "gpu" if device is not None else self.options.platform.lower()
        dump = debug_dump.dumping(loaded.module, self.xla, target, device=device)
        if dump is not None:
            dump.given(loaded.module)
        return dump

    def _tell_optimized(self, tested: ModuleOp) -> None:
        """The interpreter runs the module as it is; what is compiled tells of itself."""
        if self.dump is not None and self.options.platform not in COMPILED:
            self.dump.optimized(tested)

    # -------------------------------------------------------------- inputs

    def _archive(self) -> Archive | None:
        if self.options.input_npz is None:
            return None

        return arrays.read_npz(self.options.input_npz)

    def _stored_iterations(self) -> list[Any]:
        if self.options.input_literals_file is None:
            return []

        return cli_literals.read_literals(self.options.input_literals_file)

    def seed(self, iteration: int) -> int:
        """Seed of an iteration, by XLA's rule."""
        return iteration if self.options.different_random_seeds else self.options.seed

    def _given(
        self, loaded: Loaded, archive: Archive | None, stored: list[Any], iteration: int
    ) -> Given:
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
                given.expected, given.expected_from = (
                    interp_values.value_of_literal(result),
                    "the snapshot",
                )
            return given
        return self.fake(module, iteration)

    def fake(self, module: ModuleOp, iteration: int) -> Given:
        """Fake data, drawn anew for each iteration."""
        options, view = self.options, hlo_module.HloModule(module)
        seed = self.seed(iteration) + (0 if options.different_random_seeds else iteration - 1)
        if options.random_init_input_literals:
            arguments = fake_data.make_fake_arguments(module, seed, options.use_large_float_range)
        else:
            arguments = [async_ops.zeros(parameter.shape) for parameter in view.entry.parameters]
        inputs = replay.inputs_from_values(
            module, [arguments], options.num_replicas, options.num_partitions
        )
        kind = f"fake data, seed {seed}" if options.random_init_input_literals else "zeros"
        return Given(inputs, kind)

    @staticmethod
    def _with_outputs(given: Given, module: ModuleOp, archive: Archive) -> Given:
        """Adds the results that an npz file holds beside the inputs."""
        if "out0" not in archive.arrays and "out0.p0" not in archive.arrays:
            return given

        shapes = [hlo_module.HloModule(module).entry.root.shape]
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
            got = replay.arrays_per_partition(given.inputs, results)
            want = joined([joined(part) for part in given.expected_parts])
            self.compare(want, joined([joined(part) for part in got]), given.expected_from)
        return results, expected

    def execute(
        self, module: ModuleOp, inputs: Inputs, seed: int, platform: str, *, watch: bool = False
    ) -> list[Value]:
        """One run on all devices; `watch`: of the tested module."""
        options = self.options
        partitioned = self.partitioned if watch else None
        if partitioned is not None:
            inputs = partitioned.cut(inputs)
        dump = self.dump if watch else None
        run = None
        if platform in COMPILED:
            told = SILENT if dump is None else dump
            run = self.compiled.prepare(module, inputs, seed, told, platform)
        done = None if dump is None else dump.run_of(inputs)
        start = time.perf_counter()
        if run is not None:
            results = run()
        else:
            trace, step = watch and options.trace, watch and options.step
            with progress.watching(module, trace=trace, step=step) as hook:
                results = replay.run(module, inputs, seed=seed, hook=hook)
        if done is not None:
            done(results[0])
        if options.timing:
            print(f"ran in {time.perf_counter() - start:.3f} s", file=sys.stderr)
        return results if partitioned is None else partitioned.joined(results)

    def _profile(self, module: ModuleOp, inputs: Inputs) -> None:
        """Prints the time of every kernel, and writes it as a Chrome trace; of simulated ones what they did."""
        if self.options.platform == CUDA:
            kernels = self.compiled.costs()
            print(figures.table(kernels))
            if self.options.profile != "-":
                formats.write_file(self.options.profile, figures.as_json(kernels).encode())
            return

        if self.partitioned is not None:
            inputs = self.partitioned.cut(inputs)
        found = runtime_profile.profile(module, inputs.per_device[0])
        print(found.table())
        if self.options.profile != "-":
            formats.write_file(self.options.profile, found.chrome_trace().encode())

    def compare(self, expected: Value, actual: Value, name: str) -> None:
        """Compares and says so, in XLA's words."""
        bounds = near.Bounds(self.options.abs_error_bound, self.options.rel_error_bound)
        mismatches = list(near.compare(expected, actual, bounds))
        self.tally.add(mismatches)
        for mismatch in mismatches:
            print(mismatch, file=sys.stderr)
        verdict = "differ" if mismatches else "are close enough"
        print(f"** Results on {self.options.platform} and {name} {verdict}. **", file=sys.stderr)

    # -------------------------------------------------------------- output

    @staticmethod
    def _print_inputs(module: ModuleOp, inputs: Inputs) -> None:
        parameters = hlo_module.HloModule(module).entry.parameters
        reader = engine.Interpreter(module)
        for device, given in enumerate(inputs.per_device):
            suffix = f" on device {device}" if len(inputs.per_device) > 1 else ""
            for parameter, value in zip(parameters, reader.inputs(given), strict=True):
                print(f"** Input %{parameter.instruction_name}{suffix} **")
                print(cli_literals.value_text(value, parameter.shape))

    @staticmethod
    def _print_results(
        role: str, platform: str, module: ModuleOp, inputs: Inputs, results: Sequence[Value]
    ) -> None:
        shape = hlo_module.HloModule(module).entry.root.shape
        shown = results[:1] if inputs.is_whole else results
        for device, value in enumerate(shown):
            suffix = f" on device {device}" if len(shown) > 1 else ""
            print(f"** Result with {role} runner {platform}{suffix} **")
            print(cli_literals.value_text(value, shape))

    def _write_npz(self, module: ModuleOp, inputs: Inputs, results: Sequence[Value]) -> None:
        assert self.options.output_npz is not None
        shape = hlo_module.HloModule(module).entry.root.shape
        arrays.write_npz(
            self.options.output_npz, "out", replay.arrays_per_partition(inputs, results), shape
        )


def _run_isolated(replay: Replay, module: ModuleOp) -> Tally:
    """Runs each instruction on fake data as a module of its own; one that cannot run is reported
    and counted like a wrong result."""
    view = hlo_module.HloModule(module)
    for op in isolate.candidates(view):
        print(f"** Running %{op.instruction_name} ({op.opcode.name}) **", file=sys.stderr)
        alone = isolate.isolate(view, op)
        try:
            given = replay.fake(alone, 1)
            results = replay.execute(alone, given.inputs, replay.seed(1), replay.options.platform)
            if replay.reference:
                expected = replay.execute(alone, given.inputs, replay.seed(1), replay.reference)
                replay.compare(joined(expected), joined(results), replay.reference)
        except HloError as problem:
            report(problem.diagnostics)
            replay.tally.add([problem])
    return replay.tally
