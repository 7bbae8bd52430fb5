"""Messages of a kernel. The names are those of `jax.debug`."""

from __future__ import annotations

from typing import Any

from mlirhlo.mosaic.language.faults import misuse
from mlirhlo.mosaic.language.functions.extras import debug_print

print = debug_print  # noqa: A001  (jax's name)


def callback(*_: Any, **__: Any) -> None:
    """Not here. Raises `HloError` HLO0720."""
    raise misuse("a kernel cannot call Python back", "write pl.debug_print, or store to a result")


__all__ = ["callback", "print"]
