"""TensorFlow's auto-clustering without TensorFlow: which parts of a graph are compiled."""
