"""When a simulated kernel does what: modelled cycles of a TPU generation.

`Timeline(generation)` in the `Options` of a run collects what each core does and the copies beside it;
then `summary()` is a text, `to_chrome_trace()` what chrome://tracing and Perfetto show, `to_svg()` a
picture. The model is stated in `docs/kernel-timeline.md`. Runs without one cost nothing for it.
"""

from __future__ import annotations

from mlirhlo.mosaic.timeline.figures import CHIPS, Chip, chip_of
from mlirhlo.mosaic.timeline.record import Timeline

__all__ = ["CHIPS", "Chip", "Timeline", "chip_of"]
