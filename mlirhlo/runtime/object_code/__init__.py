"""Machine code: units that are compiled, in other processes too, split and loaded."""
