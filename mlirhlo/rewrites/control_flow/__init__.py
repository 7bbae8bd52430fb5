"""Calls, conditionals, loops, maps and fusions: inlined, simplified, unrolled, made canonical."""
