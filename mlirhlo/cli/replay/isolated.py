"""`run_hlo_module --isolate_instructions`: finds the first instruction whose result is wrong."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mlirhlo.cli.replay.replays import joined
from mlirhlo.cli.report import report
from mlirhlo.debug.isolate import candidates, isolate
from mlirhlo.diagnostics import HloError
from mlirhlo.dialects.hlo.module import HloModule

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from mlirhlo.cli.replay.replays import Replay, Tally


def run_isolated(replay: Replay, module: ModuleOp) -> Tally:
    """Runs each instruction on fake data as a module of its own; one that cannot run is reported
    and counted like a wrong result."""
    view = HloModule(module)
    for op in candidates(view):
        print(f"** Running %{op.instruction_name} ({op.opcode.name}) **", file=sys.stderr)
        alone = isolate(view, op)
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
