"""The index of a dump folder of any origin: what its files are, which module is the program, what passes did."""

from mlirhlo.debug.index.folder import Dump, DumpedModule, read_folder
from mlirhlo.debug.index.names import FileName, parse_name

__all__ = ["Dump", "DumpedModule", "FileName", "parse_name", "read_folder"]
