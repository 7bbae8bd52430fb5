"""`mosaic-kernel-expander`: kernels as instructions of the program that calls them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mlirhlo.diagnostics import HloError, Severity, error
from mlirhlo.dialects.hlo.attributes.base import string
from mlirhlo.dialects.hlo.build import create
from mlirhlo.dialects.hlo.module import HloModule, holder
from mlirhlo.dialects.hlo.names import NameUniquer
from mlirhlo.dialects.hlo.ops import (
    AsyncStartOp,
    ComputationOp,
    CopyOp,
    CustomCallOp,
    TupleOp,
)
from mlirhlo.dialects.hlo.shapes import ArrayShape, Shape, TupleShape
from mlirhlo.dialects.hlo.types import shape_of, type_of
from mlirhlo.formats import load
from mlirhlo.importing import LATE
from mlirhlo.interp.custom_calls import CUSTOM_CALLS, options_of
from mlirhlo.rewrites.computations import rename_callees
from mlirhlo.rewrites.control_flow.call_inliner import insert_body
from mlirhlo.rewrites.layout.default_layouts import DefaultLayoutsPass, in_default_order
from mlirhlo.rewrites.passes import HloPass, Trace
from mlirhlo.rewrites.simplify.tuple_parts import insert_before

with LATE:
    from mlirhlo.lowering import target as lowering_target
    from mlirhlo.mosaic import custom_call, decode, fast
    from mlirhlo.rewrites import stablehlo_to_hlo


if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import SSAValue

LOG = logging.getLogger(__name__)

TARGET = "tpu_custom_call"


@dataclass(frozen=True)
class MosaicKernelExpanderPass(HloPass):
    """Replaces calls of Mosaic kernels by loops over their grids.

    Before and after, for a kernel without a grid that doubles its operand:

        %d = f32[8,128] custom-call(%x), custom_call_target="tpu_custom_call", backend_config={...}
            =>   %d = f32[8,128] multiply(%x, %two)

    Calls that share a kernel share the computations of its loops. What has no form outside of the simulator,
    messages and assertions included, stays a call, with a warning (HLO0738) that names the operation; so do,
    unsaid, calls that do not fit their kernels, those in asynchronous computations and in fusions, and all where
    the target was given another meaning. Needs: array operands of static sizes.
    """

    name = "mosaic-kernel-expander"
    exact = False

    def run(self, module: HloModule, trace: Trace) -> bool:
        """Expands; whether any call was expanded."""
        del trace
        calls = [
            op
            for op in module.candidates(CustomCallOp)
            if isinstance(op, CustomCallOp) and op.custom_call_target == TARGET
        ]
        if not calls or not simulates():
            return False
        closed = module.known(HloModule.fused_computations) | {
            name for op in module.candidates(AsyncStartOp) for name in op.called_computations
        }
        names = NameUniquer(n for op in module.instructions if (n := op.instruction_name))
        bodies: dict[object, ComputationOp | None] = {}
        changed = False
        for op in calls:
            if holder(op).computation_name in closed:
                continue
            key = (
                op.backend_config,
                op.input_shapes,
                op.shape,
                tuple(sorted(_aliases(op).items())),
            )
            if key not in bodies:
                bodies[key] = _body(op, module)
            body = bodies[key]
            if body is not None:
                _expand(op, body, names)
                changed = True
        for body in bodies.values():
            if body is not None:
                body.erase(safe_erase=False)
        return changed


def simulates() -> bool:
    """Whether kernels mean what the simulator says, and nobody registered another meaning."""
    meaning = CUSTOM_CALLS.get(TARGET)
    return meaning is None or getattr(meaning, "__module__", "") == "mlirhlo.mosaic.custom_call"


def _body(op: CustomCallOp, module: HloModule) -> ComputationOp | None:
    """The kernel's function, outside of the module, which has what it calls; None where the call stays."""
    try:
        program = _program(op)
    except HloError as problem:
        if problem.code == "HLO0738":
            said = problem.diagnostics[0]
            message = f"the kernel of %{op.instruction_name} is simulated: {said.message}"
            warning = replace(said, message=message, help=None, severity=Severity.WARNING)
            LOG.warning("%s", warning)
        # What else is wrong with a kernel is said when the call is run.
        return None
    return None if program is None else _moved(program, op, module)


def _program(op: CustomCallOp) -> ModuleOp | None:
    """The kernel as an HLO module; None for a call that does not fit it."""
    inputs, results = _typed(op.input_shapes), _typed(_parts(op.shape))
    if inputs is None or results is None:
        return None
    config = decode.config_of(options_of(op), op.instruction_name or "kernel")
    kernel = decode.read_kernel(config.body)
    if not fast.fits(kernel, inputs, results):
        return None
    has = lowering_target.current().has
    text = fast.program_of(
        kernel,
        inputs,
        results,
        _aliases(op),
        multiplies_pairs=has("avx512bf16") or has("amx-bf16", "amx-tile"),
    )
    try:
        program = HloModule(
            stablehlo_to_hlo.convert_to_hlo(load(text.encode(), name="<kernel>").module)
        )
    except HloError as problem:
        said = f"its program cannot be read: {problem.diagnostics[0].message}"
        raise error("HLO0738", said) from problem
    signature = program.entry_signature
    # The module may have no layouts, and must not get any.
    program.set_program_layout(
        [in_default_order(one) for one in signature.parameters],
        in_default_order(signature.result),
    )
    DefaultLayoutsPass().run(program, Trace())
    return program.op


def _aliases(op: CustomCallOp) -> dict[int, int]:
    return custom_call.aliases_of(op)


def _parts(shape: Shape) -> Sequence[Shape]:
    return shape.elements if isinstance(shape, TupleShape) else (shape,)


def _typed(shapes: Sequence[Shape]) -> list[tuple[tuple[int, ...], str]] | None:
    """Sizes and element types; None where something is no array of static sizes."""
    found: list[tuple[tuple[int, ...], str]] = []
    for shape in shapes:
        if not isinstance(shape, ArrayShape) or shape.is_dynamic:
            return None
        found.append((shape.dimensions, str(shape.element_type.mlir)))
    return found


def _moved(program: ModuleOp, op: CustomCallOp, module: HloModule) -> ComputationOp:
    """The entry of `program`, whose other computations go into `module`, before the caller."""
    free = NameUniquer(c.computation_name for c in module.computations)
    source = HloModule(program)
    computations = tuple(source.computations)
    others = [c for c in computations if c.is_entry is None]
    instead = {c.computation_name: free.unique(c.computation_name) for c in others}
    rename_callees(source.instructions, instead)
    here = holder(op)
    (entry,) = (c for c in computations if c.is_entry is not None)
    for computation in computations:
        computation.detach()
    for computation in others:
        name = instead[computation.computation_name]
        computation.properties["sym_name"] = string(name)
        module.op.body.block.insert_op_before(computation, here)
    return entry


def _expand(op: CustomCallOp, body: ComputationOp, names: NameUniquer) -> None:
    """Puts a kernel's instructions in the place of a call of it."""
    inputs = [_as(value, in_default_order(shape_of(value.type)), op) for value in op.inputs]
    root = insert_body(op, body, inputs, names)
    shape = op.shape
    if isinstance(shape, TupleShape) and isinstance(root.owner, TupleOp):
        given = [_as(v, s, op) for v, s in zip(root.owner.inputs, shape.elements, strict=True)]
        root = insert_before(op, create(TupleOp, given, op.output.type, {})).output
    elif isinstance(shape, TupleShape):
        # A lone result is no tuple in a program of functions.
        given = [_as(root, shape.elements[0], op)]
        root = insert_before(op, create(TupleOp, given, op.output.type, {})).output
    else:
        root = _as(root, shape, op)
    op.output.replace_all_uses_with(root)
    op.detach()
    op.erase()


def _as(value: SSAValue, shape: Shape, before: CustomCallOp) -> SSAValue:
    """A value in another layout."""
    if value.type == type_of(shape):
        return value
    return insert_before(before, create(CopyOp, [value], type_of(shape), {})).output
