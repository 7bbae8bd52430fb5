"""Shardy's dialect `sdy`: meshes of devices and how tensors lie on them.

`SDY` is the dialect for an xDSL context. `values` holds the plain frozen values behind the
attributes; `TensorSharding` is what programs read.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from mlirhlo.dialects.sdy.attributes import ATTRIBUTES
from mlirhlo.dialects.sdy.collectives import COLLECTIVES
from mlirhlo.dialects.sdy.ops import OPS

SDY = Dialect("sdy", [*OPS, *COLLECTIVES], [*ATTRIBUTES])
"""The dialect: every op and attribute that jaxlib registers."""

__all__ = ["SDY"]
