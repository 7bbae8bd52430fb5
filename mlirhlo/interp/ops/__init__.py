"""The meaning of each opcode, one family a module; every module registers its functions."""
