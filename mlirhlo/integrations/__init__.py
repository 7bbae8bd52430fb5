"""Programs of other front ends, run and rewritten here: JAX, TensorFlow, PyTorch.

Each is optional and imported when asked for; `mlirhlo.jax`, `mlirhlo.tensorflow` and
`mlirhlo.torch` are the doors.
"""
