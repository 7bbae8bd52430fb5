"""Which types the operands and results of each op of StableHLO may have: one row an op.

A slot is a string of kind letters (see `tensors`): `P` i1, `S` and `U` signed and unsigned
integers, `F` floats, `C` complex, `Q` per-tensor and `A` per-axis quantized. `32` after it
fixes the width, `!` asks for a static shape, `~` for one that has at most one dynamic dimension,
which is bounded, `:0` fixes the rank, `*` lets the slot repeat. `token`, `tuple`, `any` and `value`
(any tensor, or a token) are other types. How many operands, attributes and regions there are stands
in the dialect's table.

Source: input and output tables of the StableHLO specification, and the dialect in jaxlib.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ANY = "PSUFCQ"
"""Every element type but per-axis quantized."""
ALL = ANY + "A"
INT = "SU"
NUMBER = "SUFCQ"
"""Everything one can calculate with: no i1."""
FUNCTION = "FCQ"
"""Operands of transcendental functions."""


@dataclass(frozen=True, slots=True)
class Signature:
    """One row."""

    operands: tuple[str, ...]
    results: tuple[str, ...]


def _row(operands: str, results: str) -> Signature:
    return Signature(tuple(operands.split()), tuple(results.split()))


SIGNATURES: Mapping[str, Signature] = {
    # elementwise
    "abs": _row("SFCQ", "SFQ"),
    "add": _row(f"{ALL} {ALL}", ALL),
    "and": _row("PSU PSU", "PSU"),
    "atan2": _row("FCQ FCQ", "FCQ"),
    "cbrt": _row(FUNCTION, FUNCTION),
    "ceil": _row("FQ", "FQ"),
    "clamp": _row(f"{ANY} {ANY} {ANY}", ANY),
    "compare": _row(f"{ANY} {ANY}", "P"),
    "complex": _row("F F", "C"),
    "convert": _row("PSUFC", "PSUFC"),
    "cosine": _row(FUNCTION, FUNCTION),
    "count_leading_zeros": _row(INT, INT),
    "divide": _row(f"{NUMBER} {NUMBER}", NUMBER),
    "exponential": _row(FUNCTION, FUNCTION),
    "exponential_minus_one": _row(FUNCTION, FUNCTION),
    "floor": _row("FQ", "FQ"),
    "imag": _row("FC", "F"),
    "is_finite": _row("FQ", "P"),
    "log": _row(FUNCTION, FUNCTION),
    "log_plus_one": _row(FUNCTION, FUNCTION),
    "logistic": _row(FUNCTION, FUNCTION),
    "maximum": _row(f"{ANY} {ANY}", ANY),
    "minimum": _row(f"{ANY} {ANY}", ANY),
    "multiply": _row(f"{ANY} {ANY}", ANY),
    "negate": _row(NUMBER, NUMBER),
    "not": _row("PSU", "PSU"),
    "or": _row("PSU PSU", "PSU"),
    "popcnt": _row(INT, INT),
    "power": _row(f"{NUMBER} {NUMBER}", NUMBER),
    "real": _row("FC", "F"),
    "reduce_precision": _row("FQ", "FQ"),
    "remainder": _row(f"{NUMBER} {NUMBER}", NUMBER),
    "round_nearest_afz": _row("FQ", "FQ"),
    "round_nearest_even": _row("FQ", "FQ"),
    "rsqrt": _row(FUNCTION, FUNCTION),
    "select": _row(f"P {ANY} {ANY}", ANY),
    "shift_left": _row(f"{INT} {INT}", INT),
    "shift_right_arithmetic": _row(f"{INT} {INT}", INT),
    "shift_right_logical": _row(f"{INT} {INT}", INT),
    "sign": _row("SFCQ", "SFCQ"),
    "sine": _row(FUNCTION, FUNCTION),
    "sqrt": _row(FUNCTION, FUNCTION),
    "subtract": _row(f"{NUMBER} {NUMBER}", NUMBER),
    "tan": _row(FUNCTION, FUNCTION),
    "tanh": _row(FUNCTION, FUNCTION),
    "uniform_dequantize": _row("QA", "F"),
    "uniform_quantize": _row("FQA", "QA"),
    "xor": _row("PSU PSU", "PSU"),
    # data movement
    "bitcast_convert": _row(ALL, ALL),
    "broadcast": _row(ANY, ANY),
    "broadcast_in_dim": _row(ALL, f"{ALL}~"),
    "concatenate": _row(f"{ALL}*", ALL),
    "constant": _row("", f"{ALL}!"),
    "dynamic_slice": _row(f"{ALL} {INT}:0*", ALL),
    "dynamic_update_slice": _row(f"{ALL} {ALL} {INT}:0*", ALL),
    "gather": _row(f"{ALL} {INT}", ALL),
    "get_dimension_size": _row(ALL, "S"),
    "iota": _row("", "SUFCQ!"),
    "pad": _row(f"{ALL} {ALL}:0", ALL),
    "reshape": _row(ALL, f"{ALL}~"),
    "reverse": _row(ALL, ALL),
    "scatter": _row(f"{ALL}*", f"{ALL}*"),
    "slice": _row(ALL, ALL),
    "torch_index_select": _row(f"{ALL} {ALL}", ALL),
    "transpose": _row(ALL, ALL),
    # reduction
    "map": _row(f"{ANY}*", ANY),
    "reduce": _row(f"{ALL}*", f"{ALL}*"),
    "reduce_window": _row(f"{ALL}*", f"{ALL}*"),
    "select_and_scatter": _row(f"{ALL} {ALL} {ALL}", ALL),
    "sort": _row(f"{ALL}*", f"{ALL}*"),
    # linear algebra
    "batch_norm_grad": _row("FQ FQ:1 FQ:1 FQ:1 FQ", "FQ FQ:1 FQ:1"),
    "batch_norm_inference": _row("FQ FQ:1 FQ:1 FQ:1 FQ:1", "FQ"),
    "batch_norm_training": _row("FQ FQ:1 FQ:1", "FQ FQ:1 FQ:1"),
    "cholesky": _row("FCQ", "FCQ"),
    "convolution": _row(f"{ALL} {ALL}", ALL),
    "dot": _row(f"{ALL} {ALL}", ALL),
    "dot_general": _row(f"{ALL} {ALL}", ALL),
    "einsum": _row(f"{ALL} {ALL}", ALL),
    "fft": _row("FC", "FC"),
    "triangular_solve": _row("FCQ FCQ", "FCQ"),
    "unary_einsum": _row(ALL, ALL),
    # random
    "rng": _row(f"PSUF:0 PSUF:0 {INT}:1", "PSUF"),
    "rng_bit_generator": _row("SUF", f"SUF {INT}F!"),
    # control flow
    "case": _row("S32", "value*"),
    "composite": _row("value*", "value*"),
    "if": _row("P", "value*"),
    "optimization_barrier": _row("value*", "value*"),
    "return": _row("any*", ""),
    "while": _row("value*", "value*"),
    # tuples, tokens, other programs
    "after_all": _row("token*", "token"),
    "create_token": _row("", "token"),
    "custom_call": _row("any*", "any*"),
    "get_tuple_element": _row("tuple", "any"),
    "infeed": _row("token", "any*"),
    "outfeed": _row("any*", "token"),
    "recv": _row("token", "any*"),
    "send": _row("any*", "token"),
    "tuple": _row("any*", "tuple"),
    # collectives
    "all_gather": _row(f"{ANY}*", f"{ANY}*"),
    "all_reduce": _row(f"{ANY}*", f"{ANY}*"),
    "all_to_all": _row(f"{ANY}*", f"{ANY}*"),
    "collective_broadcast": _row(ANY, ANY),
    "collective_permute": _row(ANY, ANY),
    "cross-replica-sum": _row(ANY, ANY),
    "partition_id": _row("", "U"),
    "reduce_scatter": _row(ANY, ANY),
    "replica_id": _row("", "U"),
    # dynamic shapes
    "dynamic_broadcast_in_dim": _row(f"{ALL} SU!:1", ALL),
    "dynamic_conv": _row(f"{ALL} {ALL} SU", ALL),
    "dynamic_gather": _row(f"{ALL} {INT} {INT}!:1", ALL),
    "dynamic_iota": _row("SU!:1", "SUFCQ"),
    "dynamic_pad": _row(f"{ALL} {ALL}:0 SU!:1 SU!:1 SU!:1", ALL),
    "dynamic_reshape": _row(f"{ALL} SU!:1", ALL),
    "real_dynamic_slice": _row(f"{ALL} SU!:1 SU!:1 SU!:1", ALL),
    "set_dimension_size": _row(f"{ANY} S32", ANY),
}
