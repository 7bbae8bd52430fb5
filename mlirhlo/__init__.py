"""mlirhlo: read, run, transform, bisect and reduce XLA's HLO, in Python, on xDSL.

Importing this module starts nothing: every function imports what it needs when it is called.
"""

__version__ = "0.1.0"
