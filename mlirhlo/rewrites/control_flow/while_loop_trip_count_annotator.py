"""`while-loop-trip-count-annotator`: writes into loops how often they run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from mlirhlo.analysis.trip_count import counter_of
from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import WhileOp
from mlirhlo.rewrites.passes import HloPass, Trace


@dataclass(frozen=True)
class WhileLoopTripCountAnnotatorPass(HloPass):
    """Writes the trip count of loops into their backend configuration.

    Before and after:

        %w = while(%s), condition=%c, body=%b
          =>   %w = while(%s), condition=%c, body=%b, backend_config={"known_trip_count":{"n":"10"}, …}

    Counters that start at a constant, grow by a constant and are compared with one are understood.
    Source: reference of the passes, "Loops".
    """

    name = "while-loop-trip-count-annotator"

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Annotates; whether any loop had nothing, or something else, written into it."""
        del trace
        loops = module.candidates(WhileOp)
        computations = module.by_name() if loops else {}
        changed = False
        for op in loops:
            assert isinstance(op, WhileOp)
            counter = counter_of(op, computations)
            if counter is None or counter.trip_count is None:
                continue
            try:
                config: Any = json.loads(op.backend_config or "{}")
            except ValueError:
                continue
            wanted = {
                "known_trip_count": {"n": str(counter.trip_count)},
                "known_init_step": {"init": str(counter.init), "step": str(counter.step)},
                "known_induction_variable": {"tuple_index": str(counter.index)},
            }
            if all(config.get(key) == value for key, value in wanted.items()):
                continue
            text = json.dumps({**config, **wanted}, separators=(",", ":"))
            op.properties["backend_config"] = string(text)
            changed = True
        return changed
