"""Random valid modules: instructions of every opcode with inputs, whole modules, programs with shardings."""
