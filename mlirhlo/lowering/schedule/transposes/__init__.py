"""What is read across the order of memory: boxes, and how they lie in shared memory."""
