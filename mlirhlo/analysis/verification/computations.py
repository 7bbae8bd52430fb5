"""Checks of one computation: parameters, names, order of definitions, uses inside fusions."""

from __future__ import annotations

from xdsl.ir import Operation

from mlirhlo.analysis.shape_inference.base import declare
from mlirhlo.analysis.verification.report import COMPUTATION, Report
from mlirhlo.dialects.hlo.attributes.base import ints
from mlirhlo.dialects.hlo.ops import ComputationOp, ReturnOp
from mlirhlo.dialects.hlo.ops.base import Instruction
from mlirhlo.dialects.hlo.ops.control_flow import ParameterOp

declare(
    "computation",
    c1="the block ends in hlo.return of one of its instructions",
    c2="parameter numbers are 0, 1, …, each once",
    c3="instruction names differ from each other",
    c4="operands are defined in the computation, before their uses",
    c5="control predecessors stand in the computation, before the instruction that waits for them",
    c6="in a fused computation every instruction but the root has a user",
    c7="the root of a fused computation has no user",
    c8="storage_order, where given, is a permutation of the instructions",
)


def check_computation(computation: ComputationOp, is_fused: bool, report: Report) -> None:
    """Adds to the report what is wrong with the form of `computation`."""
    root = _root(computation, report)
    names: dict[str, Instruction] = {}
    numbers: dict[int, ParameterOp] = {}
    defined: set[Operation] = set()
    for op in computation.instructions:
        name = op.instruction_name
        if name is not None:
            earlier = names.setdefault(name, op)
            if earlier is not op:  # computation_c3
                report.add(
                    COMPUTATION,
                    "computation_c3",
                    f"Instruction has name that is not unique to the parent computation: {name}",
                    op,
                    note=(f"%{name} is defined first", earlier),
                )
        _check_operands(op, defined, report)
        defined.add(op)
        if isinstance(op, ParameterOp):
            earlier_parameter = numbers.setdefault(op.parameter_number, op)
            if earlier_parameter is not op:  # computation_c2
                report.add(
                    COMPUTATION,
                    "computation_c2",
                    f"parameter({op.parameter_number}) stands twice",
                    op,
                    note=("it is first defined", earlier_parameter),
                )
        if is_fused and op is not root and op.results[0].first_use is None:  # computation_c6
            report.add(
                COMPUTATION,
                "computation_c6",
                f"Non-root instruction in {computation.computation_name} must have users: %{name}",
                op,
                help="run `dce`",
            )
        if report.is_full:
            return
    _check_numbers(computation, numbers, report)
    if is_fused and root is not None:
        _check_fused_root(computation, root, report)
    order = ints(computation.storage_order)
    if sorted(order) != list(range(len(order))):  # computation_c8
        report.add(
            COMPUTATION,
            "computation_c8",
            f"storage_order of {computation.computation_name} is not a permutation",
            computation,
        )


def _root(computation: ComputationOp, report: Report) -> Instruction | None:
    last = computation.block.last_op
    owner = last.root.owner if isinstance(last, ReturnOp) else None
    if not isinstance(owner, Instruction) or owner.parent is not computation.block:
        report.add(  # computation_c1
            COMPUTATION,
            "computation_c1",
            f"computation {computation.computation_name} must end in hlo.return of one of its"
            " instructions",
            computation,
        )
        return None
    return owner


def _check_operands(op: Instruction, defined: set[Operation], report: Report) -> None:
    inputs = len(op.inputs)
    for index, value in enumerate(op.operands):
        if value.owner in defined:
            continue
        constraint = "computation_c4" if index < inputs else "computation_c5"
        what = f"operand {index}" if index < inputs else "control predecessor"
        owner = value.owner
        name = owner.instruction_name if isinstance(owner, Instruction) else None
        here = isinstance(owner, Instruction) and owner.parent is op.parent
        report.add(
            COMPUTATION,
            constraint,
            f"{op.opcode.name}: {what} %{name or '?'} is"
            f" {'defined after its use' if here else 'not defined in this computation'}",
            op,
            operand=index if index < inputs else None,
            attribute=None if index < inputs else "control-predecessors",
        )


def _check_numbers(
    computation: ComputationOp, numbers: dict[int, ParameterOp], report: Report
) -> None:
    for number, op in sorted(numbers.items()):
        if not 0 <= number < len(numbers):  # computation_c2
            missing = next(n for n in range(len(numbers) + 1) if n not in numbers)
            report.add(
                COMPUTATION,
                "computation_c2",
                f"computation {computation.computation_name} has no parameter({missing}), but has"
                f" parameter({number})",
                op,
                help="number the parameters 0, 1, 2, … without a gap",
            )
            return


def _check_fused_root(computation: ComputationOp, root: Instruction, report: Report) -> None:
    for use in root.results[0].uses:
        if isinstance(use.operation, Instruction):  # computation_c7
            report.add(
                COMPUTATION,
                "computation_c7",
                f"the root of fusion {computation.computation_name} must not have users",
                root,
                note=(f"%{use.operation.instruction_name} uses it", use.operation),
            )
            return
