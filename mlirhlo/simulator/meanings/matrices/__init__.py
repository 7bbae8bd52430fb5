"""Matrices of warps, warp groups and tensor memory."""
