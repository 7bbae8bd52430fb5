"""Hypothesis strategies: instructions with inputs, instructions without shapes, HLO text.

All of them draw through `choices.Choices`, so that a failure shrinks: to one instruction, of small
sizes, on simple values. The seed is the run's (`conftest.py` prints it); `MLIRHLO_DIFFERENTIAL`
multiplies the number of examples.
"""
