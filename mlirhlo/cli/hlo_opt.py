"""`hlo-opt`: read a module in any format, verify it, run passes, print it in any format."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import mlirhlo
from mlirhlo.cli import inputs, printing
from mlirhlo.cli.opt import analyses, gpu_stages, stage_files, stages
from mlirhlo.cli.opt.hlo_opt_options import BARE, PLATFORMS, Options, check_platform, other_option
from mlirhlo.cli.opt.watch import Clock, IrPrinter
from mlirhlo.cli.options import Parsed, help_text, parse
from mlirhlo.cli.report import DONE, INPUT_AT_FAULT, UsageError, report, run_tool, usage_error
from mlirhlo.diagnostics import Diagnostic, HloError, explain
from mlirhlo.formats import load
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.cli import xla_flags
    from mlirhlo.cli.opt import pass_pages, stage_passes
    from mlirhlo.debug import dump, expected
    from mlirhlo.debug import options as debug_options
    from mlirhlo.formats import sniff
    from mlirhlo.mosaic import expanded
    from mlirhlo.rewrites import passes as rewrites_passes
    from mlirhlo.rewrites import pipeline as rewrites_pipeline
    from mlirhlo.rewrites import pipelines, registry, stablehlo_refine_shapes
    from mlirhlo.runtime.cuda import devices


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from mlirhlo.cli.opt.stage_parsing import Stage
    from mlirhlo.debug.dump import CompilationDump
    from mlirhlo.debug.options import Flags
    from mlirhlo.formats import Loaded
    from mlirhlo.formats.hlo_text import PrintOptions
    from mlirhlo.rewrites.control import PassControl
    from mlirhlo.rewrites.passes import Trace
    from mlirhlo.rewrites.pipeline import Instrumentation

PURPOSE = "hlo-opt: read an HLO module in any format, check it, run passes, print it in any format"
USAGE = "hlo-opt [options] [FILE|-]"
EXAMPLES = (
    "echo 'ENTRY e { x = f32[2] parameter(0) ROOT y = f32[2] negate(x) }' | hlo-opt -",
    "echo 'f32[2] add(f32[2] x, f32[2] y)' | hlo-opt --emit=mlir",
    "echo 'ENTRY e { x = s8[] parameter(0) d = s8[] abs(x) ROOT y = s8[] not(x) }' | hlo-opt -p dce",
)


def main(argv: Sequence[str] | None = None) -> int:
    """The console script."""
    return run_tool("hlo-opt", _run, argv)


def _run(argv: Sequence[str]) -> int:
    argv = ["--verify-diagnostics=all" if a.lstrip("-") in BARE else a for a in argv]
    parsed = parse(Options, argv, other_option)
    options = parsed.options
    if options.help or options.help_all:
        print(help_text(Options, PURPOSE, USAGE, EXAMPLES, everything=options.help_all))
        if options.help_all:
            print("\nswitches of HLO text [default]: " + ", ".join(printing.switch_names()))
        return DONE
    if options.version:
        print(f"hlo-opt of mlirhlo {mlirhlo.__version__}")
        return DONE
    if options.explain is not None:
        try:
            print(explain(options.explain), end="")
        except HloError as problem:
            raise UsageError(*problem.diagnostics) from None
        return DONE
    check_platform(options)
    if options.list_stages:
        print("\n".join(stages.stages_of(options.platform)))
        return DONE
    return _with_passes(parsed)


def _with_passes(parsed: Parsed[Options]) -> int:
    options = parsed.options
    if options.gpu_target_config:
        parsed.xla.append(("xla_gpu_target_config_filename", options.gpu_target_config))
    xla = xla_flags.read_flags(parsed.xla)
    if options.load_pass:
        for path in options.load_pass:
            registry.load_pass_file(path)
    if options.help_pass:
        try:
            print(pass_pages.help_of(options.help_pass))
        except HloError as problem:
            raise UsageError(*problem.diagnostics) from None
        return DONE
    if options.list_passes or options.help_passes:
        print(pass_pages.listing(pages=options.help_passes, as_json=options.json))
        return DONE
    passes = _passes(options)
    inputs.check_format(options.format)
    job = Job(options, xla, passes)
    return job.run(inputs.single_file(parsed.files))


def _passes(options: Options) -> tuple[ModulePass, ...]:
    text = ",".join(options.passes)
    if options.pass_pipeline is not None:
        pipeline = options.pass_pipeline.strip()
        if pipeline.startswith("builtin.module(") and pipeline.endswith(")"):
            pipeline = pipeline.removeprefix("builtin.module(").removesuffix(")")
        text = f"{text},{pipeline}" if text and pipeline else text or pipeline
    if not text:
        return _platform_passes(options)

    passes = stage_passes.passes_at(options.stage, text)
    if options.dump_pass_pipeline:
        shown = ",".join(str(pass_.pipeline_pass_spec()) for pass_ in passes)
        print(f"builtin.module({shown})", file=sys.stderr)
    return passes


def _platform_passes(options: Options) -> tuple[ModulePass, ...]:
    """What the compiler of the platform does before it leaves HLO; nothing for no platform, and for
    later stages, whose compiler runs passes of its own."""
    if options.platform.lower() in PLATFORMS or options.stage != stages.HLO:
        return ()

    try:
        return tuple(pipelines.pipelines_of(options.platform))
    except HloError as problem:
        raise UsageError(*problem.diagnostics) from None


def _partitions(passes: Sequence[ModulePass]) -> bool:
    """Whether passes partition a module, as its header says."""
    names = ("spmd-partitioner", "sharding-propagation", "shardy-xla", "spmd-partitioning")
    return any(p.name in names and not getattr(p, "num_partitions", 0) for p in passes)


class Job:
    """One run over one file."""

    def __init__(self, options: Options, xla: Flags, passes: tuple[ModulePass, ...]) -> None:
        self.options = options
        self.xla = xla
        self.passes = passes
        self.dump: CompilationDump | None = None
        """What the flags have dumped of the module at hand."""
        self.clock = Clock()
        self.text: PrintOptions = printing.print_options(options, xla)
        self.checks = options.verify and not options.disable_verify

    @cached_property
    def trace(self) -> Trace:
        """What passes did, over all modules of the file."""
        return rewrites_passes.Trace(remarks=[] if self.options.explain_fusion else None)

    def run(self, path: str) -> int:
        """Reads, works, writes; the exit code."""
        data, name = inputs.read_input(path)
        if b'"(above)"' in data:
            data = expanded.collapse_kernels(data.decode("utf-8", "surrogateescape"), name).encode(
                "utf-8", "surrogateescape"
            )
        pieces = inputs.pieces(data, name, split=self.options.split_input_file)
        results = list[bytes]()
        written_as = "hlo"
        for piece in pieces:
            if self.options.verify_diagnostics:
                produced = list[Diagnostic]()
                result = self.attempt(piece, name, produced)
                wrong = self._compare(piece, name, produced)
                report(wrong)
                if wrong:
                    results.append(b"")
                    self.failed = True
                    continue
            else:
                produced = list[Diagnostic]()
                result = self.attempt(piece, name, produced)
                report(produced)
                self.failed |= bool(produced)
            if result is not None:
                written_as, written = result
                results.append(written)
        if not self.failed or self.options.split_input_file:
            self._write(results, written_as)
        self._report()
        return INPUT_AT_FAULT if self.failed else DONE

    control: PassControl | None = None
    """Which passes run on the module at hand."""
    failed = False
    """Whether any piece was at fault."""

    def attempt(
        self, data: bytes, name: str, produced: list[Diagnostic]
    ) -> tuple[str, bytes] | None:
        """One module from bytes to format and bytes; what goes wrong is added to `produced`."""
        try:
            self.control = debug_options.pass_control(self.xla)
            self.control.verifies_foreign = self.checks
        except HloError as problem:
            raise UsageError(*problem.diagnostics) from None
        try:
            if self.options.stage not in (stages.HLO, stages.FUSED):
                continued = self._continued(data, name)
                if continued is not None:
                    return self._written(continued)
            loaded = self._load(data, name)
            produced += self.verify(loaded, "verify")
            if produced:
                return None
            at_hlo = self.options.stage == stages.HLO
            loaded = self._transform(loaded, self.passes if at_hlo else (), produced)
            if produced:
                return None
            if self.options.explain_fusion or self.options.stage == stages.FUSED:
                loaded = self._fused(loaded)
                self._run(loaded, () if at_hlo else self.passes, produced)
                if produced:
                    return None
            if self.options.explain_fusion:
                return "analysis", stages.remarks(self.trace, as_json=self.options.json)
            if self.options.print_analysis is not None:
                with self.clock.step("analyse"):
                    names, as_json = self.options.print_analysis, self.options.json
                    return "analysis", analyses.render(loaded, names, as_json=as_json)
            if self.options.stage not in (stages.HLO, stages.FUSED):
                with self.clock.step("compile"):
                    stage = self.options.stage
                    if stages.is_gpu(self.options.platform):
                        gpu = self.options.gpu
                        value = gpu_stages.lowered(loaded, stage, self.dump, self.xla, gpu)
                    else:
                        value = stages.lowered(loaded, stage, self.dump, self.xla)
                return self._written(value)
            return self._print(loaded)
        except UsageError:
            raise
        except HloError as problem:
            produced += problem.diagnostics
            return None

    def _written(self, value: Stage) -> tuple[str, bytes]:
        """The bytes of a stage behind `fused`, after the passes given for it."""
        if self.passes and not isinstance(value, str | bytes):
            printer = IrPrinter(self.options, lambda m: stages.render_module(m).decode())
            watchers = [printer] if printer.is_wanted else []
            for name, seconds in stage_passes.run_passes(
                value, self.passes, watchers, self.trace, self.control
            ):
                self.clock.add(f"pass {name}", seconds)
        is_generic = printing.emitted_format(self.options, "mlir") == "mlir-generic"
        return self.options.stage, stages.render(value, is_generic=is_generic)

    def _continued(self, data: bytes, name: str) -> Stage | None:
        """The stage made of the print of one before it; None where this is still a program."""
        stage, is_gpu = self.options.stage, stages.is_gpu(self.options.platform)
        given = (gpu_stages if is_gpu else stage_files).stage_of(data)
        if given is None:
            return None
        if is_gpu:
            return gpu_stages.continued(data, given, stage, name, self.options.gpu, self.xla)
        return stage_files.continued(data, given, stage, name)

    def _load(self, data: bytes, name: str) -> Loaded:
        with self.clock.step("read"):
            return load(data, self.options.format, name=name)

    def verify(self, loaded: Loaded, step: str) -> list[Diagnostic]:
        if not self.checks:
            return []
        with self.clock.step(step):
            return inputs.verify(loaded)

    def _transform(
        self, loaded: Loaded, passes: Sequence[ModulePass], produced: list[Diagnostic]
    ) -> Loaded:
        """Runs the passes; the first one over HLO finds a StableHLO program converted."""
        if passes:
            stage_passes.check_level(
                passes, "structured" if inputs.holds_kernels(loaded) else "hlo"
            )
        if passes and inputs.is_stablehlo(loaded):
            count = next(
                (i for i, p in enumerate(passes) if rewrites_pipeline.works_on_hlo(p)), len(passes)
            )
            self._run(loaded, passes[:count], produced)
            passes = passes[count:]
            if not produced and passes:
                with self.clock.step("convert"):
                    loaded = inputs.as_hlo(loaded)
        if produced:
            return loaded
        self._start_dump(loaded)
        if passes:
            if not inputs.holds_kernels(loaded):
                inputs.check_entry(loaded)
            if self.options.num_partitions or _partitions(passes):
                inputs.set_partitions(loaded, self.options.num_partitions)
            self._run(loaded, passes, produced)
        if self.dump is not None and self.options.stage == stages.HLO:
            self.dump.optimized(inputs.as_hlo(loaded).module)
        return loaded if produced else inputs.for_format(loaded, self._format(loaded))

    def _start_dump(self, loaded: Loaded) -> None:
        """Dumps the module as it came, where the flags say so; StableHLO of open sizes is no module yet."""
        options = self.xla.options
        if not (debug_options.asks_for_dumps(options) or options.xla_mosaic_dump_to):
            return

        if inputs.is_stablehlo(loaded) and stablehlo_refine_shapes.takes_any_size(loaded.module):
            return
        module = inputs.as_hlo(loaded).module
        is_compiled = self.options.stage != stages.HLO
        if is_compiled and stages.is_gpu(self.options.platform):
            device = devices.device_of(self.options.gpu, self.xla)
            self.dump = dump.dumping(module, self.xla, "gpu", device=device)
        else:
            self.dump = dump.dumping(module, self.xla, "cpu" if is_compiled else "")
        if self.dump is not None:
            self.dump.given(module)

    def _run(
        self, loaded: Loaded, passes: Sequence[ModulePass], produced: list[Diagnostic]
    ) -> None:
        if not passes:
            return

        result = rewrites_pipeline.run_pipeline(
            loaded.module, passes, self._watchers(loaded), trace=self.trace, control=self.control
        )
        for pass_name, seconds in result.seconds:
            self.clock.add(f"pass {pass_name}", seconds)
        if not self.options.verify_each:
            names = ", ".join(pass_.name for pass_ in passes)
            produced += _blame(self.verify(loaded, "verify result"), names)

    def _watchers(self, loaded: Loaded) -> list[Instrumentation]:
        watchers: list[Instrumentation] = []
        printer = IrPrinter(self.options, lambda module: self._shown(loaded, module))
        if printer.is_wanted:
            watchers.append(printer)
        if self.options.verify_each:
            watchers.append(_EachVerified(self, loaded))
        if self.dump is not None:
            watchers += self.dump.passes()
        return watchers

    def _fused(self, loaded: Loaded) -> Loaded:
        """The module as the compiler plans it, unless the passes fused it already."""
        if any(p.name.endswith("fusion") for p in self.passes) and self.options.explain_fusion:
            return loaded
        with self.clock.step("compile"):
            watchers = self._watchers(loaded)
            gpu = self.options.gpu
            platform = self.options.platform
            return stages.fused(loaded, platform, watchers, self.xla, self.trace, gpu)

    def _format(self, loaded: Loaded) -> str:
        is_mlir = loaded.sniffed.format is sniff.Format.MLIR_TEXT
        return printing.emitted_format(self.options, "mlir" if is_mlir else "hlo")

    def _shown(self, loaded: Loaded, module: ModuleOp) -> str:
        """The module as text, for looking at: protos are shown as HLO text."""
        shown_as = self._format(loaded)
        shown_as = shown_as if shown_as.startswith("mlir") else "hlo"
        data = printing.render(module, shown_as, self.options, self.text)
        return data.decode(errors="replace")

    def _print(self, loaded: Loaded) -> tuple[str, bytes]:
        written_as = self._format(loaded)
        if not written_as.startswith("mlir") and not inputs.is_stablehlo(loaded):
            inputs.check_entry(loaded)
        with self.clock.step("print"):
            data = printing.render(loaded.module, written_as, self.options, self.text)
        if self.options.verify_roundtrip:
            again = self._load(data, f"{loaded.name} as {written_as}")
            if printing.render(again.module, written_as, self.options, self.text) != data:
                raise HloError(
                    Diagnostic(
                        "HLO0513",
                        f"{loaded.name}: reading its {written_as} back gives another module",
                    )
                )
        return written_as, data

    def _compare(self, data: bytes, name: str, produced: list[Diagnostic]) -> list[Diagnostic]:
        text = data.decode("utf-8", errors="replace")
        only = self.options.verify_diagnostics == "only-expected"
        return expected.check_expected(
            expected.read_expected(text, name), produced, only_expected=only
        )

    def _write(self, results: list[bytes], format: str) -> None:
        joins = format in ("hlo", "mlir", "mlir-generic", "analysis")
        if self.options.stage not in (stages.HLO, stages.FUSED):
            joins = stages.is_text(self.options.stage)
        if len(results) > 1 and not joins:
            raise usage_error(
                f"several modules cannot be written as one {format} file",
                help="use a format of text with --split-input-file: hlo, mlir",
            )
        if self.options.expand_kernels and format == "hlo":
            results = [
                expanded.expand_kernels(r.decode("utf-8", "surrogateescape")).encode()
                for r in results
            ]
        # XLA joins texts by a blank line, MLIR's tools by the divider they were split at.
        divider = b"\n" if format == "hlo" else b"\n// -----\n\n"
        printing.deliver(divider.join(r for r in results if r), self.options)

    def _report(self) -> None:
        if self.options.timing:
            self.clock.report()
        if self.options.stats:
            for (pass_name, rule), count in sorted(self.trace.rule_counts.items()):
                print(f"{count:8}  {pass_name}: {rule}", file=sys.stderr)


class _EachVerified:
    """Verifies after each pass, and says which one left something wrong."""

    def __init__(self, job: Job, loaded: Loaded) -> None:
        self.job = job
        self.loaded = loaded

    def started(self, pipeline: str, passes: Sequence[ModulePass], module: ModuleOp) -> None:
        """As `Instrumentation`."""

    def before(self, pass_: ModulePass, module: ModuleOp) -> None:
        """As `Instrumentation`."""

    def after(self, pass_: ModulePass, module: ModuleOp, changed: bool, seconds: float) -> None:
        """As `Instrumentation`."""
        del module, changed, seconds
        problems = _blame(self.job.verify(self.loaded, "verify"), pass_.name)
        if problems:
            raise HloError(*problems)


def _blame(problems: list[Diagnostic], passes: str) -> list[Diagnostic]:
    if not problems:
        return []
    message = f"the module is not valid any more after {passes}"
    return [Diagnostic("HLO0512", message, help="--verify-each finds the pass at fault"), *problems]


if __name__ == "__main__":
    sys.exit(main())
