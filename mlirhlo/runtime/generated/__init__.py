"""Code that is generated around a module: calls, runs, threads, arenas, and how devices meet."""
