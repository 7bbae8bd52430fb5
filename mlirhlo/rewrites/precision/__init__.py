"""Element types: which type a value is computed in."""
