"""JAX: functions traced by JAX and run here, its compiler's stages as objects, passes inside it."""
