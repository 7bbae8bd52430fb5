"""TensorFlow: functions compiled with `jit_compile=True`, loaded and run here."""
