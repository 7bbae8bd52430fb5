"""The `mosaic_gpu` dialect of Mosaic's kernels for GPUs: attributes, types, a row for each op.

The dialects it is used with (`gpu`, `nvvm`, `llvm`, parts of `memref`) have rows in `others.py`.
"""
