"""Checks of the module's header: entry layout, aliasing, donors, counts, propagation flags."""

from __future__ import annotations

from mlirhlo.analysis.shape_inference.base import declare, plain
from mlirhlo.analysis.verification.layouts import layout_problem
from mlirhlo.analysis.verification.report import HEADER, Report
from mlirhlo.dialects.hlo.module import HloModule
from mlirhlo.dialects.hlo.ops import ComputationOp
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape, compatible, leaves, subshape

declare(
    "module",
    c1="exactly one computation is the entry",
    c2="computation names differ from each other",
    c3="entry_computation_layout has the entry's number of parameters",
    c4="entry_computation_layout has the entry's shapes, layouts aside",
    c5="input_output_alias names leaves of the result and of parameters",
    c6="aliased leaves have the same size",
    c7="no leaf of the result or of a parameter is aliased twice",
    c8="buffer_donor names leaves of parameters",
    c9="a donated leaf is donated once, and is not aliased",
    c10="replica_count and num_partitions are positive",
    c11="propagation flags are one for all, or one for each parameter (element of the result)",
    c12="all all-reduces constrain their layouts, or none does",
    c13="layouts of entry_computation_layout are as those of instructions",
)


def check_names(module: HloModule, report: Report) -> ComputationOp | None:
    """One entry, computations with names of their own. Gives the entry."""
    entry: ComputationOp | None = None
    names: set[str] = set()
    for computation in module.computations:
        name = computation.computation_name
        if name in names:  # module_c2
            report.add(HEADER, "module_c2", f"computation name {name} is not unique", computation)
        names.add(name)
        if computation.is_entry is None:
            continue
        if entry is not None:  # module_c1
            report.add(
                HEADER,
                "module_c1",
                f"expects only one ENTRY: {entry.computation_name} and {name}",
                computation,
            )
        entry = entry or computation
    if entry is None:  # module_c1
        report.add(HEADER, "module_c1", f"module {module.name or '?'} has no entry computation")
    return entry


def check_header(module: HloModule, entry: ComputationOp, report: Report) -> None:
    """Adds to the report what is wrong between the header and the entry computation."""
    for key, value in (
        ("replica_count", module.replica_count),
        ("num_partitions", module.num_partitions),
    ):
        if value < 1:  # module_c10
            report.add(HEADER, "module_c10", f"{key} must be at least 1, got {value}")
    layout = module.program_layout
    parameters = [p.shape for p in entry.parameters]
    result = entry.root.shape
    if len(layout.parameters) != len(parameters):  # module_c3
        report.add(
            HEADER,
            "module_c3",
            f"entry_computation_layout has {len(layout.parameters)} parameters, the entry"
            f" {entry.computation_name} {len(parameters)}",
            entry,
        )
    else:
        for index, (declared, found) in enumerate(zip(layout.parameters, parameters, strict=True)):
            if not compatible(declared, found):  # module_c4
                report.add(
                    HEADER,
                    "module_c4",
                    f"entry_computation_layout gives parameter {index} as {plain(declared)}, it is"
                    f" {plain(found)}",
                    entry.parameters[index],
                )
    if not compatible(layout.result, result):  # module_c4
        report.add(
            HEADER,
            "module_c4",
            f"entry_computation_layout gives the result as {plain(layout.result)}, it is"
            f" {plain(result)}",
            entry.root,
        )
    # What the header takes from the entry is told there.
    own = {*parameters, result}
    for shape in (*layout.parameters, layout.result):
        problem = None if shape in own else layout_problem(shape)
        if problem is not None:  # module_c13
            report.add(HEADER, "module_c13", f"entry_computation_layout: {problem[1]}", entry)
    _check_aliases(module, entry, parameters, result, report)
    _check_flags(module, entry, parameters, result, report)


def _leaf(shape: Shape, index: tuple[int, ...]) -> ArrayShape | None:
    try:
        part = subshape(shape, index)
    except IndexError:
        return None
    return part if isinstance(part, ArrayShape) else None


def _check_aliases(
    module: HloModule,
    entry: ComputationOp,
    parameters: list[Shape],
    result: Shape,
    report: Report,
) -> None:
    outputs: set[tuple[int, ...]] = set()
    taken: set[tuple[int, tuple[int, ...]]] = set()
    aliases = module.input_output_alias
    for entry_ in aliases.entries if aliases is not None else ():
        number, index = entry_.parameter_number, entry_.parameter_index
        source = _leaf(parameters[number], index) if 0 <= number < len(parameters) else None
        target = _leaf(result, entry_.output_index)
        if source is None or target is None:  # module_c5
            what = "parameter" if source is None else "output"
            report.add(
                HEADER,
                "module_c5",
                f"input_output_alias {entry_}: there is no such {what} leaf",
                entry,
            )
            continue
        if source.byte_size != target.byte_size:  # module_c6
            report.add(
                HEADER,
                "module_c6",
                f"Expected aliased input {number} and output to have the same size: {entry_} joins"
                f" {plain(source)} and {plain(target)}",
                entry,
            )
        if entry_.output_index in outputs or (number, index) in taken:  # module_c7
            report.add(
                HEADER, "module_c7", f"input_output_alias {entry_}: a leaf is aliased twice", entry
            )
        outputs.add(entry_.output_index)
        taken.add((number, index))
    donors = module.buffer_donor
    donated: set[tuple[int, tuple[int, ...]]] = set()
    for number, index in donors.entries if donors is not None else ():
        shown = f"buffer_donor ({number}, {{{','.join(map(str, index))}}})"
        if not 0 <= number < len(parameters) or _leaf(parameters[number], index) is None:
            report.add(  # module_c8
                HEADER, "module_c8", f"{shown}: there is no such parameter leaf", entry
            )
        elif (number, index) in donated or (number, index) in taken:  # module_c9
            report.add(HEADER, "module_c9", f"{shown}: already donated or aliased", entry)
        donated.add((number, index))


def _check_flags(
    module: HloModule,
    entry: ComputationOp,
    parameters: list[Shape],
    result: Shape,
    report: Report,
) -> None:
    leaf_count = sum(1 for p in parameters for _ in leaves(p))
    elements = len(result.elements) if isinstance(result, TupleShape) else 1
    for name, flags, counts in (
        (
            "allow_spmd_sharding_propagation_to_parameters",
            module.allow_propagation_to_parameters,
            {1, len(parameters), leaf_count},
        ),
        (
            "allow_spmd_sharding_propagation_to_output",
            module.allow_propagation_to_output,
            {1, elements, sum(1 for _ in leaves(result))},
        ),
    ):
        if flags is not None and len(flags.values) not in counts:  # module_c11
            report.add(
                HEADER,
                "module_c11",
                f"{name} has {len(flags.values)} values; expects {' or '.join(map(str, sorted(counts)))}",
                entry,
            )
