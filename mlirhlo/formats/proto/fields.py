"""Which property of which opcode stands in which field of HloInstructionProto, and how.

A `Codec` ties one property to one field. `CODECS` knows the plain ones by property name; opcodes whose
fields hold several properties, or that XLA always writes, have `Group`s. `decode.py` and
`encode.py` only follow these tables; attributes and their defaults are the opcode table's.
Source: HLO protobuf reference, "HloInstructionProto", tables 6.1 and 6.2.
"""

from __future__ import annotations
