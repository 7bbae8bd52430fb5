"""TensorFlow's auto-clustering: which parts of a graph are compiled, without TensorFlow; see `docs/auto-clustering.md`."""
