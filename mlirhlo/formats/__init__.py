"""Readers and writers of every format."""
