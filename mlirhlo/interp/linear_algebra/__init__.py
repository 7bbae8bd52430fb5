"""Factorisations and solvers of dense matrices."""
