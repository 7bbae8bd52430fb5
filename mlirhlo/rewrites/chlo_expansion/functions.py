"""What functions of CHLO, and complex ones of StableHLO, are expanded into."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlirhlo.rewrites.chlo_expansion import complex_math, elementary, special
from mlirhlo.rewrites.chlo_expansion.emitter import Value

Expansion = Callable[..., Value]

EXPANSIONS: Mapping[str, Expansion] = {
    "chlo.acos": elementary.acos,
    "chlo.acosh": elementary.acosh,
    "chlo.asin": elementary.asin,
    "chlo.asinh": elementary.asinh,
    "chlo.atan": elementary.atan,
    "chlo.atanh": elementary.atanh,
    "chlo.bessel_i1e": special.bessel_i1e,
    "chlo.cosh": elementary.cosh,
    "chlo.digamma": special.digamma,
    "chlo.erf_inv": special.erf_inv,
    "chlo.erfc": special.erfc,
    "chlo.is_inf": elementary.is_inf,
    "chlo.is_neg_inf": elementary.is_neg_inf,
    "chlo.is_pos_inf": elementary.is_pos_inf,
    "chlo.lgamma": special.lgamma,
    "chlo.next_after": elementary.next_after,
    "chlo.polygamma": special.polygamma,
    "chlo.sinh": elementary.sinh,
    "chlo.square": elementary.square,
    "chlo.zeta": special.zeta,
}
"""Functions of real numbers. `chlo.erf`, `top_k`, `ragged_dot` and `mulhi` are HLO instructions."""

COMPLEX: Mapping[str, Expansion] = {
    "chlo._asin_acos_kernel": complex_math.asin_acos_kernel,
    "chlo.acos": complex_math.acos,
    "chlo.acosh": complex_math.acosh,
    "chlo.asin": complex_math.asin,
    "chlo.asinh": complex_math.asinh,
    "chlo.atan": complex_math.atan,
    "chlo.atanh": complex_math.atanh,
    "chlo.cosh": complex_math.cosh,
    "chlo.sinh": complex_math.sinh,
    "chlo.square": complex_math.square,
    "stablehlo.exponential": complex_math.exponential,
    "stablehlo.log": complex_math.log,
    "stablehlo.log_plus_one": complex_math.log_plus_one,
    "stablehlo.sqrt": complex_math.sqrt,
}
"""Functions of complex numbers, StableHLO's own among them."""
