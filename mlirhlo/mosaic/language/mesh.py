"""`kernel`: a body that runs once on each core of a mesh, with all arrays in HBM."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mlirhlo.mosaic.language.call import KernelCall, kernel_call
from mlirhlo.mosaic.language.faults import bad_spec, misuse
from mlirhlo.mosaic.language.scratch import MemorySpace
from mlirhlo.mosaic.language.specs import ARBITRARY, CORE_PARALLEL, CompilerParams, CostEstimate


@dataclass(frozen=True, slots=True)
class TensorCoreMesh:
    """The TensorCores of a device along one axis."""

    axis_name: str
    num_cores: int = 1

    @property
    def shape(self) -> Mapping[str, int]:
        """Sizes by names of axes."""
        return {self.axis_name: self.num_cores}


def create_tensorcore_mesh(axis_name: str, *, num_cores: int = 1) -> TensorCoreMesh:
    """The mesh of a device's TensorCores: one on v5e and v6e, two on v4 and v5p."""
    return TensorCoreMesh(axis_name, num_cores)


def kernel(
    body: Callable[..., Any] | None = None,
    out_type: Any = (),
    *,
    mesh: Any,
    scratch_types: Any = (),
    compiler_params: CompilerParams | None = None,
    interpret: Any = None,
    cost_estimate: CostEstimate | None = None,
    debug: bool = False,
    name: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    platform: str = "interpreter",
) -> Any:
    """A call whose body runs on every core of the mesh: `lax.axis_index(axis)` says on which.

    It sees all arrays whole, in HBM: inputs, results, scratch; blocks of them move by copies and
    `emit_pipeline`. Without `body` it is a decorator. Raises `HloError` HLO0726 for another mesh.
    """
    if not isinstance(mesh, TensorCoreMesh):
        raise bad_spec(
            f"a kernel runs on a mesh of TensorCores, not {mesh!r}",
            "write mesh=pltpu.create_tensorcore_mesh('core', num_cores=1)",
        )

    def made(function: Callable[..., Any]) -> KernelCall:
        stated = compiler_params or CompilerParams()
        # A core-parallel dimension has all cores of the chip, or there is none.
        semantics = CORE_PARALLEL if mesh.num_cores > 1 else ARBITRARY
        return kernel_call(
            function,
            out_type,
            grid=((mesh.axis_name, mesh.num_cores),),
            in_specs=MemorySpace.ANY,
            out_specs=MemorySpace.ANY,
            scratch_shapes=scratch_types,
            compiler_params=replace(stated, dimension_semantics=(semantics,)),
            interpret=interpret,
            cost_estimate=cost_estimate,
            debug=debug,
            name=name,
            metadata=metadata,
            platform=platform,
        )

    return made if body is None else made(body)


def _left_out(name: str, instead: str) -> Callable[..., Any]:
    def function(*_: Any, **__: Any) -> Any:
        raise misuse(f"{name} has no place here", instead)

    function.__name__ = name
    function.__doc__ = f"Not here: {instead}. Raises `HloError` HLO0720."
    return function


_STATE = "write pl.kernel(body, out_type, mesh=…), and give it the arrays"
core_map = _left_out("core_map", _STATE)
run_state = _left_out("run_state", _STATE)
Indirect = _left_out(
    "Indirect", "start one copy for each row, at the number that a prefetched array has for it"
)
BufferedRef = _left_out(
    "BufferedRef",
    "let emit_pipeline make its buffers, or emit_pipeline_with_allocations share them",
)
