"""Modules as steps on buffers: what the compilers for CPUs and GPUs plan alike."""
