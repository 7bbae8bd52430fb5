"""Decompositions and solvers of linear algebra as loops and products, and calls of LAPACK as instructions."""
