"""Whole modules for this machine's processor: what is run in which order on which buffers."""
