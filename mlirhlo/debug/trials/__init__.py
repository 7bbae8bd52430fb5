"""Trying modules out: sides that run them, conditions on what happens, and processes with limits for both."""
