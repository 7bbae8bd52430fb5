"""Simplification: redundant instructions, moves and operands go."""
