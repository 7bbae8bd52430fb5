"""Kernels: what stands in a `tpu_custom_call`, read, and run in numpy.

`decode` reads the call's configuration and the kernel's module out of it, `interpreter` runs the
module, `custom_call` is the meaning that the interpreter of HLO takes for the call.
"""
