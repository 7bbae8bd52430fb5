"""Passes over instructions that exchange data between devices: joined, moved, taken apart, simplified."""
