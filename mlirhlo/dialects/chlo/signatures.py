"""Which types the operands and results of each op of CHLO may have, as `stablehlo.signatures` says it of StableHLO."""

from __future__ import annotations

from mlirhlo.dialects.stablehlo.signatures import Signature

COMPLEX_TOO = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "conj", "cosh", "sinh",
    "square", "tan",
)  # fmt: skip
"""Functions of floats and complex numbers."""
FLOAT_ONLY = ("digamma", "erf", "erf_inv", "erfc", "lgamma")
"""Functions of floats."""
TESTS = ("is_inf", "is_neg_inf", "is_pos_inf")
"""Functions of floats to i1."""
BINARY = ("next_after", "polygamma", "zeta")
"""Functions of two floats."""
BROADCAST = (
    "add", "atan2", "divide", "maximum", "minimum", "multiply", "next_after", "polygamma", "power",
    "remainder", "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract",
)  # fmt: skip
"""Suffixes of `broadcast_` ops of any elements."""
BROADCAST_BITS = ("and", "or", "xor")
"""Suffixes of `broadcast_` ops of integers."""

_ANY = "PSUFC"

CHLO_SIGNATURES: dict[str, Signature] = {
    **{f"chlo.{name}": Signature(("FC",), ("FC",)) for name in COMPLEX_TOO},
    **{f"chlo.{name}": Signature(("F",), ("F",)) for name in FLOAT_ONLY},
    **{f"chlo.{name}": Signature(("F",), ("P",)) for name in TESTS},
    **{f"chlo.{name}": Signature(("F", "F"), ("F",)) for name in BINARY},
    **{f"chlo.broadcast_{name}": Signature((_ANY, _ANY), (_ANY,)) for name in BROADCAST},
    **{f"chlo.broadcast_{name}": Signature(("PSU", "PSU"), ("PSU",)) for name in BROADCAST_BITS},
    "chlo._asin_acos_kernel": Signature(("C",), ("C",)),
    "chlo.broadcast_compare": Signature((_ANY, _ANY), ("P",)),
    "chlo.broadcast_complex": Signature(("F", "F"), ("C",)),
    "chlo.broadcast_select": Signature(("P", _ANY, _ANY), (_ANY,)),
    "chlo.broadcast_zeta": Signature(("F", "F"), ("F",)),
    "chlo.constant": Signature((), (f"{_ANY}!",)),
    "chlo.constant_like": Signature((_ANY,), (_ANY,)),
    "chlo.mulhi": Signature(("SU", "SU"), ("SU",)),
    "chlo.ragged_dot": Signature((_ANY, _ANY, "SU:1"), (_ANY,)),
    "chlo.top_k": Signature(("PSUF",), ("PSUF", "S")),
}
"""By the name of the op."""
