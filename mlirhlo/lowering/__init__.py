"""From HLO to machine code: loops, the llvm dialect, LLVM's text, and the targets."""
