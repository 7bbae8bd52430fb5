"""Rules of operations that move elements."""
