"""Layouts: the order of dimensions in memory."""
