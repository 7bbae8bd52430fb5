"""Constraints for xDSL's own tools: `op.verify()` refuses what `hlo-opt` refuses, with the same message."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

from mlirhlo.analysis.stablehlo import verify_op
from mlirhlo.analysis.verifier import verify_module
from mlirhlo.dialects.hlo.ops.computation import ComputationOp
from mlirhlo.dialects.stablehlo.op_classes import TableOp

_OF_NAMES = "[computation_c3]"
"""Names of values are hints to xDSL, which changes them; its printer makes them unique."""


def register_hlo() -> None:
    """Lets the verification of a module hold its computations to the rules of HLO."""
    ComputationOp.CHECK = _check_module


def register_stablehlo() -> None:
    """Lets the verification of an op of StableHLO or CHLO hold it to its constraints."""
    TableOp.CHECK = _check_op


def _check_module(computation: ComputationOp) -> None:
    """Checks the whole module when its first computation is verified: calls go across computations."""
    module = computation.parent_op()
    if not isinstance(module, ModuleOp):
        return
    first = next(op for op in module.ops if isinstance(op, ComputationOp))
    if computation is not first:
        return
    for diagnostic in verify_module(module):
        if _OF_NAMES not in diagnostic.message:
            raise VerifyException(f"[{diagnostic.code}] {diagnostic.message}")


def _check_op(op: TableOp) -> None:
    problem = verify_op(op)
    if problem is not None:
        raise VerifyException(f"{op.name}: {problem}")
