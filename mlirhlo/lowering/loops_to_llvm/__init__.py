"""Loops over memrefs and vectors to the llvm dialect, in one walk."""

from mlirhlo.lowering.loops_to_llvm.modules import convert_to_llvm

__all__ = ["convert_to_llvm"]
