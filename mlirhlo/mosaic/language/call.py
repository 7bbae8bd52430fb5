"""`kernel_call`: a Python function, run for every step of a grid."""

# What users pass has no stated type until it is looked at.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index as as_index
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block

from mlirhlo.mosaic.language.elements import I32
from mlirhlo.mosaic.language.faults import bad_spec
from mlirhlo.mosaic.language.kernel import Kernel
from mlirhlo.mosaic.language.outside.interpret import params_of, platform_of
from mlirhlo.mosaic.language.outside.parallel import on_all_devices
from mlirhlo.mosaic.language.refs import Ref
from mlirhlo.mosaic.language.scratch import MemoryRef, MemorySpace, scratch_of
from mlirhlo.mosaic.language.specs import (
    BlockSpec,
    CompilerParams,
    CostEstimate,
    GridSpec,
    PrefetchScalarGridSpec,
    ShapeDtypeStruct,
)
from mlirhlo.mosaic.language.trace import (
    UNIT,
    Trace,
    attribute,
    emit,
    int_attr,
    ints,
    memref_type,
    parameter_names,
    place_of_function,
    tracing,
    vector_type,
)
from mlirhlo.mosaic.language.tree import flatten, structure
from mlirhlo.mosaic.language.value import Value
from mlirhlo.mosaic.language.windows import Operand, function, index_function, operand_of, window
from mlirhlo.mosaic.timeline import Timeline

DYNAMIC = -(1 << 63)
"""How MLIR writes a bound of the grid that is an operand."""


@dataclass(slots=True, eq=False)
class KernelCall:
    """A kernel function with its grid and blocks; called on arrays, or lowered for their types."""

    function: Callable[..., Any]
    out_shape: Any
    grid: tuple[Any, ...]
    dimension_names: tuple[str | None, ...]
    in_specs: Any
    out_specs: Any
    scratch_shapes: Any
    prefetches: int
    aliases: Mapping[int, int]
    params: CompilerParams
    cost_estimate: CostEstimate | None
    name: str
    mesh: Mapping[str, int]
    platform: str | None
    interpret: Any
    target: str | None
    timeline: str | None
    debug: bool
    metadata: Mapping[str, Any]
    _lowered: dict[Any, Kernel] = field(default_factory=dict[Any, Kernel])

    def __call__(self, *arrays: Any) -> Any:
        """The results for numpy arrays. Under a mesh each array has a leading dimension for each of
        its axes: one shard a device. In `shard_map` it runs on the mesh of that, on the shard of each device.
        """
        trees = [_tree(array) for array in arrays]
        leaves = [np.asarray(leaf) for tree in trees for leaf in tree[0]]

        def run(mesh: Mapping[str, int], stacked: list[Any]) -> list[Any]:
            return flatten(replace(self, mesh=mesh, _lowered={})._run(trees, stacked))[0]

        mine = on_all_devices(run, leaves)
        return self._run(trees, leaves) if mine is None else flatten(self.out_shape)[1](mine)

    def _run(self, trees: Sequence[_Tree], leaves: list[Any]) -> Any:
        lead = len(self.mesh)
        types = [ShapeDtypeStruct(leaf.shape[lead:], leaf.dtype) for leaf in leaves]
        kernel = self.lower(*_arranged(trees, types))
        bounds = [np.asarray(bound, np.int32) for bound in self.grid if not _is_static(bound)]
        options: Any = params_of(self.interpret)
        if self.timeline is None:
            platform = platform_of(self.platform)
            return kernel(*bounds, *leaves, platform=platform, options=options)

        stated = options or kernel.interpret_params()
        taken = Timeline(self.target or stated.target)
        found = kernel(*bounds, *leaves, options=replace(stated, timeline=taken))
        taken.write(self.timeline)
        return found

    def lower(self, *types: Any) -> Kernel:
        """The kernel for arrays of these shapes and types (arrays, or `ShapeDtypeStruct`).

        Raises `HloError` HLO0720 to HLO0728 at the line that is wrong.
        """
        trees = [_tree(type_) for type_ in types]
        structs = [ShapeDtypeStruct(one.shape, one.dtype) for tree in trees for one in tree[0]]
        key = (tuple(structs), repr([structure(type_) for type_ in types]))
        found = self._lowered.get(key)
        if found is None:
            found = self._lowered[key] = self._trace(structs, trees)
            if self.debug:
                sys.stdout.write(found.as_text())
            if self.target is not None:
                found.check(self.target)
        return found

    def as_text(self, *types: Any, **form: Any) -> str:
        """The kernel's module as text; see `Kernel.as_text`."""
        return self.lower(*types).as_text(**form)

    def _trace(self, inputs: list[ShapeDtypeStruct], trees: list[_Tree]) -> Kernel:
        leaves, rebuild = flatten(self.out_shape)
        results = [ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
        grid = tuple(as_index(b) if _is_static(b) else None for b in self.grid)
        if self.prefetches > len(trees):
            raise bad_spec(f"{self.prefetches} scalars are prefetched of {len(trees)} operands")
        prefetched = trees[: self.prefetches]
        scalars = sum(len(tree[0]) for tree in prefetched)
        outs = self.out_shape if isinstance(self.out_shape, tuple | list) else [self.out_shape]
        trees = [*trees, *(flatten(out) for out in outs)]
        own: Any = self.scratch_shapes
        listed: Any = own if isinstance(own, tuple | list) else [own[key] for key in sorted(own)]
        named = parameter_names(self.function)
        if isinstance(own, Mapping):
            named = [*named[: len(trees)], *sorted(own)]
        names = _leaf_names(named, [*trees, *(flatten(one) for one in listed)])
        operands = self._operands(inputs, results, grid, (scalars, trees, len(outs)), names)
        scratch, rebuild_scratch = flatten(self.scratch_shapes)
        scratches = [scratch_of(shape) for shape in scratch]
        module = ModuleOp([], {})
        trace = self._body(
            module, operands, scratches, rebuild_scratch, grid, trees, names, scalars
        )
        if grid:
            for number, operand in enumerate(operands[scalars:]):
                if operand.space in ("any", "hbm", "host", "semaphore_mem"):
                    continue
                module.body.block.add_op(
                    index_function(
                        operand,
                        number,
                        grid,
                        operands[:scalars],
                        lambda refs: _arranged(prefetched, refs),
                    )
                )
        module.properties["sym_name"] = StringAttr(self.name)
        return Kernel(
            module=module,
            name=self.name,
            inputs=tuple(operand.array for operand in operands[: len(inputs)]),
            results=tuple(operand.array for operand in operands[len(inputs) :]),
            rebuild=lambda arrays: rebuild(
                [array.reshape(one.shape) for array, one in zip(arrays, results, strict=True)]
                if () in (one.shape for one in results)
                else arrays
            ),
            dynamic_bounds=sum(bound is None for bound in grid),
            aliases=dict(self.aliases),
            params=self.params,
            cost_estimate=self.cost_estimate,
            mesh=dict(self.mesh),
            has_communication=trace.has_communication,
            metadata=dict(self.metadata),
        )

    def _operands(
        self,
        inputs: Sequence[ShapeDtypeStruct],
        results: Sequence[ShapeDtypeStruct],
        grid: tuple[int | None, ...],
        parts: tuple[int, Sequence[_Tree], int],
        names: Sequence[str],
    ) -> list[Operand]:
        smem = BlockSpec(memory_space=MemorySpace.SMEM)
        scalars, trees, outs = parts
        specs = [
            *(smem for _ in range(scalars)),
            *_listed(self.in_specs, trees[self.prefetches : len(trees) - outs], "inputs"),
            *_listed(self.out_specs, trees[len(trees) - outs :], "results"),
        ]
        made: list[Operand] = []
        for number, (array, spec) in enumerate(zip((*inputs, *results), specs, strict=True)):
            name = names[number] if number < len(names) else f"arg{number}"
            # Prefetched scalars are whole, whatever the grid.
            made.append(operand_of(name, array, spec, () if number < scalars else (grid or ())))
        for source, target in self.aliases.items():
            if not (0 <= source < len(inputs) and 0 <= target < len(results)):
                raise bad_spec(f"there is no operand {source} or result {target} to alias")
            if inputs[source] != results[target]:
                raise bad_spec(
                    f"operand {source} and result {target} differ in shape or type",
                    "aliased arrays are one array",
                )
        return made

    def _body(
        self,
        module: ModuleOp,
        operands: Sequence[Operand],
        scratches: Sequence[MemoryRef],
        rebuild_scratch: Callable[[list[Any]], Any],
        grid: tuple[int | None, ...],
        trees: Sequence[_Tree],
        names: Sequence[str],
        scalars: int,
    ) -> Trace:
        i32 = vector_type((), I32)
        types: list[Attribute] = [
            *(i32 for _ in grid),
            *(operand.type for operand in operands),
            *(memref_type(one.shape, one.element, one.space) for one in scratches),
        ]
        block = Block(arg_types=types)
        for argument, name in zip(block.args[len(grid) :], names, strict=False):
            argument.name_hint = name
        for dim, argument in enumerate(block.args[: len(grid)]):
            argument.name_hint = self.dimension_names[dim] or "ijklmnopq"[dim % 9]
        indices = [Value(argument, (), I32) for argument in block.args[: len(grid)]]
        first = len(grid) + len(operands)
        refs = [
            operand.ref(argument)
            for operand, argument in zip(operands, block.args[len(grid) : first], strict=True)
        ]
        own = [
            Ref(argument, one.shape, one.dtype, one.space, semaphore=one.semaphore)
            for one, argument in zip(scratches, block.args[first:], strict=True)
        ]
        named = {name: dim for dim, name in enumerate(self.dimension_names) if name is not None}
        trace = Trace(
            block,
            tuple(indices),
            grid,
            named,
            self.mesh,
            self.params.collective_id,
        )
        arranged = rebuild_scratch(list(own))
        more: Any = arranged if isinstance(arranged, Mapping) else {}
        rest = () if isinstance(arranged, Mapping) else tuple(arranged)
        with tracing(trace):
            _check_arity(self.function, len(trees) + len(rest), more)
            given = self.function(*_arranged(trees, refs), *rest, **more)
            if given is not None:
                raise bad_spec(
                    f"the kernel returns {type(given).__name__}; results are stored to references",
                    "write o_ref[...] = value",
                )
            emit("func.return", [])
        stated = self._function_attributes(operands, scratches, grid, scalars)
        op = function(self.name, block, [], stated)
        place = place_of_function(self.function)
        if place is not None:
            op.location = place  # type: ignore[assignment]
        module.body.block.add_op(op)
        return trace

    def _function_attributes(
        self,
        operands: Sequence[Operand],
        scratches: Sequence[MemoryRef],
        grid: tuple[int | None, ...],
        scalars: int,
    ) -> dict[str, Attribute]:
        stated = self.params.dimension_semantics
        semantics = [str(getattr(word, "value", word)) for word in stated or ()]
        if stated is not None and len(semantics) != len(grid):
            raise bad_spec(
                f"{len(semantics)} dimension_semantics for a grid of {len(grid)} dimensions"
            )
        semantics = semantics or ["arbitrary"] * len(grid)
        for word in semantics:
            if word not in ("parallel", "arbitrary", "core_parallel", "subcore_parallel"):
                raise bad_spec(f"{word!r} are no dimension_semantics", "parallel or arbitrary")
        made: dict[str, Attribute] = {
            "dimension_semantics": ArrayAttr(
                [attribute(f"#tpu.dimension_semantics<{word}>") for word in semantics]
            ),
            "scalar_prefetch": int_attr(scalars, 64),
            "scratch_operands": int_attr(len(scratches), 64),
            "tpu.core_type": attribute("#tpu.core_type<tc>"),
            "tpu.main": UNIT,
        }
        if grid:
            made["iteration_bounds"] = ints([DYNAMIC if b is None else b for b in grid])
            made["window_params"] = ArrayAttr(
                [window(one, at) for at, one in enumerate(operands[scalars:])]
            )
        return made


_Tree: TypeAlias = "tuple[list[Any], Callable[[list[Any]], Any]]"
"""Leaves in order, and what puts others in their places."""


def _tree(given: Any) -> _Tree:
    """Arrays or their types in tuples, lists and dictionaries; a list of numbers is one array."""
    leaves, rebuild = flatten(given)
    if all(hasattr(leaf, "shape") for leaf in leaves):
        return leaves, rebuild
    return [given], lambda values: values[0]


def _arranged(trees: Sequence[_Tree], values: Sequence[Any]) -> list[Any]:
    """Values, one a leaf, as the trees have them."""
    rest = iter(values)
    return [rebuild([next(rest) for _ in leaves]) for leaves, rebuild in trees]


def _leaf_names(names: Sequence[str], trees: Sequence[_Tree]) -> list[str]:
    """What to call each leaf, and the scratch after them: the parameter, with a number where it has several."""
    found: list[str] = []
    for at, (leaves, _) in enumerate(trees):
        name = names[at] if at < len(names) else f"arg{at}"
        found += (
            [f"{name}_{i}" for i in range(len(leaves))] if len(leaves) > 1 else [name] * len(leaves)
        )
    return [*found, *names[len(trees) :]]


def _is_static(bound: Any) -> bool:
    return not isinstance(bound, np.ndarray)


def _check_arity(kernel: Callable[..., Any], count: int, named: Mapping[str, Any]) -> None:
    try:
        signature = inspect.signature(kernel)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*[None] * count, **named)
    except TypeError as problem:
        raise bad_spec(
            f"the kernel is given {count} references, which does not fit its parameters: {problem}",
            "it takes scalar-prefetch, input, output and scratch references, in this order",
        ) from None


def _listed(specs: Any, trees: Sequence[_Tree], what: str) -> list[Any]:
    """The spec of each array. None stands for no spec beside an array, and beside None for nothing at all."""
    count = sum(len(leaves) for leaves, _ in trees)
    if specs is None:
        return [None] * count
    if isinstance(specs, MemorySpace):
        return [specs] * count  # the same for all
    found = _flat_specs(specs)
    arranged = _flat_specs(_arranged(trees, [True] * count))
    if len(found) == len(arranged):
        return [spec for spec, is_there in zip(found, arranged, strict=True) if is_there]
    if len(found) != count:
        raise bad_spec(
            f"{len(found)} specs for {count} {what}", "give one BlockSpec an array, in order"
        )
    return found


def _flat_specs(specs: Any) -> list[Any]:
    if isinstance(specs, Mapping):
        named: Any = specs
        return [leaf for key in sorted(named) for leaf in _flat_specs(named[key])]
    if isinstance(specs, tuple | list):
        items: Any = specs
        return [leaf for item in items for leaf in _flat_specs(item)]
    return [specs]


def _named_grid(grid: Any) -> tuple[tuple[Any, ...], tuple[str | None, ...]]:
    given: Any = grid if isinstance(grid, tuple | list) else (grid,)
    sizes: list[Any] = []
    names: list[str | None] = []
    for item in given:
        name, size = item if isinstance(item, tuple) else (None, item)
        if not isinstance(size, np.ndarray) and not hasattr(size, "__index__"):
            raise bad_spec(
                f"a dimension of the grid is {size!r}",
                "give it a number, or a numpy array of one where it is known at the call only",
            )
        if _is_static(size) and as_index(size) < 0:
            raise bad_spec(f"a dimension of the grid has {size} steps")
        sizes.append(size)
        names.append(name)
    return tuple(sizes), tuple(names)


def kernel_call(
    kernel: Callable[..., Any],
    out_shape: Any,
    *,
    grid_spec: GridSpec | PrefetchScalarGridSpec | None = None,
    grid: Any = (),
    in_specs: Any = None,
    out_specs: Any = None,
    scratch_shapes: Any = (),
    input_output_aliases: Mapping[int, int] | None = None,
    debug: bool = False,
    interpret: Any = None,
    name: str | None = None,
    compiler_params: CompilerParams | None = None,
    cost_estimate: CostEstimate | None = None,
    metadata: Mapping[str, Any] | None = None,
    mesh: Mapping[str, int] | None = None,
    platform: str | None = None,
    target: str | None = None,
    timeline: str | None = None,
) -> KernelCall:
    """A kernel: `kernel` is run for every step of the grid, on references to blocks of the arrays.

    Names are Pallas' (`pallas_call`). What is ours: `platform` says where a call on arrays runs,
    `interpreter` (checked) or `cpu` (compiled); `interpret` are the `InterpretParams` of the former;
    `target`, a generation such as `v5e`, refuses what it cannot do; `mesh` has axes of devices;
    `timeline`, a `.json` or `.svg` file, is written by each call (on the simulator).
    Raises `HloError` HLO0726 for specs that do not fit.
    """
    prefetches = 0
    if grid_spec is not None:
        if grid or in_specs is not None or out_specs is not None or scratch_shapes:
            raise bad_spec("grid_spec stands in the place of grid, specs and scratch_shapes")
        grid, in_specs = grid_spec.grid, grid_spec.in_specs
        out_specs, scratch_shapes = grid_spec.out_specs, grid_spec.scratch_shapes
        if isinstance(grid_spec, PrefetchScalarGridSpec):
            prefetches = grid_spec.num_scalar_prefetch
    params_of(interpret)  # refuses what it cannot be
    sizes, names = _named_grid(grid)
    inner = getattr(kernel, "func", kernel)
    title = name or str(getattr(inner, "__name__", "kernel"))
    return KernelCall(
        function=kernel,
        out_shape=out_shape,
        grid=sizes,
        dimension_names=names,
        in_specs=in_specs,
        out_specs=out_specs,
        scratch_shapes=scratch_shapes,
        prefetches=prefetches,
        aliases=input_output_aliases or {},
        params=compiler_params or CompilerParams(),
        cost_estimate=cost_estimate,
        name=re.sub(r"\W", "_", title).strip("_") or "kernel",
        mesh=mesh or {},
        platform=platform,
        interpret=interpret,
        target=target,
        timeline=timeline,
        debug=debug,
        metadata=metadata or {},
    )
