"""Rules of operations that compute element by element."""
