"""What compiled modules need to run: machine code in memory, buffers, threads, the cache."""
