"""The parts of `run_hlo_module`: its options, the platforms that run a module, and the comparison of results."""
