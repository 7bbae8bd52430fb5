"""Names: see `mlirhlo.dialects.hlo.names`."""

from mlirhlo.dialects.hlo.names import NameUniquer, legal_name

__all__ = ["NameUniquer", "legal_name"]
