"""Partitioning: sharding propagation and the SPMD partitioner, and the passes over collectives.

`grid` says where arrays are, `factors` which dimensions belong together, `propagation` spreads what users
annotated. `partitioner` writes the program of one device: `strategy` picks the cheapest way for each
instruction, the `local_*` files hold the ways, `part` and `halo` move data between devices, `emit` writes.
"""
