"""The ops of StableHLO, CHLO and MHLO as instructions, one family a module."""
