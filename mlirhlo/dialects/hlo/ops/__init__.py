"""Ops of the hlo dialect, by family. `OP_CLASSES` maps every opcode to its class."""

from mlirhlo.dialects.hlo.ops.base import OP_CLASSES, Instruction
from mlirhlo.dialects.hlo.ops.collectives import *  # noqa: F403
from mlirhlo.dialects.hlo.ops.computation import ComputationOp, ReturnOp
from mlirhlo.dialects.hlo.ops.control_flow import *  # noqa: F403
from mlirhlo.dialects.hlo.ops.data_movement import *  # noqa: F403
from mlirhlo.dialects.hlo.ops.elementwise import *  # noqa: F403
from mlirhlo.dialects.hlo.ops.linear_algebra import *  # noqa: F403
from mlirhlo.dialects.hlo.ops.random import *  # noqa: F403
from mlirhlo.dialects.hlo.ops.reduction import *  # noqa: F403
from mlirhlo.dialects.hlo.ops.tokens import *  # noqa: F403
