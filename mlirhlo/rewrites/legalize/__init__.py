"""Legalisation: an instruction that a target lacks as instructions that it has."""
