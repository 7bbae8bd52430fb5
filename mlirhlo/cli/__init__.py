"""Command-line tools: options in, library calls, exit code out."""
