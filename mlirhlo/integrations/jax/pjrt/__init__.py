"""This compiler as a platform of JAX: `JAX_PLATFORMS=mlirhlo python train.py`.

JAX finds the plugin by its entry point in the group `jax_plugins` and talks to it through PJRT's C interface.
There is no shared library: `interface` describes the structs, `objects` the structs behind JAX's handles, `code`
makes the functions of a steady call as machine code, and `functions` are those that run Python: compiling, and
what is rare.
"""
