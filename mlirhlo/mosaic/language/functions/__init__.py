"""What kernels compute with: functions of vectors, under the names of `jax.numpy`, `jax.lax` and `jax.random`."""
