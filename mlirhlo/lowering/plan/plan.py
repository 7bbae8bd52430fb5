"""All that is known of a module that runs: its steps, and what callers need of it.

Of a module out of the cache it is the latter alone, and nothing of the lowering has to be there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.shapes import Shape
from mlirhlo.lowering.plan.steps import Buffer, Site, Step, Tree

MAIN = "main"
"""Function that runs the module."""


@dataclass
class Plan:
    """All there is to run, but for the kernels, which each back end has in its own form."""

    steps: list[Step]
    parameters: list[Buffer]
    results: list[Buffer]
    constants: list[Buffer]
    arena_size: int
    shapes: Sequence[Shape]
    """Of the parameters."""
    result_shape: Shape
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    sites: list[Site] = field(default_factory=list[Site])
    """What Python runs."""
    slots: int = 0
    """Values that Python holds during a run."""
    parameter_trees: Sequence[Tree] = ()
    result_tree: Tree = ()
    instructions: Mapping[str, Instruction] = field(default_factory=dict[str, Instruction])
    """The first one that each kernel was made for."""
    is_long: bool = False
    """Whether a run may take more than some ten microseconds."""
