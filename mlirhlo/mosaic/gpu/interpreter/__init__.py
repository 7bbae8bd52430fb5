"""The judge of kernels for GPUs: modules of the language run on numpy arrays, warp group by warp group.

The warp groups of a cluster run in turns, each until it waits for a barrier. Copies and products are done at once; a
barrier's phase ends when all have arrived, and all bytes. Values are whole arrays, as the language has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlirhlo.diagnostics import error
from mlirhlo.mosaic.gpu.faults import check_options
from mlirhlo.mosaic.gpu.interpreter import control, memory, values
from mlirhlo.mosaic.gpu.interpreter.groups import Run

_OPERATIONS = {**memory.OPERATIONS, **values.OPERATIONS}


def run(kernel: Any, arrays: Sequence[Any]) -> list[Any]:
    """The results of a kernel. Raises `HloError` HLO0702, HLO0703, HLO0757, HLO0758."""
    if kernel.is_of_threads:
        raise error(
            "HLO0757",
            f"{kernel.name} is code of single threads, which the interpreter of warp groups cannot run",
            help="run its PTX: simulate",
        )
    check_options(kernel.body.walk())
    return Run(kernel, arrays, control.CONTROL, _OPERATIONS).all()
