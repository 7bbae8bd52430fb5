"""One device's part of each instruction, computed on tiles."""
