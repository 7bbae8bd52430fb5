"""Rewrites: one pass a file; rules are named values."""
