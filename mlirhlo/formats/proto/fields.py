"""Which property of which opcode stands in which field of HloInstructionProto, and how.

A `Codec` ties one property to one field. `CODECS` knows the plain ones by property name; opcodes whose
fields hold several properties, or that XLA always writes, have `Group`s. `decode.py` and
`encode.py` only follow these tables; attributes and their defaults are the opcode table's.
Source: HLO protobuf reference, "HloInstructionProto", tables 6.1 and 6.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, f64
from xdsl.ir import Attribute

from mlirhlo.dialects.hlo.attributes.annotations import (
    OriginAttr,
    ResultAccuracyAttr,
    StatisticsAttr,
)
from mlirhlo.dialects.hlo.attributes.aliasing import OutputOperandAliasesAttr
from mlirhlo.dialects.hlo.attributes.base import (
    FALSE,
    TRUE,
    bool_of,
    int_of,
    integer,
    integers,
    ints,
    str_of,
    string,
)
