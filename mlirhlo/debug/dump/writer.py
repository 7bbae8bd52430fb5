"""The dumps of one compilation: which files, in which forms, under which names.

Source: dumps reference, "File names", "When per-pass files are written", "File contents".
"""

from __future__ import annotations

import gzip
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlirhlo.debug.dump import names
from mlirhlo.debug.dump.settings import Settings, decide
from mlirhlo.debug.dump.sink import (
    Directory,
    attempt,
    open_directory,
    print_line,
    print_text,
    refuse,
    tell,
)
from mlirhlo.debug.dump.unmatched import UNMATCHED
from mlirhlo.debug.options import DebugOptions, Flags, asks_for_dumps, process_flags
from mlirhlo.importing import LATE

with LATE:
    from mlirhlo.debug import graph
    from mlirhlo.debug.dump import live_range, protos, reports
    from mlirhlo.debug.dump import state as dump_state
    from mlirhlo.formats import hlo_text


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.debug.dump.assignment import Assignment
    from mlirhlo.debug.graph import GraphOptions, Stage
    from mlirhlo.formats.hlo_text import PrintOptions

SERVER = "MLIRHLO_GRAPHVIZ_SERVER"
"""Variable with the address of a server that draws the dot text behind it, for `--xla_dump_hlo_as_url`."""

_numbers = itertools.count()
"""Ids of modules: unique in the process, one for every compilation."""

_limit_lock = threading.Lock()
_dumped: set[int] = set()
"""Modules that left files, for `--xla_dump_max_hlo_modules`."""


def start(
    name: str, flags: Flags | None = None, *, from_environment: bool | None = None
) -> ModuleDump | None:
    """The dumps of a module that is about to be compiled; None when there will be none.

    `flags` are those of the environment when None. Raises `HloError` HLO0520, HLO0521 for an
    environment that cannot be understood.
    """
    number = next(_numbers)
    flags = process_flags() if flags is None else flags
    if not asks_for_dumps(flags.options):
        return None
    settings, problems = decide(flags.options)
    for problem in problems:
        tell((problem.message,), problem.code, problem.message, problem.help or "", fatal=False)
    if not settings.is_active:
        return None
    if not settings.named(name):
        UNMATCHED.missed(flags.options.xla_dump_hlo_module_re, name)
        return None
    UNMATCHED.matched(flags.options.xla_dump_hlo_module_re)
    if not _within_limit(flags.options, number):
        return None
    if from_environment is None:
        from_environment = flags.origins.get("xla_dump_to") == "XLA_FLAGS"
    return ModuleDump(flags, settings, name, number, with_inputs=from_environment)


def _within_limit(options: DebugOptions, number: int) -> bool:
    limit = options.xla_dump_max_hlo_modules
    if limit <= 0:
        return True
    with _limit_lock:
        if len(_dumped) < limit:
            _dumped.add(number)
            return True
    count = len(_dumped)
    message = f"Have already dumped {count} modules, more than the limit of {limit}"
    tell(("limit", limit), "HLO0529", message, "raise --xla_dump_max_hlo_modules", fatal=False)
    return False


class ModuleDump:
    """The dumps of one compilation of one module."""

    def __init__(
        self, flags: Flags, settings: Settings, name: str, number: int, *, with_inputs: bool
    ) -> None:
        self.flags, self.settings, self.number = flags, settings, number
        self.options = flags.options
        self.name = names.module_identifier(name)
        self.wants_files = settings.modules(name)
        """Whether the ordinary dumps are wanted, not only unoptimized snapshots."""
        self.with_inputs = with_inputs
        self.steps = 0
        self.stages: list[Stage] = []
        """The module after each recorded pass, for the slider of html pages."""
        self._timestamp = ""
        self._printed: tuple[list[object], str] | None = None
        """The last text, and the state of the module that it is of."""

    # -------------------------------------------------------------- files

    @property
    def timestamp(self) -> str:
        """Microseconds of the first dump, when names are to have them."""
        return self.first_dump if self.options.xla_dump_include_timestamp else ""

    @property
    def first_dump(self) -> str:
        """Microseconds since the epoch of the module's first dump."""
        if not self._timestamp:
            self._timestamp = str(time.time_ns() // 1000)
        return self._timestamp

    def stem(self, suffix: str, *, prefix: str = "") -> str:
        """Name of a file of this module without extension."""
        return names.stem(self.number, self.name, suffix, prefix)

    def write(
        self,
        name: str,
        produce: Callable[[], bytes | str],
        *,
        is_text: bool = True,
        below: Sequence[str] = (),
    ) -> str | None:
        """Writes or prints a file; its path when there is one."""
        if not self.settings.directory:
            return None
        if self.settings.to_stdout:
            if not is_text:
                refuse(name)
            elif (data := attempt(name, produce)) is not None:
                print_text(name, data.decode("utf-8", "surrogateescape"))
            return None
        directory = self._directory()
        if directory is None:
            return None
        data = attempt(name, produce)
        return None if data is None else directory.write(name, data, below or self._subfolder())

    def _directory(self) -> Directory | None:
        return open_directory(self.settings.directory)

    def _subfolder(self) -> tuple[str, ...]:
        if not self.options.xla_dump_hlo_to_subfolder:
            return ()
        import socket

        return (self.name, f"{socket.gethostname()}_{os.getpid()}")

    # -------------------------------------------------------------- HLO

    def hlo(
        self, module: ModuleOp, suffix: str, reports: Callable[[], Assignment] | None = None
    ) -> list[str]:
        """The module in all formats that were asked for; paths of the files.

        `reports` gives the buffers, where they are assigned.
        """
        if not self.wants_files:
            return []
        stem = self.stem(suffix, prefix=self.timestamp)
        return [path for path in self._formats(module, stem, reports) if path is not None]

    def fixed(
        self, module: ModuleOp, suffix: str, reports: Callable[[], Assignment] | None = None
    ) -> None:
        """A dump that no expression for passes filters, with the options beside it."""
        if self.wants_files:
            self.hlo(module, suffix, reports)
            stem = self.stem(names.DEBUG_OPTIONS)
            self.write(stem, self.flags.non_defaults, is_text=False)

    def _formats(
        self, module: ModuleOp, stem: str, reports: Callable[[], Assignment] | None
    ) -> Iterator[str | None]:
        settings, options = self.settings, self.options
        assignment = None
        if reports is not None and (settings.text or settings.proto):
            assignment = _made(f"{stem}-buffer-assignment", reports)
        if settings.text:
            yield self.write(f"{stem}.txt", lambda: self._text(module))
            if assignment is not None:
                yield from self._reports(stem, assignment)
        if settings.proto:
            yield from self._protos(module, stem, assignment)
        if settings.dot:
            yield self._graph(module, stem, "dot")
        if settings.html:
            yield self._graph(module, stem, "html")
            if names.AFTER_OPTIMIZATIONS in stem:
                yield self._graph(module, stem, "html", fusions=False)
        if settings.url:
            yield self._url(module, stem)
        if options.xla_gpu_experimental_dump_fdo_profiles:
            yield self.write(f"{stem}.fdo_profile", lambda: b"", is_text=False)

    def _text(self, module: ModuleOp) -> str:
        state = dump_state.state_of(module)
        if self._printed is None or self._printed[0] != state:
            self._printed = state, hlo_text.print_module(module, print_options(self.options))
        return self._printed[1]

    def _reports(self, stem: str, assignment: Assignment) -> Iterator[str | None]:
        analysis = self.options.xla_dump_buffer_assignment_analysis
        yield self.write(
            f"{stem}-buffer-assignment.txt", lambda: reports.assignment_text(assignment)
        )
        if analysis:
            yield self.write(
                f"{stem}-buffer-assignment-values.txt", lambda: reports.values_text(assignment)
            )
            yield self.write(f"{stem}-live-range.txt", lambda: live_range.text(assignment))
        yield self.write(f"{stem}-memory-usage-report.txt", lambda: reports.memory_text(assignment))

    def _protos(
        self, module: ModuleOp, stem: str, assignment: Assignment | None
    ) -> Iterator[str | None]:
        compressed = self.options.xla_dump_compress_protos
        ending = ".gz" if compressed else ""

        def packed(produce: Callable[[], bytes]) -> Callable[[], bytes]:
            return (lambda: gzip.compress(produce(), mtime=0)) if compressed else produce

        yield self.write(
            f"{stem}.hlo.pb{ending}",
            packed(lambda: protos.hlo_proto(module, self.number, assignment)),
            is_text=False,
        )
        if assignment is not None:
            yield self.write(
                f"{stem}-memory-usage-report.pb{ending}",
                packed(lambda: protos.memory_report(assignment)),
                is_text=False,
            )

    # -------------------------------------------------------------- graphs

    def _graph_options(self, stem: str, *, fusions: bool = True) -> GraphOptions:
        # Every page with all stages before it would make a dump quadratic.
        is_last = names.AFTER_OPTIMIZATIONS in stem and fusions
        return graph.GraphOptions(
            label=stem,
            sharding_color=self.options.xla_hlo_graph_sharding_color,
            addresses=self.options.xla_hlo_graph_addresses,
            fusions=fusions,
            stages=tuple(self.stages) if is_last else (),
            server=os.environ.get(SERVER, ""),
            file=f"{names.sanitized(stem)}.txt" if self.settings.text else "",
        )

    def _graph(
        self, module: ModuleOp, stem: str, format: str, *, fusions: bool = True
    ) -> str | None:
        middle = "" if fusions else ".top_level"
        options = self._graph_options(stem, fusions=fusions)
        return self.write(
            f"{stem}{middle}.{format}", lambda: graph.render(module, format, options), is_text=False
        )

    def _url(self, module: ModuleOp, stem: str) -> str | None:
        """The address of the graph: a server's, of the page beside it, or one that is the page."""
        directory = (
            None if self.settings.to_stdout or not self.settings.directory else (self._directory())
        )
        if directory is not None and self.settings.html and not os.environ.get(SERVER):
            folder = Path(directory.path, *map(names.sanitized, self._subfolder()))
            url = (folder / names.sanitized(f"{stem}.html")).absolute().as_uri()
        else:
            options = self._graph_options(stem)
            made = attempt(f"{stem}.url", lambda: graph.render(module, "url", options))
            if made is None:
                return None
            url = made.decode()
        print_line(f"{stem} --> {url}")
        return None if directory is None else self.write(f"{stem}.url", lambda: url, is_text=False)


def print_options(options: DebugOptions) -> PrintOptions:
    """How HLO text of dumps looks."""
    from dataclasses import replace

    text = (
        hlo_text.PrintOptions()
        if options.xla_dump_hlo_as_long_text
        else hlo_text.PrintOptions.short_dump()
    )
    return replace(
        text,
        large_constants=options.xla_dump_large_constants,
        metadata=not options.xla_dump_disable_metadata,
        inline_stack_frames=options.xla_hlo_print_inline_stack_frames,
        async_sugar=options.xla_syntax_sugar_async_ops,
    )


def _made(what: str, reports: Callable[[], Assignment]) -> Assignment | None:
    found: list[Assignment] = []

    def make() -> bytes:
        found.append(reports())
        return b""

    attempt(what, make)
    return found[0] if found else None
