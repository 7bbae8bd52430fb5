"""HLO instructions and fusions as structured kernels.

`to_structured` translates instruction by instruction; passes on the kernels then merge maps into what reads them.
An opcode joins by a function under `@converts` (`conversion.py`), families are files: `elementwise`, `movement`,
`indexed`, `folds`, `contractions`, `ordered`, `routines`.
"""

from mlirhlo.lowering.structured.conversion import to_structured

__all__ = ["to_structured"]
