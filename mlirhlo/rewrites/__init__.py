"""Rewrites: one pass a file, in folders by what passes do; rules are named values."""
