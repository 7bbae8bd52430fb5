"""Analyses: shape inference, verifier, call graph; they read IR and never change it."""
