"""The meaning of each operation of kernels, one family a module."""
