"""Importing this registers the generators of every opcode."""

from mlirhlo.debug.fuzz.generators import control, elementwise, folds, indexing, moves, products

__all__ = ["control", "elementwise", "folds", "indexing", "moves", "products"]
