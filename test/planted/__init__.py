"""Faults that are known: wrong passes, programs that show them, and folders of dumps with one wrong stage."""
