"""Types of annotations. The names are those of `jax.typing`."""

from __future__ import annotations

from mlirhlo.mosaic.language.elements import DTypeLike
from mlirhlo.mosaic.language.value import Array, ArrayLike

__all__ = ["Array", "ArrayLike", "DTypeLike"]
