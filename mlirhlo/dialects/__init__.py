"""Dialects: op, type and attribute definitions, verifiers, their printing."""

from mlirhlo.importing.operations import defer_definitions

defer_definitions()
