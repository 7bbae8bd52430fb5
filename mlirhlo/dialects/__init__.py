"""Dialects: op, type and attribute definitions, verifiers, their printing."""
