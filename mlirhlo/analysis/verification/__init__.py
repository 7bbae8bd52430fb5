"""Checks of the verifier: calls, computations, headers, instructions, layouts and pairs, with their diagnostics."""
