"""Comparing results, cutting modules apart, and checking what tools say."""
