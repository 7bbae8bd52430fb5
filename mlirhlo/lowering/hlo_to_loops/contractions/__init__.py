"""Dots and convolutions by generated micro-kernels."""
