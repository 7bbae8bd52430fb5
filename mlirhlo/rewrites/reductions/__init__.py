"""Reductions and windows split into steps that targets compute well."""
