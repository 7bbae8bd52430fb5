"""`kernel` and `core_map`: a body that runs once on each core of a mesh, with all arrays in HBM."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mlirhlo.mosaic.language.control import when
from mlirhlo.mosaic.language.dma import axis_index, axis_size, semaphore_signal, semaphore_wait
from mlirhlo.mosaic.language.faults import bad_spec, misuse
from mlirhlo.mosaic.language.functions.extras import named_scope
from mlirhlo.mosaic.language.outside.state import on_references, running
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.scratch import MemorySpace
from mlirhlo.mosaic.language.specs import (
    ARBITRARY,
    CORE_PARALLEL,
    CompilerParams,
    CostEstimate,
)


@dataclass(frozen=True, slots=True)
class TensorCoreMesh:
    """The TensorCores of a device along one axis."""

    axis_name: str
    num_cores: int = 1

    @property
    def shape(self) -> Mapping[str, int]:
        """Sizes by names of axes."""
        return {self.axis_name: self.num_cores}


def create_tensorcore_mesh(
    axis_name: str, devices: Any = None, num_cores: int | None = None
) -> TensorCoreMesh:
    """The mesh of a device's TensorCores: one on v5e and v6e (and by default), two on v4 and v5p. Pallas
    looks at `devices` for their number.
    """
    del devices
    return TensorCoreMesh(axis_name, 1 if num_cores is None else num_cores)


def run_on_first_core(core_axis_name: str) -> Callable[[Callable[[], Any]], Any]:
    """Decorator: the function runs on the first core along an axis of cores alone."""
    if axis_size(core_axis_name) == 1:
        return lambda body: body()
    return when(axis_index(core_axis_name) == 0)


def core_barrier(sem: Ref, *, core_axis_name: str) -> None:
    """Waits until all cores along an axis are here; `sem` is a regular semaphore of each."""
    count = axis_size(core_axis_name)
    if count == 1:
        return
    mine = axis_index(core_axis_name)
    with named_scope("sync_cores"):
        for core in range(count):
            when(mine != core)(lambda at=core: semaphore_signal(sem, 1, core_index=at))
        semaphore_wait(sem, count - 1)


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
    platform: str | None = None,
) -> Any:
    """A call whose body runs on every core of the mesh: `lax.axis_index(axis)` says on which.

    It sees all arrays whole, in HBM: inputs, results, those of `new_ref` around it, scratch; blocks of them
    move by copies and `emit_pipeline`. Without `body` it is a decorator. Raises `HloError` HLO0726 for another mesh.
    """
    if not isinstance(mesh, TensorCoreMesh):
        raise bad_spec(
            f"a kernel runs on a mesh of TensorCores, not {mesh!r}",
            "write mesh=pltpu.create_tensorcore_mesh('core', num_cores=1)",
        )

    stated = compiler_params or CompilerParams()
    # A core-parallel dimension has all cores of the chip, or there is none.
    semantics = CORE_PARALLEL if mesh.num_cores > 1 else ARBITRARY
    made = partial(
        on_references,
        out_shape=out_type,
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


def core_map(
    mesh: Any, *, scratch_shapes: Any = (), name: str | None = None, **options: Any
) -> Callable[[Callable[..., None]], None]:
    """Decorator: the function runs at once on every core of the mesh, on the references of `run_state` or
    `new_ref` that it sees around it, all in HBM, and on scratch of its own.

    `options` are those of `kernel`. Raises `HloError` HLO0720 where there are no references, HLO0726 for another
    mesh.
    """

    def run(body: Callable[..., None]) -> None:
        if not running(body):
            raise misuse(
                "core_map has no references around it",
                "make them with pl.new_ref(array), or by pl.run_state(f)(arrays) around the core_map",
            )
        kernel(body, mesh=mesh, scratch_types=scratch_shapes, name=name, **options)()

    return run


def _left_out(name: str, instead: str) -> Callable[..., Any]:
    def function(*_: Any, **__: Any) -> Any:
        raise misuse(f"{name} has no place here", instead)

    function.__name__ = name
    function.__doc__ = f"Not here: {instead}. Raises `HloError` HLO0720."
    return function


Indirect = _left_out(
    "Indirect",
    "SparseCores alone have it; start one copy for each row, at the number that a prefetched array has for it",
)
get_global = _left_out("get_global", "allocate scratch_shapes, or run_scoped")
