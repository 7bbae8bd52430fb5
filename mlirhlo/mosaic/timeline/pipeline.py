"""The copies of a grid's blocks, as the compiler's double buffering makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlirhlo.mosaic.interpreter.core import Core
    from mlirhlo.mosaic.interpreter.windows import Block
    from mlirhlo.mosaic.timeline.clock import CoreTime


class Pipeline:
    """Moves blocks from step to step, and counts the time of it."""

    def __init__(self, time: CoreTime, blocks: Sequence[Block]) -> None:
        self._time = time
        # Results leave before anything is waited for.
        self._blocks = sorted(enumerate(blocks), key=lambda item: not item[1].is_output)

    def begin(self, core: Core, arguments: tuple[Any, ...]) -> None:
        """Makes the blocks those of a step; the core waits for what is not there."""
        time = self._time
        for number, block in self._blocks:
            before = block.at
            leaving = 0 if before is None else block.bytes_at(before)
            block.begin(core, arguments)
            now = block.at
            if now == before or now is None:
                continue
            if block.is_output:
                if before is not None:
                    time.write_back(number, block.name, leaving, block.window.buffers)
                continue
            if not time.is_fetched(number):
                time.fetch(number, block.name, block.bytes_at(now))
        for number, block in self._blocks:
            time.need(number, block.name)

    def fetch(self, core: Core, arguments: tuple[Any, ...]) -> None:
        """Starts the copies of the next step's blocks, where there is a second buffer for them."""
        for number, block in self._blocks:
            if block.window.is_ahead:
                block.choose(core, arguments)
            if block.is_output or block.window.buffers == 1:
                continue
            at = block.window.starts(core, arguments)
            if at != block.at:
                self._time.fetch(number, block.name, block.bytes_at(at))

    def finish(self, core: Core) -> None:
        """Writes the last results back."""
        for number, block in self._blocks:
            if block.is_output and block.at is not None:
                size = block.bytes_at(block.at)
                block.flush(core)
                self._time.write_back(number, block.name, size, block.window.buffers)
        self._time.finish()
