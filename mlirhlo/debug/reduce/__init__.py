"""The smallest module for which a condition holds: `reduce(text, condition)`."""

from mlirhlo.debug.reduce.driver import Event, Reduction, reduce

__all__ = ["Event", "Reduction", "reduce"]
