"""Constraints of kernels, numbered by operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def verify_kernel(module: ModuleOp) -> None:
    """Raises on the first constraint that does not hold."""
    del module
