"""MLIR bytecode, versions 0 to 6, of any dialect.

Attributes and types of the builtin, stablehlo, chlo and vhlo dialects have binary encodings, those of
others stand as text; what no dialect here knows is kept as unregistered. Locations, resources and the
order of uses are kept.
"""

from mlirhlo.formats.bytecode.container import CURRENT_VERSION, MAGIC, read_container, read_head
from mlirhlo.formats.bytecode.reading import read_module, resources_of
from mlirhlo.formats.bytecode.resources import Resource
from mlirhlo.formats.bytecode.writing import write_module

__all__ = [
    "CURRENT_VERSION",
    "MAGIC",
    "Resource",
    "read_container",
    "read_head",
    "read_module",
    "resources_of",
    "write_module",
]
